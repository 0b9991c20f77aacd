"""The line on top: who thinks, which session, and while something is going on, what and for how long."""

from __future__ import annotations

import time

from textual.reactive import reactive
from textual.timer import Timer
from textual.widgets import Static

from pages.rendering.clean import one_line

# What takes less is over before it could be read.
_SHOW_AFTER_S = 0.5
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Status(Static):
    """`doing` is what is going on, '' when nothing is; `rest` is shown then."""

    doing: reactive[str] = reactive("")
    rest: reactive[str] = reactive("")

    def __init__(self, *, id: str) -> None:
        super().__init__("", id=id, markup=False)
        self._since = 0.0
        self._timer: Timer | None = None

    def watch_doing(self, before: str, now: str) -> None:
        if now and not before:
            self._since = time.monotonic()
            self._timer = self.set_interval(0.1, self._show)
        elif not now and self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._show()

    def watch_rest(self) -> None:
        self._show()

    def _show(self) -> None:
        passed = time.monotonic() - self._since
        if self.doing and passed >= _SHOW_AFTER_S:
            frame = _FRAMES[int(passed * 10) % len(_FRAMES)]
            text = f"{frame} {self.doing} {passed:.0f} s, Esc stops · {self.rest}"
        else:
            text = self.rest
        # One line as long as it lives: laid out anew, the whole screen would be drawn with it.
        self.update(one_line(f"Shardwise · {text}", 240), layout=False)
