"""What continuous batching comes to: running sequences, time per token and to the first one, requests per second.

Requests come from clients that wait for their answers (estimator/serving/clients.py) or at a rate
(estimator/serving/arrivals.py), or a batch of them starts and ends together. Arrays have shape (n,), times are seconds.
"""

from __future__ import annotations

import numpy as np

from estimator.plan.layouts import Floats
from estimator.plan.serving.deployments import Deployments
from estimator.plan.serving.job import ServingJob
from estimator.serving.arrivals import Loads, loads, open_loop
from estimator.serving.clients import closed
from estimator.serving.cycle import (
    Steady,
    cycle_of,
    generated_tokens,
)


def steady(job: ServingJob, these: Deployments, most: Floats, known: Loads | None = None) -> Steady:
    """The steady state of each deployment; a lane runs `most` sequences at once. `known` are the loads of these very
    deployments, where they are at hand."""
    if job.in_step:
        return _in_step(job, these, most)
    if not (these.request_rate == 0.0).any():
        same = known is not None and np.array_equal(known.most, most)
        return open_loop(job, these, known if known and same else loads(job, these, most))
    return closed(job, these, most)


def _in_step(job: ServingJob, these: Deployments, most: Floats) -> Steady:
    """A batch that is read at once and then generates in step; the next one follows when all have ended."""
    # None comes while they generate.
    cycle = cycle_of(job, these, most[None, :], most[None, :], 0.0)
    tpot = cycle.quiet[0]
    request = job.request_s(np.minimum(1.0, most - 1.0))
    ttft = most * cycle.burst[0] + request
    decode = generated_tokens(these) * tpot
    lanes = np.clip(np.floor(these.concurrency), 1.0, these.lanes)
    return Steady(
        running=most,
        tpot_s=tpot,
        ttft_s=ttft,
        ttft_p99_s=ttft,
        tpot_p99_s=tpot,
        e2e_s=ttft + decode,
        requests_per_s=most / (ttft + decode) * lanes,
        reading_share=np.zeros(len(these)),
        saturated=np.zeros(len(these), dtype=bool),
        generating=cycle.generating.part(0),
        reading=cycle.reading.part(0),
        sent=most,
        ttft={"reading": most * cycle.burst[0], "request": request},
        tpot={"step": tpot},
        cycle={"first_token": ttft, "generating": decode},
    )
