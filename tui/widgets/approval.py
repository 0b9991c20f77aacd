"""The question before anything is written: exactly which files, and y or n."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Static

from tui import units
from tui.clean import one_line


class ApprovalCard(Vertical, can_focus=True):
    """Shows an approval event: {calls: [{name, arguments, preview: {folder, files: [{path, bytes}]}}]}."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Write them"),
        Binding("n,escape", "answer(False)", "Do not write", key_display="n"),
    ]

    class Answered(Message):
        def __init__(self, card: ApprovalCard, approved: bool) -> None:
            super().__init__()
            self.card = card
            self.approved = approved

    def __init__(self, calls: list[dict[str, Any]]) -> None:
        super().__init__()
        self.calls = calls
        self.answered = False

    def compose(self) -> ComposeResult:
        files = [file for call in self.calls for file in call["preview"]["files"]]
        yield Static(f"Write {len(files)} file{'s' if len(files) != 1 else ''}?", classes="heading", markup=False)
        for call in self.calls:
            preview = call["preview"]
            lines = [f"to {one_line(preview['folder'])}"]
            lines += [f"  {one_line(file['path'])}  {units.size(file['bytes'])}" for file in preview["files"]]
            yield Static("\n".join(lines), markup=False)
        yield Static("y  write them      n  do not write", id="verdict", classes="hint", markup=False)

    def on_mount(self) -> None:
        self.focus()

    def action_answer(self, approved: bool) -> None:
        if self.answered:
            return
        self.answered = True
        self.can_focus = False
        self.query_one("#verdict", Static).update("Approved." if approved else "Not written.")
        self.add_class("-approved" if approved else "-refused")
        self.post_message(self.Answered(self, approved))
