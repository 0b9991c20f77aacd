"""Rows to search as one types, to filter, to sort by any column, to mark and to choose from: parts of results, or other
objects with attributes. A listing knows no widget; tui/screens/table_screen.py shows one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from knowledge import figures
from knowledge.figures import NONE
from pages.rendering.clean import one_line

Row = Any
_BAR = 6


@dataclass(frozen=True)
class Column:
    """`value` is what a row is sorted by, `shown` writes it; numbers stand at the right, those with a `bar` before one
    that sets them against the largest."""

    title: str
    value: Callable[[Row], Any]
    shown: Callable[[Any], str] = str
    right: bool = False
    bar: bool = False

    def cell(self, row: Row) -> str:
        value = self.value(row)
        return NONE if value is None else one_line(self.shown(value))

    def cells(self, rows: Sequence[Row]) -> list[str]:
        """Of all rows."""
        texts = [self.cell(row) for row in rows]
        if not self.bar or not texts:
            return texts
        sizes = [float(self.value(row) or 0.0) for row in rows]
        largest, width = max(sizes) or 1.0, max(map(len, texts))
        return [f"{text:>{width}} {bar(size / largest)}" for text, size in zip(texts, sizes, strict=True)]


def bar(share: float) -> str:
    """A bar of that share of its room, to half a cell."""
    whole, half = divmod(round(min(max(share, 0.0), 1.0) * _BAR * 2), 2)
    return f"{'━' * whole}{'╸' * half}".ljust(_BAR)


def text(title: str, name: str) -> Column:
    return Column(title, lambda row: getattr(row, name, None) or None, str)


def figure(key: str, value: Callable[[Row], float | None] | None = None, bar: bool = False) -> Column:
    """A figure of the row by its key, or another value that is such a figure."""
    read = value or (lambda row: getattr(row, key))
    return Column(figures.label(key).upper(), read, lambda value: figures.shown(key, value), right=True, bar=bar)


@dataclass(frozen=True)
class Listing:
    """`rows` as they came, and how they are looked at. `words` gives what a row is found by; `filters` by the name of
    a field of the rows hold the value wanted."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...] = ()
    words: Callable[[Row], str] = lambda row: " ".join(value for value in vars(row).values() if isinstance(value, str))
    query: str = ""
    filters: Mapping[str, Any] = field(default_factory=dict)
    sorted_by: int | None = None
    reverse: bool = False

    def shown(self) -> list[Row]:
        """The rows that match, in order; those without a value of the column that is sorted by come last."""
        wanted = [folded for word in self.query.split() if (folded := _folded(word))]
        matches = [
            row
            for row in self.rows
            if all(getattr(row, name, None) == value for name, value in self.filters.items()) and self._has(row, wanted)
        ]
        if self.sorted_by is None:
            return matches
        column = self.columns[self.sorted_by]
        known = [row for row in matches if column.value(row) is not None]
        known.sort(key=lambda row: _rank(column.value(row)), reverse=self.reverse)
        return known + [row for row in matches if column.value(row) is None]

    def by(self, index: int) -> Listing:
        """Sorted by a column: numbers start with the largest, words with A; again turns it round."""
        if index == self.sorted_by:
            return replace(self, reverse=not self.reverse)
        return replace(self, sorted_by=index, reverse=self.columns[index].right)

    def values_of(self, name: str) -> list[str]:
        """The values that a field has, for a filter."""
        return sorted({str(value) for row in self.rows if (value := getattr(row, name, None))}, key=str.casefold)

    def turned(self, name: str, step: int = 1) -> Listing:
        """The filter on a field turned to its next value; after the last comes none."""
        values: Sequence[str | None] = [None, *self.values_of(name)]
        now = self.filters.get(name)
        at = values.index(now) if now in values else 0
        value = values[(at + step) % len(values)]
        rest = {key: kept for key, kept in self.filters.items() if key != name}
        return replace(self, filters=rest if value is None else rest | {name: value})

    def state(self) -> str:
        """How the rows are looked at, in words."""
        parts = [f"{name}: {value}" for name, value in self.filters.items()]
        if self.sorted_by is not None:
            parts.append(f"by {self.columns[self.sorted_by].title}, {'descending' if self.reverse else 'ascending'}")
        return " · ".join(parts)

    def _has(self, row: Row, wanted: Sequence[str]) -> bool:
        if not wanted:
            return True
        text = _folded(self.words(row))
        return all(word in text for word in wanted)


def _folded(text: str) -> str:
    """Letters and digits alone, so that 'llama3.1' finds Llama-3.1."""
    return re.sub(r"[\W_]", "", text.casefold())


def _rank(value: Any) -> tuple[int, Any]:
    return (0, value) if isinstance(value, int | float | tuple) else (1, str(value).casefold())
