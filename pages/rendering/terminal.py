"""Blocks as text within the width of a terminal, with colour only where a terminal shows it."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence

from pages import blocks as page_blocks
from pages.blocks import Block, ranked, unfolded, value_of
from pages.rendering.clean import clean, one_line
from pages.rendering.plotting import draw
from pages.rendering.prose import laid_out
from pages.rendering.table import facts, table

# Of pages that go to a file or a pipe, where nobody said how wide it is.
_USUAL_WIDTH = 100
_LEAST_WIDTH = 40
_BOLD, _DIM = "1", "2"
_TONES = {"good": ("32",), "beware": ("33",), "bad": ("31",), "": ()}


def screen_width() -> int:
    """Columns of the terminal; COLUMNS wins, and 100 stand in where there is no terminal."""
    told = os.environ.get("COLUMNS", "")
    if told.isdigit() and int(told) > 0:
        width = int(told)
    else:
        width = shutil.get_terminal_size((_USUAL_WIDTH, 24)).columns if sys.stdout.isatty() else _USUAL_WIDTH
    return max(width, _LEAST_WIDTH)


def has_colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def amber(text: str) -> str:
    """What is in doubt, as it goes to standard output."""
    return f"\x1b[{_TONES['beware'][0]}m{text}\x1b[0m" if has_colour() else text


def show(blocks: Sequence[Block], details: bool = True) -> None:
    """Prints the page on standard output."""
    print(rendered(blocks, details))


def rendered(blocks: Sequence[Block], details: bool = True) -> str:
    """The page as it goes to standard output."""
    return render(blocks, screen_width(), has_colour(), details)


def render(blocks: Sequence[Block], width: int, colour: bool = False, details: bool = True) -> str:
    """The page as text, a blank line between blocks, its first lines alone or with the `details`; no line is wider than
    `width` but for texts kept as they are."""

    def dress(text: str, *codes: str) -> str:
        return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if colour and codes and text else text

    def doubtful(text: str) -> str:
        return dress(text, *_TONES["beware"])

    def body(block: Block) -> str:
        match block:
            case page_blocks.Headline(text, more=more):
                return _verdict(text, more, width, lambda line: dress(line, _BOLD, *_TONES[block.tone]))
            case page_blocks.Figures(rows, title):
                return titled(title, facts([(row[0], value_of(row)) for row in rows], width))
            case page_blocks.Table():
                return titled(block.title, _table(block, width, lambda line: dress(line, _DIM), doubtful))
            case page_blocks.Note(title, items, quiet):
                lines = [line for item in items for line in _bullet(one_line(item), width)]
                codes = (_DIM,) if quiet else ()
                return titled(title, "\n".join(dress(line, *codes) for line in lines))
            case page_blocks.Text(text, title):
                return titled(title and f"===== {title}", clean(text).rstrip("\n"))
            case page_blocks.Prose(markdown):
                return laid_out(markdown, width, colour)
            case page_blocks.Chart(plot, places):
                return draw(plot, width, colour, places)
            case page_blocks.Details(title, inner):
                return titled(title, render(inner, width, colour))
            case page_blocks.Steps():
                return "\n".join(dress(line, _DIM) for line in textwrap.wrap(block.line, width))
            case page_blocks.Folded(inner) | page_blocks.Brief(inner):
                return render(inner, width, colour)

    def titled(title: str, text: str) -> str:
        head = "\n".join(dress(line, _BOLD) for line in textwrap.wrap(one_line(title), width))
        return f"{head}\n{text}" if head else text

    texts = map(body, unfolded(blocks) if details else ranked(blocks)[0])
    return "\n\n".join(text for text in texts if text)


def _table(block: page_blocks.Table, width: int, dim: Callable[[str], str], amber: Callable[[str], str]) -> str:
    def heads(names: Sequence[str]) -> list[str]:
        return [one_line(name) if name in block.names else one_line(name).upper() for name in names]

    return table(heads(block.head), block.rows, heads(block.right), width, dim, heads(block.optional), amber)


def _verdict(text: str, more: str, width: int, dress: Callable[[str], str]) -> str:
    """A verdict and what is told with it in one paragraph, as what is in doubt belongs into the first line; figures in
    bold are so in the verdict alone."""
    left, lines = len(one_line(text).replace(" ", "")), list[str]()
    for line in textwrap.wrap(one_line(f"{text} {more.replace('**', '')}"), width):
        end = 0
        while end < len(line) and left:
            left -= line[end] != " "
            end += 1
        lines.append(dress(line[:end]) + line[end:])
    return "\n".join(lines)


def _bullet(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, initial_indent="- ", subsequent_indent="  ") or ["-"]
