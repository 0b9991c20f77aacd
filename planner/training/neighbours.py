"""Plans beside a planned run: one change, the rest as it is, estimated anew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator.errors import PlanError
from estimator.plan.training.job import Job
from knowledge.fitted.training import timed_framework
from knowledge.models.catalogue import facts_of, models
from knowledge.offers import able_frameworks
from planner.training.planned import Planned, plan_training

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


def other_frameworks(job: Job) -> list[str]:
    """Those that people would take instead: the most used ones that have the run, if they were timed themselves."""
    used = able_frameworks(job.training, job.machine.accelerator)[:_MOST_FRAMEWORKS]
    return [name for name in used if timed_framework(name)[0] == name and name != job.framework.name]


def family_sizes(model: str, *, larger: bool) -> list[str]:
    """The next models of the family that are clearly larger, or smaller, in the order of their sizes."""
    facts = facts_of(model)
    if facts is None or not facts.parameters or not facts.family:
        return []
    sizes = sorted((row.parameters, row.id) for row in models() if row.family == facts.family and row.parameters)
    if larger:
        return [id for size, id in sizes if size * _SMALLER > facts.parameters][:_OTHER_MODELS]
    return [id for size, id in sizes if size < _SMALLER * facts.parameters][-_OTHER_MODELS:]
