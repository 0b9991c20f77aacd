"""Which assumptions decide an answer: those whose other values move it most, of training and serving alike."""

from __future__ import annotations

from collections.abc import Iterable

from planner.result import Decisive

_MOST = 4
# What loses or wins the fit is above whatever moves a figure.
_FIT = 1e6


def ranked(tried: Iterable[Decisive | None], fits: bool, least: float, figure: str | None = None) -> list[Decisive]:
    """Those that matter most first, each field once (with what has launch files and with what has none): what loses or
    wins the fit, then by the change of `figure`, or of the figure that each is told by. Changes below `least` decide
    nothing: an estimate is not that sure."""
    by_field: dict[tuple[str, bool], Decisive] = {}
    for row in filter(None, tried):
        key = (row.field, row.started)
        if key not in by_field or _weight(row, figure) > _weight(by_field[key], figure):
            by_field[key] = row
    rows = [row for row in by_field.values() if _weight(row, figure) >= least]
    return sorted(rows, key=lambda row: (row.fits != fits, _weight(row, figure)), reverse=True)[:_MOST]


def size(change: float) -> float:
    """The same for twice as much and half as much."""
    return abs(change) if change > 0 else 1.0 / (1.0 + change) - 1.0


def _weight(row: Decisive, figure: str | None) -> float:
    return size(row.change(figure or row.figure)) if row.fits else _FIT
