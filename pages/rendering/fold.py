"""What stands at first in an answer and what behind `details`, and the tone of its first line, in Markdown.

An answer travels as Markdown, which has a fold of its own (`<details>`, as GitHub shows it) and no colours: a mark says
the tone, and a face that has colours shows it in them.
"""

from __future__ import annotations

from dataclasses import dataclass

_START = "<details>\n<summary>Details</summary>"
_END = "</details>"
_MARKS = {"good": "✓", "beware": "⚠", "bad": "✗"}


@dataclass(frozen=True)
class Fold:
    lead: str
    details: str = ""

    @property
    def whole(self) -> str:
        """All of it, with nothing folded."""
        return f"{self.lead}\n\n{self.details}".strip("\n")


def written(details: str) -> str:
    """Details as a fold."""
    return f"{_START}\n\n{details}\n\n{_END}"


def folded(markdown: str) -> Fold:
    """The lead of an answer, and the text of its folds."""
    lead: list[str] = []
    details: list[str] = []
    for place, part in enumerate(markdown.split(_START)):
        inside, end, after = part.partition(_END) if place else ("", "", part)
        details.append(inside.strip("\n"))
        lead.append((after if end or not place else "").strip("\n"))
    return Fold(*("\n\n".join(text for text in texts if text) for texts in (lead, details)))


def starts(block: str) -> bool:
    """Whether a block of Markdown opens the fold."""
    return block.strip().startswith("<details>")


def ends(block: str) -> bool:
    return block.strip() == _END


def marked(text: str, tone: str) -> str:
    return f"{_MARKS[tone]} {text}" if tone else text


def tone_of(block: str) -> str:
    """The tone that a block begins with, as `marked` wrote it."""
    return next((tone for tone, mark in _MARKS.items() if block.lstrip().startswith(f"{mark} ")), "")
