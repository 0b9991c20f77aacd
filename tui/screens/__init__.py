"""The app's other screens, a key and a slash command away from the conversation; each is loaded when first opened.

The app makes a key binding and the slash command `/name` of every row. A screen that is about the plan takes the plan
as it stands (`plan`, a partial Plan) and hands a changed one back by dismissing itself with an `ScreenResult`.
The app itself has F1 (help), F2, F3, F4, F10, Ctrl+N, Ctrl+O, Ctrl+P, Ctrl+Q, and the prompt the keys of a text editor
(Ctrl+A C D E F J K U V W X Y Z, F6, F7): a row's key is another one.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.screen import Screen


@dataclass(frozen=True)
class ScreenRow:
    """`place` is "module:Class" below tui.screens; the class is made with the keyword `plan` alone. No `key`: the
    slash command is the only way there."""

    name: str
    key: str | None
    title: str
    place: str


@dataclass(frozen=True)
class ScreenResult:
    """What a screen may be dismissed with (or None): changes of the plan by dotted path, a whole new plan, words to
    ask in the conversation, or a session to open."""

    changes: Mapping[str, Any] | None = None
    plan: Mapping[str, Any] | None = None
    question: str | None = None
    session: str | None = None


SCREENS: tuple[ScreenRow, ...] = (
    ScreenRow("hardware", "ctrl+g", "Hardware catalogue", "hardware:HardwareScreen"),
    ScreenRow("models", "ctrl+l", "Model catalogue", "models:ModelsScreen"),
    ScreenRow("scenarios", "ctrl+s", "Saved plans and examples", "scenarios:ScenariosScreen"),
    ScreenRow("clusters", "f5", "Clusters to run it on", "clusters:ClustersScreen"),
    ScreenRow("playbook", "f8", "Advice and practical knowledge", "playbook:PlaybookScreen"),
    ScreenRow("sweep", "ctrl+t", "Plots of the plan", "sweep:SweepScreen"),
    ScreenRow("runs", "f9", "Measured runs, and what was predicted", "runs:RunsScreen"),
    ScreenRow("sessions", "ctrl+r", "Earlier conversations", "sessions:SessionsScreen"),
    ScreenRow("help", None, "Every command and key", "help:HelpScreen"),
    ScreenRow("settings", "f12", "What is in force", "settings:SettingsScreen"),
)


def find_screen(name: str) -> ScreenRow | None:
    return next((row for row in SCREENS if row.name == name), None)


def load_screen(row: ScreenRow, plan: Mapping[str, Any]) -> Screen[ScreenResult | None]:
    """The screen of a row, made for the plan as it stands."""
    module, _, name = row.place.partition(":")
    return getattr(importlib.import_module(f"tui.screens.{module}"), name)(plan=plan)
