"""What goes on, where the answer will be: a turning mark, what is being done, and for how long."""

from __future__ import annotations

import time

from textual.widgets import Static

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
# What takes less is over before it could be read.
_COUNT_AFTER_S = 2.0


class Thinking(Static):
    def __init__(self) -> None:
        super().__init__(f"{_FRAMES[0]} Reading", markup=False)
        self.doing = "Reading"
        self._since = time.monotonic()

    def on_mount(self) -> None:
        self.set_interval(0.1, self._show)

    def does(self, tool: str) -> None:
        """The tool that works now."""
        self.doing = tool.replace("_", " ").capitalize()
        self._show()

    def _show(self) -> None:
        passed = time.monotonic() - self._since
        frame = _FRAMES[int(passed * 10) % len(_FRAMES)]
        counted = f" {passed:.0f} s, Esc stops" if passed >= _COUNT_AFTER_S else ""
        self.update(f"{frame} {self.doing}…{counted}", layout=False)
