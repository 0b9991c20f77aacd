"""How many drafted tokens are kept, as measured by model, method and number drafted."""

from __future__ import annotations

import re
from functools import cache
from statistics import fmean
from typing import NamedTuple

from knowledge.data_files import document, rows
from knowledge.models.known import facts_of

_MOST = 8
# The method that copies text: nothing of the model is in what it drafts.
_COPIES = "ngram"


def drafts_itself(model: str | None) -> bool:
    """Whether the model's checkpoint brings layers that draft tokens (multi-token prediction)."""
    return bool(model and re.match("|".join(document("drafting.yaml")["itself"]), model.rpartition("/")[2].lower()))


def drafts_with(model: str | None, method: str) -> str:
    """What drafts for a model: the method that is named, else the checkpoint's own layers, else a head (EAGLE-3)."""
    return method if method != "auto" else "mtp" if drafts_itself(model) else "eagle3"


def usual_acceptance(model: str, drafted: int, method: str = "auto") -> tuple[float, str]:
    """(Chance that a drafted token is kept, where it is from) for a model of the catalogue and tokens drafted a step.

    Measured lengths of the model, else of its family, else of all that draft the same way (with layers of their own, or
    an EAGLE-3 head), on chats where these were measured, are turned into the chance that gives them when it is the same
    for each token (Leviathan et al. 2023, equation 1). Of a `method` that is named, only what was measured with it.
    """
    facts = facts_of(model)
    base, kin = ((facts.shares or facts.id), facts.family) if facts else (model, "")
    counted, way = min(drafted, _MOST), drafts_with(model, method)
    measured = [row for row in _lengths(counted) if row.method != _COPIES]
    if method != "auto":
        measured = [row for row in _lengths(counted) if row.method.startswith(method)]
    near = [row for row in measured if row.model == base] or [row for row in measured if row.family == kin] or measured
    near = [row for row in near if row.method.startswith(way)] or near
    near = [row for row in near if row.task == "chat"] or near
    names = list(dict.fromkeys(row.model for row in near))
    length = fmean(fmean(row.length for row in near if row.model == name) for name in names)
    whose = " and ".join(name.rpartition("/")[2] for name in names) if len(names) < 4 else f"{len(names)} other models"
    how = " and ".join(dict.fromkeys(row.method for row in near))
    tasks = list(dict.fromkeys(row.task for row in near))
    fewer = "; prose keeps fewer" if tasks == ["code"] else ""
    where = " and ".join(tasks)
    why = f"{length:.2f} tokens a step with {counted} drafted, as measured of {whose} ({how}) on {where}{fewer}"
    return round(_chance(length, counted), 3), why


class _AcceptedLength(NamedTuple):
    model: str
    family: str
    task: str
    method: str
    length: float


@cache
def _lengths(drafted: int) -> list[_AcceptedLength]:
    lengths = []
    for row in rows("acceptance.csv"):
        facts = facts_of(row["model"])
        family = facts.family if facts else row["model"]
        lengths.append(_AcceptedLength(row["model"], family, row["task"], row["method"], _length(row, drafted)))
    return lengths


def _length(row: dict[str, str], drafted: int) -> float:
    """What was measured with so many drafted, else what the chance of the nearest number that was measured gives."""
    measured = {number: row[f"drafts_{number}"] for number in range(1, _MOST + 1) if row[f"drafts_{number}"]}
    nearest = min(measured, key=lambda number: abs(number - drafted))
    length = float(measured[nearest])
    return length if nearest == drafted else _added(_chance(length, nearest), drafted)


def _added(chance: float, drafted: int) -> float:
    return sum(chance**place for place in range(drafted + 1))


def _chance(length: float, drafted: int) -> float:
    """The chance at which so many tokens are added by a step, by halving."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _added(middle, drafted) < length else (low, middle)
    return 0.5 * (low + high)
