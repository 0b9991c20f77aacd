"""Training tools: estimate a run, check that it fits, find the best layout."""

from __future__ import annotations

import math
import time
from dataclasses import asdict
from typing import Any

from pydantic import Field

from estimator.errors import PlanError
from estimator.plan.schema import Inference, Plan
from estimator.search.ranking import alternatives, neighbours, pareto
from estimator.search.space import candidates
from estimator.training.bottleneck import Diagnosis
from estimator.training.memory import fitting
from knowledge.jobs.training import job_of
from planner.evidence import evidence_of
from planner.fit.remedies import relaxations, remedies
from planner.fit.serving import fit_of
from planner.layouts.improvements import improvements
from planner.requests import EitherRequest, PlanRequest
from planner.results import BestParallelism, FitCheck, Rejected, Roofline, TimeLimit, TrainingEstimate
from planner.training.planned import (
    Planned,
    choice,
    complete,
    memory_of,
    planned,
    run_of,
    throughput_of,
    time_of,
    warnings_of,
    why_chosen,
)


class EstimateRequest(PlanRequest):
    improvements: bool = Field(
        False, description="Whether to look for changes that would make the run faster; takes longer."
    )


def estimate_training(request: EstimateRequest) -> TrainingEstimate:
    """Estimate a training run."""
    found = planned(request.to_plan())
    limits = found.diagnosis
    return TrainingEstimate(
        plan=complete(found),
        assumptions=found.assumptions,
        memory=memory_of(found),
        time=time_of(found),
        throughput=throughput_of(found),
        run=run_of(found),
        bottleneck=limits.bottleneck,
        limits=time_limits(limits),
        roofline=Roofline(**asdict(limits.roofline)),
        improvements=improvements(found) if request.improvements else None,
        layout_chosen=found.searched,
        why=why_chosen(found),
        warnings=warnings_of(found),
        evidence=evidence_of(found),
    )


def time_limits(limits: Diagnosis) -> list[TimeLimit]:
    """What takes any time at all, the most first."""
    step_s = sum(limits.limits.values())
    return [
        TimeLimit(limit=name, seconds=seconds, share=seconds / step_s)
        for name, seconds in limits.limits.items()
        if seconds > 0
    ]


def check_fit(request: EitherRequest) -> FitCheck:
    """Check that a plan fits."""
    asked = request.to_plan()
    if isinstance(asked.workload, Inference):
        return fit_of(asked)
    found = planned(asked)
    memory = memory_of(found)
    return FitCheck(
        plan=complete(found),
        assumptions=found.assumptions,
        fits=memory.fits,
        headroom_bytes=memory.capacity_bytes - memory.high_bytes,
        memory=memory,
        largest_micro_batch=_largest_micro_batch(found),
        largest_seq_len=_largest_seq_len(found),
        remedies=remedies(found, asked),
        relaxations=relaxations(found),
        warnings=warnings_of(found),
        evidence=evidence_of(found),
    )


class SearchRequest(PlanRequest):
    top: int = Field(5, ge=1, le=100, description="How many alternatives to return.")


def best_parallelism(request: SearchRequest) -> BestParallelism:
    """Find the best layout."""
    started = time.perf_counter()
    chosen = planned(request.to_plan(), every_framework=True)
    found, best = chosen.found, int(chosen.found.order[0])
    estimates, layouts = found.estimates, found.estimates.layouts
    return BestParallelism(
        plan=complete(chosen),
        assumptions=chosen.assumptions,
        best=choice(chosen.estimates, chosen.index),
        why=why_chosen(chosen),
        alternatives=[choice(estimates, index) for index in alternatives(estimates, found.order, request.top)],
        pareto=[choice(estimates, int(index)) for index in pareto(estimates)[: 4 * request.top]],
        rejected=[
            Rejected(layout=layouts.row(index), rule=rule, summary=layouts.summary(index))
            for index, rule in neighbours(estimates, best, found.order)
        ],
        candidates=found.valid,
        estimated=len(layouts),
        feasible=int(estimates.fits.sum()),
        seconds=time.perf_counter() - started,
        warnings=warnings_of(chosen),
        evidence=evidence_of(chosen),
    )


def _fits(plan: Plan, changes: dict[str, Any]) -> bool:
    """Whether the changed plan, whose framework is given, has a valid layout that fits."""
    try:
        job = job_of(plan.patch(changes))
        return bool(len(fitting(job, candidates(job))[0]))
    except PlanError:
        return False


def _largest_micro_batch(found: Planned) -> int | None:
    """The most sequences per micro-batch that fit in the same layout; the global batch grows with them.

    Micro-batches per step stay as they are, so that as many are in flight in a pipeline.
    """
    base, layouts, index = found.plan, found.estimates.layouts, found.index
    rounds = int(layouts.dp[index] * layouts.grad_accum[index])

    def fits(size: int) -> bool:
        return _fits(base, {"workload.micro_batch": size, "workload.global_batch": size * rounds})

    return _largest(fits, 1, 4096)


def _largest_seq_len(found: Planned) -> int | None:
    """The longest sequence, in steps of 1,024 tokens (below that, powers of two), that fits in the same layout."""
    base = found.plan
    unit = math.lcm(1024, 2 * int(found.estimates.layouts.cp[found.index]))

    def fits(size: int) -> bool:
        return _fits(base, {"workload.seq_len": size * unit})

    largest = _largest(fits, 1, 16384)
    if largest is not None:
        return largest * unit
    return next((size for size in (512, 256, 128, 64) if _fits(base, {"workload.seq_len": size})), None)


def _largest(fits, low: int, limit: int) -> int | None:
    """The largest number in [low, limit] for which the monotone `fits` holds, by doubling and bisection."""
    if not fits(low):
        return None
    high = low
    while high < limit and fits(min(limit, high * 2)):
        high = min(limit, high * 2)
    if high == limit:
        return limit
    good, bad = high, min(limit, high * 2)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    return good
