"""A turn while it is being understood: its mentions, what each number fills, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from agent.offline.catalogue import Catalogue
from agent.offline.form import Edit, Need
from agent.offline.language import scope
from agent.offline.language.assign import Filled, assigned
from agent.offline.language.calendar import Window, busy_hours, deadline, iso_tokens, window
from agent.offline.language.devices import Devices, Pair, apart, devices, machines_of_each, of_those, pairs
from agent.offline.language.features.mode import Context
from agent.offline.language.labelled import all_of_them, called
from agent.offline.language.mentions import SERVING, TRAINING, Mentions, Value, mentions
from agent.offline.language.own.measured import MeasuredSpeed
from agent.offline.language.reading.alone import corrected, counting, echoed, of_the_last, put_instead
from agent.offline.language.reading.groups import is_of_rl
from agent.offline.language.reading.meant import (
    as_budget,
    as_meant,
    in_and_out,
    likely,
    of_each,
    paid_once,
    peak,
    priced,
)  # fmt: skip
from agent.offline.language.reading.mode import is_asked_by_many, mode_of
from agent.offline.language.reading.named_files import NamedFiles
from agent.offline.language.reading.pictures import sizes
from agent.offline.language.reading.things import named_span, places_said, things_said
from agent.offline.language.relative import Mark, known_fields, marks, parts
from agent.offline.language.roles import by_role
from agent.offline.language.rows import Row

# Tools of a chain by the last of their intents that is no figure.
_OF_INTENT = {"size": "size_serving", "best": "best_serving", "write": "write_configs", "render": "render_configs"}


class Assigned(NamedTuple):
    filled: Sequence[Filled] = ()
    left: Sequence[Row] = ()


_NOTHING = Assigned()


@dataclass
class Page:
    """A turn while it is being understood."""

    read: Mentions
    plan: Mapping[str, Any]
    topic: Mapping[str, Any]
    now: datetime
    catalogue: Catalogue
    mode: str | None
    filled: list[Filled]
    left: list[Row]
    made: list[Pair]
    refused: scope.Refusals
    devices: list[Devices]
    marks: list[Mark] = field(default_factory=list)
    free: Window | None = None
    """When in every week the machines are free."""
    busy: tuple[float, int, int] | None = None
    """(Hours, token, token behind) of the part of a day in which all its requests come."""
    pictures: list[tuple[int, int, str]] = field(default_factory=list)
    """(Token, token behind, 'WIDTHxHEIGHT') of sizes of images."""
    until: tuple[float, int, int] | None = None
    """(Hours from now, token, token behind) of the day by which all has to be done."""
    use_h: float | None = None
    """Hours of a year that hardware works."""
    worth: dict[str, float] = field(default_factory=dict)
    """Dollars of a unit of other money, as the words say."""
    lost: list[tuple[int, int]] = field(default_factory=list)
    """Words of a change that nothing was found to change by."""
    taken: set[int] = field(default_factory=set)
    """Where numbers begin, in characters, that went to arguments of a tool's own."""
    added: bool = False
    """Whether machines were added or taken away with their devices."""
    rows: list[list[Edit]] = field(default_factory=list)
    """What each row of a table sets that was pasted."""
    beside: list[str] = field(default_factory=list)
    """What a table says that sets nothing."""
    pasted: str | None = None
    log: str | None = None
    """Lines of a training log that were pasted."""
    files: NamedFiles = field(default_factory=NamedFiles)
    """What is named to be read."""
    speed: MeasuredSpeed | None = None
    """A measured speed that is to be judged."""
    first: Assigned = _NOTHING
    """What the numbers filled before what was learnt of them."""
    again: str | None = None
    """The tool of the question before, where a turn goes on with it."""
    named: list[Edit] = field(default_factory=list)
    """Every model and device that is named and not refused."""
    assumed: list[str] = field(default_factory=list)
    needs: list[Need] = field(default_factory=list)

    def values(self, name: str) -> list[float]:
        return [value for number in self.filled if number.field == name for value in number.values]

    @cached_property
    def known(self) -> frozenset[str]:
        """Flat names of the numbers that the plan holds, or the one that is supposed."""
        return known_fields(self.topic.get("supposed") or self.plan)

    @cached_property
    def sized(self) -> bool:
        """Whether a size in bytes is said."""
        return any(row.amounts[-1].unit("bytes") for row in self.read.rows)

    @property
    def last(self) -> tuple[str, Mapping[str, Any]]:
        """The tool that was the whole answer to the turn before, and its own arguments."""
        tool, own = self.topic.get("last") or ("", {})
        return tool, own

    @property
    def offers(self) -> Sequence[Mapping[str, Any]]:
        """What the answer before offered to choose from, by path."""
        return _offers(self.topic)

    @property
    def asks_money(self) -> bool:
        """Whether it is asked what something costs."""
        return bool({"cost", "cheaper"} & set(self.read.asked("focus")))

    @property
    def kept(self) -> list[Value]:
        """Values of the page's mode that are not refused."""
        return [value for value in self.read.values if self.fits(value) and value.start not in self.refused.things]

    def fits(self, value: Value) -> bool:
        return value.mode in (None, self.mode) or self.mode is None


def _offers(topic: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return topic.get("offers") or ()


def context_of(plan: Mapping[str, Any], topic: Mapping[str, Any]) -> Context:
    kind = None
    if plan:
        kind = SERVING if (plan.get("workload") or {}).get("kind") == "inference" else TRAINING
    return Context(kind, _asked_before(topic, kind), is_of_rl(plan))


def _asked_before(topic: Mapping[str, Any], kind: str | None) -> str | None:
    """The tool that answered the turn before, or was to; of one that went on with a question the tool of that one."""
    asked = {**topic, **(topic.get("pending") or {}).get("topic", {})}
    if last := asked.get("last") or asked.get("wish"):
        return last[0]
    if asked.get("limit") or asked.get("sweep"):
        return "find_limit" if asked.get("limit") else "sweep"
    if tool := (topic.get("reading") or {}).get("tool"):
        return tool
    named = [_OF_INTENT[name] for name in asked.get("intents") or () if name in _OF_INTENT]
    return named[0] if named else {None: None, SERVING: "estimate_inference"}.get(kind, "estimate_training")


def understood(
    text: str,
    catalogue: Catalogue,
    plan: Mapping[str, Any],
    topic: Mapping[str, Any],
    now: datetime,
    mode: str | None = None,
    data: str = "",
    learnt: bool = True,
) -> Page:
    """The page of a text: mentions, whether it is about training or serving, what each number fills, what is
    refused. `data` was pasted beside it; without what is `learnt` of numbers it is what that is learnt from."""
    read = mentions(text, catalogue, data)
    mode = mode or mode_of(read, context_of(plan, topic))
    free = window(read)
    dated = iso_tokens(read).union(free.taken if free else ())
    dated = dated.union(*(range(network.start, network.end) for network in read.networks))
    busy = busy_hours(read) if mode == SERVING and is_asked_by_many(read) and not free else None
    dated = dated.union(range(*busy[1:]) if busy else ())
    offers = _offers(topic)
    # What is supposed, or was before, stands beside what is.
    several = max(len(offers), 2 if topic.get("supposed") or topic.get("plans") else 0)
    dated = dated.union(called(read.tokens) if offers else (), all_of_them(read.found, read.rows, several))
    until = deadline(read, now)
    dated = dated.union(range(*until[1:]) if until else ())
    numbers = [row for row in read.rows if row.start not in dated]
    numbers = parts(read, numbers, plan)
    changes, numbers = marks(read, numbers) if plan else ([], numbers)
    if mode == SERVING:
        numbers = peak(read, numbers)
    pictures, numbers = sizes(read, numbers)
    made, rest = pairs(read.found, numbers)
    halves, rest = in_and_out(read, rest) if mode == SERVING else ([], rest)
    filled, left = assigned(read.found, rest, mode, likely(read, plan, mode))
    filled += halves
    filled, left = priced(read, filled, left, topic)
    filled = as_budget(read, filled, plan)
    filled, left = corrected(read, *put_instead(read, filled, left))
    filled, left = of_the_last(read, filled, left, plan, topic) if plan else echoed(read, filled, left)
    filled, left = counting(read, filled, left)
    first = Assigned(filled, left)
    if learnt:
        filled, left = by_role(read, filled, left, mode, topic.get("recent"), bool(plan))
    filled, left = as_meant(read, filled, left, plan)
    filled = sorted(apart(read, filled), key=lambda number: number.row.start)
    offered = [thing for _, thing in places_said(read)] if len(offers) > 1 else []
    refused = scope.refusals(read.found, [*things_said(read, mode, filled), *offered])
    filled, machines = (filled, None) if plan and not read.of("instance") else of_those(read, filled)
    # 'Instead of 8 H100' counts none of them.
    meant = [number for number in filled if named_span(number)[0] not in refused.things]
    named = devices(read, meant, made, frozenset(refused.things), machines)
    named, filled = machines_of_each(read, named, filled)
    named, left = of_each(read, named, left)
    bought = paid_once(read, left)
    filled += bought
    left = [row for row in left if not any(number.row is row for number in bought)]
    return Page(
        read, plan, topic, now, catalogue, mode, filled, left, made, refused, named, changes, free, busy, pictures,
        until=until, first=first,
    )  # fmt: skip
