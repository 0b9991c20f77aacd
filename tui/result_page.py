"""A tool's result as a page for its card: what the command line shows, its verdict in the words of an answer, with what
is quiet in print only begun."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel
from rich.text import Text as RichText

from pages.blocks import Block, Chart, Note, ranked, unfolded
from pages.rendering.terminal import render

_MOST_QUIET = 4


@dataclass(frozen=True)
class CardPage:
    blocks: Sequence[Block]
    width: int
    colour: bool

    @property
    def folds(self) -> bool:
        """Whether more than the first lines stands in it."""
        return bool(ranked(self.blocks)[1])

    def first(self) -> RichText:
        """Its first lines; plots are details."""
        return self._text([block for block in ranked(self.blocks)[0] if not isinstance(block, Chart)])

    def whole(self) -> RichText:
        return self._text(unfolded(self.blocks))

    def _text(self, blocks: Sequence[Block]) -> RichText:
        return RichText.from_ansi(render([_shortened(block) for block in blocks], self.width, self.colour))


def page(result: BaseModel, width: int, colour: bool) -> CardPage:
    from pages.answers.page import page_of  # what answers a conversation comes along: cards are opened later, if at all

    return CardPage(page_of(result, width), width, colour)


def _shortened(block: Block) -> Block:
    if not isinstance(block, Note) or not block.quiet or len(block.items) <= _MOST_QUIET:
        return block
    more = f"… and {len(block.items) - _MOST_QUIET} more"
    return replace(block, items=[*block.items[:_MOST_QUIET], more])
