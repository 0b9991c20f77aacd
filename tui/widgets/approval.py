"""The question before anything is written: exactly which files, what changes in each, and a list to choose from.

No letter approves anything: what is typed while the card waits is for the prompt.
"""

from __future__ import annotations

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Collapsible, OptionList, Static
from textual.widgets.option_list import Option

from agent.events import PlannedWrite, ShownFile
from knowledge.figures import file_size
from pages.rendering.clean import clean, one_line
from tui.diff import change

# Of one file; whoever approves more than this reads it in an editor.
_MOST_LINES = 3000
_STYLES = {"+": "$text-success", "-": "$text-error", "@": "dim", " ": ""}


class FileDiff(Collapsible):
    """One file: its path, size and what changes; opened, every line that is new or goes. Drawn when first opened."""

    def __init__(self, file: ShownFile) -> None:
        self.change = change(file.before, file.text)
        self.lines = Static("", markup=False)
        super().__init__(self.lines, collapsed=True, collapsed_symbol="▸", expanded_symbol="▾")
        # Content, since a plain string would be read as markup.
        self.title = Content(f"{one_line(file.path)}  {file_size(file.bytes)}{self._summary()}")  # type: ignore[assignment]

    def _summary(self) -> str:
        change = self.change
        counts = f"  +{change.added}" + (f" -{change.removed}" if change.removed else "") if change.lines else ""
        return f"  {change.verb}{counts}"

    def scroll_visible(self, *_: Any, **__: Any) -> None:
        """Not of itself, as a Collapsible does when it opens: of several that open at once the last would win."""

    def on_collapsible_expanded(self, event: Collapsible.Expanded) -> None:
        event.stop()
        self.lines.update(self._content())

    def _content(self) -> Content:
        change = self.change
        if not change.lines:
            return Content("The same as what is there.")
        shown = [
            # Of a part of the file that is left out, the text says so itself.
            Content.assemble((clean(text) if sign == "@" else f"{sign} {clean(text)}", _STYLES[sign]))
            for sign, text in change.lines[:_MOST_LINES]
        ]
        left = len(change.lines) - _MOST_LINES
        return Content("\n").join([*shown, Content(f"… and {left:,} more lines")] if left > 0 else shown)


_CHOICES = {"write": "Write them", "refuse": "Do not write", "changes": "Show what changes", "copy": "Copy the files"}


class ApprovalCard(Vertical):
    """Shows what would be written."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "answer(False)", "Do not write"),
    ]

    class Answered(Message):
        def __init__(self, card: ApprovalCard, approved: bool) -> None:
            super().__init__()
            self.card = card
            self.approved = approved

    class Opened(Message):
        """What changes is shown, and is read from its first line."""

        def __init__(self, card: ApprovalCard) -> None:
            super().__init__()
            self.card = card

    def __init__(self, calls: list[PlannedWrite]) -> None:
        super().__init__()
        self.calls = calls
        self.answered = False

    def compose(self) -> ComposeResult:
        files = self.files
        replaced = sum(file.before is not None for file in files)
        over = f" ({replaced} of them there already)" if replaced else ""
        yield Static(f"Write {len(files)} file{'s' if len(files) != 1 else ''}?{over}", classes="heading", markup=False)
        for call in self.calls:
            yield Static(f"to {one_line(call.preview.folder)}", markup=False)
            for file in call.preview.files:
                yield FileDiff(file)
        yield OptionList(*(Option(words, id=name) for name, words in _CHOICES.items()), markup=False)
        yield Static("", id="verdict", classes="hint", markup=False)

    @property
    def files(self) -> list[ShownFile]:
        return [file for call in self.calls for file in call.preview.files]

    def choose(self) -> bool:
        """Whether there is still something to choose; the list then has the focus."""
        if not self.answered:
            self.query_one(OptionList).focus()
        return not self.answered

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        match event.option_id:
            case "write" | "refuse":
                self.action_answer(event.option_id == "write")
            case "changes":
                self.action_show_changes()
            case "copy":
                self.action_copy()

    def action_answer(self, approved: bool) -> None:
        if self.answered:
            return
        self.answered = True
        self.query_one(OptionList).display = False
        self.query_one("#verdict", Static).update("Approved." if approved else "Not written.")
        # What comes now is to be seen.
        for file in self.query(FileDiff):
            file.collapsed = True
        self.add_class("-approved" if approved else "-refused")
        self.post_message(self.Answered(self, approved))

    def action_show_changes(self) -> None:
        files = list(self.query(FileDiff))
        opened = all(not file.collapsed for file in files)
        for file in files:
            file.collapsed = opened
        if not opened:
            self.post_message(self.Opened(self))

    def action_copy(self) -> None:
        texts = [clean(file.text) for file in self.files]
        self.app.copy_to_clipboard("\n".join(texts))
        self.app.notify(f"{len(texts)} file{'s' if len(texts) != 1 else ''} copied.", markup=False)
