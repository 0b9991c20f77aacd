"""Text made safe to show: no byte of it can move the cursor, recolour the screen or hide what a file is called."""

from __future__ import annotations

import re
from typing import Any

from estimator.errors import STEERING

# Halves of a pair: bytes of a command line that are no text, or an escape in JSON. Nothing can print or store them.
SURROGATE = re.compile(r"[\ud800-\udfff]")
# First, so that their visible tails go as well.
_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])"
)
# What goes back to a line's beginning, as bars of progress do, begins another.
_LINE_END = re.compile(r"\r\n?")


def plain(text: str) -> str:
    """`text` without terminal control characters and sequences."""
    return STEERING.sub("", _SEQUENCE.sub("", _LINE_END.sub("\n", text)))


def plain_data(value: Any) -> Any:
    """JSON-like data with every string made plain."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {plain(str(key)): plain_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_data(item) for item in value]
    return value


def clean(text: object) -> str:
    """`text` as a string without control sequences, control characters and marks that reorder what is read."""
    return plain(str(text))


def one_line(text: object, width: int | None = None) -> str:
    """`text` cleaned, on one line, cut to `width` characters."""
    line = " ".join(clean(text).split())
    return line if width is None or len(line) <= width else line[: max(width - 1, 0)] + "…"


def arguments_line(arguments: object, width: int | None = None) -> str:
    """A tool's arguments in short: `model=llama-3.1-8b count=8`; nested values show only that they are there. What is
    switched off or split over one device stands last."""
    if not isinstance(arguments, dict):
        return one_line(arguments, width)
    rows = sorted(arguments.items(), key=lambda row: _is_plain(row[1]))
    return one_line(" ".join(f"{key}={_short(value)}" for key, value in rows), width)


def _is_plain(value: object) -> bool:
    return value is None or value is False or value == "none" or (type(value) is int and value in (0, 1))


def _short(value: object) -> str:
    match value:
        case dict():
            return "{…}" if value else "{}"
        case list() if any(isinstance(item, dict | list) for item in value):
            return f"[{len(value)}]"
        case list():
            return ",".join(str(item) for item in value)
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
    return str(value)
