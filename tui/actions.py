"""Every action of the app: what Ctrl+P lists and finds by a few letters, and every key."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from textual.app import SystemCommand
from textual.binding import Binding

from tui.screens import SCREENS
from tui.slash import commands
from tui.widgets.prompt import PROMPT_KEYS

if TYPE_CHECKING:
    from tui.app import ShardwiseApp

# Keys that a command does the same as.
_COMMANDED = ("help", "edit_plan", "new_session", "quit", "command_palette", "help_quit")


def every_action(app: ShardwiseApp) -> Iterable[SystemCommand]:
    """Screens, commands, and keys of the conversation, each with its key."""
    for row in SCREENS:
        key = f"   {app.get_key_display(Binding(row.key, ''))}" if row.key else ""
        yield SystemCommand(f"{row.title}{key}", f"/{row.name}", partial(app.open_screen, row.name))
    named = {row.name for row in SCREENS}
    for command in commands():
        if command.name not in named:
            meaning = f"{command.meaning[:1].upper()}{command.meaning[1:]}"
            yield SystemCommand(meaning, command.shown.replace("[", "\\["), partial(app.start_command, command))
    for binding in _bindings(app):
        if binding.description and binding.action not in _COMMANDED and "open_screen" not in binding.action:
            title = f"{binding.description}   {app.get_key_display(binding)}"
            yield SystemCommand(title, "key", partial(app.run_action, binding.action))


def keys_of(app: ShardwiseApp) -> Iterable[tuple[str, str]]:
    """Every key of the app and of its prompt, and what it does."""
    for binding in _bindings(app):
        if binding.description:
            yield app.get_key_display(binding), binding.description
    yield from PROMPT_KEYS


def _bindings(app: ShardwiseApp) -> Iterable[Binding]:
    """Each once, also where several keys do the same."""
    return dict.fromkeys(each for key in app._bindings.key_to_bindings.values() for each in key)
