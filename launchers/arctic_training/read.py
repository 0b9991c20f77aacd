"""ArcticTraining's YAML and its start. Words: fields.yaml."""

from __future__ import annotations

from launchers.reading.commands import over_config
from launchers.reading.documents import Item
from launchers.reading.mapped import mapped_format
from launchers.shell.scripts import Word
from launchers.shell.setting import Program, ScriptSetting

_PROGRAM = "arctic_training"


def read_command(start: Program, setting: ScriptSetting) -> None:
    if start.words:
        over_config(start.words[0], start, setting)


def _console(words: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    return [Program(_PROGRAM, words[1:], Item(setting.file, "command", _PROGRAM, words[0].line), environment)]


FORMATS = (mapped_format(_PROGRAM),)
COMMANDS = {_PROGRAM: read_command}
CONSOLES = {_PROGRAM: _console}
