"""check_fit for training: whether a layout fits with margin, how far it could grow, and what to change."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from estimator.search.space import candidates
from estimator.training.memory import fitting
from knowledge.jobs.training import job_of
from planner.evidence import evidence_of
from planner.fit.remedies import relaxations, remedies
from planner.results import FitCheck
from planner.training.launchable import unlaunched
from planner.training.memory import memory_of
from planner.training.planned import Planned, nearest_fit, plan_to_fit, warnings_of


def fit_of(asked: Plan) -> FitCheck:
    planned = plan_to_fit(asked)
    if not planned.fits:
        planned = nearest_fit(asked, planned)
    memory, hosted = memory_of(planned), planned.has_host_memory
    ways = remedies(planned, asked)
    shorter = [
        remedy.patch["workload.seq_len"] for remedy in ways if remedy.fits and "workload.seq_len" in remedy.patch
    ]
    return FitCheck(
        plan=planned.complete_plan,
        assumptions=planned.assumptions,
        fits=memory.fits and hosted,
        tight=memory.tight,
        headroom_bytes=memory.capacity_bytes - memory.high_bytes,
        memory=memory,
        largest_micro_batch=_largest_micro_batch(planned) if hosted else None,
        largest_seq_len=max(shorter, default=None) or (_largest_seq_len(planned) if hosted else None),
        remedies=ways,
        relaxations=relaxations(planned),
        warnings=[*unlaunched(asked, planned), *warnings_of(planned)],
        evidence=evidence_of(planned.job),
    )


def _fits(plan: Plan, changes: dict[str, Any]) -> bool:
    """Whether the changed plan, whose framework is given, has a valid layout that fits."""
    try:
        job = job_of(plan.patch(changes))
        return bool(len(fitting(job, candidates(job))[0]))
    except PlanError:
        return False


def _largest_micro_batch(planned: Planned) -> int | None:
    """The most sequences per micro-batch that fit in the same layout; the global batch grows with them.

    Micro-batches per step stay as they are, so that as many are in flight in a pipeline.
    """
    base, layouts, index = planned.plan, planned.estimates.layouts, planned.index
    rounds = int(layouts.dp[index] * layouts.grad_accum[index])

    def fits(size: int) -> bool:
        return _fits(base, {"workload.micro_batch": size, "workload.global_batch": size * rounds})

    return _largest(fits, 1, 4096)


def _largest_seq_len(planned: Planned) -> int | None:
    """The longest sequence, in steps of 1,024 tokens (below that, powers of two), that fits in the same layout."""
    base = planned.plan
    unit = math.lcm(1024, 2 * int(planned.estimates.layouts.cp[planned.index]))

    def fits(size: int) -> bool:
        return _fits(base, {"workload.seq_len": size * unit})

    largest = _largest(fits, 1, 16384)
    if largest is not None:
        return largest * unit
    return next((size for size in (512, 256, 128, 64) if _fits(base, {"workload.seq_len": size})), None)


def _largest(fits: Callable[[int], bool], low: int, limit: int) -> int | None:
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
