"""The input: Enter sends, Ctrl+J or Shift+Enter starts a new line, pasted lines are only inserted."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

from pages.rendering.clean import clean
from tui.history import MOST, read_history, remember
from tui.slash import PromptContext, completions
from tui.widgets.completions import Completions

_PLACEHOLDER = "Ask, or say what to change…  (/ for commands)"


class Prompt(TextArea):
    """`listed` is the list above it: while that is open, arrows go through it and Tab takes from it. `surroundings`
    says what completion may look at."""

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

    def __init__(self, listed: Completions, surroundings: Callable[[], PromptContext], *, id: str) -> None:
        super().__init__(
            id=id,
            placeholder=_PLACEHOLDER,
            compact=True,
            highlight_cursor_line=False,
            soft_wrap=True,
        )
        self.listed = listed
        self._surroundings = surroundings
        self.sent: list[str] = []
        self.recalled = 0
        # What was being typed before earlier prompts were looked at.
        self._unsent = ""
        self._steps: list[str] = []
        self._step = 0
        # Gives the focus to a list that waits for an answer; False where none does any more.
        self.choose: Callable[[], bool] | None = None

    def suggest(self, steps: Sequence[str]) -> None:
        """What may be said next: Tab takes it into the empty prompt, and again the one after it."""
        self._steps, self._step, self.choose = list(steps), 0, None
        self.placeholder = f"Tab: {steps[0]}" if steps else _PLACEHOLDER

    def offer(self, choose: Callable[[], bool]) -> None:
        """A list waits for an answer."""
        self.choose, self.placeholder = choose, "Tab: choose from the list, or ask"
        self.goes_to_choice()

    def goes_to_choice(self) -> bool:
        """Whether the list that waits for an answer takes the focus: not while something is typed."""
        return not self.text and self.choose is not None and self.choose()

    def _takes_step(self) -> bool:
        """Whether Tab was for the next step that was offered."""
        if not self._steps or (self.text and self.text not in self._steps):
            return False
        self.text = self._steps[self._step % len(self._steps)]
        self._step += 1
        self.move_cursor(self.document.end)
        return True

    def on_mount(self) -> None:
        self.sent = read_history()

    def on_text_area_changed(self) -> None:
        """What the words may become."""
        if not self.text.startswith("/"):
            self.listed.rows = ()
            return

        if " " not in self.text:
            self.listed.rows = completions(self.text, self._surroundings())
        else:
            # Names of the catalogue take a while the first time.
            self.run_worker(self._complete(), exclusive=True, exit_on_error=False, group="complete")

    async def _complete(self) -> None:
        text = self.text
        rows = await asyncio.to_thread(completions, text, self._surroundings())
        if self.text == text:
            self.listed.rows = rows

    async def _on_key(self, event: events.Key) -> None:
        if self.listed.display and self._completes(event.key):
            event.stop()
            event.prevent_default()
            return
        if event.key == "tab" and (self.goes_to_choice() or self._takes_step()):
            event.stop()
            event.prevent_default()
            return
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            if text := clean(self.text).strip():
                # Emptied at once: what is typed from here on belongs to the next question.
                self._keep(text)
                self.clear()
                self.post_message(self.Submitted(text))
            return
        await super()._on_key(event)

    def _completes(self, key: str) -> bool:
        """Whether the key was for the list."""
        rows = self.listed
        if key in ("up", "down"):
            rows.move(1 if key == "down" else -1)
        elif key == "tab" or (key == "enter" and rows.moved and rows.current != self.text):
            self.text = rows.current or self.text
            self.move_cursor(self.document.end)
        elif key == "escape":
            rows.rows = ()
        else:
            return False
        return True

    def _keep(self, text: str) -> None:
        self.recalled = 0
        if self.sent[-1:] != [text]:
            self.sent = [*self.sent, text][-MOST:]
            threading.Thread(target=remember, args=(text,), daemon=True).start()

    def give_back(self, text: str) -> None:
        """The text could not be sent now: it comes back, before what was typed since."""
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
        if self.recalled == 0:
            self._unsent = self.text
        self.recalled = back
        self.text = self.sent[-back] if back else self._unsent
        self.move_cursor(self.document.end)
