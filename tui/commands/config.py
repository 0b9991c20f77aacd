"""`shardwise config`: the settings in force and where each is from; `config set`, `unset` and `path`."""

from __future__ import annotations

import argparse
from typing import Any

from agent import settings
from knowledge.own import database
from knowledge.own.files import data_folder
from pages.rendering.clean import one_line
from pages.rendering.table import table
from pages.rendering.terminal import screen_width
from tui.jsonout import write_json


def run(arguments: argparse.Namespace) -> int:
    match arguments.action:
        case "path":
            print(settings.settings_file())
        case "set":
            print(f"{arguments.key} is set in {settings.set_value(arguments.key, _known(arguments))}")
            _say_what_wins(arguments.key)
        case "unset":
            print(f"{arguments.key} is taken out of {settings.unset(arguments.key)}")
            _say_what_wins(arguments.key)
        case _:
            _show(arguments.json)
    return 0


def _known(arguments: argparse.Namespace) -> str:
    """The value, which of a theme the app has to have. Raises PlanError."""
    if arguments.key != "theme" or not arguments.value:
        return arguments.value
    from tui import themes  # it loads the app's library, which no other setting needs

    return themes.named(arguments.value)


def _show(as_json: bool) -> None:
    in_force = settings.in_force()
    path, variable, data = settings.settings_file(), settings.key_variable(), data_folder()
    if as_json:
        rows: list[dict[str, Any]] = [
            {"key": row.setting.key, "value": row.value, "source": row.source, "default": row.setting.default,
             "variable": row.setting.variable, "meaning": row.setting.meaning, "valid": list(row.setting.valid)}
            for row in in_force
        ]  # fmt: skip
        write_json(
            {"file": str(path), "file_exists": path.exists(), "data_folder": str(data), "settings": rows,
             "gemini_key_from": variable}
        )  # fmt: skip
        return
    rows_shown = [
        (row.setting.key, one_line(row.value, 40) or "-", row.source, row.setting.variable, row.setting.meaning)
        for row in in_force
    ]
    print(table(("SETTING", "IN FORCE", "FROM", "VARIABLE", "WHAT IT IS"), rows_shown, width=screen_width()))
    print(f"\nsettings file  {path}{'' if path.exists() else ' (not there yet)'}")
    print(f"data folder    {data}")
    if database.address():
        print(f"kept in        {database.shown()}, for {one_line(database.user())}")
    print(f"Gemini key     {f'set in {variable}' if variable else 'not set (GEMINI_API_KEY)'}")
    print("\nshardwise config set KEY VALUE writes the file; a variable of the environment wins over it.")


def _say_what_wins(key: str) -> None:
    row = next(row for row in settings.in_force() if row.setting.key == key)
    print(f"In force: {one_line(row.value) or '-'} ({row.source})")
