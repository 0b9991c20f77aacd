"""The playbook: what experienced engineers do, when, and where it is written. One YAML file a topic in data/playbook.

An entry says when it applies (a condition of `planner.advice.conditions`), what to do, and where the estimator can
compute the gain, what to change: a `patch` over the plan (or several, of which the best is told), or the `change` of a
name that the tools try anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Literal

from knowledge.data_files import FOLDER, document

Kind = Literal["training", "serving", "any"]
Effect = Literal["setting", "training", "quality", "hardware", "load"]


@dataclass(frozen=True)
class Topic:
    """`title` is what people call it; `also` are other words that it is looked for by."""

    id: str
    title: str
    also: tuple[str, ...]


@dataclass(frozen=True)
class PlaybookAdvice:
    """One piece of advice.

    `kind` is the workload that it is for. `patches` are alternatives; their values are of the Plan, None (chosen anew)
    or {rule: name}. `change` names a knob of the changes that tools try for speed or memory. `objective` is the figure
    that the gain is of; `effect` says what else changes: nothing (a setting), the training, the quality of what is
    served, the hardware or the load. `settings` are variables, flags and fields of programs.
    """

    id: str
    topic: str
    title: str
    kind: Kind
    when: Mapping[str, Any]
    advice: str
    patches: tuple[Mapping[str, Any], ...]
    change: str | None
    objective: str | None
    effect: Effect | None
    settings: Mapping[str, str]
    source: str
    also: tuple[str, ...] = ()
    """Other words that people have for what the title names."""

    @property
    def computable(self) -> bool:
        return bool(self.patches) or self.change is not None


@cache
def topics() -> tuple[Topic, ...]:
    """In the order of the index file."""
    rows = document("playbook/topics.yaml")
    return tuple(Topic(id, row["title"], tuple(row.get("also", ()))) for id, row in rows.items())


@cache
def entries() -> tuple[PlaybookAdvice, ...]:
    """Every entry, topic by topic. Raises ValueError for an entry that lacks something or has what no entry has."""
    return tuple(
        _entry(topic.id, row) for topic in topics() for row in document(f"playbook/{topic.id.replace('-', '_')}.yaml")
    )


def files() -> list[str]:
    """Topics that have a file."""
    return sorted(path.stem.replace("_", "-") for path in (FOLDER / "playbook").glob("*.yaml") if path.stem != "topics")


def _entry(topic: str, row: Mapping[str, Any]) -> PlaybookAdvice:
    fields = dict(row)
    name = fields.get("id", "?")
    try:
        patch = fields.pop("patch", None)
        patches = patch if isinstance(patch, list) else [patch] if patch else []
        advice = PlaybookAdvice(
            id=fields.pop("id"),
            topic=topic,
            title=fields.pop("title"),
            kind=fields.pop("kind", "training"),
            when=MappingProxyType(fields.pop("when", {})),
            advice=" ".join(fields.pop("advice").split()),
            patches=tuple(MappingProxyType(change) for change in patches),
            change=fields.pop("change", None),
            objective=fields.pop("objective", None),
            effect=fields.pop("effect", None),
            settings=MappingProxyType(fields.pop("settings", {})),
            source=fields.pop("source"),
            also=tuple(fields.pop("also", ())),
        )
    except KeyError as missing:
        raise ValueError(f"playbook entry {name}: {missing} is missing") from None
    if fields:
        raise ValueError(f"playbook entry {name}: there is no field {', '.join(fields)}")
    return advice
