"""estimate_inference: what a deployment comes to under its load."""

from __future__ import annotations

from planner.evidence import serving_evidence_of
from planner.result import TimeLimit
from planner.serving.planned import (
    Served,
    complete,
    latency_of,
    memory_of,
    money_of,
    served,
    slo_rows,
    throughput_of,
    time_limits,
    time_of,
)
from planner.serving.request import InferenceRequest
from planner.serving.results import ServingEstimate
from planner.serving.warnings import warnings_of


def estimate_inference(request: InferenceRequest) -> ServingEstimate:
    """Estimate serving a model."""
    found = served(request.to_plan(), request.slo_statistic, request.usd_per_device_hour)
    return estimate_of(found)


def estimate_of(found: Served) -> ServingEstimate:
    rows = slo_rows(found)
    these, entry = found.estimates.deployments, found.entry
    limits: list[TimeLimit] = time_limits(found)
    return ServingEstimate(
        plan=complete(found),
        assumptions=found.assumptions,
        devices=int(found.pool.devices[found.index]),
        replicas=int(these.replicas[entry]),
        memory=memory_of(found),
        latency=latency_of(found),
        throughput=throughput_of(found),
        running=float(found.estimates.steady.running[entry] * these.lanes[entry]),
        waiting=found.queue[1],
        time=time_of(found),
        bottleneck=found.bottleneck,
        limits=limits,
        meets_slo=found.meets_slo,
        slo=rows,
        cost=money_of(found),
        layout_chosen=found.searched,
        why=why_chosen(found),
        warnings=warnings_of(found),
        evidence=serving_evidence_of(found.job),
    )


def why_chosen(found: Served) -> list[str]:
    """Sentences that say why the layout won, and what its step waits for."""
    first = next(iter(found.limits))
    limit = f"Most of a step goes to {first} ({100 * found.limits[first] / sum(found.limits.values()):.0f} %)."
    if found.bottleneck != first:
        limit += f" More room for the {found.bottleneck} would let more requests share it."
    if not found.searched:
        return [f"Only one layout is valid or was named. {limit}"]
    fits = int(found.pool.fits.sum())
    words = f"{len(found.pool)} valid layouts were estimated; {fits} of them fit."
    if not fits:
        return [words, "None fits, so one that is nearest to it is shown."]
    return [words, f"Of those that fit, this one serves the plan's load and goal best. {limit}"]
