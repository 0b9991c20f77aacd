"""A table of short texts with a cursor: drawn line by line, so that hundreds of rows change within a key press.

The first line holds the columns' titles. Words give way so that all columns are in sight; where that is not enough, the
first column stays and the others are scrolled sideways, as ‹ and › at the ends of the first line say; numbers are in
sight whole or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

_GAP = 2
# Cells for the signs that there is more to the left and to the right.
_MORE = 2
_STEP = 8
# Words are not cut shorter than that; those of the first column say which row it is.
_LEAST, _LEAST_FIRST = 18, 28
# Of the column that is last in sight, where others are not.
_LEAST_LAST = 10


@dataclass(frozen=True)
class Head:
    title: str
    right: bool = False
    width: int = 0


class ListTable(ScrollView, can_focus=True):
    COMPONENT_CLASSES: ClassVar[set[str]] = {"table--head", "table--cursor", "table--row"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "choose", "Choose"),
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", "go(0)", show=False),
        Binding("end", "go(-1)", show=False),
        Binding("left", "sideways(-1)", show=False),
        Binding("right", "sideways(1)", show=False),
    ]

    cursor: reactive[int] = reactive(0)

    class Moved(Message):
        """The cursor is at another row, or the rows are others."""

    class Chosen(Message):
        """Enter, or a click on the row at hand."""

    class HeadClicked(Message):
        def __init__(self, column: int) -> None:
            super().__init__()
            self.column = column

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.wanted: Sequence[Head] = ()
        self.heads: Sequence[Head] = ()
        self.lines: Sequence[Sequence[str]] = ()

    def show(self, heads: Sequence[Head], lines: Sequence[Sequence[str]], cursor: int = 0) -> None:
        """Other rows; each has a text for each of `heads`."""
        self.wanted, self.lines = heads, lines
        self._fit()
        self.cursor = max(min(cursor, len(lines) - 1), 0)
        self._keep_in_sight()
        self.refresh()
        self.post_message(self.Moved())

    def _fit(self) -> None:
        self.heads = within(self.wanted, self.scrollable_content_region.width)
        self.virtual_size = Size(sum(head.width + _GAP for head in self.heads) - _GAP, len(self.lines) + 1)

    def render_line(self, y: int) -> Strip:
        row = y - 1 + self.scroll_offset.y
        if y == 0 and self.heads:
            style = self.get_component_rich_style("table--head")
            strip = self._strip([head.title for head in self.heads], style)
            left, width = self.scroll_offset.x, self.scrollable_content_region.width
            more = self.virtual_size.width - left > width
            ends = Strip([Segment("‹" if left else " ", style), Segment("›" if more else " ", style)])
            return Strip.join([strip.crop(0, width - _MORE), ends]) if left or more else strip
        if not self.heads or row >= len(self.lines):
            return Strip.blank(self.size.width, self.rich_style)
        at_hand = row == self.cursor
        return self._strip(self.lines[row], self.get_component_rich_style(f"table--{'cursor' if at_hand else 'row'}"))

    def _strip(self, cells: Sequence[str], style: object) -> Strip:
        texts = [_fitted(cell, head) for cell, head in zip(cells, self.heads, strict=True)]
        first = texts[0] + " " * _GAP
        width, left = self.size.width, self.scroll_offset.x
        fixed = Strip([Segment(first, style)]).crop_extend(0, min(cell_len(first), width), style)  # pyright: ignore[reportArgumentType]
        room = width - fixed.cell_length
        # The line of heads ends in a sign that there is more: no column lies under it.
        seen = room - (_MORE if self.virtual_size.width > left + width else 0)
        rest = (" " * _GAP).join(whole(texts[1:], left, seen))
        moving = Strip([Segment(rest, style)]).crop_extend(left, left + room, style)  # pyright: ignore[reportArgumentType]
        return Strip.join([fixed, moving])

    # Keys and clicks

    def watch_cursor(self) -> None:
        self._keep_in_sight()
        self.refresh()

    def _keep_in_sight(self) -> None:
        room = max(self.size.height - 1, 1)
        top = self.scroll_offset.y
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False, force=True)
        elif self.cursor >= top + room:
            self.scroll_to(y=self.cursor - room + 1, animate=False, force=True)

    def watch_show_vertical_scrollbar(self) -> None:
        # The bar comes after the rows, and takes room that they were fitted to.
        self._fit()

    def on_resize(self) -> None:
        self._fit()
        self._keep_in_sight()

    def _go(self, row: int) -> None:
        row = max(min(row, len(self.lines) - 1), 0)
        if row != self.cursor:
            self.cursor = row
            self.post_message(self.Moved())

    def action_move(self, step: int) -> None:
        self._go(self.cursor + step)

    def action_page(self, step: int) -> None:
        self._go(self.cursor + step * max(self.size.height - 2, 1))

    def action_go(self, place: int) -> None:
        self._go(place if place >= 0 else len(self.lines) + place)

    def action_sideways(self, step: int) -> None:
        self.scroll_to(x=self.scroll_offset.x + step * _STEP, animate=False)

    def action_choose(self) -> None:
        if self.lines:
            self.post_message(self.Chosen())

    def on_click(self, event: events.Click) -> None:
        event.stop()
        if event.y == 0:
            self.post_message(self.HeadClicked(self._column_at(event.x)))
            return
        row = event.y - 1 + self.scroll_offset.y
        if row == self.cursor:
            self.action_choose()
        elif row < len(self.lines):
            self._go(row)

    def _column_at(self, x: int) -> int:
        place, end = x, 0
        if self.heads and x >= self.heads[0].width + _GAP:
            place += self.scroll_offset.x
        for column, head in enumerate(self.heads):
            end += head.width + _GAP
            if place < end:
                return column
        return len(self.heads) - 1


def within(heads: Sequence[Head], room: int) -> Sequence[Head]:
    """The columns in `room` cells: words give way, the last column first, then the widest, as far as can be read."""
    widths = [head.width for head in heads]
    over = sum(widths) + _GAP * (len(widths) - 1) - room
    if room <= 0 or over <= 0:
        return heads
    words = [place for place, head in enumerate(heads) if not head.right]
    last = len(heads) - 1
    for place in sorted(words, key=lambda place: (place != last, -widths[place])):
        taken = min(max(widths[place] - (_LEAST if place else _LEAST_FIRST), 0), over)
        widths[place] -= taken
        over -= taken
    if over > 0:
        _cut_at_the_edge(heads, widths, room - _MORE)
    return [replace(head, width=width) for head, width in zip(heads, widths, strict=True)]


def _cut_at_the_edge(heads: Sequence[Head], widths: list[int], room: int) -> None:
    """Words that stand across the edge give way once more: a part of them says more than a blank."""
    start = 0
    for place, width in enumerate(widths):
        if start + width > room:
            if not heads[place].right and room - start >= _LEAST_LAST:
                widths[place] = room - start
            return
        start += width + _GAP


def whole(texts: Sequence[str], left: int, room: int) -> list[str]:
    """Columns of a row, those blank that are not in sight as a whole: a number without its end is another number."""
    seen, start = [], 0
    for text in texts:
        end = start + cell_len(text)
        cut = start < left < end or end > left + room
        seen.append(" " * (end - start) if cut else text)
        start = end + _GAP
    return seen


def _fitted(text: str, head: Head) -> str:
    short = head.width - cell_len(text)
    if short < 0:
        return f"{set_cell_size(text, head.width - 1)}…" if head.width > 1 else set_cell_size(text, head.width)
    return " " * short + text if head.right else text + " " * short
