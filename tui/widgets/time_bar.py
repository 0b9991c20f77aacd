"""What the time of a step goes to, as one bar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from textual.content import Content
from textual.reactive import reactive

from tui import units
from tui.widgets.stack import Stack, parts_of


class TimeBar(Stack):
    """Draws seconds by component."""

    seconds: reactive[Mapping[str, Any] | None] = reactive(None, layout=True)

    def render(self) -> Content:
        if not self.seconds:
            return Content("")
        parts = parts_of(self.seconds)
        return self.draw(parts, sum(part.size for part in parts), units.short_duration)
