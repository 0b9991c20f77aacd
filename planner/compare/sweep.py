"""sweep: a plan over the values of one or two of its fields, each point estimated with the best layout for it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from pydantic import Field

from estimator.errors import PlanError
from estimator.plan.schema import Inference, Plan
from knowledge.jobs.training import job_of
from planner.compare import serving_sweep as points_of
from planner.compare.serving_sweep import ServingPoint, Tried
from planner.compare.values import Values, check_number, path_of, values_of
from planner.evidence import evidence_of
from planner.money.offers import cheapest, offers
from planner.requests import ONLY_SERVING, EitherRequest
from planner.results import Assumption, Evidence, Result
from planner.training.planned import Planned, complete, planned, warnings_of

_COUNT, _BATCH = "cluster.count", "workload.global_batch"
# What follows from a swept size: chosen again at every point, unless it is swept itself.
FOLLOWS: dict[str, tuple[str, ...]] = {
    _COUNT: ("layout.dp", "layout.shard_group"),
    "layout.tp": ("layout.dp", "layout.shard_group"),
    "layout.pp": ("layout.dp", "layout.shard_group"),
    "layout.cp": ("layout.dp", "layout.shard_group"),
    "layout.dp": ("layout.shard_group",),
}
# Fields that decide what the batch is where it is open: points that differ in these are not the same work anyway.
_WORK = ("model", "workload.stage", "workload.seq_len", "workload.group_size")
# Up to this many points the whole space of layouts is searched, as for a single estimate; beyond, the usual one.
_WHOLE_POINTS = 8
# A batch that all sizes divide is taken up to this many times the usual one.
_MOST_BATCH = 4


class SweepRequest(EitherRequest):
    field: str = Field(description="The Plan field to sweep, flat or dotted: count, seq_len, layout.tp, accelerator …")
    values: Values = Field(
        description="Its values: a list, {start, stop, factor or step}, or words such as '8..512 doubling'."
    )
    second_field: str | None = Field(None, description="A second field: each of its values gives a curve.")
    second_values: Values | None = Field(None, description="Values of the second field.")
    scale_batch: bool = Field(
        False, description="Weak scaling: global_batch grows with the devices; else it stays (strong scaling)."
    )
    usd_per_device_hour: float | None = Field(None, gt=0, description="Your own price, instead of the price book.")

    def asks_serving(self) -> bool:
        names = [name for name in (self.field, self.second_field) if name is not None]
        return any(name.strip().replace("-", "_").rpartition(".")[2] in ONLY_SERVING for name in names)


class SweepPoint(Result):
    """One point of a sweep. Figures are null where the point cannot be, and `why` says why it cannot."""

    values: dict[str, Any] = Field(description="The swept fields, by dotted name.")
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
    fits: bool = False
    usd_per_hour: float | None = None
    usd_per_million_tokens: float | None = None
    speedup: float | None = Field(default=None, description="Tokens/s over those of the first point of the same curve.")
    scaling_efficiency: float | None = Field(default=None, description="Tokens/s per device over those of that point.")
    bottleneck: str | None = None
    why: str | None = None


class Sweep(Result):
    plan: dict[str, Any] = Field(description="The complete plan of the best point; of the first where none fits.")
    fields: list[str] = Field(description="Dotted names of the swept Plan fields.")
    points: Sequence[SweepPoint | ServingPoint] = Field(
        description="In the order of the values, those of the second field innermost."
    )
    columns: dict[str, list[Any]] = Field(description="The points again, a list for each field and figure, to plot.")
    best: SweepPoint | ServingPoint | None = Field(description="Of the points that fit, the best by the plan's goal.")
    scaling: str | None = Field(description="strong (the work stays) or weak (it grows along) where devices are swept.")
    assumptions: list[Assumption]
    seconds: float
    warnings: list[str]
    evidence: list[Evidence]


@dataclass(frozen=True)
class Point:
    """The plan of one point and what became of it: an estimate, or why there is none."""

    values: Mapping[str, Any]
    found: Planned | None
    refusal: PlanError | None


def sweep(request: SweepRequest) -> Sweep:
    """Sweep one or two fields."""
    started = time.perf_counter()
    plan = request.to_plan()
    axes = _axes(request)
    if isinstance(plan.workload, Inference):
        return _serving(plan, axes, request, started)
    tried, said, more = tried_points(plan, axes, request.scale_batch)
    points = [_point(at, request.usd_per_device_hour) for at in tried]
    _compare(points, axes)
    best = _best(plan, points)
    shown = next((at for at, point in zip(tried, points, strict=True) if point is best), None)
    shown = shown or next(at for at in tried if at.found)
    assert shown.found
    return Sweep(
        plan=complete(shown.found),
        fields=list(axes),
        points=points,
        columns=_columns(points, axes),
        best=best,
        scaling=("weak" if request.scale_batch else "strong") if _COUNT in axes else None,
        assumptions=[*said, *more, *_common(tried, {*axes, *(item.field for item in more)})],
        seconds=time.perf_counter() - started,
        warnings=_warnings(tried, points),
        evidence=evidence_of(shown.found),
    )


def tried_points(
    plan: Plan, axes: Mapping[str, list[Any]], weak: bool
) -> tuple[list[Point], list[Assumption], list[Assumption]]:
    """A training plan at every combination of the values of `axes` (by dotted path), the last innermost; which given
    sizes were left out, and what was assumed for all points.

    With `weak` the global batch grows with the devices. Raises PlanError where no point can be.
    """
    plan, said = _freed(plan, axes)
    grid = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    batches, more = _batches(plan, axes, grid, weak)
    # As planned() does of itself for few points.
    whole = None if len(grid) <= _WHOLE_POINTS else False
    if whole is False and not plan.layout.model_fields_set:
        why = f"rarer ones are tried where there are {_WHOLE_POINTS} points or fewer, and in a single estimate"
        more = [*more, Assumption(field="layout", value="usual settings", why=why)]
    tried = [_tried(plan, values, batch, whole) for values, batch in zip(grid, batches, strict=True)]
    _refuse_if_all_fail(tried, axes)
    return tried, said, more


def _serving(plan: Plan, axes: dict[str, list[Any]], request: SweepRequest, started: float) -> Sweep:
    """As above, of a serving plan."""

    if request.scale_batch:
        raise PlanError("scale_batch", "is of training: serving has no global batch", ["false"])
    plan, said = _freed(plan, axes)
    grid = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    tried = [points_of.tried(plan, values, request.usd_per_device_hour) for values in grid]
    _refuse_if_all_fail(tried, axes)
    points = [points_of.point(at) for at in tried]
    points_of.compare(points, axes)
    best = points_of.best_point(plan, points)
    shown = next((at for at, one in zip(tried, points, strict=True) if one is best), None)
    shown = shown or next(at for at in tried if at.found)
    return Sweep(
        plan=points_of.shown_plan(shown),
        fields=list(axes),
        points=points,
        columns=points_of.columns(points, axes),
        best=best,
        scaling="strong" if _COUNT in axes else None,
        assumptions=[*said, *points_of.common(tried, set(axes))],
        seconds=time.perf_counter() - started,
        warnings=points_of.warnings(tried, points),
        evidence=points_of.evidence(shown),
    )


def _axes(request: SweepRequest) -> dict[str, list[Any]]:
    """The swept paths with their values. Raises PlanError for what cannot be swept together."""
    axes = {path_of(request.field, "field"): values_of(request.values, "values")}
    if (request.second_field is None) != (request.second_values is None):
        missing = "second_values" if request.second_values is None else "second_field"
        raise PlanError(missing, "is required: a second field goes with its values")
    if request.second_field is not None and request.second_values is not None:
        path = path_of(request.second_field, "second_field")
        if path in axes:
            raise PlanError("second_field", f"{path} is swept already; name another field or leave it out")
        axes[path] = values_of(request.second_values, "second_values")
        check_number(math.prod(map(len, axes.values())), "second_values")
    if request.scale_batch and (_COUNT not in axes or _BATCH in axes):
        problem = "lets the batch grow with the devices, so count must be swept and global_batch must not"
        raise PlanError("scale_batch", problem, ["field=count"])
    return axes


def _freed(plan: Plan, axes: Mapping[str, Any]) -> tuple[Plan, list[Assumption]]:
    """The plan without the given sizes that follow from swept ones."""
    said: list[Assumption] = []
    for path in dict.fromkeys(path for swept in axes for path in FOLLOWS.get(swept, ())):
        value = getattr(plan.layout, path.removeprefix("layout."))
        if value is not None and path not in axes:
            plan = plan.patch({path: None})
            said.append(Assumption(field=path, value=None, why=f"{value} was given, but it follows from what is swept"))
    return plan, said


def _batches(
    plan: Plan, axes: Mapping[str, Any], grid: list[dict[str, Any]], weak: bool
) -> tuple[list[int | None], list[Assumption]]:
    """The global batch of every point, None where the point's own plan or default gives it.

    Where the batch is open it is one that suits all points of the same work, so that they do as much in a step. For
    weak scaling it belongs to the plan's own number of devices, or to the first swept one, and grows in proportion.
    """
    if _BATCH in axes:
        return [None] * len(grid), []
    given = plan.training.global_batch
    groups: dict[tuple[str, ...], list[int]] = {}
    for place, values in enumerate(grid):
        groups.setdefault(tuple(str(values.get(path)) for path in _WORK), []).append(place)
    batches: list[int | None] = [given] * len(grid)
    said: list[Assumption] = []
    for places in groups.values():
        points = [grid[place] for place in places]
        if weak:
            first = next((point for point in points if _is_size(point[_COUNT])), points[0])
            reference = plan.cluster.count if given and plan.cluster.count else first[_COUNT]
            common = given or _default_batch(plan, first)
            for place, point in zip(places, points, strict=True):
                if common and _is_size(point[_COUNT]):
                    batches[place] = max(1, round(common * point[_COUNT] / reference))
            why = f"of {reference} devices, and in proportion with others"
        elif given is None and len(places) > 1:
            common = _common_batch(plan, points)
            for place in places:
                batches[place] = common
            why = "one that suits all points, so that each does the same work in a step"
            if common is None:
                why = "no batch near the usual one suits all points, so each has its own"
        else:
            continue
        said.append(Assumption(field=_BATCH, value=common, why=why))
    unique = {(item.value, item.why): item for item in said}
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
    asked: dict[str, Any] = {_COUNT: plan.cluster.count, "workload.micro_batch": training.micro_batch}
    if training.stage == "grpo":
        asked["workload.group_size"] = training.group_size
    unit = math.lcm(*(size for point in points for path in asked if _is_size(size := point.get(path, asked[path]))))
    common = unit * math.ceil(min(usual) / unit)
    return common if common <= _MOST_BATCH * max(usual) else None


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _tried(plan: Plan, values: Mapping[str, Any], batch: int | None, whole: bool | None) -> Point:
    changes = dict(values) | ({_BATCH: batch} if batch is not None else {})
    try:
        return Point(values, planned(plan.patch(changes), whole=whole), None)
    except PlanError as error:
        return Point(values, None, error)


def _refuse_if_all_fail(tried: Sequence[Point | Tried], axes: Mapping[str, Any]) -> None:
    """Raises the first refusal where no point can be: there is nothing to show."""
    if any(at.found for at in tried):
        return
    first = next(at.refusal for at in tried if at.refusal)
    elsewhere = next((at.refusal for at in tried if at.refusal and at.refusal.field not in axes), None)
    raise elsewhere or first


def _point(at: Point, usd_per_device_hour: float | None) -> SweepPoint:
    found = at.found
    if found is None:
        return SweepPoint(values=dict(at.values), why=" ".join(str(at.refusal).split()))
    job, estimates, index = found.job, found.estimates, found.index
    layouts, devices = estimates.layouts, job.machine.count
    tokens_per_s = float(estimates.tokens_per_s[index])
    listed = cheapest(offers(found, 1.0))
    hourly = devices * usd_per_device_hour if usd_per_device_hour else listed and listed.usd_per_hour
    high_bytes = float(estimates.high_bytes[index])
    over = f"does not fit: up to {high_bytes / 2**30:.1f} GiB per device of {job.usable_bytes / 2**30:.1f} GiB usable"
    return SweepPoint(
        values=dict(at.values),
        devices=devices,
        framework=job.framework.name,
        layout=layouts.row(index),
        summary=layouts.summary(index),
        micro_batch=int(layouts.micro_batch[index]),
        global_batch=job.global_batch,
        grad_accum=int(layouts.grad_accum[index]),
        step_s=float(estimates.step.seconds[index]),
        low_s=float(estimates.low_s[index]),
        high_s=float(estimates.high_s[index]),
        tokens_per_s=tokens_per_s,
        tokens_per_s_per_device=tokens_per_s / devices,
        mfu=float(estimates.mfu[index]),
        per_device_bytes=float(estimates.memory.total[index]),
        high_bytes=high_bytes,
        fits=found.fits,
        usd_per_hour=hourly,
        usd_per_million_tokens=None if hourly is None else hourly / (tokens_per_s * 3600.0 / 1e6),
        bottleneck=found.diagnosis.bottleneck,
        why=None if found.fits else over,
    )


def _compare(points: list[SweepPoint], axes: Mapping[str, list[Any]]) -> None:
    """Speedup and efficiency against the first point of the same curve: the first that fits, else the first that is."""
    curve = list(axes)[1:]
    for key in {tuple(str(point.values[path]) for path in curve) for point in points}:
        own = [point for point in points if tuple(str(point.values[path]) for path in curve) == key]
        able = [point for point in own if point.tokens_per_s is not None]
        first = next((point for point in able if point.fits), able[0] if able else None)
        for point in able:
            point.speedup = _ratio(point.tokens_per_s, first and first.tokens_per_s)
            point.scaling_efficiency = _ratio(point.tokens_per_s_per_device, first and first.tokens_per_s_per_device)


def _ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other else None


def _best(plan: Plan, points: list[SweepPoint]) -> SweepPoint | None:
    """The most tokens/s, the least cost of a token, or the least memory, as the plan's goal has it."""
    fitting = [point for point in points if point.fits]

    def rank(point: SweepPoint) -> float:
        match plan.goal.objective:
            case "memory":
                return point.high_bytes or 0.0
            case "cost":
                return math.inf if point.usd_per_million_tokens is None else point.usd_per_million_tokens
        return -(point.tokens_per_s or 0.0)

    return min(fitting, key=rank, default=None)


def _columns(points: list[SweepPoint], axes: Mapping[str, Any]) -> dict[str, list[Any]]:
    figures = [name for name in SweepPoint.model_fields if name not in ("values", "layout")]
    columns: dict[str, list[Any]] = {path: [point.values[path] for point in points] for path in axes}
    return columns | {name: [getattr(point, name) for point in points] for name in figures}


def _common(tried: list[Point], told: set[str]) -> list[Assumption]:
    """What was assumed alike at all points, without the fields that were told; what differs stands in the points."""
    lists = [at.found.assumptions for at in tried if at.found]
    return [item for item in lists[0] if item.field not in told and all(item in other for other in lists[1:])]


def _warnings(tried: list[Point], points: list[SweepPoint]) -> list[str]:
    """Those of the points that fit, each once; what does not fit says so itself."""
    able = [at.found for at, point in zip(tried, points, strict=True) if at.found and point.fits]
    return list(dict.fromkeys(text for found in able for text in warnings_of(found)))
