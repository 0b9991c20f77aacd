"""A tool's result as a page for its card: what the command line shows, its verdict in the words of an answer, with what
is quiet in print only begun."""

from __future__ import annotations

from dataclasses import replace

from pydantic import BaseModel
from rich.text import Text as RichText

from pages.blocks import Block, Note, ranked
from pages.rendering.terminal import render

_MOST_QUIET = 4


def page(result: BaseModel, width: int, colour: bool) -> RichText:
    from pages.answers.page import page_of  # what answers a conversation comes along: cards are opened later, if at all

    lead, details = ranked(page_of(result, width))
    return RichText.from_ansi(render([_shortened(block) for block in (*lead, *details)], width, colour))


def _shortened(block: Block) -> Block:
    if not isinstance(block, Note) or not block.quiet or len(block.items) <= _MOST_QUIET:
        return block
    more = f"… and {len(block.items) - _MOST_QUIET} more"
    return replace(block, items=[*block.items[:_MOST_QUIET], more])
