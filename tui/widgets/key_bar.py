"""The keys at the foot of a screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.binding import Binding
from textual.widgets import Footer

if TYPE_CHECKING:
    from textual.screen import Screen


class KeyBar(Footer):
    """Made anew only where other keys hold: Textual's makes all of its parts again whenever the focus moves."""

    _told: list[tuple[str, Binding, bool, str]] | None = None

    def bindings_changed(self, screen: Screen[Any]) -> None:
        active = screen.active_bindings.items()
        told = [(key, binding, enabled, tip) for key, (_, binding, enabled, tip) in active if binding.show]
        if told == self._told:
            return
        if screen.app.app_focus and self.is_attached and screen is self.screen:
            self._told = told
        super().bindings_changed(screen)
