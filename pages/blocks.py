"""What a page is made of. Results become blocks here in pages/, and blocks become text in pages/rendering/terminal.py,
pages/rendering/markdown.py and pages/rendering/html.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.plots import Plot

Row = tuple[str, str] | tuple[str, str, str]
"""A label, its value and, where there is one, the interval of that."""


@dataclass(frozen=True)
class Headline:
    """The answer in one sentence; `good` colours it, None leaves it plain."""

    text: str
    good: bool | None = None


@dataclass(frozen=True)
class Figures:
    """Labelled values."""

    rows: Sequence[Row]
    title: str = ""


@dataclass(frozen=True)
class Table:
    """The columns named in `right` hold numbers, those in `optional` go first where it is narrow; heads in `names` are
    names, written as they are. The rows of the places in `strong` stand out."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[str] = ()
    title: str = ""
    optional: Sequence[str] = ()
    strong: Sequence[int] = ()
    names: Sequence[str] = ()


@dataclass(frozen=True)
class Note:
    """Sentences under a title; `quiet` ones are for whoever wants to know more."""

    title: str
    items: Sequence[str]
    quiet: bool = False


@dataclass(frozen=True)
class Text:
    """Text that keeps its lines, such as a file."""

    text: str
    title: str = ""


@dataclass(frozen=True)
class Prose:
    """Markdown, such as an answer."""

    markdown: str


@dataclass(frozen=True)
class Chart:
    """A plot: bars or curves, drawn where pictures were asked for."""

    plot: Plot


@dataclass(frozen=True)
class Details:
    """Blocks under a title of their own: what lies behind the first ones, or a section of a report."""

    title: str
    blocks: Sequence[Block]


Block = Headline | Figures | Table | Note | Text | Prose | Chart | Details


def value_of(row: Row) -> str:
    """The value of a labelled row with its interval."""
    return f"{row[1]} ({row[2]})" if len(row) > 2 and row[2] else row[1]
