"""What is gathered from a set of files: values for Plan fields with their origin, and what could not be read.

A value is kept only when it is sure. Two files that disagree, and words that have no place in a Plan, leave the field
open: `blocked` says so, and nothing is estimated until it is given another way.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from estimator.errors import PlanError
from estimator.plan.schema import Plan, check_bools, merge
from knowledge.models.catalogue import find_model
from launchers.reading.documents import Item
from launchers.shell.scripts import UNKNOWN

# Numbers that files have and a Plan has not: its own follow from them (`launchers.reading.totals`).
FACTS = ("devices", "nodes", "per_node", "accumulation", "dp_replicate", "dp_shard", "vpp_layers", "recomputed_layers",
         "layers", "dp", "copies", "most_rows", "rows_of_all")  # fmt: skip
# The Plan's fields that make up for those of them that a file leaves open.
SETTLED_BY = {
    "devices": "cluster.count", "nodes": "cluster.count", "per_node": "cluster.count", "dp": "cluster.count",
    "accumulation": "workload.global_batch", "most_rows": "workload.micro_batch",
    "rows_of_all": "workload.micro_batch", "vpp_layers": "layout.vpp", "recomputed_layers": "layout.recompute",
}  # fmt: skip


@dataclass(frozen=True)
class Read:
    """A value that was read: `field` is a dotted Plan field, or one of `FACTS`."""

    field: str
    value: Any
    origin: str


@dataclass(frozen=True)
class NotRead:
    key: str
    value: Any
    why: str


@dataclass(frozen=True)
class Assumed:
    field: str
    value: Any
    why: str


@dataclass(frozen=True)
class Either:
    """A field of which files leave open which of `values` it has; `most`: the only one is the most that it can be, so
    that what fits with it fits, and of what does not nothing is known."""

    field: str
    values: tuple[Any, ...]
    why: str
    most: bool = False


class Findings:
    """Grows while the files are read, one reader after the other."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.read: list[Read] = []
        self.not_read: list[NotRead] = []
        self.warnings: list[str] = []
        self.defaults: dict[str, Assumed] = {}
        self.longest = ""
        self.blocked: dict[str, str] = {}
        self.formats: dict[str, str] = {}
        self.implied: list[tuple[str, Any, Item]] = []
        self.programs: list[str] = []
        self.backend: tuple[str, Item] | None = None
        """What holds the shards: deepspeed, fsdp1 or fsdp2."""
        self.recomputes: list[tuple[bool, Item]] = []
        """Each switch of activation checkpointing; one that is on is enough."""
        self.comment: tuple[Item, int, int | None] | None = None
        """How many devices the plan in a comment of ours has, how many servers they are, and for how many requests at
        once."""
        self.either: dict[str, Either] = {}
        self.refers: dict[str, str] = {}
        self.beside: dict[str, None] = {}
        """Paths that sources and configs may have which say more where they are there: what is started, what that
        imports, and what a config stands on by a bare name."""
        self.named: list[Item] = []
        """What options and keys that nobody reads call the model."""
        self.unknown: list[str] = []
        """Scripts of which nothing is known but their arguments."""
        # Commands that are no run, as sentences.
        self.idle: list[str] = []
        self.alone: Item | None = None
        """What says that the run is one process, which no launcher starts several of."""
        # Files of shards that are named only where it runs, as sentences.
        self.nameless: list[str] = []
        """Files that were named and not given, each with what it would say."""

    def put(self, field: str, value: Any, item: Item) -> bool:
        """Keeps `value` for `field` if a Plan can have it and nothing else was said; whether it was kept."""
        if field == "model" and isinstance(item.value, str) and (name := _checkpoint(item.value)) is not None:
            value, item = name, replace(item, value=name)
        if not is_certain(item.value):
            self.block(field, item, "is known only where it runs")
            return False
        if field == "model" and value == "":
            self.leave(item, "is empty")
            return False
        if field not in FACTS and (problem := _problem(field, value)):
            self.block(field, item, problem)
            return False
        if field in self.values and not _same(self.values[field], value):
            others = [row for row in self.read if row.field == field]
            self.read = [row for row in self.read if row.field != field]
            self.not_read += [NotRead(row.origin, row.value, f"contradicts {item.origin}") for row in others]
            first = others[0] if others else Read(field, self.values[field], "another file")
            del self.values[field]
            self.block(field, item, f"contradicts {first.origin} = {first.value}")
            self.warnings.append(f"{field}: {first.origin} says {first.value}, {item.origin} says {value}")
            return False
        if field in self.blocked:
            self.leave(item, f"other files disagree on {field}")
            return False
        self.values[field] = value
        self.read.append(Read(field, value, item.origin))
        return True

    def imply(self, field: str, value: Any, item: Item) -> None:
        """As `put` for what a word says besides its own field: it gives way to what says the field itself."""
        self.implied.append((field, value, item))

    def settle(self) -> None:
        """Puts what was implied and nothing else has said; a second thing that goes to the host has no place."""
        for field, value, item in self.implied:
            if not self.has(field):
                self.put(field, value, item)
            elif field == "layout.offload" and value != "none" and not _same(self.values.get(field), value):
                self.leave(item, "a Plan sends one kind of states to the host")
                self.warn(f"{item.origin}: {value} go to the host besides, which is not counted")
        self.implied = []

    def note(self, field: str, value: Any, item: Item) -> None:
        """As `put`, but what was said before wins without a word: it is known to override this."""
        if field in self.values or field in self.blocked:
            if field not in self.values or not _same(self.values[field], value):
                self.leave(item, f"another file or the command line says {field}")
            return
        self.put(field, value, item)

    def default(self, field: str, value: Any, why: str) -> None:
        """What the program does where its files say nothing."""
        self.defaults.setdefault(field, Assumed(field, value, why))

    def leave(self, item: Item, why: str) -> None:
        value = item.value.replace(UNKNOWN, "$…") if isinstance(item.value, str) else item.value
        self.not_read.append(NotRead(item.origin, value, why))

    def block(self, field: str, item: Item, why: str) -> None:
        """The file says something of `field`, and it cannot be told what in a Plan."""
        self.leave(item, why)
        self.blocked.setdefault(field, f"{item.origin}: {why}")

    def refer(self, item: Item, path: str, what: str) -> None:
        """The file names another one, which says `what`."""
        if not is_certain(path) and is_certain(path.rpartition(UNKNOWN)[2]):
            # What is known of it, below a folder that is known only where it runs.
            path = path.rpartition(UNKNOWN)[2].partition("/")[2]
        if not path:
            return
        if not is_certain(path):
            self.leave(item, f"names the file of {what} only where it runs")
            self.nameless.append(f"{item.origin}: names the file of {what} only where it runs")
        else:
            self.refers.setdefault(path, f"{item.origin}: {what}")

    def warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)

    def has(self, field: str) -> bool:
        return field in self.values or field in self.blocked

    def withdraw(self, field: str, why: str) -> None:
        """Takes back what was read of `field`, which was said of more than the run."""
        if field in self.values:
            del self.values[field]
            self.not_read += [NotRead(row.origin, row.value, why) for row in self.read if row.field == field]
            self.read = [row for row in self.read if row.field != field]

    def one_of(self, field: str, values: tuple[Any, ...], item: Item, why: str) -> None:
        """The files leave open which of `values` it is: a verdict has to hold for each."""
        self.leave(item, why)
        self.either.setdefault(field, Either(field, values, f"{item.origin}: {why}"))

    def at_most(self, field: str, value: Any, item: Item, why: str) -> None:
        """The files say the most that it can be and no more: only what fits with it has a verdict."""
        self.leave(item, why)
        self.either.setdefault(field, Either(field, (value,), f"{item.origin}: {why}", most=True))

    def plan(self) -> dict[str, Any]:
        """The partial Plan of what was read."""
        return nested({name: value for name, value in self.values.items() if name not in FACTS})

    # Values as programs take them: numbers also as text ("4", "1e3"), truth also as words.

    def whole(self, field: str, item: Item | None, least: int = 1) -> int | None:
        """Reads a whole number of at least `least`; anything else blocks the field."""
        if item is None:
            return None
        number = as_number(item.value)
        if not is_certain(item.value):
            self.block(field, item, "is known only where it runs")
            return None
        if number is None or number != int(number) or number < least:
            self.block(field, item, f"is not a whole number from {least}")
            return None
        return int(number) if self.put(field, int(number), item) else None

    def number(self, field: str, item: Item | None) -> float | None:
        if item is None:
            return None
        number = as_number(item.value)
        if number is None:
            self.block(field, item, "is not a number" if is_certain(item.value) else "is known only where it runs")
            return None
        return number if self.put(field, number, item) else None

    def truth(self, field: str, item: Item | None) -> bool | None:
        if item is None:
            return None
        value = as_truth(item.value)
        if value is None:
            self.block(field, item, "is neither true nor false")
            return None
        return value if self.put(field, value, item) else None

    def word(self, field: str, item: Item | None, words: Mapping[str, Any], soft: bool = False) -> Any:
        """Reads one of `words`, by the file's word. Another one blocks the field, or is only left if `soft`: for
        fields that move an estimate little."""
        if item is None:
            return None
        known = words.get(str(item.value).strip(), _NONE)
        if known is _NONE:
            known = words.get(str(item.value).strip().lower(), _NONE)
        if known is _NONE and soft:
            self.leave(item, "has no counterpart in a Plan")
            self.warn(f"{item.origin}: {item.value} has no counterpart in a Plan, so {field} is left open")
            return None
        if known is _NONE:
            self.block(field, item, "has no counterpart in a Plan")
            return None
        return known if self.put(field, known, item) else None


_NONE = object()


def is_certain(value: Any) -> bool:
    """Whether a value is all there: no variable of a shell or of a config system is left in it."""
    return not (isinstance(value, str | list | dict) and (UNKNOWN in str(value) or "${" in str(value)))


def as_number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = float(value.strip().replace("_", ""))
        except ValueError:
            return None
    if not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def as_truth(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    words = {"true": True, "yes": True, "1": True, "on": True, "false": False, "no": False, "0": False, "off": False}
    return words.get(str(value).strip().lower()) if isinstance(value, str | int) else None


def is_set(item: Item | None) -> bool:
    """Whether a switch is there and on."""
    return item is not None and as_truth(item.value) is True


def inverted(words: Mapping[Any, Any], more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A launch table (Plan value -> the program's word) the other way round, the first of equal words wins; `more`
    holds other words of the program for the same values."""
    values: dict[str, Any] = {}
    for value, word in words.items():
        values.setdefault(str(word), value)
    return (dict(more) if more else {}) | values


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for name, value in flat.items():
        data = merge(data, {name: value})
    return data


def _checkpoint(path: str) -> str | None:
    """The catalogue's name that ends a path of which the folder is known only where it runs; None for others."""
    name = re.split(r"[/\\]", path.rstrip("/"))[-1]
    if is_certain(path) or not is_certain(name) or UNKNOWN in name:
        return None
    try:
        return find_model(name).value.id
    except PlanError:
        return None


def _problem(field: str, value: Any) -> str | None:
    """Why a Plan cannot have `value`; None where it can."""
    data: dict[str, Any] = {} if field == "model" else {"model": "any"}
    if field.startswith("workload."):
        data = {"model": "any", "workload": {"kind": "training"}}
    data = merge(data, {field: value})
    try:
        check_bools(Plan, data)
        Plan.parse(data)
    except PlanError as error:
        data["workload"] = {**data.get("workload", {}), "kind": "inference"}
        try:
            Plan.parse(data)
        except PlanError:
            return error.problem
    return None


def _same(value: Any, other: Any) -> bool:
    return value == other and isinstance(value, bool) == isinstance(other, bool)
