"""A page of blocks (pages/blocks.py), laid out anew whenever its width changes."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from pages.blocks import Block
from pages.rendering.terminal import render

_LEAST_WIDTH = 30


class PageView(VerticalScroll):
    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.blocks: Sequence[Block] = ()
        self._drawn = 0

    def compose(self) -> ComposeResult:
        yield Static("", markup=False)

    def show(self, blocks: Sequence[Block]) -> None:
        self.blocks = blocks
        self.scroll_home(animate=False)
        self._draw()

    def on_resize(self, event: events.Resize) -> None:
        if self.blocks and self._room() != self._drawn:
            self._draw()

    def _room(self) -> int:
        return max(self.scrollable_content_region.width - 1, _LEAST_WIDTH)

    def _draw(self) -> None:
        self._drawn = self._room()
        text = render(self.blocks, self._drawn, not self.app.no_color)
        self.query_one(Static).update(Content.from_rich_text(Text.from_ansi(text)))
