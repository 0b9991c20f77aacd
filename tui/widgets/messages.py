"""What is said in the conversation: the person's words, the answer, and notices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from textual import events
from textual.containers import Vertical
from textual.geometry import Region
from textual.strip import Strip
from textual.timer import Timer
from textual.widgets import Static

from pages.blocks import NEXT
from pages.rendering import fold
from pages.rendering.clean import clean
from pages.rendering.prose import split_blocks
from tui.widgets.ground import Ground, ground
from tui.widgets.markdown_block import MarkdownBlock

# Text that arrives in pieces is shown this often: parsing each piece would leave no time for keys.
_SHOW_EVERY_S = 0.06


class Question(Static):
    def __init__(self, text: str) -> None:
        super().__init__(clean(text), markup=False)


class Queued(Static):
    """Words that were sent while an answer was on its way: they are asked when it is there."""

    def __init__(self, text: str) -> None:
        super().__init__(clean(text), markup=False)
        self.border_title = "next"


class Notice(Static):
    """Something about the conversation: stopped, went offline, failed."""

    def __init__(self, text: str, *, bad: bool = False) -> None:
        super().__init__(clean(text), markup=False, classes="-bad" if bad else "")


def _drawn(markdown: str) -> list[MarkdownBlock]:
    blocks, rest = split_blocks(markdown)
    return [MarkdownBlock(block) for block in [*blocks, rest] if block.strip()]


class FoldLine(Static):
    """Says that there are details, and whether they are `opened`; a click opens or closes them, as `toggle` does."""

    def __init__(self, toggle: Callable[[], None]) -> None:
        super().__init__("", markup=False)
        self.toggle = toggle
        self.says(False)

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.toggle()

    def says(self, opened: bool) -> None:
        self.update(f"{'▾' if opened else '▸'} Details (F10)")


class Behind(Ground):
    """The details of an answer, closed until they are asked for."""

    def __init__(self, *blocks: MarkdownBlock) -> None:
        self.inner = Ground(*blocks, classes="inner")
        self.title = FoldLine(self.toggle)
        super().__init__(self.title, self.inner)

    def toggle(self) -> None:
        opened = not self.has_class("-open")
        self.set_class(opened, "-open")
        self.title.says(opened)


class Answer(Vertical):
    """An answer that grows while it arrives. `source_text` is the Markdown as it came.

    As long as it is a draft, its figures are not checked yet, and its border says so.
    """

    def __init__(self, text: str = "", *, draft: bool = False) -> None:
        self.source_text = text
        parts = fold.folded(text)
        super().__init__(*_drawn(parts.lead))
        self.behind: Behind | None = None
        if parts.details:
            self.behind = Behind(*_drawn(parts.details))
            self.compose_add_child(self.behind)
        self._inside = False
        self._tail: MarkdownBlock | None = None
        self._waiting = self._rest = ""
        self._timer: Timer | None = None
        # One at a time shows what has come: a turn may end while its last piece is drawn.
        self._growing = asyncio.Lock()
        self.set_draft(draft)

    def set_draft(self, draft: bool) -> None:
        self.set_class(draft, "-draft")
        self.border_title = "draft, figures not checked yet" if draft else ""

    def render_lines(self, crop: Region) -> list[Strip]:
        return super().render_lines(crop) if self.has_class("-draft") else ground(self, crop)

    def add(self, text: str) -> None:
        text = clean(text)
        self.source_text += text
        self._waiting += text
        if self._timer is None:
            self._timer = self.set_timer(_SHOW_EVERY_S, self._show)

    async def _show(self) -> None:
        await self._grow()
        # Only now: while one piece is shown the next ones gather.
        self._timer = self.set_timer(_SHOW_EVERY_S, self._show) if self._waiting else None

    async def _grow(self, *, ended: bool = False) -> None:
        """Shows what has come: blocks that are whole now stay as they are from here on."""
        async with self._growing:
            blocks, self._rest = split_blocks(self._rest + self._waiting)
            self._waiting = ""
            new: list[MarkdownBlock] = []
            for text, live in [*((block, False) for block in blocks), (self._rest, not ended)]:
                if fold.starts(text) or fold.ends(text):
                    await self._mount(new)
                    new, self._inside, self._tail = [], fold.starts(text), None
                    continue
                if not text.strip():
                    continue
                if self._tail is None:
                    new.append(MarkdownBlock())
                block, self._tail = self._tail or new[-1], None
                block.show(text, self.content_size.width, live=live)
                self._tail = block if live else None
                # Keys that wait are heard between one block and the next.
                await asyncio.sleep(0)
            await self._mount(new)
            if ended:
                self._rest = ""

    async def _mount(self, blocks: list[MarkdownBlock]) -> None:
        if not blocks:
            return
        if not self._inside:
            await self.mount_all(blocks)
        elif self.behind is None:
            self.behind = Behind(*blocks)
            await self.mount(self.behind)
        else:
            await self.behind.inner.mount_all(blocks)

    async def finish(self) -> None:
        self._stop_timer()
        await self._grow(ended=True)

    async def replace(self, text: str) -> None:
        """The text whose numbers were checked, where it differs from what was streamed."""
        self._stop_timer()
        async with self._growing:
            self.source_text = self._rest = clean(text)
            self._waiting, self._tail, self._inside, self.behind = "", None, False, None
            await self.remove_children()
        await self.finish()

    async def without_offers(self) -> None:
        """What can be said next stands in a list of its own."""
        await self.finish()
        for block in self.query(MarkdownBlock):
            if block.text.startswith(NEXT):
                await block.remove()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
