"""sweep for training: the plan at each point, with the best layout for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from pydantic import Field

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.figures import gib
from knowledge.jobs.training import job_of
from planner.compare.rows import TrainingFigures, training_figures
from planner.compare.sweep.grid import (
    COUNT,
    Axes,
    Point,
    Swept,
    TriedPoint,
    best_first,
    combinations,
    curves,
    freed,
    least,
    ratio,
    refuse_if_all_fail,
)
from planner.result import Assumption
from planner.training.planned import Planned, plan_to_fit, throughput_of

BATCH = "workload.global_batch"
# Fields that decide what the batch is where it is open: points that differ in these are not the same work anyway.
_WORK = ("model", "workload.stage", "workload.seq_len", "workload.group_size")
# A batch that all sizes divide is taken up to this many times the usual one.
_MOST_BATCH = 4


class SweepPoint(Point):
    """One point of a sweep. Figures are null where the point cannot be, and `why` says why it cannot."""

    devices: int | None = None
    framework: str | None = None
    layout: dict[str, Any] | None = None
    summary: str | None = None
    micro_batch: int | None = None
    global_batch: int | None = None
    grad_accum: int | None = None
    step_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    tokens_per_s: float | None = None
    tokens_per_s_per_device: float | None = None
    mfu: float | None = None
    per_device_bytes: float | None = None
    high_bytes: float | None = None
    capacity_bytes: float | None = None
    fits: bool = False
    hours: float | None = Field(default=None, description="Of the whole run; null where the plan names no data.")
    usd_per_hour: float | None = None
    usd_per_million_tokens: float | None = None
    speedup: float | None = Field(default=None, description="Tokens/s over those of the first point of the same curve.")
    scaling_efficiency: float | None = Field(default=None, description="Tokens/s per device over those of that point.")
    bottleneck: str | None = None
    why: str | None = None


@dataclass(frozen=True)
class TriedPoints:
    """The points, the last field innermost; which given sizes were left open, and what was assumed for all points."""

    tried: list[TriedPoint[Planned]]
    left_open: list[Assumption]
    assumed: list[Assumption]


def tried_points(plan: Plan, axes: Axes, weak: bool, planner: Callable[[Plan], Planned] = plan_to_fit) -> TriedPoints:
    """A training plan, as a verdict or `planner` has it, at every combination of the values of `axes`.

    With `weak` the global batch grows with the devices. Raises PlanError where no point can be.
    """
    plan, left_open = freed(plan, axes)
    grid = combinations(axes)
    batches, assumed = _batches(plan, axes, grid, weak)
    tried = [_tried(plan, values, batch, planner) for values, batch in zip(grid, batches, strict=True)]
    refuse_if_all_fail(tried, axes)
    return TriedPoints(tried, left_open, assumed)


def _batches(
    plan: Plan, axes: Axes, grid: list[dict[str, Any]], weak: bool
) -> tuple[list[int | None], list[Assumption]]:
    """The global batch of every point, None where the point's own plan or default gives it.

    Where the batch is open it is one that suits all points of the same work, so that they do as much in a step. For
    weak scaling it belongs to the plan's own number of devices, or to the first swept one, and grows in proportion.
    """
    if BATCH in axes:
        return [None] * len(grid), []
    own_batch = plan.training.global_batch
    groups: dict[tuple[str, ...], list[int]] = {}
    for place, values in enumerate(grid):
        groups.setdefault(tuple(str(values.get(path)) for path in _WORK), []).append(place)
    batches: list[int | None] = [own_batch] * len(grid)
    assumed: list[Assumption] = []
    for places in groups.values():
        points = [grid[place] for place in places]
        if weak:
            first = next((point for point in points if _is_size(point[COUNT])), points[0])
            reference = plan.cluster.count if own_batch and plan.cluster.count else first[COUNT]
            common = own_batch or _default_batch(plan, first)
            for place, point in zip(places, points, strict=True):
                if common and _is_size(point[COUNT]):
                    batches[place] = max(1, round(common * point[COUNT] / reference))
            why = f"of {reference} devices, and in proportion with others"
        elif own_batch is None and len(places) > 1:
            common = _common_batch(plan, points)
            for place in places:
                batches[place] = common
            why = "one that suits all points, so that each does the same work in a step"
            if common is None:
                why = "no batch near the usual one suits all points, so each has its own"
        else:
            continue
        assumed.append(Assumption(field=BATCH, value=common, why=why))
    unique = {(item.value, item.why): item for item in assumed}
    return batches, list(unique.values())


def _default_batch(plan: Plan, values: Mapping[str, Any]) -> int | None:
    """The usual batch of a point; None where the point cannot be looked up, which is told when it is estimated."""
    try:
        return job_of(plan.patch(values)).global_batch
    except PlanError:
        return None


def _common_batch(plan: Plan, points: list[dict[str, Any]]) -> int | None:
    """The usual batch, rounded up so that all numbers of devices and sizes of micro-batch divide it; None where that
    is far beyond the usual."""
    usual = [size for point in points if (size := _default_batch(plan, point))]
    if not usual:
        return None
    training = plan.training
    asked: dict[str, Any] = {COUNT: plan.cluster.count, "workload.micro_batch": training.micro_batch}
    if training.stage == "grpo":
        asked["workload.group_size"] = training.group_size
    unit = math.lcm(*(size for point in points for path in asked if _is_size(size := point.get(path, asked[path]))))
    common = unit * math.ceil(min(usual) / unit)
    return common if common <= _MOST_BATCH * max(usual) else None


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _tried(
    plan: Plan, values: Mapping[str, Any], batch: int | None, planner: Callable[[Plan], Planned]
) -> TriedPoint[Planned]:
    changes = dict(values) | ({BATCH: batch} if batch is not None else {})
    try:
        return TriedPoint(values, planner(plan.patch(changes)), None)
    except PlanError as error:
        return TriedPoint(values, None, error)


def _point(tried: TriedPoint[Planned], own_usd: float | None) -> SweepPoint:
    planned = tried.estimate
    if planned is None:
        return SweepPoint(values=dict(tried.values), why=tried.why)
    figures, tokens_per_s = training_figures(planned, own_usd), throughput_of(planned).tokens_per_s
    shared = SweepPoint.model_fields.keys() & TrainingFigures.model_fields
    point = SweepPoint(values=dict(tried.values), **{name: getattr(figures, name) for name in shared})
    # At this speed, however long the run.
    hourly = point.usd_per_hour
    point.usd_per_million_tokens = None if hourly is None else hourly / (tokens_per_s * 3600.0 / 1e6)
    if not planned.fits:
        need, have = gib(float(planned.estimates.high_bytes[planned.index])), gib(planned.job.usable_bytes)
        point.why = f"does not fit: up to {need} per device of {have} usable"
    return point


def swept(plan: Plan, axes: Axes, weak: bool, own_usd: float | None, every: bool = False) -> Swept[SweepPoint]:
    """The points in the order of the values; of `every` value that there is the best first. Raises PlanError where no
    point can be."""
    points = tried_points(plan, axes, weak)
    tried, rows = points.tried, [_point(each, own_usd) for each in points.tried]
    if every:
        tried, rows = best_first(tried, rows, in_order(plan.goal.objective, rows))
    on_devices = [row for row, each in zip(rows, tried, strict=True) if each.estimate and _roomy(each.estimate)]
    for curve in curves(rows, axes):
        _relate(curve, [row for row in curve if row in on_devices])
    best = next(iter(in_order(plan.goal.objective, rows)), None)
    return Swept(rows, best, [each.estimate for each in tried], points.left_open, points.assumed)


def _roomy(planned: Planned) -> bool:
    """Whether it fits with nothing given up: next to what does not, all others would look too good."""
    return planned.fits and planned.fits_on_device and not planned.conceded


def _relate(curve: Sequence[SweepPoint], roomy: Sequence[SweepPoint]) -> None:
    """Speedup and efficiency against the first of `roomy`, else the first point of a curve that fits, or that is."""
    able = [point for point in curve if point.tokens_per_s is not None]
    first = next(chain(roomy, (point for point in able if point.fits), able), None)
    for point in able:
        point.speedup = ratio(point.tokens_per_s, first and first.tokens_per_s)
        point.scaling_efficiency = ratio(point.tokens_per_s_per_device, first and first.tokens_per_s_per_device)


def in_order(objective: str, points: Sequence[SweepPoint]) -> list[SweepPoint]:
    """Those that fit, by the most tokens/s, the least cost of a token, or the least memory, as the plan's goal has
    it."""

    def rank(point: SweepPoint) -> float:
        match objective:
            case "memory":
                return point.high_bytes or 0.0
            case "cost":
                return least(point.usd_per_million_tokens)
        return -(point.tokens_per_s or 0.0)

    return sorted((point for point in points if point.fits), key=rank)
