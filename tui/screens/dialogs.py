"""Small questions over a screen: a page to read, a word to type, a yes or no."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from pages.blocks import Block
from pages.rendering.clean import clean
from tui.screens.page_view import PageView
from tui.screens.working import WorkingScreen, state_line, top
from tui.widgets.key_bar import KeyBar


class Confirm(ModalScreen[bool]):
    """Yes only when `y` is pressed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape,enter", "answer(False)", "No"),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self.question = question

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(clean(self.question), markup=False)
            yield Static("y: yes · n: no", classes="hint", markup=False)

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)


class Ask(ModalScreen[str | None]):
    """A word or a line; None where it is left."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Back")]

    def __init__(self, question: str, suggested: str = "") -> None:
        super().__init__()
        self.question = question
        self.suggested = suggested

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(clean(self.question), markup=False)
            yield Input(self.suggested, id="answer", select_on_focus=True)
            yield Static("Enter: continue · Esc: cancel", classes="hint", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value.strip() or None)


class PageScreen(WorkingScreen):
    """A page to read; `work` makes it, in a thread."""

    def __init__(self, heading: str, work: Callable[[], Sequence[Block]]) -> None:
        super().__init__({})
        self.heading = heading
        self.work = work

    def compose(self) -> ComposeResult:
        yield top(self.heading)
        yield PageView(id="page")
        yield state_line()
        yield KeyBar()

    def on_mount(self) -> None:
        self.query_one(PageView).focus()
        self.do(self.work, self.query_one(PageView).show, "working it out")
