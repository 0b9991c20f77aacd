"""How little memory a plan can take, without the times of anything: what limits ask of one value after another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from estimator.plan.training.job import Job
from estimator.search.layouts import least_bytes
from estimator.training.memory import fits
from knowledge.jobs.training import job_of
from knowledge.offers import check_offered, choices


@dataclass(frozen=True)
class Lightest:
    """The layout of a job that needs least memory of all: its bytes per device, their upper end, and whether it fits.

    `offloads` says whether it has in host memory what the plan does not put there."""

    framework: str
    bytes: float
    high_bytes: float
    fits: bool
    offloads: bool


def lightest(plan: Plan, offload: bool = False) -> Lightest:
    """Of the plan on its devices alone, or with `offload` in host memory too, what `plan_training` has for the least
    memory, past errors and before concessions: of the first framework on which it fits, else of the lightest. Raises
    PlanError where no framework has a valid layout."""
    first = job_of(plan)
    best, refusal = None, None
    others = choices(plan, first.machine.accelerator, first.machine.count)[1:]
    for choice in (None, *(others if plan.training.framework == "auto" else ())):
        try:
            light = lightest_of(job_of(plan, choice) if choice else first, offload)
        except PlanError as error:
            refusal = refusal or error
            continue
        if light.fits:
            return light
        if best is None or light.high_bytes < best.high_bytes:
            best = light
    if best is None:
        assert refusal
        raise refusal
    return best


def lightest_of(job: Job, offload: bool) -> Lightest:
    """The same of one framework."""
    check_offered(job)
    size, offloads = least_bytes(job, offload=offload)
    high = size * (1.0 + job.memory_above)
    return Lightest(job.framework.name, size, high, bool(fits(job, np.array(size))), offloads)
