"""What was chosen for a plan, pinned in it: the same figures, sooner."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from estimator.plan.layouts import Layouts
from estimator.plan.schema import Plan
from estimator.plan.training.job import Job
from estimator.search.fastest import fastest
from knowledge.jobs.training import job_of
from knowledge.offers import check_offered
from planner.training.planned import Planned, best_layout, plan_training


def chosen(job: Job, layout: Mapping[str, Any], micro_batch: int) -> dict[str, Any]:
    """What a plan has to say for these very figures to come out again."""
    return {
        "layout": dict(layout),
        "workload.micro_batch": micro_batch,
        "workload.global_batch": job.global_batch,
        "workload.framework": job.framework.name,
    }


def chosen_alone(job: Job, layout: Layouts) -> dict[str, Any]:
    """The same of the first of `layout`."""
    return chosen(job, layout.row(0), int(layout.micro_batch[0]))


def quick_estimate(plan: Plan) -> Planned:
    """As `plan_training`, of its layout alone: what cannot be the best on the devices is not estimated."""
    planned = plan_training(plan.patch(chosen_alone(*best_layout(plan))), offload=False)
    return planned if planned.fits_on_device else plan_training(plan)


def faster_on_devices(plan: Plan, slowest_s: float = math.inf) -> Planned | None:
    """As `quick_estimate`, where it fits on the devices alone on the usual framework, or the one that is named, and its
    step takes less than `slowest_s`. None too where the goal is another than speed. Raises PlanError."""
    job = job_of(plan)
    check_offered(job)
    layout = None if plan.goal.objective == "memory" else fastest(job, slowest_s, offload=False)
    return None if layout is None else plan_training(plan.patch(chosen_alone(job, layout)), offload=False)
