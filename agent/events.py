"""What a session tells while it answers, in the order in which it comes. The last event of a run is an `Approval`,
which `Session.resume` answers, or `Done`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import BaseModel

from agent.budget import Usage
from agent.store import FileWritten
from agent.wire import Call, Outcome


@dataclass(frozen=True)
class TextPiece:
    """A piece of what is being written. A draft is not checked yet: show it as such."""

    text: str
    draft: bool = False


@dataclass(frozen=True)
class Discard:
    """Takes back the text since the last tool call or discard."""


@dataclass(frozen=True)
class ToolCall:
    """A tool is called; `opened` where the person asked for this very call and wants to see what it gives."""

    call: Call
    opened: bool = False


@dataclass(frozen=True)
class ToolResult:
    outcome: Outcome
    seconds: float


@dataclass(frozen=True)
class Remark:
    """Something that the person should know; `bad` where it is a failure."""

    text: str
    bad: bool = False


class ShownFile(BaseModel, frozen=True):
    """A file as it would be written, and what is there `before` (None: nothing, or nothing that is text)."""

    path: str
    bytes: int
    text: str
    before: str | None = None


class Preview(BaseModel, frozen=True):
    folder: str
    files: list[ShownFile]


class PlannedWrite(BaseModel, frozen=True):
    """A call that would write, as it is kept in the checkpoint until the person answers; that answer is good for this
    `digest` alone."""

    id: str
    name: str
    arguments: dict[str, Any]
    preview: Preview
    digest: str

    @property
    def deletes(self) -> bool:
        return self.name.startswith("delete")


@dataclass(frozen=True)
class Approval:
    """The run waits, across processes if need be, for a yes or no to all `calls`."""

    id: str
    calls: list[PlannedWrite]


@dataclass(frozen=True)
class Done:
    """The end of a turn; its answer is the one that counts. `reading` is the form that the offline planner read the
    turn into (`agent.offline.form.Reading` as plain data), empty where another model answered. `notices` are the
    remarks; `failed` says why the language model could not answer, '' where it did or none was to."""

    answer: str
    plan: dict[str, Any]
    session: str
    asked: list[str]
    files: list[FileWritten]
    ungrounded: list[str]
    tool_calls: list[Call]
    reading: dict[str, Any]
    notices: list[str] = field(default_factory=list)
    failed: str = ""
    turn_usage: Usage = field(default_factory=Usage)
    session_usage: Usage = field(default_factory=Usage)


Event = TextPiece | Discard | ToolCall | ToolResult | Remark | Approval | Done


def done_data(done: Done) -> dict[str, Any]:
    """The end of a turn as JSON data, for other programs."""
    return {
        "session": done.session,
        "tool_calls": [{"name": call.name, "arguments": call.arguments} for call in done.tool_calls],
        "plan": done.plan,
        "answer": done.answer,
        "asked": done.asked,
        "files": [file.model_dump(exclude_unset=True) for file in done.files],
        "ungrounded": done.ungrounded,
        "reading": done.reading,
        "notices": done.notices,
        "failed": done.failed,
        "usage": {"turn": asdict(done.turn_usage), "session": asdict(done.session_usage)},
    }
