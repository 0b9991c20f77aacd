"""Every command with a slash and every key, grouped by what they are for, on one screen where that is wide enough."""

from __future__ import annotations

import re
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

from pages.rendering.clean import one_line
from tui.actions import APP, FILES, PLAN, PROMPT_KEYS, RESULTS, shown_actions
from tui.screens import find_screen
from tui.screens.working import WorkingScreen, state_line, top
from tui.widgets.key_bar import KeyBar

_GROUPS, _KEYS = (PLAN, RESULTS, FILES, APP), "Keys"
_COLUMN, _WIDEST = 56, 60
_GAP, _LEAST_COLUMNS = 2, 2
_FIRST_WORDS = re.compile(r"[^,;:]+")


@dataclass(frozen=True)
class _Look:
    """The cells of a column, of those a name and a key; `brief` has a line a row, and no lines between groups."""

    width: int
    name: int
    key: int
    brief: bool = False


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
        groups = {title: rows for title, rows in groups.items() if rows}
        count = self.size.width // _COLUMN
        # On a small screen two columns of the first words of each.
        small = count < _LEAST_COLUMNS
        self.set_class(small, "-small")
        if small and _KEYS in groups:
            groups[_KEYS] = [row for row in groups[_KEYS] if row.name in dict(PROMPT_KEYS)]
        columns = _columns(groups, max(count, _LEAST_COLUMNS), 1 if small else 2)
        room = min(self.size.width // max(1, len(columns)) - 2 * _GAP, _WIDEST)
        look = _Look(room, 11, 4, brief=True) if small else _Look(room, 13, 6)
        for place, column in enumerate(self.query(".column").results(Static)):
            column.display = place < len(columns)
            column.update(_text(columns[place], look) if place < len(columns) else "")


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


def _columns(
    groups: Mapping[str, Sequence[HelpRow]], most: int, heading: int
) -> list[list[tuple[str, Sequence[HelpRow]]]]:
    """The groups in at most so many columns of about the same height, in order; `heading` are the lines that one takes
    beside its rows."""
    count = max(1, min(most, 3, len(groups)))
    lines = sum(len(rows) + heading for rows in groups.values())
    columns: list[list[tuple[str, Sequence[HelpRow]]]] = [[]]
    filled = 0
    for title, rows in groups.items():
        if columns[-1] and filled + len(rows) / 2 + 1 > lines / count and len(columns) < count:
            columns.append([])
            filled = 0
        columns[-1].append((title, rows))
        filled += len(rows) + heading
    return columns


def _text(groups: Sequence[tuple[str, Sequence[HelpRow]]], look: _Look) -> Content:
    """A meaning is broken over lines below itself, or where it is to be brief only begun."""
    parts: list[Content | str | tuple[str, str]] = []
    indent = look.name + look.key
    for title, rows in groups:
        parts.append((f"{title}\n", "bold $text-primary"))
        for row in rows:
            if row.name.startswith("/"):
                parts += [(f"{row.name:<{look.name}}", "bold"), (f"{row.key:<{look.key}}", "$text-muted")]
            else:
                # Names of keys are longer than those of commands, and nothing stands beside them.
                parts.append((f"{row.name:<{indent}}", "bold"))
            lines = textwrap.wrap(f"{row.meaning[:1].lower()}{row.meaning[1:]}", max(look.width - indent, look.name))
            if look.brief:
                lines = [one_line(begun[0] if (begun := _FIRST_WORDS.match(row.meaning)) else "", look.width - indent)]
            parts.append(f"\n{' ' * indent}".join(lines) + "\n")
        parts.append("" if look.brief else "\n")
    return Content.assemble(*parts).rstrip()
