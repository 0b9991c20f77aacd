"""`shardwise models add`, `hardware add`, `prices add`: a row of one's own, from a line or a file, checked, written.

A line is `name=value` words; of models and hardware the first word is the id, of models the second the config. A file
holds one row or a list of them, as YAML, JSON or CSV; '-' is standard input. Nothing is written unless every row is
right.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import Any

from estimator.errors import PlanError
from knowledge.own.files import parsed, read_stream, read_text
from knowledge.own.mappings import csv_records
from planner.records.catalogue import AddedRow, ShownRow
from tools.registry import find
from tui.jsonout import write_json

# Command -> tools that show and write a row, and the fields that the first words are without a name.
_KINDS = {
    "models": ("preview_model", "add_model", ("id", "config")),
    "hardware": ("preview_hardware", "add_hardware", ("id",)),
    "prices": ("preview_price", "add_price", ()),
}
_TABLE = ".csv"
_TEXT = ("id", "config")
_FILES = (".yaml", ".yml", ".json", _TABLE)


def run(arguments: argparse.Namespace, words: list[str]) -> int:
    preview, add, places = _KINDS[arguments.catalogue]
    where: dict[str, Any] = {"where": "project"} if arguments.project else {}
    rows = [row | where for row in _rows(arguments.catalogue, words, places)]
    for place, row in enumerate(rows, start=1):
        try:
            find(preview).run(row)
        except PlanError as error:
            if len(rows) == 1:
                raise
            raise PlanError(f"row {place}: {error.field}", error.problem, error.valid) from None
    written = [find(add).run(row | ({"overwrite": True} if arguments.overwrite else {})) for row in rows]
    if arguments.json:
        write_json([row.model_dump(mode="json") for row in written])
        return 0
    for row in written:
        assert isinstance(row, AddedRow | ShownRow)
        print(f"{row.id} is in {Path(row.folder) / row.files[0].path}")
        for assumption in row.assumptions:
            print(f"  {assumption.field}: {assumption.value} ({assumption.why})")
        for warning in row.warnings:
            print(f"  {warning}", file=sys.stderr)
    return 0


def _rows(kind: str, words: list[str], places: tuple[str, ...]) -> list[dict[str, Any]]:
    """The rows that the words or the file say."""
    if not words:
        raise PlanError(kind, "add needs a row", [_example(kind), "add FILE.yaml"])
    if len(words) == 1 and (words[0] == "-" or (words[0].endswith(_FILES) and "=" not in words[0])):
        text = read_stream(sys.stdin, "row") if words[0] == "-" else read_text(Path(words[0]), "row")
        content = _table(text) if words[0].endswith(_TABLE) else parsed(text, words[0])
        rows = content if isinstance(content, list) else [content]
    elif len(words) == 1 and words[0].lstrip().startswith("{"):
        rows = [parsed(words[0], "row")]
    else:
        rows = [_line(kind, _words(words), places)]
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise PlanError("row", "must be a mapping of fields, or a list of such", [_example(kind)])
    return rows


def _table(text: str) -> list[dict[str, Any]]:
    """The rows of a table whose first line names the fields; empty cells are left out."""
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    try:
        read = list(csv_records(lines, skipinitialspace=True, restkey=""))
    except ValueError as error:
        raise PlanError("row", f"is no readable table: {error}") from None
    for place, row in enumerate(read, start=1):
        if "" in row:
            raise PlanError("row", f"row {place} of the table has more cells than its first line names")
    return [
        {name: parsed(value, name) if name not in _TEXT else value for name, value in row.items() if value}
        for row in read
    ]


def _words(words: list[str]) -> list[str]:
    """The words of a line, which may be one in quotes."""
    if len(words) > 1 or "=" not in words[0] or not words[0].strip().count(" "):
        return words
    try:
        return shlex.split(words[0])
    except ValueError as error:
        raise PlanError("row", f"{words[0][:60]!r} is no line of words: {error}") from None


def _line(kind: str, words: list[str], places: tuple[str, ...]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    unnamed = list(places)
    for word in words:
        name, sign, value = word.partition("=")
        if not sign and unnamed[:1] == ["id"] and word.strip().count(" "):
            raise PlanError(
                "id", f"{word[:60]!r} is several words: an id is one, and fields are name=value", [_example(kind)]
            )
        if not sign and unnamed:
            row[unnamed.pop(0)] = parsed(word, "config") if word.lstrip().startswith("{") else word
        elif sign:
            is_text = name.strip() in _TEXT and not value.lstrip().startswith("{")
            row[name.strip()] = value if is_text else parsed(value, name.strip())
        else:
            raise PlanError("row", f"{word!r} is no name=value", [_example(kind)])
    return row


def _example(kind: str) -> str:
    return {
        "models": "add my-org/my-8b ./config.json",
        "hardware": "add my-h100 like=h100-sxm memory_gib=94 usd_per_hour=2.1",
        "prices": "add provider=ACME instance=hopper-8 accelerator=h100-sxm count=8 usd_per_hour=17.6",
    }[kind]
