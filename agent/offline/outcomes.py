"""What the tools of a turn answered, by type; and what is said where they did not, or where words had no place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from agent.offline.small_talk import not_placed
from agent.wire import Outcome
from pages.blocks import Block, Prose
from pages.rendering import markdown
from pages.results.basis import notes

Result = TypeVar("Result", bound=BaseModel)


def result_of(outcomes: Sequence[Outcome], kind: type[Result]) -> Result | None:
    """The last result of that type."""
    return next((outcome.result for outcome in reversed(outcomes) if isinstance(outcome.result, kind)), None)


def results(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The last result of each tool by the tool's name."""
    return {outcome.call.name: outcome.result for outcome in outcomes if outcome.result is not None}


def errors(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """What each tool refused, by the tool's name."""
    return {outcome.call.name: outcome.error for outcome in outcomes if outcome.error}


def refused(error: str | None, work: Mapping[str, Any]) -> tuple[list[Block], list[str]]:
    """The blocks of an answer that there is not, and what it asks. `work` is the planner's reading of the turn."""
    problem = error or "no tool gave a result"
    return [Prose(f"I cannot work that out as asked. {problem}"), *notes("", work.get("notes"))], [problem]


def joined(blocks: Sequence[Block], work: Mapping[str, Any]) -> str:
    """The answer in Markdown, with the words that had no place at its end."""
    unread = Prose(not_placed(work["unread"]) if work.get("unread") else "")
    return markdown.render([*blocks, unread])
