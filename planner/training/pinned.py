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
from planner.training.host import holds_any
from planner.training.lightest import lightest_of
from planner.training.planned import Planned, layout_alone, plan_training


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
    planned = better(plan)
    if planned is not None and planned.fits_on_device:
        return planned
    known = layout_alone(plan)
    return plan_training(plan if known is None else plan.patch(chosen_alone(*known)))


def better(plan: Plan, worst: float = math.inf, *, offload: bool = False) -> Planned | None:
    """As `quick_estimate`, where it fits on the devices alone, or with `offload` with host memory that there is, on the
    usual framework or the one that is named, with a score below `worst`; None where it does not, or something would
    have to be given up for that. Raises PlanError."""
    job = job_of(plan)
    check_offered(job)
    if plan.goal.objective == "memory":
        # What lies on the devices alone takes more of them.
        light = lightest_of(job, offload=True) if offload else None
        return plan_training(plan) if light and light.fits and light.hosted and light.high_bytes < worst else None
    layout = fastest(job, worst, offload=offload)
    if layout is None:
        return None
    if offload and not holds_any(job, layout):
        # The next in order is not known without the others.
        return plan_training(plan)
    return plan_training(plan.patch(chosen_alone(job, layout)), offload=offload)
