"""Opening the data files that ship with the package."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "data"


def rows(name: str) -> Iterator[dict[str, str]]:
    """The rows of a CSV file as {column: text}; lines that start with # are remarks."""
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(line for line in file if not line.startswith("#"))


def document(name: str) -> Any:
    """A YAML file, read with the C parser where PyYAML has it (ten times faster)."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with (FOLDER / name).open(encoding="utf-8") as file:
        return yaml.load(file, Loader=loader)
