"""What ratings of training and of serving share: the place among measured runs, and what would explain a speed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from planner.history.results import LikelyCause

# Measured runs that a speed is placed among, and the fewest that say something.
ALIKE, _LEAST_ALIKE = 16, 5
# A setting explains a speed that its estimate is this near to, as a factor less one.
_EXPLAINS = 0.2
_MOST_CAUSES, MOST_GAINS = 4, 3


def percentile_of(ratio: float, others: Sequence[float]) -> tuple[float | None, int]:
    """(The share of runs that reach less of their estimates than `ratio`, how many those are): each of `others` is
    what a run reached over what is estimated of it. None where there are too few."""
    if len(others) < _LEAST_ALIKE:
        return None, len(others)
    below = sum(other < ratio for other in others) + 0.5 * sum(other == ratio for other in others)
    return below / len(others), len(others)


def likeliest(causes: Iterable[LikelyCause], measured: float) -> list[LikelyCause]:
    """Those whose estimate is near to what was measured, the nearest first."""
    missed = [(abs(math.log(cause.explained_tokens_per_s / measured)), cause) for cause in causes]
    near = [(miss, cause) for miss, cause in missed if miss <= math.log1p(_EXPLAINS)]
    return [cause for _, cause in sorted(near, key=lambda item: item[0])[:_MOST_CAUSES]]
