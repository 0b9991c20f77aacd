"""How little memory a plan can take, without the times of anything: what limits ask of one value after another."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from estimator.errors import PlanError
from estimator.plan.layouts import OFFLOAD, RECOMPUTE
from estimator.plan.schema import Plan
from estimator.plan.training.job import Job
from estimator.search.layouts import Least, least_bytes, roomy
from estimator.training.memory import fits
from knowledge.jobs.training import job_of
from knowledge.offers import check_offered, choices
from planner.training.host import holds_any


@dataclass(frozen=True)
class Lightest:
    """The layout of a job that needs least memory of all: its bytes per device, their upper end, and whether it fits.

    `offloads` says whether it has in host memory what the plan does not put there."""

    job: Job
    least: Least
    high_bytes: float
    fits: bool

    @property
    def framework(self) -> str:
        return self.job.framework.name

    @property
    def bytes(self) -> float:
        return self.least.bytes

    @property
    def offloads(self) -> bool:
        return self.least.offloads

    @cached_property
    def hosted(self) -> bool:
        """Whether hosts may have the memory that it takes there to fit, as far as that is known: of most plans that
        they cannot hold this says so before any layout is timed."""
        return not self.offloads or holds_any(self.job, self.least.hopeful(self.job))


def lightest(plan: Plan, offload: bool = False) -> Lightest:
    """Of the plan on its devices alone, or with `offload` in host memory too, what `plan_training` has for the least
    memory, past errors and before concessions: of the first framework on which it fits, else of the lightest. Raises
    PlanError where no framework has a valid layout."""
    first = job_of(plan)
    best, refusal = None, None
    for choice in _usual(plan, first):
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


def any_hosted(plan: Plan) -> bool:
    """Whether it fits on a usual framework, or the one that is named, with host memory that nodes may have."""
    first = job_of(plan)
    for choice in _usual(plan, first):
        with suppress(PlanError):
            light = lightest_of(job_of(plan, choice) if choice else first, offload=True)
            if light.fits and light.hosted:
                return True
    return False


def may_fit(job: Job) -> bool:
    """Whether weights and states alone leave a chance to fit, on the devices or with the host memory that there is;
    sooner known than `lightest_of`. Raises PlanError where no layout is valid."""
    bases = roomy(job)
    usual = OFFLOAD.index(job.plan.layout.offload or job.framework.recipe.offload)
    if ((bases.offload == 0) | (bases.offload == usual)).any():
        return True
    fewest = np.full_like(bases.recompute, RECOMPUTE.index("full"))
    return len(bases) > 0 and holds_any(job, replace(bases, recompute=fewest))


def _usual(plan: Plan, first: Job) -> list[tuple[str, str] | None]:
    """The framework of `first`, and the other usual ones where the plan leaves it open."""
    others = choices(plan, first.machine.accelerator, first.machine.count)[1:]
    return [None, *(others if plan.training.framework == "auto" else ())]


def lightest_of(job: Job, offload: bool) -> Lightest:
    """The same of one framework."""
    check_offered(job)
    least = least_bytes(job, offload=offload)
    return Lightest(job, least, least.bytes * (1.0 + job.memory_above), bool(fits(job, np.array(least.bytes))))
