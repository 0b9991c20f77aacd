"""Figures to be drawn, as plain data: results carry them, and each face draws them in its own way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from planner.result import Result


class Series(Result):
    """One curve or group of bars; `x` and `y` are of the same length, null where there is no figure."""

    name: str
    x: list[float | str]
    y: list[float | None]
    low: list[float | None] | None = Field(default=None, description="Lower ends of the intervals of y.")
    high: list[float | None] | None = Field(default=None, description="Upper ends.")


class Plot(Result):
    title: str
    kind: Literal["line", "bar", "stacked", "scatter"]
    x_label: str
    y_label: str = Field(description="With its unit.")
    series: list[Series]
    x_log: bool = False
    y_log: bool = False
    limit: float | None = Field(default=None, description="A value of y to mark, such as a device's capacity.")
    limit_name: str | None = None


Values = Sequence[float | None]


def bars(title: str, x_label: str, y_label: str, names: Sequence[str], values: Values, low: Values = (),
         high: Values = ()) -> list[Plot]:  # fmt: skip
    """One bar for each name, with intervals where `low` and `high` are given; no plot where there is no value."""
    return grouped(title, x_label, y_label, names, {y_label: values}, {y_label: (low, high)} if low else {})


def grouped(title: str, x_label: str, y_label: str, names: Sequence[str], groups: Mapping[str, Values],
            intervals: Mapping[str, tuple[Values, Values]] | None = None) -> list[Plot]:  # fmt: skip
    """For each name a bar of each group; no plot where there is no value at all."""
    if all(value is None for values in groups.values() for value in values):
        return []
    ends = {name: (list(low), list(high)) for name, (low, high) in (intervals or {}).items()}
    series = [
        Series(name=name, x=list(names), y=list(values), low=ends[name][0], high=ends[name][1])
        if name in ends
        else Series(name=name, x=list(names), y=list(values))
        for name, values in groups.items()
    ]
    return [Plot(title=title, kind="bar", x_label=x_label, y_label=y_label, series=series)]


def stacked(title: str, x_label: str, y_label: str, names: Sequence[str], parts: Sequence[Mapping[str, float] | None],
            unit: float = 1.0, limit: float | None = None, limit_name: str | None = None) -> list[Plot]:  # fmt: skip
    """One bar for each name, built of its parts divided by `unit`; parts that are 0 everywhere are left out."""
    able = [part for part in parts if part]
    listed = dict.fromkeys(kind for part in able for kind in part)
    kinds = [kind for kind in listed if any(part.get(kind, 0.0) > 0 for part in able)]
    if not kinds:
        return []
    series = [
        Series(name=kind, x=list(names), y=[None if not part else part.get(kind, 0.0) / unit for part in parts])
        for kind in kinds
    ]
    return [
        Plot(title=title, kind="stacked", x_label=x_label, y_label=y_label, series=series,
             limit=limit, limit_name=limit_name if limit is not None else None)
    ]  # fmt: skip
