"""What the steps of a turn go by: made when its words are read, kept in the topic as plain data until its answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class AnsweredPart:
    """What a turn was answered before its next question: the text, what that asked, where its figures are from, and how
    many calls it took."""

    text: str = ""
    asked: list[str] = field(default_factory=list)
    origins: list[str] = field(default_factory=list)
    calls: int = 0


@dataclass(frozen=True)
class TurnWork:
    """`start` is the message that the turn begins with; `kind` whose calls and answer it has: each, wish, need, serving
    or training. `lead` and `unread` stand first in the answer, `notes` at its end; `before` is (plan, topic) to go back
    to where the turn fails, `earlier` the summary of the answer before, `edited` whether the turn's words set
    anything, and `supposed` whether it is about a plan that was only supposed. `then` is the turn's next question,
    `answered` the answer to those before this one.

    Of a wish: `wish` (tool, own arguments). Of several calls of one kind: `calls` (tool, arguments), their `names`, and
    `providers` whose prices are asked for. Of a chain: `intents` and the `figures`
    that were named (paths in a result), `limit`, `sweep` and `choices` as in a TurnQuestion;
    `framework` to estimate files for, and `frameworks` to choose from where one is refused; `methods` to train with
    where all weights have no room and none was named; whether the `format_open` of weights is what has room,
    and the `shared_format` (of weights, and its engine) that a comparison is made with where not all have;
    `targets` and `own` of the files; `pricing` and `asked` of the conversation; whether devices were `counted`;
    whether to write `anyway`.
    """

    start: int
    kind: str
    lead: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    before: list[dict[str, Any]] = field(default_factory=lambda: [{}, {}])
    earlier: dict[str, Any] = field(default_factory=dict)
    edited: bool = False
    supposed: bool = False
    then: str = ""
    answered: dict[str, Any] = field(default_factory=dict)
    wish: list[Any] = field(default_factory=list)
    calls: list[Any] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)
    providers: list[str] = field(default_factory=list)
    intents: list[str] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)
    limit: dict[str, Any] | None = None
    sweep: dict[str, Any] | None = None
    choices: dict[str, list[Any]] = field(default_factory=dict)
    frameworks: list[str] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)
    format_open: bool = False
    shared_format: dict[str, str] = field(default_factory=dict)
    targets: list[str] = field(default_factory=list)
    own: dict[str, Any] = field(default_factory=dict)
    pricing: dict[str, Any] = field(default_factory=dict)
    asked: dict[str, Any] = field(default_factory=dict)
    counted: bool = False
    anyway: bool = False

    @property
    def own_price(self) -> dict[str, float]:
        """The person's own price of a device, as tools take it."""
        price = self.pricing.get("usd_per_device_hour")
        return {"usd_per_device_hour": price} if price else {}
