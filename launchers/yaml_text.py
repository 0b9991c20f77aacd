"""YAML written line by line, so that headings and the reason for a value can stand beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

# Plain words that no YAML reader takes for a number, a boolean, null or syntax.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./,-]*")
_RESERVED = {"true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf"}

# A list of plain values stands on one line up to this length.
_LIST_LINE = 100

Value = bool | int | float | str | None
Tree = Value | Sequence["Tree"] | Mapping[str, "Tree"]


class YamlNote(str):
    """A comment line: as a key of a mapping (its value is not looked at) or as an item of a list."""

    __slots__ = ()


class TextBlock(str):
    """Text of several lines, held readable (as a literal block) where that gives it back unchanged."""

    __slots__ = ()


def scalar(value: Value) -> str:
    """`value` so that YAML 1.1 and 1.2 readers give it back: 1e-05 becomes 1.0e-05, doubtful words are quoted."""
    if value is None:
        return "null"
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


def tree(value: Mapping[str, Tree], comments: Mapping[str, str] | None = None) -> list[str]:
    """A mapping in YAML's block style, line by line, with `YamlNote`s as comments between. `comments` stand beside the
    values of keys, at any depth."""
    return [line for key, item in value.items() for line in _field(key, item, comments or {})]


def document(
    heading: Sequence[str], sections: Mapping[str, Mapping[str, Tree]], comments: Mapping[str, str] | None = None
) -> str:
    """A YAML mapping under `heading` comment lines, its keys grouped in titled sections; `comments` as in `tree`."""
    lines = [f"# {line}" for line in heading]
    for title, fields in sections.items():
        lines += ["", f"### {title}", *tree(fields, comments)]
    return "\n".join(lines) + "\n"


def _field(key: str, value: Tree, comments: Mapping[str, str]) -> list[str]:
    if isinstance(key, YamlNote):
        return [f"# {key}"]
    name, comment = f"{scalar(key)}:", f"  # {comments[key]}" if key in comments else ""
    if isinstance(value, TextBlock) and (literal := _literal(value)):
        return [f"{name} |{comment}", *_deeper(literal)]
    if isinstance(value, Mapping):
        return [f"{name}{comment}", *_deeper(tree(value, comments))] if value else [f"{name} {{}}{comment}"]
    if isinstance(value, str) or not isinstance(value, Sequence):
        return [f"{name} {scalar(value)}{comment}"]
    if line := _one_line(value):
        return [f"{name} {line}{comment}"]
    return [f"{name}{comment}", *_deeper([line for item in value for line in _item(item, comments)])]


def _one_line(values: Sequence[Tree]) -> str | None:
    """A list as `[a, b]`; None for one that is long, or holds more than plain values."""
    if any(isinstance(value, YamlNote | TextBlock | Mapping) or not isinstance(value, Value) for value in values):
        return None
    text = f"[{', '.join(scalar(value) for value in values if isinstance(value, Value))}]"
    return text if len(text) <= _LIST_LINE else None


def _item(item: Tree, comments: Mapping[str, str]) -> list[str]:
    if isinstance(item, YamlNote):
        return [f"# {item}"]
    if isinstance(item, Mapping):
        first, *rest = _deeper(tree(item, comments)) or ["  {}"]
        return [f"- {first.lstrip()}", *rest]
    if isinstance(item, TextBlock) and (literal := _literal(item)):
        return ["- |", *_deeper(literal)]
    if isinstance(item, Value):
        return [f"- {scalar(item)}"]
    raise TypeError("lists of lists are not written")


def _literal(text: TextBlock) -> list[str] | None:
    """The lines of a literal block; None where it would not give the text back."""
    *lines, last = text.split("\n")
    plain = last == "" and lines and lines[-1] != "" and lines[0][:1] not in ("", " ")
    return lines if plain and all(line.isprintable() for line in lines) else None


def _deeper(lines: Sequence[str]) -> list[str]:
    return ["  " + line if line else "" for line in lines]
