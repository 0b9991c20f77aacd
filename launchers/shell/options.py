"""Words of a command line as `Keys`: `--key value`, `--key=value`, `--flag`; and bare `key=value` overrides."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from knowledge.own.mappings import json_value
from launchers.reading.documents import Keys
from launchers.shell.scripts import UNKNOWN, Word

_NUMBER = re.compile(r"[-+]?[0-9][0-9_]*")
_DECIMAL = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")


def options(
    file: str, words: Sequence[Word], flags: Collection[str] = (), short: dict[str, str] | None = None
) -> tuple[Keys, list[Word]]:
    """The options among `words` by name, without dashes and with underscores, and the words that belong to none.

    `flags` take no value; others take the words up to the next option (several become a list). `short` names what
    options with one dash mean.
    """
    keys, rest = Keys(file), []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        name, equals, value = word.text.partition("=")
        if short and name in short:
            name = "--" + short[name]
        if not re.match(r"--?[A-Za-z]", name):
            rest.append(word)
            continue
        name = name.lstrip("-").replace("-", "_")
        if name in keys:
            keys.twice.append(name)
        if equals:
            keys.put(name, plain(value), word.line)
            continue
        values: list[Any] = []
        while name not in flags and at < len(words) and not _is_option(words[at].text):
            values.append(plain(words[at].text))
            at += 1
        keys.put(name, True if not values else values[0] if len(values) == 1 else values, word.line)
    return keys, rest


def overrides(keys: Keys, words: Sequence[Word]) -> list[Word]:
    """Puts bare key=value words over the keys of a file; the words that are none come back."""
    rest = []
    for word in words:
        match = re.match(r"\+{0,2}([A-Za-z_][A-Za-z0-9_.]*)=(.*)", word.text, re.DOTALL)
        if match:
            keys.put(match[1], plain(match[2]), word.line)
        else:
            rest.append(word)
    return rest


def plain(text: str) -> Any:
    """Text of a command line as the number, truth or JSON that it is."""
    if UNKNOWN in text or "$" in text:
        return text
    if _NUMBER.fullmatch(text) and len(text) < 30:
        return int(text)
    if _DECIMAL.fullmatch(text) and len(text) < 40:
        return float(text)
    if text in ("true", "True", "TRUE", "false", "False", "FALSE"):
        return text.lower() == "true"
    if text[:1] in "[{" and len(text) < 10_000:
        try:
            return json_value(text)
        except ValueError:
            return text
    return text


def _is_option(text: str) -> bool:
    return bool(re.match(r"--?[A-Za-z]", text))
