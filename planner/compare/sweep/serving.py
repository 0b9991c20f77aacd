"""sweep for serving: the plan at each point, with the best layout for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from planner.compare.sweep.grid import (
    Axes,
    Point,
    Swept,
    TriedPoint,
    best_first,
    combinations,
    curves,
    freed,
    least,
    refuse_if_all_fail,
)
from planner.serving.planned import Served, choice, money_of, plan_serving
from planner.serving.results import ServingChoice
from planner.serving.warnings import misfit


class ServingPoint(Point):
    """One point of a sweep of serving. Figures are null where the point cannot be, and `why` says why it cannot."""

    devices: int | None = None
    replicas: int | None = None
    engine: str | None = None
    layout: dict[str, Any] | None = None
    summary: str | None = None
    ttft_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None
    ttft_p99_s: float | None = None
    tpot_p99_s: float | None = None
    output_tokens_per_s: float | None = None
    output_tokens_per_s_per_device: float | None = None
    total_tokens_per_s: float | None = None
    requests_per_s: float | None = None
    tokens_per_s_per_user: float | None = None
    running: float | None = None
    max_concurrency: int | None = None
    per_device_bytes: float | None = None
    capacity_bytes: float | None = None
    fits: bool = False
    meets_slo: bool | None = None
    usd_per_hour: float | None = None
    usd_per_million_tokens: float | None = None
    usd_per_million_output_tokens: float | None = None
    speedup: float | None = Field(default=None, description="Output tokens/s over those of the curve's first point.")
    scaling_efficiency: float | None = Field(default=None, description="Output tokens/s per device over that point's.")
    bottleneck: str | None = None
    why: str | None = None


def swept(plan: Plan, axes: Axes, weak: bool, own_usd: float | None, every: bool = False) -> Swept[ServingPoint]:
    """The points in the order of the values; of `every` value that there is the best first. Raises PlanError where no
    point can be."""
    if weak:
        raise PlanError("scale_batch", "is of training: serving has no global batch", ["false"])
    plan, left_open = freed(plan, axes)
    tried = [_tried(plan, values, own_usd) for values in combinations(axes)]
    refuse_if_all_fail(tried, axes)
    points = [_point(point) for point in tried]
    ordered = in_order(plan.goal.objective, points)
    if every:
        tried, points = best_first(tried, points, ordered)
    for curve in curves(points, axes):
        _relate(curve)
    return Swept(points, next(iter(ordered), None), [point.estimate for point in tried], left_open, [])


def _tried(plan: Plan, values: Mapping[str, Any], own_usd: float | None) -> TriedPoint[Served]:
    changes = dict(values)
    # Clients and a rate stand for each other.
    if "workload.concurrency" in values and "workload.request_rate" not in values:
        changes["workload.request_rate"] = None
    if "workload.request_rate" in values and "workload.concurrency" not in values:
        changes["workload.concurrency"] = None
    try:
        return TriedPoint(values, plan_serving(plan.patch(changes), own_usd=own_usd), None)
    except PlanError as error:
        return TriedPoint(values, None, error)


def _point(tried: TriedPoint[Served]) -> ServingPoint:
    served = tried.estimate
    if served is None:
        return ServingPoint(values=dict(tried.values), why=tried.why)
    cost, deployment = money_of(served), choice(served.pool, served.index, served.slo)
    shared = ServingPoint.model_fields.keys() & ServingChoice.model_fields
    point = ServingPoint(values=dict(tried.values), **{name: getattr(deployment, name) for name in shared})
    point.capacity_bytes = float(served.estimates.memory.capacity)
    point.usd_per_hour = cost and cost.usd_per_hour
    point.usd_per_million_tokens = cost and cost.usd_per_million_tokens
    point.usd_per_million_output_tokens = cost and cost.usd_per_million_output_tokens
    point.price_date, point.stale = cost and cost.price_date, cost and cost.stale
    point.bottleneck, point.why = served.bottleneck, None if served.fits else misfit(served)
    return point


def _relate(curve: Sequence[ServingPoint]) -> None:
    """Speedup and efficiency against the first point of a curve that fits, else the first that is."""
    able = [point for point in curve if point.output_tokens_per_s]
    first = next((point for point in able if point.fits), able[0] if able else None)
    for point in able:
        assert first
        assert point.output_tokens_per_s
        assert first.output_tokens_per_s
        point.speedup = point.output_tokens_per_s / first.output_tokens_per_s
        point.scaling_efficiency = point.speedup * (first.devices or 1) / (point.devices or 1)


def in_order(objective: str, points: Sequence[ServingPoint]) -> list[ServingPoint]:
    """Those that fit by the plan's goal, those that miss a limit of latency behind the others."""

    def rank(point: ServingPoint) -> float:
        match objective:
            case "memory":
                return point.per_device_bytes or 0.0
            case "cost":
                return least(point.usd_per_million_tokens)
            case "time":
                return least(point.e2e_s)
        return -(point.output_tokens_per_s or 0.0)

    return sorted((point for point in points if point.fits), key=lambda point: (point.meets_slo is False, rank(point)))
