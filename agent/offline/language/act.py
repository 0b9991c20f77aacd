"""What kind of question a turn is: two small linear classifiers over the words and what they were found to mean.

`mode` says whether it is about training or serving, `tool` which tool answers it. The weights are learnt by
`python -m agent.offline.language.train` from labelled conversations; features are hashed, so that they stay small.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from agent.offline.language.mentions import SERVING, Mentions

WEIGHTS = Path(__file__).parent / "weights.npz"
SIZE = 1 << 13
NO_TOOL = "none"
# Tools of one mode alone.
OF_SERVING = frozenset({"estimate_inference", "best_serving", "size_serving", "project_mlperf"})
OF_TRAINING = frozenset(
    {"estimate_training", "best_parallelism", "apply_strategies", "project_scaling", "peak_throughput"}
)


class Context(NamedTuple):
    """What the conversation brings: the kind of plan there is (None: none), the tool of the turn before."""

    plan: str | None = None
    tool: str | None = None


class Classifier(NamedTuple):
    """(features, labels) weights and the labels, of one classifier."""

    matrix: Any
    labels: tuple[str, ...]


def mode_features(read: Mentions, context: Context) -> list[str]:
    """What shows whether a text is about training or serving."""
    found = [f"plan={context.plan}"]
    found += [f"{sense.kind}:{sense.name}" for sense in read.senses() if sense.kind in ("asked", "field", "unit")]
    found += [f"value:{value.field}={value.value}" for value in read.values]
    found += [f"name:{name.kind}" for name in read.names]
    return [
        *found,
        *_words(read),
        *(f"{context.plan}&{one}" for one in found[1:] if one.startswith(("value", "asked"))),
    ]


def tool_features(read: Mentions, context: Context, fields: Iterable[str], mode: str | None) -> list[str]:
    """What shows which tool answers a text about `mode`; `fields` are those that its words fill."""
    filled = [f"fills:{name}" for name in fields]
    own = [f"plan={context.plan}", f"before={context.tool}", f"has={context.plan is not None}", f"mode={mode}"]
    said = [f"{sense.kind}:{sense.name}" for sense in read.senses() if sense.kind in ("asked", "does", "unit")]
    said += [f"value:{value.field}" for value in read.values]
    kinds = [name.kind for name in read.names]
    shown = [f"name:{kind}x{min(kinds.count(kind), 2)}" for kind in sorted(set(kinds))]
    size = f"long={min(len(read.tokens) // 6, 5)}"
    crossed = [f"{own[2]}&{one}" for one in (*said, *filled, *shown)] + [f"{own[1]}&{one}" for one in said]
    bare = [f"nothing={not filled and not shown}", f"asks={'?' in read.text}"]
    opening = [f"first:{token.norm}" for token in read.tokens[:1]] + [
        "open:" + " ".join(token.norm for token in read.tokens[:2] if token.kind != "number")
    ]
    return [*own, *said, *filled, *shown, size, *crossed, *bare, *opening, *_words(read)]


def _words(read: Mentions) -> list[str]:
    """Words, pairs and triples of them, with names and numbers in general."""
    words: list[str] = []
    at = 0
    while at < len(read.tokens):
        end = read.found.names.get(at)
        if end is not None:
            words.append(next(f"<{name.kind}>" for name in read.names if name.start == at))
            at = end
            continue
        token = read.tokens[at]
        if token.kind == "number":
            words.append("<number>")
        elif not token.joins:
            words.append(token.norm)
        at += 1
    words = words[:160]
    pairs = [f"{one} {two}" for one, two in itertools.pairwise(words)]
    triples = [f"{one} {two} {three}" for one, two, three in zip(words, words[1:], words[2:], strict=False)]
    beginnings = [f"{word[:5]}~" for word in words if len(word) > 5]
    return [f"w:{one}" for one in (*words, *pairs, *triples, *beginnings)]


def hashed(features: Iterable[str]) -> list[int]:
    return sorted({crc32(one.encode()) % SIZE for one in features})


def likely(weights: Classifier, features: Sequence[str]) -> dict[str, float]:
    """{Label: its share}; shares sum to one."""
    import numpy as np  # heavy: only where a turn is read

    rows = hashed(features)
    scores = weights.matrix[rows].astype(np.float32).sum(axis=0) / len(rows) ** 0.5 + weights.matrix[SIZE]
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    return dict(zip(weights.labels, map(float, shares), strict=True))


@cache
def trained() -> Mapping[str, Classifier]:
    """The shipped weights of both classifiers."""
    import numpy as np  # heavy: only where a turn is read

    with np.load(WEIGHTS) as file:
        return {
            name: Classifier(
                file[name].astype(np.float32) * file[f"{name}_scale"], tuple(map(str, file[f"{name}_labels"]))
            )
            for name in ("mode", "tool")
        }


def mode_of(read: Mentions, context: Context) -> dict[str, float]:
    return likely(trained()["mode"], mode_features(read, context))


def tool_of(read: Mentions, context: Context, fields: Iterable[str], mode: str | None) -> dict[str, float]:
    """How likely each tool answers a text; tools of the other mode do not."""
    shares = likely(trained()["tool"], tool_features(read, context, fields, mode))
    other = OF_TRAINING if mode == SERVING else OF_SERVING
    return {name: 0.0 if name in other else share for name, share in shares.items()}
