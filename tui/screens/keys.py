"""The keys of the screen that is open, read from its bindings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widget import Widget

from pages.blocks import Block, Figures
from tui.screens.page_view import PageView
from tui.screens.working import WorkingScreen, state_line, top
from tui.widgets.key_bar import KeyBar


class KeysScreen(WorkingScreen):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("f1", "leave", "Back", show=False)]
    heading = "Keys of this screen"

    def __init__(self, of: Screen[Any]) -> None:
        super().__init__({})
        self.of = of

    def compose(self) -> ComposeResult:
        yield top(self.heading)
        yield PageView(id="page")
        yield state_line()
        yield KeyBar()

    def on_mount(self) -> None:
        self.query_one(PageView).focus()
        self.query_one(PageView).show([self.page()])

    def page(self) -> Block:
        inside = (each for each in (self.of.focused,) if each is not None)
        return Figures(list(dict.fromkeys(row for place in (self.of, *inside) for row in keys_of(place))))


def keys_of(place: Widget) -> Iterable[tuple[str, str]]:
    """(Key, what it does) of a widget's or screen's own bindings."""
    bindings = dict.fromkeys(each for key in place._bindings.key_to_bindings.values() for each in key)
    for binding in bindings:
        if binding.description:
            yield place.app.get_key_display(binding), binding.description
