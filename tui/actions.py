"""The actions of the app, one table: the slash commands, the keys, the list that finds them by a few letters, and the
help are made of it.

A key does what its command does, so that a face that cannot have the key loses nothing. The prompt has the keys of a
text editor (Ctrl+A C D E F J K U V W X Y Z, F6, F7): a row's key is another one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from textual.app import SystemCommand
from textual.binding import Binding

if TYPE_CHECKING:
    from tui.app import ShardwiseApp

PLAN, RESULTS, FILES, APP = "The plan", "Results", "Files", "Conversations and the app"


@dataclass(frozen=True)
class Key:
    """Pressed, it does what the command does with `words` behind it, which is `meaning` where that is something else.
    `label` stands at the bottom of the screen."""

    key: str
    label: str = ""
    words: str = ""
    meaning: str = ""


@dataclass(frozen=True)
class Action:
    """`usage` is what may follow the name. `screen`, "module:Class" below tui.screens, is what the name alone opens,
    called `title`; the class is made with the keyword `plan` alone."""

    name: str
    group: str
    usage: str
    meaning: str
    keys: tuple[Key, ...] = ()
    screen: str = ""
    title: str = ""

    @property
    def shown(self) -> str:
        return f"/{self.name} {self.usage}".rstrip()

    @property
    def heading(self) -> str:
        return self.title or f"{self.meaning[:1].upper()}{self.meaning[1:]}"


ACTIONS = (
    Action("plan", PLAN, "[FIELD=VALUE …]", "change the plan; alone it opens the form", (Key("f3", "Edit plan"),)),
    Action("pane", PLAN, "", "show or hide the plan", (Key("f2", "Plan"),)),
    Action("model", PLAN, "[NAME]", "choose the model"),
    Action("models", PLAN, "", "model catalogue", (Key("ctrl+l"),), "models:ModelsScreen"),
    Action("hardware", PLAN, "[NAME [COUNT]]", "choose accelerators", (Key("ctrl+g"),),
           "hardware:HardwareScreen", "Hardware catalogue"),
    Action("undo", PLAN, "", "undo the last change"),
    Action("scenarios", PLAN, "", "saved plans, and examples", (Key("ctrl+s"),), "scenarios:ScenariosScreen"),
    Action("save", PLAN, "NAME [overwrite]", "save the plan, under a name"),
    Action("fit", RESULTS, "[FIELD=VALUE …]", "does it fit, what would make it fit"),
    Action("best", RESULTS, "[FIELD=VALUE …]", "the best layout, or the best way to serve"),
    Action("cost", RESULTS, "[FIELD=VALUE …]", "cost by provider"),
    Action("compare", RESULTS, "FIELD=A,B … | NAME …", "variants side by side, or saved plans"),
    Action("sweep", RESULTS, "FIELD VALUES", "the plan over a range: count 8..128 doubling", (Key("ctrl+t"),),
           "sweep:SweepScreen", "Plots of the plan"),
    Action("clusters", RESULTS, "", "clusters to run it on", (Key("f5"),), "clusters:ClustersScreen"),
    Action("playbook", RESULTS, "", "practical advice", (), "playbook:PlaybookScreen"),
    Action("runs", RESULTS, "", "measured runs, and what was predicted", (Key("f9"),), "runs:RunsScreen"),
    Action("details", RESULTS, "", "show or hide details", (Key("f10"),)),
    Action("config", FILES, "[TARGET …] | write [FOLDER]", "the launch files; write puts them on disk"),
    Action("export", FILES, "[FORMAT] [FILE]", "save the conversation, the plan, or a report (html, md, pdf)"),
    Action("copy", FILES, "[config|N|FILE]", "copy the answer, or a block of it",
           (Key("ctrl+o", "Copy"), Key("f4", words="config", meaning="copy the config block"))),
    Action("new", APP, "", "new conversation", (Key("ctrl+n", "New"),)),
    Action("resume", APP, "[ID or words]", "resume a conversation"),
    Action("sessions", APP, "", "earlier conversations", (Key("ctrl+r"),), "sessions:SessionsScreen"),
    Action("stop", APP, "", "stop the answer", (Key("escape", "Stop"),)),
    Action("think", APP, "auto|offline|gemini|openai", "which model answers"),
    Action("theme", APP, "[NAME]", "theme; alone: dark or light"),
    Action("settings", APP, "", "settings in force", (Key("f12"),), "settings:SettingsScreen"),
    Action("actions", APP, "", "find an action, by a few letters",
           (Key("ctrl+p", "All actions"), Key("f8", "All actions"))),
    Action("help", APP, "", "every command and key", (Key("f1", "Help"),), "help:HelpScreen"),
    Action("quit", APP, "", "quit; the conversation is kept", (Key("ctrl+q", "Quit"),)),
)  # fmt: skip

# What a page in a browser is not given, or should not take: opening, finding, printing, reloading, saving, closing.
BROWSER_KEYS = frozenset(
    {*(f"ctrl+{letter}" for letter in "glnopqrstw"), "f5", "f11", "f12"},
)
PROMPT_KEYS = (
    ("enter", "send"),
    ("ctrl+j", "new line, as shift+enter"),
    ("up / down", "earlier prompts"),
    ("page up / down", "scroll"),
    ("tab", "take what is offered, else the next card"),
)

# Keys that Textual, or the app, asks about by the name of what they do.
_BY_NAME = {"stop": "stop", "quit": "quit", "actions": "command_palette"}
# Left to right at the bottom of the screen.
_ORDER = ("stop", "help", "pane", "plan", "new")


def bindings() -> list[Binding]:
    """Every key of the table, as the app has it in a terminal."""
    rows = sorted(ACTIONS, key=lambda row: _ORDER.index(row.name) if row.name in _ORDER else len(_ORDER))
    return [
        Binding(
            key.key,
            _BY_NAME.get(row.name, f"command({f'{row.name} {key.words}'.strip()!r})"),
            key.label or row.meaning,
            # The bottom line has a place of its own for the list of all.
            show=bool(key.label) and row.name != "actions",
            priority=row.name == "actions",
        )
        for row in rows
        for key in row.keys
    ]


def palette_key(in_browser: bool) -> str:
    """What opens the list of all actions."""
    return next(key.key for key in _keys_of("actions") if not (in_browser and key.key in BROWSER_KEYS))


@dataclass(frozen=True)
class ShownAction:
    """An action with what is pressed for it in this face, each key as it is shown."""

    action: Action
    keys: tuple[tuple[Key, str], ...]

    @property
    def key(self) -> str:
        """What does it alone; nothing where no key does."""
        return next((shown for key, shown in self.keys if not key.words), "")

    @property
    def others(self) -> list[tuple[Key, str]]:
        """Keys that do it with words."""
        return [pair for pair in self.keys if pair[0].words]


def shown_actions(app: ShardwiseApp) -> list[ShownAction]:
    """All of the table, with the keys that this face has."""
    kept = app._bindings.key_to_bindings
    return [
        ShownAction(row, tuple((key, app.get_key_display(Binding(key.key, ""))) for key in row.keys if key.key in kept))
        for row in ACTIONS
    ]


def every_action(app: ShardwiseApp) -> Iterable[SystemCommand]:
    """As the list that finds them by a few letters has them."""
    for row in shown_actions(app):
        action = row.action
        # Letters find what stands in the title: the command's name is to be there.
        title = f"{action.heading}   /{action.name}   {row.key}".rstrip()
        words = action.shown.replace("[", "\\[") if action.usage else ""
        yield SystemCommand(title, words, partial(app.start_action, action))
        for key, shown in row.others:
            line = f"{action.name} {key.words}"
            title = f"{key.meaning[:1].upper()}{key.meaning[1:]}   {shown}"
            yield SystemCommand(title, f"/{line}", partial(app.action_command, line))


def every_key(app: ShardwiseApp) -> Iterable[tuple[str, str]]:
    """Every key of the app and of its prompt, and what it does."""
    for row in shown_actions(app):
        for key, shown in row.keys:
            yield shown, key.meaning or row.action.title or row.action.meaning
    yield from PROMPT_KEYS


def _keys_of(name: str) -> tuple[Key, ...]:
    return next(row.keys for row in ACTIONS if row.name == name)
