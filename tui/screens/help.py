"""Every command with a slash and every key, read from the commands and the bindings themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from tui.screens import find_screen
from tui.screens.listing import Listing, text
from tui.screens.table_screen import TableScreen
from tui.slash import commands

COLUMNS = (text("KEY OR COMMAND", "what"), text("IS A", "where"), text("WHAT IT DOES", "meaning"))


@dataclass(frozen=True)
class HelpRow:
    """A command, which may lead to a `screen`, or a key."""

    what: str
    meaning: str
    where: str
    screen: bool


class HelpScreen(TableScreen):
    heading = "Help"
    placeholder = "Search commands and keys; Enter goes where it leads"
    has_details = False
    key = "what"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("w", "filter('where')", "Commands or keys")]

    def __init__(self, plan: Mapping[str, Any]) -> None:
        super().__init__(plan, Listing(COLUMNS))

    def reload(self) -> None:
        """Read at once: bindings belong to the app, and are no work."""
        self.take([*_commands(), *_keys(self.app)])

    def state(self) -> str:
        """The row at hand in full: the table may have room for its start only."""
        row = self.row
        return super().state() or (f"{row.what}: {row.meaning}" if row is not None else "")

    def choose(self, row: HelpRow) -> None:
        name = row.what.removeprefix("/").partition(" ")[0]
        if row.where == "command" and row.screen:
            self._go(name)

    def _go(self, name: str) -> None:
        app: Any = self.app
        self.dismiss(None)
        # Once this screen has gone.
        app.call_later(app.open_screen, name)


def _commands() -> Iterable[HelpRow]:
    for command in commands():
        yield HelpRow(command.shown, command.meaning, "command", find_screen(command.name) is not None)


def _keys(app: Any) -> Iterable[HelpRow]:
    for key, meaning in app.every_key():
        yield HelpRow(key, meaning, "key", False)
