"""How many drafted tokens are kept, as measured by model, method and number drafted."""

from __future__ import annotations

from functools import cache
from statistics import fmean

from knowledge.data_files import rows
from knowledge.models.catalogue import facts_of

_MOST = 8


def usual_acceptance(model: str, drafted: int) -> tuple[float, str]:
    """(Chance that a drafted token is kept, where it is from) for a model of the catalogue and tokens drafted a step.

    Measured lengths of the model, or of all models that were measured, are turned into the chance that gives them when
    it is the same for each token (Leviathan et al. 2023, equation 1).
    """
    facts = facts_of(model)
    base = (facts.shares or facts.id) if facts else model
    measured = _lengths(min(drafted, _MOST))
    mine = [length for name, length in measured if name == base]
    length = fmean(mine or [length for _, length in measured])
    whose = base.rpartition("/")[2] if mine else f"{len({name for name, _ in measured})} other models"
    counted = min(drafted, _MOST)
    why = f"{length:.2f} tokens a step with {counted} drafted, as measured of {whose} on code; prose keeps fewer"
    return round(_chance(length, counted), 3), why


@cache
def _lengths(drafted: int) -> tuple[tuple[str, float], ...]:
    return tuple((row["model"], float(row[f"drafts_{drafted}"])) for row in rows("acceptance.csv"))


def _chance(length: float, drafted: int) -> float:
    """The chance at which so many tokens are added by a step, by halving."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        added = sum(middle**place for place in range(drafted + 1))
        low, high = (middle, high) if added < length else (low, middle)
    return 0.5 * (low + high)
