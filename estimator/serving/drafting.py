"""What drafting costs: a pass of one more layer and its head for every drafted token, one after the other.

All of the vocabulary is scored, which in small models costs more than the layer (EAGLE-3 may score a part of it).
"""

from __future__ import annotations

import numpy as np

from estimator.plan.layouts import Floats
from estimator.plan.serving.deployments import Deployments
from estimator.plan.serving.job import ServingJob
from estimator.serving.passes import pass_time


def drafting_seconds(job: ServingJob, these: Deployments, running: Floats, context: Floats) -> Floats:
    """Seconds in which `running` sequences of each lane draft all tokens of a step. The host prepares that once, when
    it knows which drafts of the last step were kept, unless it works ahead of the devices."""
    if job.drafter is None:
        return 0.0 * running
    draft = pass_time(job.drafter, these, running, 0.0 * running, context)
    prepared = np.where(job.hides_host(these.pp), 0.0, job.factors.host * job.engine.host_step_s)
    return (job.checked_tokens - 1.0) * (draft.total - draft.host) + prepared
