"""The colours of the app: those that were chosen, and a change of them that is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.terminal_theme import TerminalTheme
from textual.app import App
from textual.color import Color
from textual.theme import BUILTIN_THEMES

from agent.settings import set_value, value
from estimator.errors import PlanError, nearest

# Places among the 16 colours of a terminal.
_TONES = {1: "error", 2: "success", 3: "warning"}
_DARK, _LIGHT = "textual-dark", "textual-light"


def use_chosen(app: App[Any]) -> None:
    """The theme of the settings; what is wrong with it is told."""
    app.theme_changed_signal.subscribe(app, lambda _: _one_palette(app))
    _one_palette(app)
    try:
        theme = value("theme")
    except PlanError as error:
        app.notify(str(error), severity="warning", markup=False)
        return
    if theme in app.available_themes:
        app.theme = theme
    elif theme:
        app.notify(f"There is no theme {theme!r}.", severity="warning", markup=False)


def _one_palette(app: App[Any]) -> None:
    """What answers and pages say in green, yellow or red has the colours that the pane says it in."""
    old = app.ansi_theme
    colours = [(red, green, blue) for red, green, blue in (old.ansi_colors[place] for place in range(16))]
    for place, name in _TONES.items():
        colours[place] = colours[place + 8] = Color.parse(app.theme_variables[f"text-{name}"]).rgb
    own = TerminalTheme(old.background_color, old.foreground_color, colours[:8], colours[8:])
    if app.current_theme.dark:
        app.ansi_theme_dark = own
    else:
        app.ansi_theme_light = own


def choose(app: App[Any], words: Sequence[str]) -> str:
    """Shows the theme of that name, dark or light alone, or without a name the other of these two; returns its name.
    Raises PlanError."""
    app.theme = named(" ".join(words) or (_LIGHT if app.current_theme.dark else _DARK))
    return app.theme


def named(name: str) -> str:
    """The theme of a name. Raises PlanError."""
    name = {"dark": _DARK, "light": _LIGHT}.get(name, name)
    themes = sorted(BUILTIN_THEMES)
    if name not in themes:
        raise PlanError("theme", f"there is no theme {name!r}", ["dark", "light", *nearest(name, themes)])
    return name


def keep(name: str) -> None:
    set_value("theme", name)
