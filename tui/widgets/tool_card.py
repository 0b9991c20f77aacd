"""A tool call: one line while folded; opened, its result as a page (or its arguments, and why it failed)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from textual import events
from textual.content import Content
from textual.widgets import Collapsible, Static

from agent.wire import DECLINED
from knowledge.figures import seconds as written_seconds
from pages.rendering.clean import arguments_line, clean, one_line
from tui.jsonout import to_json
from tui.result_page import page
from tui.widgets.messages import FoldLine

Data = Mapping[str, Any]


class ToolCard(Collapsible):
    """`opened` shows the first lines of the result as soon as it is there, as an answer has them, with all else behind
    `details`; a card that is opened by hand shows the whole."""

    def __init__(self, name: str, arguments: Data, *, opened: bool = False) -> None:
        self.tool = one_line(name)
        self.arguments = arguments
        self.result: BaseModel | None = None
        self.detail = Static(self._arguments(), markup=False)
        self.fold = FoldLine(self.toggle)
        self.fold.display = False
        self.opened = opened
        self._whole = not opened
        self._drawn = 0
        super().__init__(self.detail, self.fold, collapsed=True, collapsed_symbol="▸", expanded_symbol="▾")
        self._retitle("…")

    def finish(self, error: str | None, seconds: float | None, result: BaseModel | None = None, text: str = "") -> None:
        """The call has ended: with a result, or with `error`."""
        declined = error == DECLINED
        self.set_class(error is None or declined, "-done")
        self.set_class(error is not None and not declined, "-failed")
        if error is not None:
            self.detail.update(f"{clean(error)}\n\n{self._arguments()}")
            self._retitle("declined" if declined else "failed: " + one_line(error, 60))
            return
        self.result = result
        if text:
            self.detail.update(f"{clean(text)}\n\n{self._arguments()}")
        self._retitle(written_seconds(seconds) if seconds is not None else "done")
        if self.opened:
            self.collapsed = False
        elif not self.collapsed:
            self._draw()

    def toggle(self) -> None:
        """Shows the details, or the first lines again."""
        self._whole, self.collapsed = not self._whole, False
        self._draw()

    def stop(self) -> None:
        if not self.has_class("-done") and not self.has_class("-failed"):
            self._retitle("stopped")

    def on_collapsible_expanded(self, event: Collapsible.Expanded) -> None:
        event.stop()
        self._draw()

    def on_resize(self, event: events.Resize) -> None:
        if self.result is not None and not self.collapsed and event.size.width != self._drawn:
            self._draw()

    def _draw(self) -> None:
        """The result as a page as wide as the card; drawn when it is looked at, as most never are."""
        if self.result is None:
            return

        self._drawn = self.size.width
        width = max((self.size.width or self.app.size.width) - 6, 40)
        drawn = page(self.result, width, colour=not self.app.no_color)
        self.fold.display = self.opened and drawn.folds
        self.fold.says(self._whole)
        self.detail.update(Content.from_rich_text(drawn.whole() if self._whole else drawn.first()))

    def _arguments(self) -> str:
        return clean(to_json(self.arguments, indent=2)) if self.arguments else ""

    def _retitle(self, state: str) -> None:
        # Content, since a plain string would be read as markup.
        self.title = Content(f"{self.tool}  {state}  {arguments_line(self.arguments, 120)}".rstrip())  # type: ignore[assignment]
