"""The app's other screens, a key and a slash command away from the conversation (tui/actions.py); each is loaded when
first opened.

A screen that is about the plan takes the plan as it stands (`plan`, a partial Plan) and hands a changed one back by
dismissing itself with an `ScreenResult`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tui.actions import ACTIONS, Action

if TYPE_CHECKING:
    from textual.screen import Screen


@dataclass(frozen=True)
class ScreenResult:
    """What a screen may be dismissed with (or None): changes of the plan by dotted path, a whole new plan, words to
    ask in the conversation, or a session to open."""

    changes: Mapping[str, Any] | None = None
    plan: Mapping[str, Any] | None = None
    question: str | None = None
    session: str | None = None


SCREENS = tuple(row for row in ACTIONS if row.screen)


def find_screen(name: str) -> Action | None:
    return next((row for row in SCREENS if row.name == name), None)


def load_screen(row: Action, plan: Mapping[str, Any]) -> Screen[ScreenResult | None]:
    """The screen of a row, made for the plan as it stands."""
    module, _, name = row.screen.partition(":")
    return getattr(importlib.import_module(f"tui.screens.{module}"), name)(plan=plan)
