"""What a thinking model is: something that reads the conversation and yields text, then one content with its calls.

Gemini and the offline planner are both of this form, so one graph serves them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from agent.budget import Usage
from agent.wire import Content
from tools.registry import Tool


@dataclass(frozen=True)
class Turn:
    """What a model sees when it is to think.

    `plan` is what the user has given so far (a partial Plan); `topic` is the offline planner's own memory of the
    conversation; `now` is the clock that "by Friday" counts from; `most_tokens` is how many may still be used.
    """

    messages: list[Content]
    plan: dict[str, Any]
    topic: dict[str, Any]
    tools: Mapping[str, Tool]
    now: datetime
    most_tokens: int = 10**9


@dataclass(frozen=True)
class Thought:
    """The end of one step: the content to append. None for `plan` or `topic` leaves the session's as it is.

    `origins` are texts that the answer's figures may come from besides tool results: what a look-up said.
    """

    content: Content
    plan: dict[str, Any] | None = None
    topic: dict[str, Any] | None = None
    asked: list[str] = field(default_factory=list)
    origins: list[str] = field(default_factory=list)
    notice: str | None = None
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class Waiting:
    """Why nothing comes at the moment, as a sentence."""

    text: str


class ThinkingModel(Protocol):
    @property
    def name(self) -> str: ...

    def think(self, turn: Turn) -> AsyncIterator[str | Waiting | Thought]:
        """Yields text as it comes, why it waits, and, last, one Thought. Raises ModelFailed when it cannot go on."""
        ...


@dataclass(frozen=True)
class Failure:
    """Why a request came to nothing: a sentence that says what to do about it, and whether trying again may help: after
    a while (`may_pass`), with less (`too_long`), or at once and otherwise put (`put_otherwise`)."""

    sentence: str
    may_pass: bool = False
    retry_after_s: float | None = None
    too_long: bool = False
    put_otherwise: bool = False


class ModelFailed(Exception):
    """A model cannot continue; the text is a sentence that tells the user what to do about it. `usage` is what was
    used until then."""

    def __init__(self, sentence: str, usage: Usage | None = None) -> None:
        super().__init__(sentence)
        self.usage = usage or Usage()


def questions_of(text: str) -> list[str]:
    """The questions that an answer ends with: sentences of its last paragraph that end in a question mark."""
    last = text.strip().rpartition("\n\n")[2]
    if not last.endswith("?"):
        return []
    return [sentence.strip(" -*\n") + "?" for sentence in last.replace("\n", " ").split("?")[:-1] if sentence.strip()]
