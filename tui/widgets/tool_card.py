"""A tool call: one line while folded, its arguments (and error) when opened."""

from __future__ import annotations

from typing import Any

from textual.content import Content
from textual.widgets import Collapsible, Static

from tui import units
from tui.clean import arguments_line, clean, one_line
from tui.jsonout import to_json


class ToolCard(Collapsible):
    def __init__(self, name: str, arguments: dict[str, Any]) -> None:
        self.tool = one_line(name)
        self.arguments = arguments
        self.detail = Static(clean(to_json(arguments, indent=2)), markup=False)
        super().__init__(self.detail, collapsed=True, collapsed_symbol="▸", expanded_symbol="▾")
        self._retitle("…")

    def finish(self, error: str | None, seconds: float | None) -> None:
        """The call has ended: with a result, or with `error`."""
        self.set_class(error is None, "-done")
        self.set_class(error is not None, "-failed")
        if error is not None:
            self.detail.update(f"{clean(error)}\n\n{clean(to_json(self.arguments, indent=2))}")
            self._retitle("failed: " + one_line(error, 60))
            return
        self._retitle(units.duration(seconds) if seconds is not None else "done")

    def stop(self) -> None:
        if not self.has_class("-done") and not self.has_class("-failed"):
            self._retitle("stopped")

    def _retitle(self, state: str) -> None:
        # Content, since a plain string would be read as markup.
        self.title = Content(f"{self.tool}  {state}  {arguments_line(self.arguments, 120)}".rstrip())  # type: ignore[assignment]
