"""Quantities that add up to a whole, side by side as one bar, and a legend with the largest first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from textual.content import Content
from textual.widget import Widget

from tui.clean import one_line

PALETTE = 10
_BLOCK = "█"
# Where there are no colours, parts are told apart by what they are drawn with.
_PATTERNS = "█▒#░=▓+:*-"
# A part below this share of the bar gets no line of its own in the legend.
_SHOWN_SHARE = 0.004


@dataclass(frozen=True)
class Part:
    """`place` is that in the result: it keeps its colour, so that a what-if compares at a glance."""

    name: str
    size: float
    place: int


def parts_of(sizes: Mapping[str, Any]) -> list[Part]:
    """The parts that take anything, the largest first."""
    parts = [Part(name, float(size), place) for place, (name, size) in enumerate(sizes.items()) if size]
    return sorted(parts, key=lambda part: -part.size)


class Stack(Widget):
    """Base of the bars in the plan pane; a subclass says what is drawn."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"stack--{i}" for i in range(PALETTE)} | {"stack--free", "stack--over"}

    def draw(self, parts: Sequence[Part], capacity: float, write: Callable[[float], str]) -> Content:
        """The bar as wide as the widget for the larger of the whole and `capacity`, and the legend under it."""
        width = max(self.content_size.width, 10)
        whole = sum(part.size for part in parts)
        lines = [self._bar(parts, capacity, width, whole)]
        label_width = min(max((len(part.name) for part in parts), default=0), max(width - 14, 8))
        for part in parts:
            if part.size >= _SHOWN_SHARE * max(whole, capacity):
                label = one_line(part.name.replace("_", " "), label_width).ljust(label_width)
                mark = (self._glyph(part) + " ", self._style(part))
                lines.append(Content.assemble(mark, label, f" {write(part.size):>10}"))
        return Content("\n").join(lines)

    def _bar(self, parts: Sequence[Part], capacity: float, width: int, whole: float) -> Content:
        """Edges are rounded, so that the parts sum to the whole."""
        scale = width / max(whole, capacity, 1e-30)
        drawn: list[tuple[str, Any]] = []
        position = 0.0
        for part in parts:
            cells = round((position + part.size) * scale) - round(position * scale)
            drawn.append((self._glyph(part) * cells, self._style(part)))
            position += part.size
        used = min(round(position * scale), width)
        if capacity >= whole:
            free = "·" if self.app.no_color else "░"
            drawn.append((free * (width - used), self.get_visual_style("stack--free", partial=True)))
            return Content.assemble(*drawn)
        bar = Content.assemble(*drawn)
        edge = min(round(capacity * scale), width - 1)
        return Content.assemble(bar[:edge], ("┃", self.get_visual_style("stack--over", partial=True)), bar[edge + 1 :])

    def _glyph(self, part: Part) -> str:
        return _PATTERNS[part.place % PALETTE] if self.app.no_color else _BLOCK

    def _style(self, part: Part) -> Any:
        return self.get_visual_style(f"stack--{part.place % PALETTE}", partial=True)
