"""sweep: a plan over the values of one or two of its fields, each point estimated with the best layout for it."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from estimator.errors import PlanError
from estimator.plan.schema import Inference, Plan
from planner.asked.training import SweepRequest
from planner.compare.rows import old_of
from planner.compare.sweep import serving, training
from planner.compare.sweep.every import ALL, values_of_field
from planner.compare.sweep.grid import COUNT, Axes, Point
from planner.compare.sweep.serving import ServingPoint
from planner.compare.sweep.training import BATCH, SweepPoint
from planner.compare.values import check_number, path_of, values_of
from planner.estimates import PlanEstimate, common_assumptions, warning_kinds_of, warnings_of
from planner.evidence import evidence_of
from planner.result import Assumption, Evidence, Result

# Kinds of warnings that are of the load of one point, which the figures of its row tell.
_OF_A_LOAD = frozenset({"rate", "room", "latency"})


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


def sweep(request: SweepRequest) -> Sweep:
    """Sweep one or two fields."""
    started = time.perf_counter()
    plan = request.to_plan()
    axes = _axes(request, plan)
    kind = serving if isinstance(plan.workload, Inference) else training
    every = request.values == ALL
    swept = kind.swept(plan, axes, request.scale_batch, request.usd_per_device_hour, every)
    rows = list(zip(swept.points, swept.estimates, strict=True))
    able = [estimate for estimate in swept.estimates if estimate]
    shown = next((estimate for point, estimate in rows if point is swept.best), None) or able[0]
    told = {*axes, *(item.field for item in swept.assumed)}
    common = [item for item in common_assumptions(able) if item.field not in told]
    fitting = [estimate for estimate in able if estimate.fits]
    return Sweep(
        plan=shown.complete_plan,
        fields=list(axes),
        points=swept.points,
        columns=_columns(swept.points, axes),
        best=swept.best,
        scaling=("weak" if request.scale_batch else "strong") if COUNT in axes else None,
        assumptions=[*swept.left_open, *swept.assumed, *common],
        seconds=time.perf_counter() - started,
        # What does not fit says so itself.
        warnings=[
            *_warnings(shown, [] if every else fitting),
            *old_of(swept.points),
        ],
        evidence=evidence_of(shown.job),
    )


def _warnings(shown: PlanEstimate, fitting: Sequence[PlanEstimate]) -> list[str]:
    """Those of the best point, and of others what is not of their own load, which their rows tell."""
    texts = warnings_of(shown) if shown.fits else []
    for estimate in fitting:
        kinds = warning_kinds_of(estimate)
        texts += [text for text in warnings_of(estimate) if kinds.get(text) not in _OF_A_LOAD]
    return list(dict.fromkeys(texts))


def _axes(request: SweepRequest, plan: Plan) -> dict[str, list[Any]]:
    """The swept paths with their values. Raises PlanError for what cannot be swept together."""
    path = path_of(request.field, "field")
    every = request.values == ALL
    axes = {path: values_of_field(plan, path, "values") if every else values_of(request.values, "values")}
    if (request.second_field is None) != (request.second_values is None):
        missing, like = ("second_values", "values") if request.second_values is None else ("second_field", "field")
        examples = SweepRequest.model_fields[like].examples or ()
        raise PlanError(missing, "is required: a second field goes with its values", examples)
    if request.second_field is not None and request.second_values is not None:
        path = path_of(request.second_field, "second_field")
        if path in axes:
            raise PlanError("second_field", f"{path} is swept already; name another field or leave it out")
        axes[path] = values_of(request.second_values, "second_values")
        check_number(math.prod(map(len, axes.values())), "second_values")
    if request.scale_batch and (COUNT not in axes or BATCH in axes):
        problem = "lets the batch grow with the devices, so count must be swept and global_batch must not"
        raise PlanError("scale_batch", problem, ["field=count"])
    return axes


def _columns(points: Sequence[Point], axes: Axes) -> dict[str, list[Any]]:
    """A list for each swept field and figure."""
    figures = [name for name in type(points[0]).model_fields if name not in ("values", "layout")]
    columns: dict[str, list[Any]] = {path: [point.values[path] for point in points] for path in axes}
    return columns | {name: [getattr(point, name) for point in points] for name in figures}
