"""Accelerators by what clouds call the machines that have them, and those of which too little is known to plan with."""

from __future__ import annotations

import re
from functools import cache

from estimator.errors import PlanError
from knowledge.data_files import rows
from knowledge.names import Match, NameCatalogue, accelerator_form

# A slice of TPUs by its cores, as Google names them: v5p-256 (cloud.google.com/tpu/docs, TPU configurations).
_SLICE = re.compile(r"(?:tpu[\s-]*)?(v\d+[a-z]*)-(\d+)(?:-slice)?")
_SCORE = 0.9


def rented(name: str, names: NameCatalogue) -> Match[str] | None:
    """The accelerator of a cloud's instance or of a slice of TPUs, with what it has of it; None for other names.

    Raises PlanError for a device of which too little is known, with the reason.
    """
    if names.exact(name) or not name.strip():
        return None
    form = accelerator_form(name)
    if (why := _unplanned().get((form.words, form.numbers))) is not None:
        raise PlanError(names.place, f"{name.strip()[:60]!r} cannot be planned for: {why}")
    text = name.strip().casefold()
    if (match := _SLICE.fullmatch(text)) and (id := names.exact(match[1])):
        chips = max(1, int(match[2]) // cores_of(id))
        return Match(id, f"{name.strip()!r} is a slice of {chips} x {id}: give the count with it", _SCORE)
    return _instance(text)


def _instance(text: str) -> Match[str] | None:
    """The accelerator of the instances that are called so, or whose name begins so or has all of its parts."""
    parts = _parts(text)
    if len(parts) < 2:
        return None
    fitting = [
        (instance, row)
        for instance, row in _instances().items()
        if instance == text or _parts(instance)[: len(parts)] == parts or _covers(parts, _parts(instance))
    ]
    accelerators = {row["accelerator"] for _, row in fitting}
    if len(accelerators) != 1:
        return None
    row = next((row for instance, row in fitting if instance == text), fitting[0][1])
    sentence = f"{row['instance']} of {row['provider']} has {row['count_per_node']} x {row['accelerator']}"
    return Match(row["accelerator"], sentence, _SCORE)


def _covers(parts: list[str], instance: list[str]) -> bool:
    """Whether each part is one of the instance's, or what one begins with, with the letter of its kind first."""
    return parts[0].isalpha() and all(any(own.startswith(part) for own in instance) for part in parts)


def _parts(text: str) -> list[str]:
    return [part for part in re.split(r"[\s._-]+", text.removeprefix("standard_")) if part]


@cache
def _instances() -> dict[str, dict[str, str]]:
    """Rentable machines that have a name of their own (of one word), by it in lower case."""
    return {
        row["instance"].casefold().removeprefix("standard_"): row
        for row in rows("instances.csv")
        if re.fullmatch(r"\S*\d\S*", row["instance"]) and row["provider"] != "owned"
    }


def cores_of(id: str) -> int:
    """Cores of a device, which slices are counted in; 1 where its slices count devices."""
    return int(_cores().get(id) or 1)


@cache
def _cores() -> dict[str, str]:
    return {row["id"]: row["cores"] for row in rows("accelerators.csv")}


@cache
def _unplanned() -> dict[tuple[frozenset[str], frozenset[str]], str]:
    """Why a device cannot be planned for, by the words and numbers of its names."""
    reasons = {}
    for row in rows("unplanned_devices.csv"):
        for name in row["names"].split(";"):
            form = accelerator_form(name)
            reasons[form.words, form.numbers] = row["why"]
    return reasons
