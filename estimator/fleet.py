"""Sizes of a cluster, what of them can be ruled out by a bound, and the order of offers by money and time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from estimator.job import Job
from estimator.layouts import Floats
from estimator.memory import device_memory, taken
from estimator.ranking import objective_order
from estimator.schedule import step_time
from estimator.space import candidates
from estimator.training import Estimates

# Bytes per quantised parameter that are in any format, without its scales.
_LEAST_QUANTISED = 0.5
# FLOP per parameter and token: two forward, two for gradients of inputs, two for those of weights.
_FORWARD, _WITH_INPUTS, _WITH_WEIGHTS = 2.0, 4.0, 6.0


@dataclass(frozen=True)
class Quick:
    """The best usual layout of a job that fits: its sizes, seconds of a step, and how many layouts there were."""

    layout: dict[str, Any]
    micro_batch: int
    step_s: float
    tried: int


def sizes(per_node: int, least: int, most: int) -> list[int]:
    """Numbers of devices from `least` to `most`: powers of two within a node, then whole nodes, doubling; and the most
    whole nodes (or devices of one) that there may be."""
    found = {2**power for power in range(per_node.bit_length()) if 2**power <= per_node}
    nodes = 1
    while nodes * per_node <= most:
        found.add(nodes * per_node)
        nodes *= 2
    found.add(most // per_node * per_node if most >= per_node else most)
    return sorted(size for size in found if least <= size <= most)


def least_bytes(job: Job) -> float:
    """Bytes of weights and optimizer states that all devices together hold at the least, in whatever layout.

    A lower bound: each parameter is held once. 0 where states may be in host memory.
    """
    if job.plan.layout.offload not in (None, "none") or job.overridden_bytes:
        return 0.0
    parameters, optimizer = job.architecture.parameters, job.optimizer
    if job.quantised:
        return parameters * _LEAST_QUANTISED
    size = job.weight_bytes
    if job.framework.low_precision_weights:
        size = min(size, 1.0)
    plain = optimizer.matrix_elements is None and not optimizer.rank
    if job.training.method == "full" and plain:
        # States of 8 bits are given in bytes, others by the element of what is updated, 16 bits at the least.
        size += optimizer.state_elements * min(2.0, job.updated_bytes) + optimizer.state_bytes
    return parameters * size


def least_step_s(job: Job) -> float:
    """Seconds of a step if every device ran at its peak on the matrices of the model alone: a lower bound."""
    method = job.training.method
    each = _WITH_INPUTS if job.uses_adapters else _FORWARD if method == "freeze" else _WITH_WEIGHTS
    architecture = job.architecture
    inside = architecture.active_parameters - architecture.embedding_parameters - architecture.head_parameters
    flop = each * max(0.0, inside) * job.tokens_per_step
    return flop / (job.machine.count * job.peak_flops)


def quickest(job: Job) -> Quick | None:
    """The best of the usual layouts that fit, None where none does: the time only of those that fit is estimated.

    Raises PlanError where no layout is valid.
    """
    if least_bytes(job) > job.usable_bytes * job.machine.count:
        return None
    layouts = candidates(job)
    memory, stages = device_memory(job, layouts)
    fits = np.flatnonzero(memory.total * (1.0 + job.memory_above) <= job.usable_bytes)
    if not len(fits):
        return None
    fitting = layouts.take(fits)
    estimates = Estimates(job, fitting, taken(memory, fits), stages[fits], step_time(job, fitting))
    best = int(objective_order(estimates)[0])
    return Quick(
        layout=fitting.row(best),
        micro_batch=int(fitting.micro_batch[best]),
        step_s=float(estimates.step.seconds[best]),
        tried=len(layouts),
    )


def front(money: Floats, time: Floats) -> np.ndarray:
    """Mask of the entries that no other beats in money or time without being worse in the other; NaN never is one."""
    known = np.isfinite(money) & np.isfinite(time)
    found = np.zeros(len(money), dtype=bool)
    index = np.flatnonzero(known)
    order = index[np.lexsort((time[index], money[index]))]
    best = np.inf
    for place in order:
        if time[place] < best:
            found[place], best = True, time[place]
    return found


def balance(money: Floats, time: Floats) -> Floats:
    """The geometric mean of money and time, each over the least of its kind; 1 is the best in both, NaN not known."""
    known = np.isfinite(money) & np.isfinite(time)
    if not known.any():
        return np.full(len(money), np.nan)
    return np.sqrt(money / money[known].min() * (time / time[known].min()))
