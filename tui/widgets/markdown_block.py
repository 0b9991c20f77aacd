"""One block of Markdown (a paragraph, a list, a table, code) as one widget.

Textual's own Markdown makes a widget of every row and item; a long list that grows while it arrives then leaves no time
for keys. Here a block is laid out by Rich and kept as text, which can still be selected.
"""

from __future__ import annotations

import io
from functools import lru_cache

from rich.console import Console
from rich.markdown import Heading, Markdown
from rich.text import Text
from rich.theme import Theme
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from pages.rendering.prose import FENCE, toned

# A block that is still growing beyond this is shown as it is until it is whole; code is from its first line on.
_LONGEST_LIVE = 800


class MarkdownBlock(Widget):
    def __init__(self, text: str = "") -> None:
        super().__init__()
        self.text = text
        self._live = False
        self._drawn: tuple[int, str, Content] | None = None

    def show(self, text: str, width: int, *, live: bool) -> None:
        """The block as far as it has come; `live` says that more may follow. With its `width` in cells (0 where that is
        not known) it is laid out here and now: within the refresh of the screen a key would wait for both."""
        self.text = text
        self._live = live
        self._drawn = None
        if width > 0:
            self._content(width)
        if self.is_attached:
            self.refresh(layout=True)

    def render(self) -> Content:
        return self._content(self.content_size.width)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self._content(width).plain.count("\n") + 1 if self.text else 0

    def _content(self, width: int) -> Content:
        look = self.app.theme
        if self._drawn is None or self._drawn[:2] != (width, look):
            if self._live and (len(self.text) > _LONGEST_LIVE or FENCE.match(self.text)):
                content = Content("\n").join(line for line in Content(self.text).wrap(max(width, 10)))
            else:
                content = drawn(self.text, max(width, 10), dark=self.app.current_theme.dark)
            self._drawn = (width, look, content)
        return self._drawn[2]


def drawn(markdown: str, width: int, *, dark: bool) -> Content:
    """The Markdown laid out in lines of at most `width` cells."""
    console = _console(dark)
    with toned(console, markdown):
        return _laid_out(console, markdown, width, dark)


def _laid_out(console: Console, markdown: str, width: int, dark: bool) -> Content:
    page = _Page(markdown, code_theme="ansi_dark" if dark else "ansi_light", hyperlinks=False)
    lines = console.render_lines(page, console.options.update_width(width), pad=False)
    rows = [Text.assemble(*((segment.text, segment.style or "") for segment in line)) for line in lines]
    for row in rows:
        row.rstrip()
    while rows and not rows[-1].plain:
        rows.pop()
    while rows and not rows[0].plain:
        rows.pop(0)
    return Content.from_rich_text(Text("\n").join(rows))


class _Left(Heading):
    LEVEL_ALIGN = dict.fromkeys(Heading.LEVEL_ALIGN, "left")


class _Page(Markdown):
    elements = {**Markdown.elements, "heading_open": _Left}  # noqa: RUF012 (as Rich has it)


@lru_cache
def _console(dark: bool) -> Console:
    console = Console(file=io.StringIO(), color_system="truecolor", force_terminal=True, legacy_windows=False)
    console.push_theme(_looks(dark))
    return console


def _looks(dark: bool) -> Theme:
    accent, quiet = ("#6aa8ff", "#8a93a3") if dark else ("#1f5fbf", "#6b7280")
    return Theme(
        {
            **{f"markdown.h{level}": f"bold {accent}" for level in range(1, 7)},
            "markdown.code": f"bold {accent}",
            "markdown.code_block": "none",
            "markdown.list": "none",
            "markdown.item.number": quiet,
            "markdown.item.bullet": quiet,
            "markdown.table.border": quiet,
            "markdown.table.header": f"bold {quiet}",
            "markdown.block_quote": "italic",
            "markdown.link": accent,
            "markdown.link_url": f"underline {accent}",
        }
    )
