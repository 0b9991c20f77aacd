"""The input: Enter sends, Ctrl+J or Shift+Enter starts a new line, pasted lines are only inserted."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

from tui.clean import clean


class Prompt(TextArea):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+j,shift+enter", "new_line", "New line", key_display="^j", show=False),
        Binding("up", "earlier", show=False),
        Binding("down", "later", show=False),
        # What there is to page through is the conversation, not the few lines typed here.
        Binding("pageup", "app.page_conversation(-1)", show=False),
        Binding("pagedown", "app.page_conversation(1)", show=False),
    ]

    class Submitted(Message):
        """The person pressed Enter on some text."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, *, id: str) -> None:
        super().__init__(
            id=id, placeholder="Ask, or say what to change…", compact=True, highlight_cursor_line=False, soft_wrap=True
        )
        self.sent: list[str] = []
        self.recalled = 0

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            if text := clean(self.text).strip():
                # Emptied at once: what is typed from here on belongs to the next question.
                self.sent.append(text)
                self.recalled = 0
                self.clear()
                self.post_message(self.Submitted(text))
            return
        await super()._on_key(event)

    def give_back(self, text: str) -> None:
        """The text could not be sent now: it comes back, before what was typed since."""
        self.sent.pop()
        self.text = f"{text}\n{self.text}".rstrip("\n")
        self.move_cursor(self.document.end)

    def action_new_line(self) -> None:
        self.insert("\n")

    def action_earlier(self) -> None:
        """Up: on the first line, the question before this one."""
        if self.cursor_location[0] > 0 or self.recalled >= len(self.sent):
            self.action_cursor_up()
            return
        self._recall(self.recalled + 1)

    def action_later(self) -> None:
        if self.cursor_location[0] < self.document.line_count - 1 or self.recalled == 0:
            self.action_cursor_down()
            return
        self._recall(self.recalled - 1)

    def _recall(self, back: int) -> None:
        self.recalled = back
        self.text = self.sent[-back] if back else ""
        self.move_cursor(self.document.end)
