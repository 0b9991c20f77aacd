"""What kind of question a turn is: small linear classifiers over the words and what they were found to mean.

`mode` says whether it is about training or serving, `tool` which tool answers it, `role` which field a number is of.
The weights are learnt by `python -m agent.offline.language.train` from labelled conversations; only features that
several authors share are kept, by their hashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from agent.offline.language.features.mode import Context, of_mode
from agent.offline.language.mentions import Mentions

WEIGHTS = Path(__file__).parent / "weights.npz"
NO_TOOL = "none"
# Tools of one mode alone.
OF_SERVING = frozenset({"estimate_inference", "best_serving", "size_serving", "project_mlperf"})
OF_TRAINING = frozenset(
    {"estimate_training", "best_parallelism", "apply_strategies", "project_scaling", "peak_throughput"}
)


class Classifier(NamedTuple):
    """Weights of one classifier, (features + 1, labels) with what each label has in any case last; `keys` are the
    features' hashes, sorted."""

    keys: Any
    matrix: Any
    labels: tuple[str, ...]

    def rows(self, found: Iterable[str]) -> Any:
        """Rows of the features that it knows: one that was never learnt says nothing."""
        import numpy as np  # heavy: only where a turn is read

        hashes = np.array(sorted({hashed(one) for one in found}), dtype=np.uint32)
        at = np.minimum(np.searchsorted(self.keys, hashes), len(self.keys) - 1)
        return at[self.keys[at] == hashes]


def hashed(feature: str) -> int:
    return crc32(feature.encode())


def likely(weights: Classifier, found: Iterable[str]) -> dict[str, float]:
    """{Label: its share}; shares sum to one."""
    import numpy as np  # heavy: only where a turn is read

    rows = weights.rows(found)
    scores = weights.matrix[rows].sum(axis=0) / max(len(rows), 1) ** 0.5 + weights.matrix[-1]
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    return dict(zip(weights.labels, map(float, shares), strict=True))


@cache
def trained() -> Mapping[str, Classifier]:
    """The shipped weights of the classifiers."""
    import numpy as np  # heavy: only where a turn is read

    with np.load(WEIGHTS) as file:
        return {
            name: Classifier(
                file[f"{name}_keys"],
                file[name].astype(np.float32) * file[f"{name}_scale"],
                tuple(map(str, file[f"{name}_labels"])),
            )
            for name in ("mode", "tool", "role")
        }


def mode_of(read: Mentions, context: Context) -> dict[str, float]:
    return likely(trained()["mode"], of_mode(read, context))
