"""What a run on a cluster takes and costs, by the seconds of its steps."""

from __future__ import annotations

import math

from estimator.plan.training.job import Job
from planner.clusters.candidates import Hourly
from planner.training.run import clock_hours


def unbroken_of(job: Job, step_s: float) -> float:
    """Hours of the run without failures and its last step; without data seconds per token."""
    return step_s / job.tokens_per_step if job.steps is None else (job.steps - 1) * step_s / 3600.0


def took_of(job: Job, step_s: float) -> float:
    """Hours of the run; without data seconds per token."""
    return step_s / job.tokens_per_step if job.steps is None else clock_hours(job, job.steps * step_s / 3600.0)


def money_of(job: Job, took: float, best: Hourly | None) -> float:
    """USD of the run; without data USD per million tokens. inf: no price is known."""
    if best is None:
        return math.inf
    return best.usd / 3600.0 * took * 1e6 if job.steps is None else best.money(took)
