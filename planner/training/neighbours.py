"""Plans beside a planned run: one change, the rest as it is, estimated anew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator.errors import PlanError
from estimator.plan.training.job import Job
from knowledge.fitted.training import timed_framework
from knowledge.offers import able_frameworks
from planner.training.planned import Planned, plan_training

# So many of the frameworks that have the run, the most used ones, are worth a move.
_MOST_FRAMEWORKS = 4


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
