"""sweep for serving: the plan at each point, with the best layout for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from planner.evidence import evidence_of
from planner.result import Assumption, Evidence, Result
from planner.serving.planned import Served, memory_of, money_of, plan_serving, summary
from planner.serving.warnings import misfit, warnings_of


class ServingPoint(Result):
    """One point of a sweep of serving. Figures are null where the point cannot be, and `why` says why it cannot."""

    values: dict[str, Any] = Field(description="The swept fields, by dotted name.")
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
    fits: bool = False
    meets_slo: bool | None = None
    usd_per_hour: float | None = None
    usd_per_million_tokens: float | None = None
    usd_per_million_output_tokens: float | None = None
    speedup: float | None = Field(default=None, description="Output tokens/s over those of the curve's first point.")
    scaling_efficiency: float | None = Field(default=None, description="Output tokens/s per device over that point's.")
    bottleneck: str | None = None
    why: str | None = None


@dataclass(frozen=True)
class Tried:
    """The plan of one point and what became of it: an estimate, or why there is none."""

    values: Mapping[str, Any]
    found: Served | None
    refusal: PlanError | None


def tried(plan: Plan, values: Mapping[str, Any], own_usd: float | None) -> Tried:
    changes = dict(values)
    # Clients and a rate stand for each other.
    if "workload.concurrency" in values and "workload.request_rate" not in values:
        changes["workload.request_rate"] = None
    if "workload.request_rate" in values and "workload.concurrency" not in values:
        changes["workload.concurrency"] = None
    try:
        return Tried(values, plan_serving(plan.patch(changes), own_usd=own_usd), None)
    except PlanError as error:
        return Tried(values, None, error)


def point(at: Tried) -> ServingPoint:
    found = at.found
    if found is None:
        return ServingPoint(values=dict(at.values), why=" ".join(str(at.refusal).split()))
    pool, index, (estimates, entry) = found.pool, found.index, found.pool.of(found.index)
    memory, steady, cost = memory_of(found), estimates.steady, money_of(found)
    devices, output = int(pool.devices[index]), float(estimates.output_tokens_per_s[entry])
    never = bool(steady.ttft_s[entry] == float("inf"))
    return ServingPoint(
        values=dict(at.values),
        devices=devices,
        replicas=int(estimates.deployments.replicas[entry]),
        engine=found.job.engine.name,
        layout=found.layout,
        summary=summary(pool, index),
        ttft_s=None if never else float(steady.ttft_s[entry]),
        tpot_s=float(steady.tpot_s[entry]),
        e2e_s=None if never else float(steady.e2e_s[entry]),
        ttft_p99_s=None if never else float(steady.ttft_p99_s[entry]),
        tpot_p99_s=float(steady.tpot_p99_s[entry]),
        output_tokens_per_s=output,
        output_tokens_per_s_per_device=output / devices,
        total_tokens_per_s=float(estimates.total_tokens_per_s[entry]),
        requests_per_s=float(estimates.requests_per_s[entry]),
        tokens_per_s_per_user=1.0 / float(steady.tpot_s[entry]),
        running=float(steady.running[entry] * estimates.deployments.lanes[entry]),
        max_concurrency=memory.max_concurrency,
        per_device_bytes=memory.per_device_bytes,
        fits=found.fits,
        meets_slo=found.meets_slo,
        usd_per_hour=cost.usd_per_hour if cost else None,
        usd_per_million_tokens=cost.usd_per_million_tokens if cost else None,
        usd_per_million_output_tokens=cost.usd_per_million_output_tokens if cost else None,
        bottleneck=found.bottleneck,
        why=None if found.fits else misfit(found),
    )


def best_point(plan: Plan, points: list[ServingPoint]) -> ServingPoint | None:
    """Of those that fit (and meet the limits of latency, where any does) the best by the plan's goal."""
    fitting = [one for one in points if one.fits]
    fitting = [one for one in fitting if one.meets_slo is not False] or fitting

    def rank(one: ServingPoint) -> float:
        match plan.goal.objective:
            case "memory":
                return one.per_device_bytes or 0.0
            case "cost":
                return one.usd_per_million_tokens if one.usd_per_million_tokens is not None else float("inf")
            case "time":
                return one.e2e_s if one.e2e_s is not None else float("inf")
        return -(one.output_tokens_per_s or 0.0)

    return min(fitting, key=rank, default=None)


def compare(points: list[ServingPoint], axes: Mapping[str, list[Any]]) -> None:
    """Speedup and efficiency against the first point of the same curve: the first that fits, else the first that is."""
    curve = list(axes)[1:]
    for key in {tuple(str(one.values[path]) for path in curve) for one in points}:
        own = [one for one in points if tuple(str(one.values[path]) for path in curve) == key]
        able = [one for one in own if one.output_tokens_per_s]
        first = next((one for one in able if one.fits), able[0] if able else None)
        for one in able:
            assert first
            assert one.output_tokens_per_s
            assert first.output_tokens_per_s
            one.speedup = one.output_tokens_per_s / first.output_tokens_per_s
            one.scaling_efficiency = one.speedup * (first.devices or 1) / (one.devices or 1)


def columns(points: list[ServingPoint], axes: Mapping[str, Any]) -> dict[str, list[Any]]:
    figures = [name for name in ServingPoint.model_fields if name not in ("values", "layout")]
    found: dict[str, list[Any]] = {path: [one.values[path] for one in points] for path in axes}
    return found | {name: [getattr(one, name) for one in points] for name in figures}


def warnings(at: list[Tried], points: list[ServingPoint]) -> list[str]:
    """Those of the points that fit, each once; what does not fit says so itself."""
    able = [one.found for one, shown in zip(at, points, strict=True) if one.found and shown.fits]
    return list(dict.fromkeys(text for found in able for text in warnings_of(found)))


def common(at: list[Tried], told: set[str]) -> list[Assumption]:
    """What was assumed alike at all points, without the swept fields."""
    lists = [one.found.assumptions for one in at if one.found]
    return [item for item in lists[0] if item.field not in told and all(item in other for other in lists[1:])]


def shown_plan(at: Tried) -> dict[str, Any]:
    assert at.found
    return at.found.complete_plan


def evidence(at: Tried) -> list[Evidence]:

    assert at.found
    return evidence_of(at.found.job)
