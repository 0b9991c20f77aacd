"""The colours of the app: those that were chosen, and a change of them that is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textual.app import App

from agent.settings import set_value, value
from estimator.errors import PlanError, nearest

_DARK, _LIGHT = "textual-dark", "textual-light"


def use_chosen(app: App[Any]) -> None:
    """The theme of the settings; what is wrong with it is told."""
    try:
        theme = value("theme")
    except PlanError as error:
        app.notify(str(error), severity="warning", markup=False)
        return
    if theme in app.available_themes:
        app.theme = theme
    elif theme:
        app.notify(f"There is no theme {theme!r}.", severity="warning", markup=False)


def choose(app: App[Any], words: Sequence[str]) -> str:
    """Shows the theme of that name, dark or light alone, or without a name the other of these two; returns its name.
    Raises PlanError."""
    name = " ".join(words) or (_LIGHT if app.current_theme.dark else _DARK)
    name = {"dark": _DARK, "light": _LIGHT}.get(name, name)
    themes = sorted(app.available_themes)
    if name not in themes:
        raise PlanError("theme", f"there is no theme {name!r}", ["dark", "light", *nearest(name, themes)])
    app.theme = name
    return name


def keep(name: str) -> None:
    set_value("theme", name)
