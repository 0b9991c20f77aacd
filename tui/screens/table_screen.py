"""A screen with a table to search, sort, mark and choose from, and what is known of the row at hand beside it.

The search has the focus first: typing narrows the rows at once, Down goes to the table, where letters are commands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.timer import Timer
from textual.widgets import Input

from pages.blocks import Block, Note
from tui.screens.dialogs import Ask
from tui.screens.list_table import Head, ListTable
from tui.screens.listing import Listing, Row
from tui.screens.page_view import PageView
from tui.screens.working import WorkingScreen, state_line, top
from tui.widgets.key_bar import KeyBar

Data = Mapping[str, Any]

# What is known of a row is asked for once the cursor rests.
_REST_S = 0.08
_MARK, _UNMARKED = "* ", "  "
_WIDEST, _WIDEST_LAST = 72, 120


class Search(Input):
    """What narrows the rows; the foot of the screen has the keys that lead on from it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "Choose"),
        Binding("down", "screen.to_table", "Rows"),
    ]


class TableScreen(WorkingScreen):
    """A screen of this kind gives `key_of` a row, its `listing` once `load` has it, and says what choosing does."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Search"),
        Binding("down", "to_table", show=False),
        Binding("s", "sort(1)", "Sort"),
        Binding("S", "sort(-1)", "Sort by the previous column", show=False),
        Binding("r", "turn", "Reverse"),
        Binding("space", "mark", "Mark"),
    ]
    placeholder = "Search"
    has_details = True
    # What to do so that there are rows, where there are none at all.
    none_yet = ""
    # Which field of the rows names one.
    key = "id"

    def __init__(self, plan: Data, listing: Listing) -> None:
        super().__init__(plan)
        self.listing = listing
        # Those that no row has a value in are left out.
        self.columns = listing.columns
        self.shown: list[Row] = []
        self.marked: dict[str, Row] = {}
        self.started = False
        self._rest: Timer | None = None
        self._cells: dict[str, list[str]] = {}
        self._widths: list[int] = []

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The key to the search is none within it."""
        return super().check_action(action, parameters) if action != "search" else not isinstance(self.focused, Search)

    # What a screen gives

    def load(self) -> Sequence[Row]:
        """The rows; called in a thread."""
        raise NotImplementedError

    def details(self, row: Row) -> Sequence[Block]:
        """What is known of a row; called in a thread."""
        raise NotImplementedError

    def choose(self, row: Row) -> None:
        raise NotImplementedError

    def searched(self, words: str) -> None:
        """Other words are in the search."""
        self.look(replace(self.listing, query=words))

    # How it looks

    def compose(self) -> ComposeResult:
        yield top(self.heading)
        yield Search(placeholder=self.placeholder, id="search")
        with Horizontal(id="body"):
            with Vertical(id="listed"):
                yield ListTable(id="table")
            if self.has_details:
                yield PageView(id="details")
        yield state_line()
        yield KeyBar()

    def on_mount(self) -> None:
        self.query_one("#search").focus()
        self.reload()

    @property
    def table(self) -> ListTable:
        return self.query_one(ListTable)

    def reload(self) -> None:
        self.table.loading = not self.started
        self.do(self.load, self.take, "looking", group="load")

    def failed(self, text: str) -> None:
        self.table.loading = False
        super().failed(text)

    def take(self, rows: Sequence[Row]) -> None:
        self.started, self.table.loading = True, False
        known = {self._key(row): row for row in rows}
        self.marked = {key: known[key] for key in self.marked if key in known}
        columns = [column for column in self.columns if any(column.value(row) is not None for row in rows)]
        listing = replace(self.listing, rows=tuple(rows), columns=tuple(columns) if rows else self.columns)
        if listing.columns != self.listing.columns:
            listing = replace(listing, sorted_by=None)
        self.look(listing)

    def look(self, listing: Listing) -> None:
        """Shows the rows anew; the cursor stays with its row, where that is still there."""
        before, shown = self.row, self.listing.rows
        self.listing = listing
        if listing.rows is not shown or not self._cells:
            columns = [column.cells(listing.rows) for column in listing.columns]
            by_row = zip(*columns, strict=True)
            self._cells = {self._key(row): list(cells) for row, cells in zip(listing.rows, by_row, strict=True)}
            self._widths = self._widest()
        self.shown = listing.shown()
        keys = [self._key(row) for row in self.shown]
        lines = [_marked(self._cells[key], key in self.marked) for key in keys]
        at = keys.index(self._key(before)) if before is not None and self._key(before) in keys else 0
        self.table.show(self._heads(), lines, at)
        self.title_line(self.counted())
        self.tell(self.state())

    def _key(self, row: Row) -> str:
        return str(getattr(row, self.key))

    def _widest(self) -> list[int]:
        """Columns are as wide as their widest cell of all rows, so that they stand still while rows come and go."""
        last = len(self.listing.columns) - 1
        return [
            min(
                max([len(column.title) + 1, *(cell_len(cells[place]) for cells in self._cells.values())]),
                _WIDEST if place < last else _WIDEST_LAST,
            )
            for place, column in enumerate(self.listing.columns)
        ]

    def _heads(self) -> list[Head]:
        heads: list[Head] = []
        for place, column in enumerate(self.listing.columns):
            arrow = ("▼" if self.listing.reverse else "▲") if place == self.listing.sorted_by else ""
            mark = _UNMARKED if place == 0 else ""
            heads.append(Head(f"{mark}{column.title}{arrow}", column.right, self._widths[place] + len(mark)))
        return heads

    def counted(self) -> str:
        if not self.started:
            return ""
        all_rows = len(self.listing.rows)
        return f"{all_rows}" if len(self.shown) == all_rows else f"{len(self.shown)} of {all_rows}"

    def state(self) -> str:
        marked = f"marked: {', '.join(self.marked)}" if self.marked else ""
        nothing = "" if self.shown or not self.listing.rows else "nothing matches"
        return " · ".join(part for part in (nothing, self.listing.state(), marked) if part)

    @property
    def row(self) -> Row | None:
        """The row under the cursor."""
        at = self.table.cursor
        return self.shown[at] if 0 <= at < len(self.shown) else None

    # What is pressed

    @on(Input.Changed, "#search")
    def _search(self, event: Input.Changed) -> None:
        event.stop()
        if self.started:
            self.searched(event.value)

    @on(Input.Submitted, "#search")
    def _chosen_from_search(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_choose()

    @on(ListTable.Chosen)
    def _chosen(self, event: ListTable.Chosen) -> None:
        event.stop()
        self.action_choose()

    @on(ListTable.HeadClicked)
    def _sorted(self, event: ListTable.HeadClicked) -> None:
        event.stop()
        self.look(self.listing.by(event.column))

    @on(ListTable.Moved)
    def _moved(self, event: ListTable.Moved) -> None:
        event.stop()
        self._ask_details()

    def action_choose(self) -> None:
        if self.row is not None:
            self.choose(self.row)

    def action_leave(self) -> None:
        """First out of the search, then out of the screen."""
        search = self.query_one("#search", Input)
        if search.value:
            search.value = ""
        else:
            self.dismiss(None)

    def action_search(self) -> None:
        self.query_one("#search").focus()

    def action_to_table(self) -> None:
        self.table.focus()

    def action_sort(self, step: int) -> None:
        now = self.listing.sorted_by
        count = len(self.listing.columns)
        first = 0 if step > 0 else count - 1
        self.look(self.listing.by(first if now is None else (now + step) % count))

    def action_turn(self) -> None:
        self.look(self.listing.by(self.listing.sorted_by or 0))

    def action_mark(self) -> None:
        row = self.row
        if row is None:
            return
        key = self._key(row)
        if key in self.marked:
            del self.marked[key]
        else:
            self.marked[key] = row
        self.look(self.listing)
        self.table.action_move(1)

    def action_filter(self, name: str, step: int = 1) -> None:
        self.look(self.listing.turned(name, step))

    def chosen_rows(self) -> list[Row]:
        """Those that are marked, and without any the one at hand."""
        return list(self.marked.values()) or [row for row in (self.row,) if row is not None]

    # Changes of what is listed

    def ask(self, question: str, suggested: str, then: Callable[[str], None]) -> None:
        """Asks for a word or a name, and goes on with it unless there is none."""

        def answered(text: str | None) -> None:
            if text:
                then(text)

        self.app.push_screen(Ask(question, suggested), answered)

    def change(self, call: Callable[[], Any], told: Callable[[Any], str]) -> None:
        """Calls `call` in a thread, tells what it came to, and shows the rows as they are then."""

        def changed(result: Any) -> None:
            self.notify(told(result), markup=False)
            self.reload()

        self.do(call, changed, "working", group="change")

    # What is known of the row

    def _ask_details(self) -> None:
        if not self.has_details:
            self.tell(self.state())
            return
        if self._rest is not None:
            self._rest.stop()
        self._rest = self.set_timer(_REST_S, self._show_details)

    def _show_details(self) -> None:
        row = self.row
        if row is None:
            empty = self.started and not self.listing.rows and self.none_yet
            self.query_one("#details", PageView).show([Note("", [self.none_yet])] if empty else [])
            return
        call: Callable[[], Sequence[Block]] = lambda: self.details(row)  # noqa: E731
        self.do(call, self.query_one("#details", PageView).show, "looking", group="details")


def _marked(cells: list[str], marked: bool) -> list[str]:
    return [f"{_MARK if marked else _UNMARKED}{cells[0]}", *cells[1:]]
