"""Every command with a slash and every key, grouped by what they are for, on one screen where that is wide enough."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static

from tui.actions import APP, FILES, PLAN, PROMPT_KEYS, RESULTS, shown_actions
from tui.screens import find_screen
from tui.screens.working import WorkingScreen, state_line, top
from tui.widgets.key_bar import KeyBar

_GROUPS, _KEYS = (PLAN, RESULTS, FILES, APP), "Keys"
_NAME, _KEY, _COLUMN, _WIDEST = 13, 6, 56, 60


@dataclass(frozen=True)
class HelpRow:
    """A command with its key, or a key alone."""

    name: str
    key: str
    meaning: str

    @property
    def screen(self) -> str:
        """The screen that it leads to, if any."""
        name = self.name.removeprefix("/")
        return name if self.name.startswith("/") and find_screen(name) else ""

    def has(self, words: str) -> bool:
        text = f"{self.name} {self.key} {self.meaning}".casefold()
        return all(word in text for word in words.casefold().split())


class HelpScreen(WorkingScreen):
    heading = "Help"

    def __init__(self, plan: Mapping[str, Any]) -> None:
        super().__init__(plan)
        self.groups: dict[str, list[HelpRow]] = {}

    def compose(self) -> ComposeResult:
        yield top(self.heading)
        yield Input(placeholder="Search commands and keys; Enter goes to the first screen found", id="search")
        with VerticalScroll(id="groups"), Horizontal():
            yield from (Static("", markup=False, classes="column") for _ in range(3))
        yield state_line()
        yield KeyBar()

    def on_mount(self) -> None:
        self.groups = grouped(self.app)
        self.query_one("#search").focus()
        self._draw()
        app: Any = self.app
        palette = app.get_key_display(Binding(app.COMMAND_PALETTE_BINDING, ""))
        self.tell(f"{palette} finds and starts each of these; a command takes words: /fit micro_batch=4")

    def on_resize(self, event: events.Resize) -> None:
        self._draw()

    @property
    def rows(self) -> list[HelpRow]:
        """Those that the search leaves."""
        words = self.query_one("#search", Input).value
        return [row for rows in self.groups.values() for row in rows if row.has(words)]

    @on(Input.Changed, "#search")
    def _searched(self) -> None:
        self._draw()

    @on(Input.Submitted, "#search")
    def _chosen(self) -> None:
        name = next((row.screen for row in self.rows if row.screen), "")
        if name and name != "help":
            app: Any = self.app
            self.dismiss(None)
            # Once this screen has gone.
            app.call_later(app.open_screen, name)

    def _draw(self) -> None:
        left = set(self.rows)
        groups = {title: [row for row in rows if row in left] for title, rows in self.groups.items()}
        columns = _columns({title: rows for title, rows in groups.items() if rows}, self.size.width // _COLUMN)
        room = min(self.size.width // max(1, len(columns)) - 4, _WIDEST) - _NAME - _KEY
        for place, column in enumerate(self.query(".column").results(Static)):
            column.display = place < len(columns)
            column.update(_text(columns[place], room) if place < len(columns) else "")


def grouped(app: Any) -> dict[str, list[HelpRow]]:
    """Every command by its group, each with its key; then the keys of the prompt, and those that are a command's with
    something behind it."""
    groups: dict[str, list[HelpRow]] = {title: [] for title in (*_GROUPS, _KEYS)}
    more: list[HelpRow] = []
    for row in shown_actions(app):
        action = row.action
        groups[action.group].append(HelpRow(f"/{action.name}", row.key, action.meaning))
        more += [HelpRow(shown, "", key.meaning) for key, shown in row.others]
    groups[_KEYS] = [*(HelpRow(key, "", what) for key, what in PROMPT_KEYS), *more]
    return groups


def _columns(groups: Mapping[str, Sequence[HelpRow]], most: int) -> list[list[tuple[str, Sequence[HelpRow]]]]:
    """The groups in at most so many columns of about the same height, in order."""
    count = max(1, min(most, 3, len(groups)))
    lines = sum(len(rows) + 2 for rows in groups.values())
    columns: list[list[tuple[str, Sequence[HelpRow]]]] = [[]]
    filled = 0
    for title, rows in groups.items():
        if columns[-1] and filled + len(rows) / 2 > lines / count and len(columns) < count:
            columns.append([])
            filled = 0
        columns[-1].append((title, rows))
        filled += len(rows) + 2
    return columns


def _text(groups: Sequence[tuple[str, Sequence[HelpRow]]], room: int) -> Content:
    """`room` is that of a meaning, which is broken over lines below itself."""
    parts: list[Content | str | tuple[str, str]] = []
    for title, rows in groups:
        parts.append((f"{title}\n", "bold $text-primary"))
        for row in rows:
            if row.name.startswith("/"):
                parts += [(f"{row.name:<{_NAME}}", "bold"), (f"{row.key:<{_KEY}}", "$text-muted")]
            else:
                # Names of keys are longer than those of commands, and nothing stands beside them.
                parts.append((f"{row.name:<{_NAME + _KEY}}", "bold"))
            lines = textwrap.wrap(f"{row.meaning[:1].lower()}{row.meaning[1:]}", max(room, _NAME))
            parts.append(f"\n{' ' * (_NAME + _KEY)}".join(lines) + "\n")
        parts.append("\n")
    return Content.assemble(*parts)
