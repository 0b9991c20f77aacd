"""What the tools of a turn answered, by type; and what is said where they did not, or where words had no place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent.offline.small_talk import not_placed
from agent.reader.answers.outcomes import errors, result_of, results
from pages.blocks import Block, Prose
from pages.rendering import markdown
from pages.results.basis import notes


def refused(error: str | None, work: Mapping[str, Any]) -> tuple[list[Block], list[str]]:
    """The blocks of an answer that there is not, and what it asks. `work` is the planner's reading of the turn."""
    problem = error or "no tool gave a result"
    return [Prose(f"I cannot work that out as asked. {problem}"), *notes("", work.get("notes"))], [problem]


def joined(blocks: Sequence[Block], work: Mapping[str, Any]) -> str:
    """The answer in Markdown, with the words that had no place at its end."""
    unread = Prose(not_placed(work["unread"]) if work.get("unread") else "")
    return markdown.render([*blocks, unread])


__all__ = ["errors", "joined", "refused", "result_of", "results"]
