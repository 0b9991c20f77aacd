"""Writes random words as data where they are not there yet, as SETTINGS says, then starts the command that it is given.

Of the standard library alone, but for Parquet: it runs where the training does.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

SETTINGS: dict[str, Any] = {"rows": 0, "words": {}, "files": {}, "texts": {}}
# Tokens of their own in the vocabularies in use.
_WORDS = ("the", "of", "and", "to", "in", "is", "that", "for", "it", "as", "was", "with", "be", "by", "on", "not")


def filled(part: Any, number: int, counts: dict[str, int]) -> Any:
    """A row of the file, with as many words in place of $long and its like as `counts` says."""
    if isinstance(part, dict):
        return {key: filled(value, number, counts) for key, value in part.items()}
    if isinstance(part, list):
        return [filled(value, number, counts) for value in part]
    if part == "$odd":
        return number % 2 == 1
    return " ".join(random.choices(_WORDS, k=counts[part])) if part in counts else part


def written(path: Path, write: Callable[[Path], object]) -> None:
    """Writes a file whole or not at all: other nodes may have the same folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.uname().nodename}.{os.getpid()}")
    write(part)
    part.replace(path)


def _rows(part: Path, row: Any, is_parquet: bool) -> None:
    random.seed(0)
    rows = (filled(row, number, SETTINGS["words"]) for number in range(SETTINGS["rows"]))
    if is_parquet:
        import pandas  # type: ignore[import-not-found]  # verl's own

        pandas.DataFrame(list(rows)).to_parquet(part)
        return
    with part.open("w", encoding="utf-8") as file:
        for each in rows:
            file.write(json.dumps(each) + "\n")


def _run() -> None:
    made, wanted = Path("synthetic/.settings"), json.dumps(SETTINGS)
    if not made.exists() or made.read_text(encoding="utf-8") != wanted:
        _write()
        written(made, lambda part: part.write_text(wanted, encoding="utf-8"))
    if sys.argv[1:]:
        os.execvp(sys.argv[1], sys.argv[1:])


def _write() -> None:
    for name, row in SETTINGS["files"].items():
        written(Path(name), lambda part, row=row, name=name: _rows(part, row, name.endswith(".parquet")))
    for name, text in SETTINGS["texts"].items():
        written(Path(name), lambda part, text=text: part.write_text(json.dumps(text), encoding="utf-8"))


if __name__ == "__main__":
    _run()
