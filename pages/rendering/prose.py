"""Markdown on a terminal, printed block by block while it still arrives."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pages.rendering import fold
from pages.rendering.clean import clean

if TYPE_CHECKING:
    from rich.console import Console

FENCE = re.compile(r"^ {0,3}(```|~~~)", re.MULTILINE)
TONES = {"good": "green", "beware": "yellow", "bad": "red"}
_BLOCK_END = re.compile(r"\n[ \t]*\n")


class BlockPrinter:
    """Prints each paragraph, table or code block once it is whole; a block is never printed twice.

    A terminal cannot take back what has scrolled away, so what is unfinished is held until its blank line comes.
    """

    def __init__(self, width: int | None = None, details: bool = False) -> None:
        from rich.console import Console

        self.console = Console(file=sys.stdout, width=width, highlight=False)
        self.waiting = ""
        self.printed = False
        self._details, self._folded = details, False

    def feed(self, text: str) -> None:
        self.waiting += clean(text)
        blocks, self.waiting = split_blocks(self.waiting)
        for block in blocks:
            self._print(block)

    def finish(self) -> None:
        block, self.waiting = self.waiting, ""
        self._print(block)

    def _print(self, block: str) -> None:
        if fold.starts(block) or fold.ends(block):
            self._folded = fold.starts(block)
            return
        if not block.strip() or (self._folded and not self._details):
            return
        from rich.markdown import Markdown

        if self.printed:
            self.console.print()
        with toned(self.console, block):
            self.console.print(Markdown(block.strip("\n"), hyperlinks=False))
        self.printed = True


@contextmanager
def toned(console: Console, block: str) -> Iterator[None]:
    """What is strong in a block that begins with a mark has the colour of that tone meanwhile."""
    from rich.theme import Theme

    colour = TONES.get(fold.tone_of(block))
    if colour is None:
        yield
        return
    console.push_theme(Theme({"markdown.strong": f"bold {colour}"}))
    yield
    console.pop_theme()


def laid_out(markdown: str, width: int, colour: bool) -> str:
    """The Markdown as lines of a terminal, at most `width` cells wide."""
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(
        width=width, force_terminal=colour, no_color=not colour, color_system="standard" if colour else None,
        highlight=False, legacy_windows=False,
    )  # fmt: skip
    with console.capture() as capture:
        console.print(Markdown(clean(markdown), hyperlinks=False))
    return "\n".join(line.rstrip() for line in capture.get().strip("\n").split("\n"))


def split_blocks(text: str) -> tuple[list[str], str]:
    """The blocks that are whole, and the rest, which may still grow."""
    blocks: list[str] = []
    while (end := _first_block_end(text)) is not None:
        blocks.append(text[:end])
        text = text[end:]
    return blocks, text


def _first_block_end(text: str) -> int | None:
    """Where the first whole block ends, None when there is none yet. Blank lines inside a fence end nothing."""
    for match in _BLOCK_END.finditer(text):
        if len(FENCE.findall(text, 0, match.start() + 1)) % 2 == 0:
            return match.end()
    return None
