"""A setting whose effect is asked about: 'does NVLink matter here?', 'what does checkpointing cost in speed?', 'do I
need InfiniBand?'. With it and without it are set side by side, whichever of them the plan has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.offline.language.asking import clauses, is_question
from agent.offline.language.features.signs import SWITCHES
from agent.offline.language.mentions import Value
from agent.offline.language.own.limits import has_model

if TYPE_CHECKING:
    from agent.offline.language.reading.page import Page

_WISHES = ("pays", "better")
# What else a run is in; where another setting is named beside it, that one is asked about.
_FORMATS = ("precision", "weight_dtype", "kv_dtype", "optimizer", "zero_stage")
_WEIGHED = (*SWITCHES, "device_links")


def weighed(page: Page) -> Value | None:
    """The one setting of a question that asks what it does to a run."""
    read = page.read
    if not (page.plan or has_model(page)) or read.does("or", "versus", "compare", "why"):
        return None
    for part in clauses(read.found):
        if is_question(read.found, part):
            switches = [value for value in page.kept if value.field in _WEIGHED and value.start in part]
            # 'Would a draft of 8 tokens help?' has a number of its own.
            switches = [value for value in switches if not page.values(value.field)]
            switches = [value for value in switches if value.field not in _FORMATS] or switches
            for at, end, name in (*read.asked_at("wish"), *read.asked_at("effect")):
                if at in part and name in ("effect", "need", *_WISHES):
                    near = [value for value in switches if name != "need" or _stands_behind(page, value, end)]
                    if len({(value.field, str(value.value)) for value in near}) == 1:
                        return near[0]
    return None


def _stands_behind(page: Page, value: Value, end: int) -> bool:
    return end <= value.start and all(page.read.found.sense(at, "stop") for at in range(end, value.start))
