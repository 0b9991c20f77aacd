"""Memory of the fullest device as one bar: its components side by side against what the device has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from textual.content import Content
from textual.reactive import reactive

from tui import units
from tui.widgets.stack import Stack, parts_of


class MemoryBar(Stack):
    """Draws a tool's `memory` result: {per_device_bytes, low_bytes, high_bytes, capacity_bytes, components}."""

    memory: reactive[Mapping[str, Any] | None] = reactive(None, layout=True)

    def render(self) -> Content:
        if self.memory is None:
            return Content("")
        return self.draw(parts_of(self.memory["components"]), float(self.memory["capacity_bytes"]), units.memory)
