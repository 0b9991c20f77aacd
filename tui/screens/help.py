"""Every command with a slash and every key, grouped by what they are for, on one screen where that is wide enough."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Footer, Input, Static

from tui.screens import SCREENS, find_screen
from tui.screens.working import WorkingScreen, state_line, top
from tui.slash import commands
from tui.widgets.prompt import PROMPT_KEYS

# Commands by what they are for; one that is in no group stands in the last.
_GROUPS: Mapping[str, tuple[str, ...]] = {
    "The plan": ("plan", "model", "models", "hardware", "undo", "scenarios", "save"),
    "What it comes to": ("fit", "best", "cost", "compare", "sweep", "clusters", "playbook", "runs"),
    "Files": ("config", "export", "copy"),
    "Conversations and the app": ("new", "resume", "sessions", "think", "theme", "settings", "help", "quit"),
}
_KEYS, _LAST = "Keys", "Conversations and the app"
# Commands with a key that no screen has.
_KEYED = {"plan": "edit_plan", "new": "new_session", "copy": "copy_answer", "help": "help", "quit": "quit"}
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
        yield Footer()

    def on_mount(self) -> None:
        self.groups = grouped(self.app)
        self.query_one("#search").focus()
        self._draw()
        self.tell("Ctrl+P finds and starts each of these; a command takes words: /fit micro_batch=4")

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
    """Every command and key of the app by its group."""
    displayed = {binding.action: app.get_key_display(binding) for binding in _bindings(app) if binding.description}
    for row in SCREENS:
        if row.key:
            displayed[row.name] = app.get_key_display(Binding(row.key, ""))
    groups: dict[str, list[HelpRow]] = {title: [] for title in _GROUPS}
    known = {command.name: command for command in commands()}
    place = {name: title for title, names in _GROUPS.items() for name in names}
    for name in sorted(known, key=_order):
        key = displayed.get(_KEYED.get(name, name), "")
        groups[place.get(name, _LAST)].append(HelpRow(f"/{name}", key, known[name].meaning))
    keyed = {row.key for rows in groups.values() for row in rows}
    alone = [(key, what) for key, what in app.every_key() if key not in keyed and (key, what) not in PROMPT_KEYS]
    groups[_KEYS] = [HelpRow(key, "", what) for key, what in [*PROMPT_KEYS, *alone]]
    return groups


def _bindings(app: Any) -> Iterable[Binding]:
    return (each for key in app._bindings.key_to_bindings.values() for each in key)


def _order(name: str) -> int:
    names = [each for names in _GROUPS.values() for each in names]
    return names.index(name) if name in names else len(names)


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
