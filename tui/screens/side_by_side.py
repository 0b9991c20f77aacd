"""Results of one tool for several things beside each other: a row a figure, a column a thing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pages import figures, units
from pages.blocks import Block, Grid
from pages.clean import one_line

Data = Mapping[str, Any]

_LEFT_OUT = ("id", "assumptions", "notes", "prices", "warnings", "evidence")
_ENDINGS = (
    ("_bytes_per_s", lambda value: f"{value / 1e9:,.0f} GB/s"),
    ("_bytes", units.memory),
    ("_tflops", lambda value: f"{value:,.0f} TFLOP/s"),
    ("_w", lambda value: f"{value:,.0f} W"),
)


def fields_of(found: Data) -> list[tuple[str, str]]:
    """(Label, value) of each figure that is known."""
    rows: list[tuple[str, str]] = []
    for name, value in found.items():
        if name in _LEFT_OUT or value in (None, [], {}, ""):
            continue
        if isinstance(value, Mapping):
            ending = name[name.rfind("_") :] if "_" in name else ""
            rows += [_row(f"{name.removesuffix(ending)}_{key}{ending}", each) for key, each in value.items()]
        elif isinstance(value, list | tuple):
            rows.append((name.replace("_", " "), ", ".join(map(str, value))))
        else:
            rows.append(_row(name, value))
    return rows


def side_by_side(names: Sequence[str], found: Sequence[Data]) -> list[Block]:
    told = [dict(fields_of(each)) for each in found]
    labels = list(dict.fromkeys(label for each in told for label in each))
    rows = [(label, *(one_line(each.get(label, "–"), 40) for each in told)) for label in labels]
    return [Grid(("", *names), rows, tuple(names))]


def _row(name: str, value: Any) -> tuple[str, str]:
    """The label without the unit that the value is written with."""
    label = name
    if isinstance(value, bool):
        shown = "yes" if value else "no"
    elif not isinstance(value, int | float):
        shown = str(value)
    elif name.startswith("usd") or name.endswith("_usd"):
        shown = units.usd(value) if abs(value) >= 1 else f"${value:.3g}"
    elif name in ("mfu", "hfu"):
        shown = units.percent(value)
    elif name.endswith("hours"):
        shown = units.duration(value * 3600)
    elif found := next((row for row in _ENDINGS if name.endswith(row[0])), None):
        label, shown = name.removesuffix(found[0]), found[1](value)
    elif name.endswith("_s") and not name.endswith("per_s"):
        label, shown = name.removesuffix("_s"), units.short_duration(value)
    else:
        shown = units.count(value) if abs(value) >= 100_000 else figures.number(value)
    return label.replace("_per_s", "/s").replace("_", " "), shown
