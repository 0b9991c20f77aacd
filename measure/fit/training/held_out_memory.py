"""What would have been said of measured peaks had they, or their whole source, not been there to fit to."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Literal

from measure.fit.training.memory import Peak, countable, fit, interval, spreads
from measure.history.scores import CasePrediction

HoldOut = Literal["rows", "source"]
# Rows are left out a tenth at a time, every tenth one, so that each tenth has rows of all large sources.
_FOLDS = 10


def predictions(
    sample: Sequence[Peak], ran: Sequence[Peak], hold_out: HoldOut
) -> tuple[dict[str, CasePrediction], dict[str, CasePrediction]]:
    """By case id, the estimates of the peaks of `sample`, and of the runs `ran` that ran unmeasured.

    Each is estimated with factors and spreads fitted without its fold ('rows') or without its source.
    """
    parts = sample, ran
    predicted: tuple[dict[str, CasePrediction], dict[str, CasePrediction]] = ({}, {})
    keys = [_keys(part, hold_out) for part in parts]
    for name in sorted({*keys[0], *keys[1]}, key=str):
        kept = [
            [peak for peak, key in zip(part, names, strict=True) if key != name]
            for part, names in zip(parts, keys, strict=True)
        ]
        rest = [peak for peak in kept[0] if countable(peak.case)]
        factors = fit(rest)
        spread = spreads(rest, factors, kept[1])
        for part, names, results in zip(parts, keys, predicted, strict=True):
            for peak, key in zip(part, names, strict=True):
                if key == name:
                    low, high, fits = interval(peak, factors, spread)
                    results[peak.case.id] = CasePrediction(peak.estimate(factors), low, high, fits, peak.room < 0.0)
    return predicted


def _keys(part: Sequence[Peak], hold_out: HoldOut) -> list[Hashable]:
    """What each run is left out with."""
    if hold_out == "rows":
        return [index % _FOLDS for index in range(len(part))]
    return [peak.case.source for peak in part]
