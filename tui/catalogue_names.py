"""Names that can be completed: of models, accelerators and other values that the Plan's schema does not list."""

from __future__ import annotations

from functools import lru_cache

from knowledge.machines.catalogue import accelerators
from knowledge.models.known import checkpoints, models


@lru_cache(maxsize=4)
def names_of(field: str) -> tuple[str, ...]:
    """The names a field of the plan may have, or () where there is no list of them. Slow the first time."""
    if field == "model":
        return tuple(row.id for row in (*models(), *checkpoints()))
    if field == "accelerator":
        return tuple(row.id for row in accelerators())
    if field == "recompute":
        return ("none", "selective", "full", "block:1")
    return ()


def starting(words: tuple[str, ...], typed: str, limit: int = 8) -> list[str]:
    """The names that start with what was typed, then those that contain it: also after the '/' of an organisation."""
    typed = typed.casefold()
    first = [word for word in words if _plain(word).startswith(typed) or word.casefold().startswith(typed)]
    inside = [word for word in words if typed in word.casefold() and word not in first]
    return [*first, *inside][:limit]


def _plain(word: str) -> str:
    return word.rpartition("/")[2].casefold()
