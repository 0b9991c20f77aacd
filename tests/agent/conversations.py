"""What several test modules use: running a session to its end, and a model that says what the test wrote down."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from agent.events import Done, Event, done_data
from agent.models import Thought, Turn
from agent.offline.catalogue import known
from agent.offline.form import Reading
from agent.offline.language import read
from agent.offline.planner import step
from agent.session import Session, open_session
from agent.wire import Call, calls_of, said, thought
from planner.partial import get
from planner.requests import ALL_PATHS
from tools.registry import registry

DEMO = (
    "Can I fully fine-tune Llama-3.1-8B on 8 H100s with 4k sequences and 1B tokens? How long, what does it cost? "
    "Write the LlamaFactory, DeepSpeed and Slurm files."
)


async def collect(events: AsyncIterator[Event]) -> list[Any]:
    return [event async for event in events]


def say(session: Session, text: str) -> list[Any]:
    return asyncio.run(collect(session.send(text)))


Kind = TypeVar("Kind")
NOON = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)


def reading(text: str, plan: dict[str, Any] | None = None, topic: dict[str, Any] | None = None) -> Reading:
    """A question as the offline planner reads it, at noon of a Wednesday."""
    return read(text, known(), plan or {}, topic or {}, NOON)


@dataclass
class Begun:
    """What the offline planner makes of a turn before any tool has run: the form that it was read as, its calls, its
    questions, and what it set in the plan that it is about, by path (None: left open again)."""

    reading: dict[str, Any]
    calls: list[Call]
    asked: list[str]
    changes: dict[str, Any]
    plan: dict[str, Any]
    topic: dict[str, Any]

    @property
    def fields_asked(self) -> list[str]:
        return [question.partition(":")[0] for question in self.asked]

    @property
    def said(self) -> dict[str, Any]:
        """What was set in the plan, what was said that becomes a field only with others, and prices."""
        edits = {edit["field"]: edit["value"] for edit in self.reading["edits"] if edit["field"] not in ALL_PATHS}
        return {**edits, **self.topic.get("pricing", {}), **self.changes}

    def arguments(self, tool: str) -> dict[str, Any] | None:
        """Those of the first call, where it is this tool's."""
        return self.calls[0].arguments if self.calls and self.calls[0].name == tool else None


def begun(text: str, plan: dict[str, Any] | None = None, topic: dict[str, Any] | None = None) -> Begun:
    before, kept = plan or {}, topic or {}
    first = step(Turn([said(text)], before, kept, registry(), NOON), known())
    topic = first.topic if first.topic is not None else kept
    about = topic.get("supposed") or (topic.get("pending") or {}).get("plan")
    about = about or (first.plan if first.plan is not None else before)
    changes = {path: get(about, path) for path in ALL_PATHS.values()
               if path != "overrides" and get(before, path) != get(about, path)}  # fmt: skip
    return Begun(topic["reading"], calls_of(first.content), first.asked, changes, about, topic)


def turns(*texts: str) -> list[dict[str, Any]]:
    """How each turn of an offline conversation ended, as other programs are told."""
    session = open_session(model="offline")
    return [done_data(of(say(session, text), Done)[0]) for text in texts]


def verdict(answer: str) -> str:
    """The line that answers the question: what had to be assumed to read it stands before it."""
    line = next(line for line in answer.split("\n") if not line.startswith("I could not place") and line)
    return line[line.index("**") :]


def answer_approval(session: Session, approved: bool) -> list[Any]:
    return asyncio.run(collect(session.resume(approved)))


def of(events: list[Any], kind: type[Kind]) -> list[Kind]:
    return [event for event in events if isinstance(event, kind)]


@dataclass
class Scripted:
    """A thinking model: each step is a text or a list of (tool, arguments); it records the turns that it saw."""

    steps: list[str | list[tuple[str, dict[str, Any]]] | Callable[[Turn], Thought]]
    name: str = "gemini-scripted"
    seen: list[Turn] = field(default_factory=list)

    async def think(self, turn: Turn) -> AsyncIterator[str | Thought]:
        step = self.steps[min(len(self.seen), len(self.steps) - 1)]
        self.seen.append(turn)
        if callable(step):
            yield step(turn)
        elif isinstance(step, str):
            yield step
            yield Thought(thought(self.name, step))
        else:
            base = len(self.seen)
            calls = [Call(f"c{base}-{number}", name, arguments) for number, (name, arguments) in enumerate(step)]
            yield Thought(thought(self.name, calls=calls))
