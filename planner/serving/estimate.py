"""estimate_inference: what a deployment comes to under its load."""

from __future__ import annotations

from knowledge.figures import percent
from planner.asked.serving import InferenceRequest
from planner.evidence import evidence_of
from planner.result import TimeLimit
from planner.serving.deciding import decides
from planner.serving.planned import (
    Served,
    latency_of,
    memory_of,
    money_of,
    plan_serving,
    slo_rows,
    throughput_of,
    time_limits,
    time_of,
)
from planner.serving.results import ServingEstimate
from planner.serving.warnings import kinds_of, warnings_of


def estimate_inference(request: InferenceRequest) -> ServingEstimate:
    """Estimate serving a model."""
    served = plan_serving(request.to_plan(), request.usd_per_device_hour)
    return estimate_of(served)


def estimate_of(served: Served) -> ServingEstimate:
    rows = slo_rows(served)
    deployments, entry = served.estimates.deployments, served.entry
    limits: list[TimeLimit] = time_limits(served)
    return ServingEstimate(
        plan=served.complete_plan,
        assumptions=served.assumptions,
        devices=int(served.pool.devices[served.index]),
        replicas=int(deployments.replicas[entry]),
        memory=memory_of(served),
        latency=latency_of(served),
        throughput=throughput_of(served),
        running=float(served.estimates.steady.running[entry] * deployments.lanes[entry]),
        waiting=served.queue[1],
        time=time_of(served),
        bottleneck=served.bottleneck,
        limits=limits,
        meets_slo=served.meets_slo,
        slo=rows,
        cost=money_of(served),
        decides=decides(served),
        layout_chosen=served.searched,
        why=why_chosen(served),
        warnings=warnings_of(served),
        warning_kinds=kinds_of(served),
        evidence=evidence_of(served.job),
    )


def why_chosen(served: Served) -> list[str]:
    """Sentences that say why the layout won, and what its step waits for."""
    first = next(iter(served.limits))
    limit = f"Most of a step goes to {first} ({percent(served.limits[first] / sum(served.limits.values()))})."
    if served.bottleneck != first:
        limit += f" More room for the {served.bottleneck} would let more requests share it."
    if not served.searched:
        return [f"Only one layout is valid or was named. {limit}"]
    fits = int(served.pool.fits.sum())
    words = f"{len(served.pool)} valid layouts were estimated; {fits} of them fit."
    if not fits:
        return [words, "None fits; the nearest is shown."]
    return [words, f"Of those that fit, this one serves the plan's load and goal best. {limit}"]
