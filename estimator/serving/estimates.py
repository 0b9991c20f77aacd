"""What serving a model comes to: memory, latency and throughput of each deployment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from estimator.plan.layouts import Floats
from estimator.plan.serving.deployments import Deployments
from estimator.plan.serving.job import ServingJob
from estimator.serving.arrivals import Loads, loads
from estimator.serving.cycle import Steady
from estimator.serving.memory import ServingMemory, serving_memory, taken_bytes
from estimator.serving.steady import steady


@dataclass(frozen=True)
class ServingEstimates:
    """Of n deployments: arrays of shape (n,). Rates are over all replicas."""

    deployments: Deployments
    memory: ServingMemory
    steady: Steady
    output_tokens_per_s: Floats
    total_tokens_per_s: Floats
    requests_per_s: Floats


def estimate(job: ServingJob, these: Deployments, known: Loads | None = None) -> ServingEstimates:
    """Memory and steady state; a deployment that does not fit has rates all the same, of one sequence a lane. `known`
    are their loads, where these are at hand."""
    memory = serving_memory(job, these)
    state = steady(job, these, most_running(job, these, memory), known)
    requests = state.requests_per_s
    return ServingEstimates(
        deployments=these,
        memory=memory.running(job, these, state.running),
        steady=state,
        output_tokens_per_s=requests * these.output_len,
        total_tokens_per_s=requests * (these.output_len + these.input_len),
        requests_per_s=requests,
    )


def joined(parts: Sequence[ServingEstimates]) -> ServingEstimates:
    """The deployments of all parts, which are of one job."""
    return parts[0] if len(parts) == 1 else _joined(parts)


def _joined(parts: Sequence[Any]) -> Any:
    first = parts[0]
    if is_dataclass(first):
        names = [part.name for part in fields(first)]
        return replace(first, **{name: _joined([getattr(part, name) for part in parts]) for name in names})  # type: ignore[type-var]
    if isinstance(first, dict):
        return {name: _joined([part[name] for part in parts]) for name in first}
    return np.concatenate(parts) if np.ndim(first) else first


def loads_of(job: ServingJob, these: Deployments) -> Loads:
    """What `estimate` can do with for these deployments at any rate of requests."""
    return loads(job, these, most_running(job, these, serving_memory(job, these)))


def most_running(job: ServingJob, these: Deployments, memory: ServingMemory) -> Floats:
    """Sequences that a lane runs at once: as many as its cache has room for, and as the engine allows.

    An engine that never evicts keeps room for the whole output from the start; others for what there is so far.
    """
    length = these.input_len + these.output_len
    if not job.engine.reserves_output:
        length = np.minimum(length, job.mean_context(these.input_len, these.output_len))
    each = np.maximum(taken_bytes(job, memory.per_token_bytes * length, memory.state_bytes), 1e-9)
    most = these.max_batch
    if job.in_step:
        most = np.minimum(most, np.ceil(these.concurrency / these.lanes))
    if job.engine.batches == "single":
        most = np.ones(len(these))
    return np.maximum(1.0, np.minimum(np.floor(memory.room / each), most))
