"""Memory of the fullest device as one bar: its components side by side against what the device has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from tui import units
from tui.clean import one_line

PALETTE = 10
# A component below this share of the bar gets no line of its own in the legend.
_SHOWN_SHARE = 0.002


class MemoryBar(Widget):
    """Draws a tool's `memory` result: {per_device_bytes, low_bytes, high_bytes, capacity_bytes, components}."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"memory-bar--{i}" for i in range(PALETTE)} | {
        "memory-bar--free",
        "memory-bar--over",
    }

    # A component keeps the colour of its place in the result, so that a what-if compares at a glance.
    memory: reactive[Mapping[str, Any] | None] = reactive(None, layout=True)

    def render(self) -> Content:
        if self.memory is None:
            return Content("")
        components = sorted(
            ((name, float(size), i % PALETTE) for i, (name, size) in enumerate(self.memory["components"].items())),
            key=lambda part: -part[1],
        )
        total, capacity = float(self.memory["per_device_bytes"]), float(self.memory["capacity_bytes"])
        width = max(self.content_size.width, 10)
        lines = [self._bar(components, total, capacity, width)]
        label_width = max((len(name) for name, *_ in components), default=0)
        for name, size, color in components:
            if size >= _SHOWN_SHARE * max(total, capacity):
                style = self.get_visual_style(f"memory-bar--{color}", partial=True)
                label = one_line(name.replace("_", " "), max(width - 14, 8)).ljust(min(label_width, width - 14))
                lines.append(Content.assemble(("█ ", style), label, f" {units.memory(size):>10}"))
        return Content("\n").join(lines)

    def _bar(self, components: list[tuple[str, float, int]], total: float, capacity: float, width: int) -> Content:
        """`width` cells for the larger of use and capacity; edges are rounded, so that the parts sum to the whole."""
        scale = width / max(total, capacity, 1.0)
        parts: list[tuple[str, Any]] = []
        position = 0.0
        for _, size, color in components:
            cells = round((position + size) * scale) - round(position * scale)
            parts.append(("█" * cells, self.get_visual_style(f"memory-bar--{color}", partial=True)))
            position += size
        used = min(round(position * scale), width)
        if capacity >= total:
            parts.append(("░" * (width - used), self.get_visual_style("memory-bar--free", partial=True)))
            return Content.assemble(*parts)
        bar = Content.assemble(*parts)
        edge = min(round(capacity * scale), width - 1)
        return Content.assemble(
            bar[:edge], ("┃", self.get_visual_style("memory-bar--over", partial=True)), bar[edge + 1 :]
        )
