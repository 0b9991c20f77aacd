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
from estimator.search.bounds import least_bytes as least_together
from estimator.search.layouts import Least, least_bytes, roomy
from estimator.search.space import same_cuts
from estimator.training.estimates import totals
from estimator.training.memory import fits
from knowledge.jobs.training import job_of
from knowledge.offers import check_offered, other_choices
from knowledge.own.files import made_once
from planner.training.host import holds_any, is_beyond


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

    @property
    def _in_host(self) -> bool:
        """Whether some of it lies in host memory beside what the plan puts there: states that are paged do, too."""
        return self.offloads or self.job.pages_states

    @cached_property
    def hosted(self) -> bool:
        """Whether hosts may have the memory that it takes there to fit, as far as that is known: of most plans that
        they cannot hold this says so before any layout is timed."""
        job, least = self.job, self.least
        return not self._in_host or holds_any(job, least.fitting) or holds_any(job, least.hopeful(job))

    @cached_property
    def holds(self) -> bool:
        """Whether it fits with host memory that there is, as far as that is known: what the search comes to for it,
        before any layout is timed."""
        job = self.job
        if not self.fits or not (self._in_host or job.plan.layout.offload):
            return self.fits
        if holds_any(job, self.least.fitting):
            return True
        hopeful = self.least.hopeful(job)
        return holds_any(job, hopeful) and holds_any(job, hopeful.take(np.flatnonzero(fits(job, totals(job, hopeful)))))

    def grows_into(self, job: Job) -> bool:
        """Whether `job` is this one with longer sequences or more of them in every micro-batch, and nothing else: it
        has the same layouts then, and none of them takes less memory."""
        ours, theirs = self.job.training, job.training
        if self.job.framework.name != job.framework.name or (ours.micro_batch is None) != (theirs.micro_batch is None):
            return False
        grown = {
            f"workload.{name}": getattr(theirs, name)
            for name in ("seq_len", "micro_batch", "global_batch")
            if getattr(theirs, name) != getattr(ours, name)
        }
        few, many = ours.micro_batch or 1, theirs.micro_batch or 1
        return (
            many >= few
            and job.seq_len >= self.job.seq_len
            and many * self.job.global_batch == few * job.global_batch
            and self.job.plan.patch(grown) == job.plan
            and same_cuts(self.job, job)
        )

    def grown(self, job: Job) -> Lightest | None:
        """The same of a job that this one grows into, looked for among the layouts that fit here; None where wider
        spaces may have others."""
        least = self.least
        if not self.fits:
            return replace(self, job=job) if least.last else None
        layouts = least.fitting
        if micro := job.training.micro_batch:
            layouts = replace(layouts, micro_batch=np.full(len(layouts), micro))
        total = totals(job, layouts)
        inside = np.flatnonzero(fits(job, total))
        if not len(inside):
            beyond = float(total.min())
            return (
                Lightest(job, replace(least, bytes=beyond), beyond * (1.0 + job.memory_above), False)
                if least.last
                else None
            )
        layouts = layouts.take(inside)
        if least.offloads and not holds_any(job, layouts):
            return None
        least = replace(least, bytes=float(total.min()), fitting=layouts)
        return Lightest(job, least, least.bytes * (1.0 + job.memory_above), True)


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
            if plan.training.framework != "auto":
                raise
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
            job = job_of(plan, choice) if choice else first
            if not is_beyond(job) and (light := lightest_of(job, offload=True)).fits and light.hosted:
                return True
    return False


def any_alone(plan: Plan) -> bool:
    """Whether it fits on the devices alone, on a usual framework or the one that is named."""
    first = job_of(plan)
    for choice in _usual(plan, first):
        with suppress(PlanError):
            job = job_of(plan, choice) if choice else first
            if not _is_too_large(job) and lightest_of(job, offload=False).fits:
                return True
    return False


def lacks_hosts(plan: Plan) -> bool:
    """Whether weights and states are too large for the devices of every usual framework, and what would fit with
    host memory needs more of it than there is."""
    first, too_large = job_of(plan), True
    for choice in _usual(plan, first):
        with suppress(PlanError):
            too_large &= _is_too_large(job_of(plan, choice) if choice else first)
    return too_large and not any_hosted(plan) and lightest(plan, offload=True).fits


def _is_too_large(job: Job) -> bool:
    return least_together(job) > job.usable_bytes * job.machine.count


def usual_names(plan: Plan) -> list[str]:
    """The usual frameworks for the plan, or the one that it names."""
    first = job_of(plan)
    return [choice[0] if choice else first.framework.name for choice in _usual(plan, first)]


def may_fit(job: Job) -> bool:
    """Whether weights and states alone leave a chance to fit, on the devices or with the host memory that there is;
    sooner known than `lightest_of`. Raises PlanError where no layout is valid."""
    if is_beyond(job):
        return False
    bases = roomy(job)
    usual = OFFLOAD.index(job.plan.layout.offload or job.framework.recipe.offload)
    if ((bases.offload == 0) | (bases.offload == usual)).any():
        return True
    fewest = np.full_like(bases.recompute, RECOMPUTE.index("full"))
    return len(bases) > 0 and holds_any(job, replace(bases, recompute=fewest))


def _usual(plan: Plan, first: Job) -> list[tuple[str, str] | None]:
    """The framework of `first`, and the others that the plan is tried on."""
    return [None, *other_choices(plan, first)]


def lightest_of(job: Job, offload: bool) -> Lightest:
    """The same of one framework."""

    def looked_for() -> Lightest:
        check_offered(job)
        least = least_bytes(job, offload=offload)
        return Lightest(job, least, least.bytes * (1.0 + job.memory_above), bool(fits(job, np.array(least.bytes))))

    # What is kept holds the job, so that none that is made later is taken for it.
    return made_once(("lightest", id(job), offload), looked_for)
