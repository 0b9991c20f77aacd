"""The conversation as plain JSON objects in Gemini's wire form.

A content is `{"role": "user" | "model", "parts": [...], "by": ...}`; a part holds `text`, a `functionCall` or a
`functionResponse`, and may carry a `thoughtSignature`. `by` says who wrote a content (person, check, tools, or the name
of a thinking model); it is ours and is not sent. Plain objects need no SDK to read and survive upgrades of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

from pydantic import BaseModel

from pages.rendering.clean import SURROGATE, plain_data
from tools.registry import typed

Content = dict[str, Any]
# Ids of calls start so where they are ours; a model must not see them.
OWN_ID = "shardwise-call-"


@dataclass(frozen=True)
class Call:
    """One function call of a model's content."""

    id: str
    name: str
    arguments: dict[str, Any]

    @property
    def cleaned(self) -> Call:
        """With arguments that are safe to show."""
        return Call(self.id, self.name, plain_data(self.arguments))


DECLINED = "writing was declined"
"""What a call ends in that the person did not approve."""


@dataclass(frozen=True)
class Outcome:
    """A call and what the tool answered: `response` is its result, or `{"error": text}`."""

    call: Call
    response: dict[str, Any]

    @cached_property
    def result(self) -> BaseModel | None:
        """What the tool answered as its own type; None of an error and of what has no type any more."""
        return None if self.error is not None else typed(self.call.name, self.response)

    @property
    def error(self) -> str | None:
        error = self.response.get("error")
        return error if isinstance(error, str) and len(self.response) == 1 else None

    @property
    def cleaned(self) -> Outcome:
        """With arguments and an answer that are safe to show."""
        return Outcome(self.call.cleaned, plain_data(self.response))


def said(text: str, by: str = "person") -> Content:
    return {"role": "user", "parts": [{"text": text}], "by": by}


def thought(by: str, text: str = "", calls: Iterable[Call] = ()) -> Content:
    """A model's content: its text, then its calls."""
    parts: list[dict[str, Any]] = [{"text": text}] if text else []
    for call in calls:
        parts.append({"functionCall": {"id": call.id, "name": call.name, "args": call.arguments}})
    return {"role": "model", "parts": parts, "by": by}


def answered(outcomes: Iterable[Outcome]) -> Content:
    """All responses of one step in ONE content, in the order of their calls, as the wire format demands."""
    parts = [
        {"functionResponse": {"id": outcome.call.id, "name": outcome.call.name, "response": outcome.response}}
        for outcome in outcomes
    ]
    return {"role": "user", "parts": parts, "by": "tools"}


def has_thoughts(content: Content) -> bool:
    """Whether the model showed what it thought."""
    return any(part.get("thought") for part in content["parts"])


def text_of(content: Content) -> str:
    return "".join(part["text"] for part in content["parts"] if "text" in part and not part.get("thought"))


def calls_of(content: Content) -> list[Call]:
    calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
    return [Call(call.get("id", ""), call["name"], dict(call.get("args") or {})) for call in calls]


def first_calls(content: Content, most: int) -> Content:
    """`content` without the calls that come after the first `most`."""
    calls = [index for index, part in enumerate(content["parts"]) if "functionCall" in part]
    dropped = set(calls[most:])
    return {**content, "parts": [part for index, part in enumerate(content["parts"]) if index not in dropped]}


def identified(content: Content, messages: Sequence[Content]) -> Content:
    """`content` with an id of ours for every call that came without one, or with that of another call of the turn."""
    taken = {call.id for earlier in messages[max(turn_start(messages), 0) :] for call in calls_of(earlier)}
    parts: list[dict[str, Any]] = []
    for part in content["parts"]:
        if "functionCall" in part:
            id = part["functionCall"].get("id")
            if not id or id in taken:
                id = next(own for own in map(f"{OWN_ID}{{}}".format, count()) if own not in taken)
            taken.add(id)
            part = {**part, "functionCall": {**part["functionCall"], "id": id}}
        parts.append(part)
    return {**content, "parts": parts}


def turn_start(messages: Sequence[Content]) -> int:
    """Index of what the person said last; -1 when they have said nothing."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].get("by") == "person":
            return index
    return -1


def turn_outcomes(messages: Sequence[Content]) -> list[Outcome]:
    """What the tools answered since the person spoke, in order."""
    calls: dict[str, Call] = {}
    outcomes: list[Outcome] = []
    for content in messages[max(turn_start(messages), 0) :]:
        for call in calls_of(content):
            calls[call.id] = call
        for part in content["parts"]:
            response = part.get("functionResponse")
            if response and response["id"] in calls:
                outcomes.append(Outcome(calls[response["id"]], response["response"]))
    return outcomes


STOPPED = "(This answer was stopped before its end.)"


def repair(messages: Sequence[Content]) -> list[Content]:
    """What to append so that the last turn is whole: a run that was cancelled, or that waits for an approval nobody
    gives any more, leaves its last calls unanswered, and the person without an answer."""
    if not messages:
        return []
    last = messages[-1]
    open_calls = calls_of(last) if last["role"] == "model" else []
    cancelled = [Outcome(call, {"error": "stopped before its result came"}) for call in open_calls]
    closed = [answered(cancelled)] if cancelled else []
    unanswered = bool(open_calls) or last.get("by") in ("person", "tools", "check")
    return [*closed, thought("shardwise", STOPPED)] if unanswered else closed


def storable(value: Any) -> Any:
    """JSON-like data that a checkpoint can hold: an int of 2**63 or more becomes a float, and what is no character
    goes."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return SURROGATE.sub("", value)
    if isinstance(value, int) and abs(value) >= 2**63:
        try:
            return float(value)
        except OverflowError:
            return math.copysign(math.inf, value)
    if isinstance(value, Mapping):
        return {SURROGATE.sub("", str(key)): storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    return value
