"""YAML written line by line, so that headings and the reason for a value can stand beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

# Plain words that no YAML reader takes for a number, a boolean, null or syntax.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./,-]*")
_RESERVED = {"true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf"}

Value = bool | int | float | str | None
Nested = Value | Sequence["Nested"] | Mapping[str, "Nested"]


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


def block(key: str, value: Nested, indent: str = "", comments: Mapping[str, str] | None = None) -> list[str]:
    """`key: value` as lines; keys are ours. Lists of plain values stand on one line, what is deeper on lines of its
    own: mappings, and lists of mappings. `comments` are by key at any depth."""
    comment = f"  # {comments[key]}" if comments and key in comments else ""
    if isinstance(value, Mapping):
        inner = _fields(value, indent + "  ", comments)
        return [f"{indent}{key}:{comment}", *inner] if inner else [f"{indent}{key}: {{}}{comment}"]
    if isinstance(value, str) or not isinstance(value, Sequence):
        return [f"{indent}{key}: {scalar(value)}{comment}"]
    lines: list[str] = []
    plain: list[str] = []
    for part in value:
        if isinstance(part, Mapping):
            first, *rest = _fields(part, indent + "    ", comments)
            lines += [f"{indent}  - {first.strip()}", *rest]
        elif isinstance(part, str) or not isinstance(part, Sequence):
            plain.append(scalar(part))
    return [f"{indent}{key}:{comment}", *lines] if lines else [f"{indent}{key}: [{', '.join(plain)}]{comment}"]


def _fields(mapping: Mapping[str, Nested], indent: str, comments: Mapping[str, str] | None) -> list[str]:
    return [line for name, value in mapping.items() for line in block(name, value, indent, comments)]


def document(
    heading: Sequence[str], sections: Mapping[str, Mapping[str, Nested]], comments: Mapping[str, str] | None = None
) -> str:
    """A YAML mapping under `heading` comment lines, its keys grouped in titled sections; `comments` are by key."""
    comments = comments or {}
    lines = [f"# {line}" for line in heading]
    for title, fields in sections.items():
        lines += ["", f"### {title}"]
        for key, value in fields.items():
            lines += block(key, value, comments=comments)
    return "\n".join(lines) + "\n"


class Note(str):
    """A comment line of a `tree`: as a key of a mapping (its value is not looked at) or as an item of a list."""

    __slots__ = ()


class Block(str):
    """Text of several lines, which a `tree` holds readable (as a literal block) where that gives it back unchanged."""

    __slots__ = ()


Tree = Mapping[str, "Tree"] | Sequence["Tree"] | Value


def tree(value: Mapping[str, Tree], indent: int = 0) -> list[str]:
    """Nested YAML in block style, line by line, with `Note`s as comments between."""
    lines: list[str] = []
    for key, item in value.items():
        if isinstance(key, Note):
            lines.append(f"# {key}")
        elif isinstance(item, Mapping):
            lines += [f"{scalar(key)}:", *tree(item, 2)] if item else [f"{scalar(key)}: {{}}"]
        elif isinstance(item, Block):
            lines += _block(key, item)
        elif item is None or isinstance(item, bool | int | float | str):
            lines.append(f"{scalar(key)}: {scalar(item)}")
        else:
            lines += [f"{scalar(key)}:", *_items(item)] if item else [f"{scalar(key)}: []"]
    return [" " * indent + line if line else line for line in lines]


def _items(items: Sequence[Tree]) -> list[str]:
    lines: list[str] = []
    for item in items:
        if isinstance(item, Note):
            lines.append(f"# {item}")
        elif isinstance(item, bool | int | float | str):
            lines.append(f"- {scalar(item)}")
        elif isinstance(item, Mapping):
            first, *rest = tree(item, 2)
            lines += [f"- {first.lstrip()}", *rest]
        else:
            raise TypeError("lists of lists are not written")
    return lines


def _block(key: str, text: Block) -> list[str]:
    lines = text.split("\n")
    plain = lines[-1] == "" and len(lines) > 1 and lines[-2] != "" and lines[0][:1] not in ("", " ")
    if plain and all(line.isprintable() for line in lines):
        return [f"{scalar(key)}: |", *("  " + line if line else "" for line in lines[:-1])]
    return [f"{scalar(key)}: {scalar(str(text))}"]
