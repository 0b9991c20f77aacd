"""What a command shows: blocks of verdict, figures, tables and notes, laid out within the width of the terminal.

Views turn a tool's result into blocks; here they become text, with colour only where a terminal shows it.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pages.clean import clean, one_line
from pages.markdown import laid_out
from pages.plotting import draw
from pages.table import facts, table

# Of pages that go to a file or a pipe, where nobody said how wide it is.
_USUAL_WIDTH = 100
_LEAST_WIDTH = 40
_BOLD, _DIM, _RED, _GREEN = "1", "2", "31", "32"


@dataclass(frozen=True)
class Verdict:
    """The answer in one sentence; `good` colours it, None leaves it plain."""

    text: str
    good: bool | None = None


@dataclass(frozen=True)
class Facts:
    """Labelled values."""

    rows: Sequence[tuple[str, str]]
    title: str = ""


@dataclass(frozen=True)
class Grid:
    """A table; the columns named in `right` hold numbers, those in `optional` go first where it is narrow."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[str] = ()
    title: str = ""
    optional: Sequence[str] = ()


@dataclass(frozen=True)
class Notes:
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
class Picture:
    """A plot as tools give it (planner/plots.py), drawn where pictures were asked for."""

    plot: Mapping[str, Any]


Block = Verdict | Facts | Grid | Notes | Text | Prose | Picture


def screen_width() -> int:
    """Columns of the terminal; COLUMNS wins, and 100 stand in where there is no terminal."""
    told = os.environ.get("COLUMNS", "")
    if told.isdigit() and int(told) > 0:
        found = int(told)
    else:
        found = shutil.get_terminal_size((_USUAL_WIDTH, 24)).columns if sys.stdout.isatty() else _USUAL_WIDTH
    return max(found, _LEAST_WIDTH)


def has_colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def show(blocks: Sequence[Block]) -> None:
    """Prints the page on standard output."""
    print(render(blocks, screen_width(), has_colour()))


def render(blocks: Sequence[Block], width: int, colour: bool = False) -> str:
    """The page as text, a blank line between blocks; no line is wider than `width` but for texts kept as they are."""

    def dress(text: str, *codes: str) -> str:
        return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if colour and codes and text else text

    def body(block: Block) -> str:
        match block:
            case Verdict(text, good):
                code = {True: (_BOLD, _GREEN), False: (_BOLD, _RED), None: (_BOLD,)}[good]
                return "\n".join(dress(line, *code) for line in textwrap.wrap(one_line(text), width))
            case Facts(rows, title):
                return titled(title, facts(rows, width))
            case Grid(headers, rows, right, title, optional):
                return titled(title, table(headers, rows, right, width, lambda line: dress(line, _DIM), optional))
            case Notes(title, items, quiet):
                lines = [line for item in items for line in _bullet(one_line(item), width)]
                codes = (_DIM,) if quiet else ()
                return titled(title, "\n".join(dress(line, *codes) for line in lines))
            case Text(text, title):
                return titled(title, clean(text).rstrip("\n"))
            case Prose(markdown):
                return laid_out(markdown, width, colour)
            case Picture(plot):
                return draw(plot, width, colour)

    def titled(title: str, text: str) -> str:
        head = "\n".join(dress(line, _BOLD) for line in textwrap.wrap(one_line(title), width))
        return f"{head}\n{text}" if head else text

    return "\n\n".join(body(block) for block in blocks)


def _bullet(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, initial_indent="- ", subsequent_indent="  ") or ["-"]
