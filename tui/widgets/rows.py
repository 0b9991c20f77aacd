"""Labelled values, one under the other; a value too long for the width goes on under itself."""

from __future__ import annotations

import textwrap
from typing import ClassVar

from textual.content import Content
from textual.geometry import Size
from textual.reactive import reactive
from textual.widget import Widget


class Rows(Widget):
    """Values of the labels in `doubtful` are in the colour of warnings."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--label", "rows--doubtful"}

    rows: reactive[tuple[tuple[str, str], ...]] = reactive(())
    doubtful: reactive[frozenset[str]] = reactive(frozenset())

    def watch_rows(self) -> None:
        # The screen is laid out anew only for another height.
        width, height = self.content_size
        self.refresh(layout=self.display and len(self._lines(width)) != height)

    def render(self) -> Content:
        style, doubtful = self.get_visual_style("rows--label"), self.get_visual_style("rows--doubtful")
        return Content("\n").join(
            Content.assemble((label, style), (value, doubtful) if name in self.doubtful else value)
            for name, label, value in self._lines(self.content_size.width)
        )

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._lines(width))

    def _lines(self, width: int) -> list[tuple[str, str, str]]:
        """(Whose line, its label where it is the first, what of the value stands there)."""
        indent = max((len(label) for label, _ in self.rows), default=0) + 1
        return [
            (label, (label if first else "").ljust(indent), text)
            for label, value in self.rows
            for first, text in _firsts(textwrap.wrap(value, max(width - indent, 8)) or [""])
        ]


def _firsts(lines: list[str]) -> list[tuple[bool, str]]:
    return [(i == 0, line) for i, line in enumerate(lines)]
