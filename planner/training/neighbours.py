"""Plans beside a planned run: one change, the rest as it is, estimated anew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from estimator.errors import PlanError
from estimator.plan.training.job import Job
from estimator.search.fastest import fastest
from estimator.search.layouts import SearchResult
from estimator.training.estimates import estimate
from knowledge.fitted.training import timed_framework
from knowledge.jobs.training import job_of
from knowledge.models.known import facts_of, models
from knowledge.offers import check_offered, movable_to
from planner.change import OPEN_LAYOUT
from planner.training.planned import Planned, plan_training, throughput_of
from planner.training.programs import has_program

# So many of the frameworks that have the run, the most used ones, are worth a move.
_MOST_FRAMEWORKS = 4
_OTHER_MODELS = 2
# Of the parameters, at the most: less of a difference changes little.
_SMALLER = 0.8


def neighbour(planned: Planned, patch: Mapping[str, Any]) -> Planned | None:
    """The complete plan with a patch, which opens the layout again where that is to be chosen anew; without host
    memory. None where that cannot be."""
    try:
        return plan_training(planned.plan.patch(dict(patch)), offload=False)
    except PlanError:
        return None


def faster_on(planned: Planned, framework: str, tokens_per_s: float) -> Planned | None:
    """The run moved to another framework, in the layout that is best there, without host memory, where that fits and
    is faster than `tokens_per_s`; None where it is not, or cannot be. What was given up so that it fits here is open
    there, as it is for whoever takes that framework."""
    moved: dict[str, Any] = {"workload.framework": framework} | OPEN_LAYOUT
    moved |= {item.field: None for item in planned.conceded}
    if planned.job.plan.goal.objective == "memory":
        other = neighbour(planned, moved)
        return other if other and other.fits and throughput_of(other).tokens_per_s > tokens_per_s else None
    try:
        job = job_of(planned.plan.patch(moved))
        check_offered(job)
    except PlanError:
        return None
    layout = fastest(job, job.tokens_per_step / tokens_per_s, offload=False)
    if layout is None:
        return None
    estimates = estimate(job, layout)
    return Planned(job, estimates, 0, SearchResult(estimates, np.zeros(1, dtype=np.int64), 1))


def other_frameworks(job: Job) -> list[str]:
    """Those that people would take instead: the most used ones that have the run, if they were timed themselves; those
    with launch files for it first."""
    used = movable_to(job)[:_MOST_FRAMEWORKS]
    timed = [name for name in used if timed_framework(name)[0] == name and name != job.framework.name]
    return sorted(timed, key=lambda name: not has_program(job.plan, name))


def family_sizes(model: str, *, larger: bool) -> list[str]:
    """The next models of the family that are clearly larger, or smaller, in the order of their sizes: one of each, its
    maker's own where there are any, not what others made of them for ends of their own."""
    facts = facts_of(model)
    if facts is None or not facts.parameters or not facts.family:
        return []
    rows = [row for row in models() if row.family == facts.family and row.parameters]
    own = [row for row in rows if _maker(row.id) == _maker(facts.id)]
    named = {row.parameters: row.id for row in sorted(own or rows, key=lambda row: len(row.id), reverse=True)}
    sizes = sorted((size, id) for size, id in named.items() if size)
    if larger:
        return [id for size, id in sizes if size * _SMALLER > facts.parameters][:_OTHER_MODELS]
    return [id for size, id in sizes if size < _SMALLER * facts.parameters][-_OTHER_MODELS:]


def _maker(id: str) -> str:
    return id.partition("/")[0]
