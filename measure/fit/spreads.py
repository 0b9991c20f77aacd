"""How wide an interval has to be, from how far estimates missed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Miss:
    """How far an estimate is off: the log of estimated over measured, and the source of the measurement."""

    error: float
    source: str


def spread_of(misses: Iterable[Miss], share: float = 0.8, power: float = 0.0) -> float:
    """Half width, as a factor less one, of the interval that holds `share` of the misses.

    A source counts by its rows to the `power`: every source alike, or by the root of its rows (0.5).
    """
    ordered = sorted(misses, key=lambda miss: abs(miss.error))
    rows = Counter(miss.source for miss in ordered)
    held, wanted = 0.0, share * sum(count**power for count in rows.values())
    for miss in ordered:
        held += rows[miss.source] ** (power - 1.0)
        if held >= wanted - 1e-9:
            return math.expm1(abs(miss.error))
    raise ValueError("there is nothing to take a spread of")


def blended(spread: float, pooled: float, trust: float) -> float:
    """A spread between two, nearer to its own the more that is trusted."""
    return math.expm1(trust * math.log1p(spread) + (1.0 - trust) * math.log1p(pooled))
