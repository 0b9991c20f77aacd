"""What the words at the prompt may become: a short list above it, which never takes the focus."""

from __future__ import annotations

from typing import ClassVar

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from pages.rendering.clean import one_line


class Completions(Widget, can_focus=False):
    """`rows` are (what is put in, what it means); the chosen one goes in with Tab."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"completions--chosen", "completions--meaning"}

    rows: reactive[tuple[tuple[str, str], ...]] = reactive((), layout=True)
    chosen: reactive[int] = reactive(0)
    # Whether the person went through the list; Enter then takes the row, and otherwise sends what is typed.
    moved = False

    def watch_rows(self) -> None:
        self.display = bool(self.rows)
        self.chosen, self.moved = 0, False

    def on_mount(self) -> None:
        self.display = False

    @property
    def current(self) -> str | None:
        return self.rows[self.chosen][0] if self.display and self.rows else None

    def move(self, by: int) -> None:
        self.moved = True
        self.chosen = (self.chosen + by) % len(self.rows)

    def render(self) -> Content:
        width = max((len(word) for word, _ in self.rows), default=0)
        chosen = self.get_visual_style("completions--chosen")
        meaning = self.get_visual_style("completions--meaning")
        lines: list[Content] = []
        for place, (word, told) in enumerate(self.rows):
            mark = "›" if place == self.chosen else " "
            style = chosen if place == self.chosen else ""
            note = one_line(told, max(self.size.width - width - 6, 10))
            lines.append(Content.assemble((f"{mark} {word:<{width}}", style), "  ", (note, meaning)))
        return Content("\n").join(lines)
