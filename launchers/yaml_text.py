"""YAML written line by line, so that headings and the reason for a value can stand beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

# Plain words that no YAML reader takes for a number, a boolean, null or syntax.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./,-]*")
_RESERVED = {"true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf"}

Value = bool | int | float | str


def scalar(value: Value) -> str:
    """`value` so that YAML 1.1 and 1.2 readers give it back: 1e-05 becomes 1.0e-05, doubtful words are quoted."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        text = repr(value)
        mantissa, mark, exponent = text.partition("e")
        return text if not mark or "." in mantissa else f"{mantissa}.0e{exponent}"
    if _PLAIN.fullmatch(value) and value.lower() not in _RESERVED:
        return value
    return '"' + "".join(map(_quoted, value)) + '"'


def _quoted(character: str) -> str:
    """One character in YAML's double quotes (YAML 1.1, section 5.6; JSON's surrogate pairs are not read back)."""
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    return f"\\U{ord(character):08x}"


def document(
    heading: Sequence[str], sections: Mapping[str, Mapping[str, Value]], comments: Mapping[str, str] | None = None
) -> str:
    """A YAML mapping under `heading` comment lines, its keys grouped in titled sections; `comments` are by key."""
    comments = comments or {}
    lines = [f"# {line}" for line in heading]
    for title, fields in sections.items():
        lines += ["", f"### {title}"]
        for key, value in fields.items():
            comment = comments.get(key)
            lines.append(f"{key}: {scalar(value)}" + (f"  # {comment}" if comment else ""))
    return "\n".join(lines) + "\n"
