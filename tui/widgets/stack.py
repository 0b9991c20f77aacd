"""Quantities that add up to a whole, side by side as one bar, and a legend with the largest first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from textual.content import Content
from textual.geometry import Size
from textual.reactive import reactive
from textual.widget import Widget

from pages.rendering.clean import one_line
from pages.rendering.palette import PALETTE

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


@dataclass(frozen=True)
class Bar:
    """`capacity` is what there is of it, 0 where there is no limit; `write` says a size in words."""

    parts: Sequence[Part]
    capacity: float
    write: Callable[[float], str]

    @property
    def whole(self) -> float:
        return sum(part.size for part in self.parts)

    @property
    def told(self) -> list[Part]:
        """Those with a line in the legend."""
        least = _SHOWN_SHARE * max(self.whole, self.capacity)
        return [part for part in self.parts if part.size >= least]


class Stack(Widget):
    """Shows `bar`; nothing is there to see without one."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"stack--{i}" for i in range(len(PALETTE))} | {
        "stack--free",
        "stack--over",
    }

    bar: reactive[Bar | None] = reactive(None)

    def watch_bar(self, bar: Bar | None) -> None:
        self.display = bar is not None
        # The screen is laid out anew only for another height.
        self.refresh(layout=bar is not None and 1 + len(bar.told) != self.content_size.height)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        # Known without drawing, which would ask for the layout that is being made.
        return 1 + len(self.bar.told) if self.bar is not None else 0

    def render(self) -> Content:
        """The bar as wide as the widget for the larger of the whole and the capacity, and the legend under it."""
        if self.bar is None:
            return Content("")
        width = max(self.content_size.width, 10)
        lines = [self._bar(self.bar, width)]
        label_width = min(max((len(part.name) for part in self.bar.parts), default=0), max(width - 14, 8))
        for part in self.bar.told:
            label = one_line(part.name.replace("_", " "), label_width).ljust(label_width)
            mark = (self._glyph(part) + " ", self._style(part))
            lines.append(Content.assemble(mark, label, f" {self.bar.write(part.size):>10}"))
        return Content("\n").join(lines)

    def _bar(self, bar: Bar, width: int) -> Content:
        """Edges are rounded, so that the parts sum to the whole."""
        whole, capacity = bar.whole, bar.capacity
        scale = width / max(whole, capacity, 1e-30)
        drawn: list[tuple[str, Any]] = []
        position = 0.0
        for part in bar.parts:
            cells = round((position + part.size) * scale) - round(position * scale)
            drawn.append((self._glyph(part) * cells, self._style(part)))
            position += part.size
        used = min(round(position * scale), width)
        if capacity >= whole or not capacity:
            free = "·" if self.app.no_color else "░"
            drawn.append((free * (width - used), self.get_visual_style("stack--free", partial=True)))
            return Content.assemble(*drawn)
        line = Content.assemble(*drawn)
        edge = min(round(capacity * scale), width - 1)
        over = self.get_visual_style("stack--over", partial=True)
        return Content.assemble(line[:edge], ("┃", over), line[edge + 1 :])

    def _glyph(self, part: Part) -> str:
        return _PATTERNS[part.place % len(PALETTE)] if self.app.no_color else _BLOCK

    def _style(self, part: Part) -> Any:
        return self.get_visual_style(f"stack--{part.place % len(PALETTE)}", partial=True)
