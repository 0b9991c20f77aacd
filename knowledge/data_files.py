"""Opening the data files that ship with the package."""

from __future__ import annotations

import csv
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "data"


def rows(name: str) -> Iterator[dict[str, str]]:
    """The rows of a CSV file as {column: text}; lines that start with # are remarks."""
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(line for line in file if not line.startswith("#"))


def number(text: str, scale: float = 1.0) -> float | None:
    """A cell of a CSV file, times `scale`; None where it is empty."""
    return float(text) * scale if text else None


def document(name: str) -> Any:
    """A YAML file, read with the C parser where PyYAML has it (ten times faster)."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with (FOLDER / name).open(encoding="utf-8") as file:
        return yaml.load(file, Loader=loader)


def lineage(entries: Mapping[str, Mapping[str, Any]], name: str) -> list[str]:
    """An entry, the one that it names as its `fallback_family`, that of that, and so on."""
    line = [name]
    while family := entries[line[-1]].get("fallback_family"):
        line.append(family)
    return line


def inherited(entries: Mapping[str, Mapping[str, Any]], name: str, own: Container[str] = ()) -> dict[str, Any]:
    """What an entry says, and its fallback family where it says nothing, lists as tuples; keys in
    `own` are not handed on."""
    merged: dict[str, Any] = {}
    for ancestor in reversed(lineage(entries, name)):
        merged |= {
            key: value for key, value in entries[ancestor].items() if key != "fallback_family" and key not in own
        }
    return {key: tuple(value) if isinstance(value, list) else value for key, value in merged.items()}
