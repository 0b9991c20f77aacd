"""A command's arguments over the config that it names, for the readers of programs."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from launchers.reading.documents import Item, Keys
from launchers.reading.findings import is_certain
from launchers.shell.options import options, overrides
from launchers.shell.scripts import UNKNOWN, Word
from launchers.shell.setting import Program, ScriptSetting

CommandReader = Callable[[Program, ScriptSetting], str | None]
"""Reads a program's own arguments; the format, None where nothing of it is read."""
Console = Callable[[list[Word], dict[str, Word], ScriptSetting], list[Program]]
"""What a command of words starts, in an environment."""
UNKNOWN_ARGUMENTS = "some arguments are known only where it runs"
CONFIGS = (".yaml", ".yml", ".json", ".toml")


def merged(
    start: Program,
    setting: ScriptSetting,
    flags: Collection[str] = (),
    short: dict[str, str] | None = None,
    config: Sequence[str] = ("config",),
    published: Callable[[str, Item], Keys | None] = lambda _file, _name: None,
) -> tuple[Keys, list[Word], Item | None]:
    """The arguments over the config that one of them names (a file that is given, or a `published` one), the words that
    are none, and what names the config where it is neither."""
    keys, rest = options(setting.file, start.words, flags, short)
    named = next((item for name in config if (item := keys.take(name)) is not None), None)
    if named is None:
        return keys, rest, None
    if isinstance(named.value, list):
        # --config takes one word; those after it are overrides.
        rest = [*(Word(str(value), named.line or 0) for value in named.value[1:]), *rest]
        named = replace(named, value=named.value[0])
    is_given = base_name(str(named.value)) in setting.documents
    document = (None if is_given else published(setting.file, named)) or named_document(
        str(named.value), named, setting
    )
    if document is None:
        return keys, rest, named
    for item in keys.items.values():
        document.put(item.key, item.value, item.line)
    if is_given:
        setting.documents.pop(base_name(str(named.value)))
    return document, rest, None


def over_config(config: Word, start: Program, setting: ScriptSetting) -> None:
    """Puts key=value words and options over the config that a command names, which is read later."""
    item = Item(setting.file, "command", config.text, config.line)
    document = named_document(config.text, item, setting)
    if document is None:
        return
    keys, _ = options(setting.file, overrides(document, [word for word in start.words if word is not config]))
    for override in keys.items.values():
        document.put(override.key, override.value, override.line)


def model_word(rest: Sequence[Word], setting: ScriptSetting) -> Item | None:
    """A model that is named without an option; values of switches are none."""
    rest = [word for word in rest if word.text.lower() not in ("true", "false")]
    return Item(setting.file, "model", rest[0].text, rest[0].line) if rest else None


def named_document(path: str, item: Item, setting: ScriptSetting) -> Keys | None:
    """The config of that name among the files given; else it is noted as missing."""
    document = setting.documents.get(base_name(path))
    if document is None and is_certain(path.rpartition(UNKNOWN)[2]):
        setting.findings.refer(item, path, "the program's settings")
    return document


def base_name(path: str) -> str:
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1]
