"""Tables of results: a row of a table is a part of a result, a column one of its fields, named and written as the table
of figures says (knowledge/figures.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pydantic import BaseModel

from knowledge import figures
from knowledge.figures import NONE
from pages.blocks import Block, Figures, Row, Table

Write = Callable[[Any], str]
Column = str | tuple[str, str | Write]
"""A field, which may lie in a part of the row ('predicted.step_s'); with a label of its own; or a label and what writes
the cell."""

# Columns that go where a terminal is too narrow for all, the first first.
_OPTIONAL = (
    "cluster of", "waits for", "against", "instance", "limited by", "free", "per 1M tokens", "devices", "per hour",
    "communication", "requests per replica", "users at once", "accelerator", "limits", "framework", "MFU", "tokens/day",
    "provider", "reserved", "spot", "per token", "run", "layout", "why not", "flags",
)  # fmt: skip


def table(
    rows: Sequence[BaseModel],
    columns: Sequence[Column],
    title: str = "",
    *,
    strong: Sequence[int] = (),
    names: Sequence[str] = (),
) -> list[Block]:
    """A table of the rows; columns without any value are left out. No table where there is no row."""
    cells = [[_cell(row, column) for column in columns] for row in rows]
    kept = [i for i in range(len(columns)) if any(row[i] not in ("", NONE) for row in cells)]
    if not kept:
        return []
    head = [_label(columns[i]) for i in kept]
    right = [_label(columns[i]) for i in kept if _is_number(rows, columns[i])]
    return [Table(head, [[row[i] for i in kept] for row in cells], right, title, _OPTIONAL, strong, names)]


def listed(part: BaseModel, keys: Sequence[Column], title: str = "") -> list[Block]:
    """Those of the fields that have a value, a line each, with their intervals."""
    rows = [row for row in labelled(part, keys) if row[1] not in ("", NONE)]
    return [Figures(rows, title)] if rows else []


def labelled(part: BaseModel, keys: Sequence[Column]) -> list[Row]:
    return [_row(part, key) for key in keys]


def yes(value: bool | None) -> str:
    return {True: "yes", False: "no", None: NONE}[value]


def _row(part: BaseModel, column: Column) -> Row:
    key = column if isinstance(column, str) else column[1]
    if not isinstance(key, str):
        return _label(column), _cell(part, column)
    return _label(column), _cell(part, column), figures.interval(part, key)


def _label(column: Column) -> str:
    return figures.label(column) if isinstance(column, str) else column[0]


def _cell(row: BaseModel, column: Column) -> str:
    key = column if isinstance(column, str) else column[1]
    return figures.shown(key, _value(row, key)) if isinstance(key, str) else key(row)


def _value(row: Any, key: str) -> Any:
    for name in key.split("."):
        row = None if row is None else getattr(row, name)
    return row


def _is_number(rows: Sequence[BaseModel], column: Column) -> bool:
    key = column if isinstance(column, str) else column[1]
    values = [_value(row, key) for row in rows] if isinstance(key, str) else []
    return any(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
