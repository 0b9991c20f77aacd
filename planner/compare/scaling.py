"""project_scaling: a training plan on growing numbers of nodes, and where more of them stop paying."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from pydantic import Field

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.figures import number, percent
from knowledge.machines.catalogue import find_accelerator, no_accelerator
from planner.asked.training import ScalingRequest
from planner.compare.rows import TrainingFigures, old_of, training_figures
from planner.compare.sweep.grid import COUNT, TriedPoint
from planner.compare.sweep.training import tried_points
from planner.compare.values import values_of
from planner.estimates import common_assumptions
from planner.evidence import evidence_of
from planner.named import counted
from planner.plots import Plot, Series
from planner.result import Assumption, Evidence, Result
from planner.training.planned import Planned, plan_training, warnings_of

_MOST_POINTS = 64
_MOST_DEVICES = 1_000_000
# Efficiency from which on it is said that it can be above 1.
_ABOVE = 1.02
_PER_NODE = "cluster.per_node"


class ScalingPoint(TrainingFigures):
    nodes: int
    speedup: float | None = Field(default=None, description="Tokens/s over those of the first point that fits.")
    efficiency: float | None = Field(default=None, description="Tokens/s per device over those of that point.")
    marginal_efficiency: float | None = Field(
        default=None,
        description="Tokens/s that each device beyond the point before adds, over those per device of the first.",
    )
    communication_share: float | None = Field(default=None, description="Of the step.")
    error: str | None = Field(default=None, description="Why there is no estimate.")


class ScalingProjection(Result):
    plan: dict[str, Any] = Field(description="The complete plan of the most nodes that pay; of the first else.")
    scaling: str
    points: list[ScalingPoint]
    pays_up_to_nodes: int | None = Field(
        description="The most nodes before efficiency first falls below the threshold; null where nothing fits."
    )
    stops_at_nodes: int | None = Field(description="The first nodes below the threshold; null where none are.")
    efficiency_threshold: float
    why: list[str]
    assumptions: list[Assumption]
    plots: list[Plot]
    seconds: float
    warnings: list[str]
    evidence: list[Evidence]


def project_scaling(request: ScalingRequest) -> ScalingProjection:
    """Project scaling over nodes."""
    started = time.perf_counter()
    plan, read = counted(request.to_plan())
    nodes, per_node, usual = _nodes(plan, request)
    sizes = [number * per_node for number in nodes]
    fixed = plan if plan.cluster.per_node else plan.patch({_PER_NODE: per_node})
    # Next to a size that fits only in host memory all others would look too good.
    swept = tried_points(fixed, {COUNT: sizes}, request.scaling == "weak", partial(plan_training, offload=False))
    points = [
        _point(number, size, tried, request.usd_per_device_hour)
        for number, size, tried in zip(nodes, sizes, swept.tried, strict=True)
    ]
    _relate(points)
    last, stop = _where_it_stops(points, request.efficiency_threshold)
    able = [(tried.estimate, point) for tried, point in zip(swept.tried, points, strict=True) if tried.estimate]
    estimates = [planned for planned, _ in able]
    chosen = next((planned for planned, point in able if point is last), estimates[0])
    told = {item.field for item in (*usual, *swept.assumed)} | {COUNT}
    common = [item for item in common_assumptions(estimates) if item.field not in told]
    return ScalingProjection(
        plan=chosen.complete_plan,
        scaling=request.scaling,
        points=points,
        pays_up_to_nodes=last.nodes if last else None,
        stops_at_nodes=stop.nodes if stop else None,
        efficiency_threshold=request.efficiency_threshold,
        why=list(_why(points, last, stop, request.efficiency_threshold)),
        assumptions=[*read, *usual, *swept.left_open, *swept.assumed, *common],
        plots=_plots(points, request.scaling),
        seconds=time.perf_counter() - started,
        warnings=[*_warnings(estimates, points), *old_of(points)],
        evidence=evidence_of(chosen.job),
    )


def _nodes(plan: Plan, request: ScalingRequest) -> tuple[list[int], int, list[Assumption]]:
    """(Numbers of nodes in rising order, devices per node, what was assumed). Raises PlanError for what cannot be."""
    if plan.cluster.accelerator is None:
        raise no_accelerator()
    per_node = plan.cluster.per_node
    usual: list[Assumption] = []
    if per_node is None:
        device = find_accelerator(plan.cluster.accelerator).value
        per_node = device.per_node
        usual.append(Assumption(field=_PER_NODE, value=per_node, why=f"usual for {device.name}"))
    if isinstance(request.nodes, int):
        if request.nodes < 1:
            raise PlanError("nodes", f"must be 1 or more, not {request.nodes}", ["64"])
        doubled = [2**power for power in range(min(request.nodes, _MOST_DEVICES).bit_length())]
        values: list[Any] = [*doubled, *([] if doubled[-1] == request.nodes else [request.nodes])]
    else:
        values = values_of(request.nodes, "nodes")
    wrong = [value for value in values if isinstance(value, bool) or not isinstance(value, int) or value < 1]
    if wrong:
        raise PlanError("nodes", f"{str(wrong[0])[:40]!r} is no number of nodes", ["1", "8", "64"])
    if len(values) > _MOST_POINTS:
        raise PlanError("nodes", f"{len(values)} points are too many", [f"up to {_MOST_POINTS}"])
    if max(values) * per_node > _MOST_DEVICES:
        limit = _MOST_DEVICES // per_node
        raise PlanError("nodes", f"{max(values)} nodes of {per_node} are too many devices", [f"up to {limit}"])
    return sorted(values), per_node, usual


def _point(nodes: int, devices: int, tried: TriedPoint[Planned], own_usd: float | None) -> ScalingPoint:
    if tried.estimate is None:
        return ScalingPoint(nodes=nodes, devices=devices, error=tried.why)
    figures = training_figures(tried.estimate, own_usd)
    share = (figures.communication_s or 0.0) / (figures.step_s or math.nan)
    return ScalingPoint(nodes=nodes, communication_share=share, **dict(figures))


def _relate(points: Sequence[ScalingPoint]) -> None:
    """Against the first that fits, or the first that is."""
    able = [point for point in points if point.tokens_per_s and point.devices]
    first = next((point for point in able if point.fits), able[0] if able else None)
    before: ScalingPoint | None = None
    for point in able:
        assert first
        base_rate = _rate(first) / _size(first)
        point.speedup = _rate(point) / _rate(first)
        point.efficiency = _rate(point) / _size(point) / base_rate
        if before is not None and before.fits:
            point.marginal_efficiency = (_rate(point) - _rate(before)) / (_size(point) - _size(before)) / base_rate
        before = point


def _rate(point: ScalingPoint) -> float:
    return point.tokens_per_s or math.nan


def _size(point: ScalingPoint) -> int:
    return point.devices or 1


def _where_it_stops(
    points: Sequence[ScalingPoint], threshold: float
) -> tuple[ScalingPoint | None, ScalingPoint | None]:
    """(The last of those that fit before the first below the threshold, that first)."""
    last: ScalingPoint | None = None
    for point in points:
        if not point.fits or point.efficiency is None:
            continue
        if point.efficiency < threshold:
            return last, point
        last = point
    return last, None


def _why(
    points: Sequence[ScalingPoint], last: ScalingPoint | None, stop: ScalingPoint | None, threshold: float
) -> list[str]:
    if last is None:
        return ["Nothing fits on any of these numbers of nodes."]
    first = next(point for point in points if point.fits)
    texts = []
    if stop is None:
        most = [point for point in points if point.fits][-1]
        if most is first:
            return [f"Of the sizes tried it fits on {_many(most.nodes)} alone."]
        speed = f"{number(round(_rate(most) / _rate(first), 1))} times the tokens/s of {_many(first.nodes)}"
        texts.append(f"{_many(most.nodes)}: {speed}, {percent(most.efficiency or 0.0)} scaling efficiency.")
    else:
        texts.append(
            f"It scales well up to {_many(last.nodes)}, at {percent(last.efficiency or 0.0)} efficiency; at "
            f"{_many(stop.nodes)} that is {percent(stop.efficiency or 0.0)}, below {percent(threshold)}: "
            f"{percent(stop.communication_share or 0.0)} of the step is communication. Bottleneck: {stop.bottleneck}."
        )
    if any((point.efficiency or 0.0) > _ABOVE for point in points if point.fits):
        texts.append("Efficiency is above 100 % where more devices leave room in memory for a faster layout.")
    misfits = [point for point in points if point.error is None and not point.fits]
    if misfits:
        against = "" if first is points[0] else f"; efficiency is relative to {_many(first.nodes)}"
        texts.append(f"It does not fit on {', '.join(_many(point.nodes) for point in misfits)}{against}.")
    return texts


def _many(nodes: int) -> str:
    return "1 node" if nodes == 1 else f"{nodes} nodes"


def _plots(points: Sequence[ScalingPoint], scaling: str) -> list[Plot]:
    able = [point for point in points if point.fits and point.step_s and point.low_s and point.high_s]
    if not able:
        return []
    x: list[float | str] = [float(point.nodes) for point in able]
    rates: list[float | None] = [_rate(point) for point in able]
    low: list[float | None] = [_rate(point) * (point.step_s or 0.0) / (point.high_s or 1.0) for point in able]
    high: list[float | None] = [_rate(point) * (point.step_s or 0.0) / (point.low_s or 1.0) for point in able]
    ideal: list[float | None] = [_rate(able[0]) / able[0].nodes * point.nodes for point in able]
    title = f"{scaling.capitalize()} scaling"
    efficiency: list[float | None] = [100 * (point.efficiency or 0.0) for point in able]
    share: list[float | None] = [100 * (point.communication_share or 0.0) for point in able]
    plots = [
        Plot(title=f"{title}: speed", kind="line", x_label="nodes", y_label="tokens/s", x_log=True, y_log=True,
             series=[Series(name="estimate", x=x, y=rates, low=low, high=high), Series(name="ideal", x=x, y=ideal)]),
        Plot(title=f"{title}: efficiency", kind="line", x_label="nodes", y_label="%", x_log=True,
             series=[Series(name="efficiency", x=x, y=efficiency), Series(name="communication", x=x, y=share)]),
    ]  # fmt: skip
    costs = [point.usd if point.usd is not None else point.usd_per_million_tokens for point in able]
    if all(cost is not None for cost in costs):
        unit = "USD of the run" if able[0].usd is not None else "USD per million tokens"
        plots.append(Plot(title=f"{title}: cost", kind="line", x_label="nodes", y_label=unit, x_log=True,
                          series=[Series(name=unit, x=x, y=costs)]))  # fmt: skip
    return plots


def _warnings(estimates: Sequence[Planned], points: Sequence[ScalingPoint]) -> list[str]:
    """Those of the points that fit, each once; what does not fit is told apart."""
    texts = list(dict.fromkeys(text for planned in estimates if planned.fits for text in warnings_of(planned)))
    missing = [point for point in points if point.error]
    return texts + [f"{_many(point.nodes)}: {point.error}" for point in missing]
