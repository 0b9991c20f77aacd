"""What sweeps of both kinds of plan share: swept fields, what follows from them, and points on their curves."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Generic, TypeVar

from pydantic import Field

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from planner.estimates import PlanEstimate
from planner.result import Assumption, Dated

COUNT = "cluster.count"
# What follows from a swept size: chosen again at every point, unless it is swept itself.
FOLLOWS: dict[str, tuple[str, ...]] = {
    COUNT: ("layout.dp", "layout.shard_group"),
    "layout.tp": ("layout.dp", "layout.shard_group"),
    "layout.pp": ("layout.dp", "layout.shard_group"),
    "layout.cp": ("layout.dp", "layout.shard_group"),
    "layout.dp": ("layout.shard_group",),
}
Axes = Mapping[str, list[Any]]
"""The values of each swept field, by dotted path."""
Estimate = TypeVar("Estimate", bound=PlanEstimate)


class Point(Dated):
    """What points of both kinds have."""

    values: dict[str, Any] = Field(description="The swept fields, by dotted name.")


Shown = TypeVar("Shown", bound=Point)


@dataclass(frozen=True)
class Swept(Generic[Shown]):
    """The points of a sweep, the best of them, the estimate of each, which given sizes were left open, and what was
    assumed for all points."""

    points: Sequence[Shown]
    best: Shown | None
    estimates: Sequence[PlanEstimate | None]
    left_open: list[Assumption]
    assumed: list[Assumption]


@dataclass(frozen=True)
class TriedPoint(Generic[Estimate]):
    """The plan of one point and what became of it: an estimate, or why there is none."""

    values: Mapping[str, Any]
    estimate: Estimate | None
    refusal: PlanError | None

    @property
    def why(self) -> str:
        """The refusal in one line."""
        return " ".join(str(self.refusal).split())


def combinations(axes: Axes) -> list[dict[str, Any]]:
    """Every combination of the values, the last field innermost."""
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


def freed(plan: Plan, axes: Axes) -> tuple[Plan, list[Assumption]]:
    """The plan without the given sizes that follow from swept ones."""
    left_open: list[Assumption] = []
    for path in dict.fromkeys(path for swept in axes for path in FOLLOWS.get(swept, ())):
        value = getattr(plan.layout, path.removeprefix("layout."))
        if value is not None and path not in axes:
            plan = plan.patch({path: None})
            why = f"{value} was given, but it follows from what is swept"
            left_open.append(Assumption(field=path, value=None, why=why))
    return plan, left_open


def refuse_if_all_fail(tried: Sequence[TriedPoint[Any]], axes: Axes) -> None:
    """Raises the first refusal where no point can be: there is nothing to show."""
    if any(point.estimate for point in tried):
        return
    first = next(point.refusal for point in tried if point.refusal)
    elsewhere = next((point.refusal for point in tried if point.refusal and point.refusal.field not in axes), None)
    raise elsewhere or first


def curves(points: Sequence[Shown], axes: Axes) -> Iterator[list[Shown]]:
    """Points by the value of the second field."""
    second = list(axes)[1:]
    groups: dict[tuple[str, ...], list[Shown]] = {}
    for point in points:
        groups.setdefault(tuple(str(point.values[path]) for path in second), []).append(point)
    yield from groups.values()


def best_first(
    tried: Sequence[TriedPoint[Estimate]], points: Sequence[Shown], fitting: Sequence[Shown]
) -> tuple[list[TriedPoint[Estimate]], list[Shown]]:
    """The points of a sweep over everything that a field may be: those that fit in their order, then those that lack
    memory, and none that cannot be, which nobody named."""
    order = {id(point): place for place, point in enumerate(fitting)}
    rows = [row for row in zip(tried, points, strict=True) if row[0].estimate]
    rows.sort(key=lambda row: order.get(id(row[1]), len(order)))
    return [row[0] for row in rows], [row[1] for row in rows]


def ratio(value: float | None, base: float | None) -> float | None:
    return value / base if value is not None and base else None


def least(value: float | None) -> float:
    """To rank by what should be small: what is not known comes last."""
    return math.inf if value is None else value
