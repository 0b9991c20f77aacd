"""What was chosen for a cluster, as a Plan patch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator.plan.training.job import Job


def chosen(job: Job, layout: Mapping[str, Any], micro_batch: int) -> dict[str, Any]:
    """What a plan has to say for these very figures to come out again."""
    return {
        "layout": dict(layout),
        "workload.micro_batch": micro_batch,
        "workload.global_batch": job.global_batch,
        "workload.framework": job.framework.name,
    }
