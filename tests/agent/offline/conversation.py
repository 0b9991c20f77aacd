"""A conversation in forms instead of words: what each turn reads is given, what it calls and tells is seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from agent.models import Turn
from agent.offline.catalogue import known
from agent.offline.form import Edit, Reading
from agent.offline.planner import step
from agent.wire import Call, Content, Outcome, answered, calls_of, said, text_of
from estimator.errors import PlanError
from tools.registry import registry

NOON = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
MODEL, DEVICE = "Qwen/Qwen2.5-0.5B", "h100-sxm"


@dataclass
class Told:
    """One turn as it went."""

    calls: list[Call]
    answer: str
    asked: list[str]
    plan: dict[str, Any]

    @property
    def names(self) -> list[str]:
        return [call.name for call in self.calls]


@dataclass
class Conversation:
    """`runs`: whether tools are really called; else each call fails, and the turn ends with its first calls."""

    runs: bool = True
    plan: dict[str, Any] = field(default_factory=dict)
    topic: dict[str, Any] = field(default_factory=dict)
    messages: list[Content] = field(default_factory=list)

    def say(self, *edits: Edit, **form: Any) -> Told:
        reading = Reading(text=form.pop("text", "words"), edits=list(edits), **form)
        self.messages.append(said(reading.text))
        calls: list[Call] = []
        while True:
            turn = Turn(self.messages, self.plan, self.topic, registry(), NOON)
            thought = step(turn, known(), lambda *_: reading)
            self.plan = thought.plan if thought.plan is not None else self.plan
            self.topic = thought.topic if thought.topic is not None else self.topic
            made = calls_of(thought.content)
            calls += made
            if not made or not self.runs:
                self.messages.append(thought.content if not made else said("", "tools"))
                return Told(calls, text_of(thought.content), thought.asked, self.plan)
            self.messages += [thought.content, answered([Outcome(call, _response(call)) for call in made])]


def _response(call: Call) -> dict[str, Any]:
    try:
        return registry()[call.name](call.arguments)
    except PlanError as error:
        return {"error": str(error)}


def edit(name: str, value: Any = None, op: str = "set") -> Edit:
    return Edit(name, op, value)


def begun(*edits: Edit, runs: bool = True, **form: Any) -> Conversation:
    """A conversation whose first turn is about a small run."""
    conversation = Conversation(runs)
    start = [edit("model", MODEL), edit("accelerator", DEVICE), edit("count", 8)]
    conversation.say(*start, *edits, **({"tool": "check_fit"} | form))
    return conversation
