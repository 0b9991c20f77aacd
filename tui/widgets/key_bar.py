"""The keys at the foot of a screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Footer

if TYPE_CHECKING:
    from textual.screen import Screen


class KeyBar(Footer):
    """Made anew only where other keys hold: Textual's makes all of its parts again whenever the focus moves. A key with
    no room for its whole label is left out; the help has it."""

    _told: list[tuple[str, Binding, bool, str]] | None = None

    def bindings_changed(self, screen: Screen[Any]) -> None:
        active = screen.active_bindings.items()
        told = [(key, binding, enabled, tip) for key, (_, binding, enabled, tip) in active if binding.show]
        if told == self._told:
            return
        if screen.app.app_focus and self.is_attached and screen is self.screen:
            self._told = told
        super().bindings_changed(screen)

    def compose(self) -> ComposeResult:
        keys: list[Any] = list(super().compose())
        widths = [cell_len(f" {key.key_display} {key.description} ") for key in keys]
        docked = [key.has_class("-command-palette") for key in keys]
        # The last may end where the screen does.
        room = self.app.size.width + 1 - sum(width + 1 for width, stays in zip(widths, docked, strict=True) if stays)
        for key, width, stays in zip(keys, widths, docked, strict=True):
            room -= 0 if stays else width
            if stays or room >= 0:
                yield key

    def on_resize(self) -> None:
        self.refresh(recompose=True)
