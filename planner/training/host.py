"""What the chosen layout needs beside the devices' memory for training: host memory, and room to save a checkpoint."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from estimator.account import Accounts
from estimator.plan.layouts import OFFLOAD, Ints, Layouts
from estimator.plan.training.job import Job
from estimator.search.bounds import beyond_all
from estimator.training.checkpoints import checkpoint_size, device_bytes_at_save, save_accounts
from estimator.training.estimates import Estimates
from estimator.training.host import PHASES, host_memory
from estimator.training.memory import Memory
from estimator.training.node import whole_model
from estimator.units import GIB
from knowledge.figures import gib
from knowledge.machines.host import HostCapacity, host_capacity, host_facts
from planner.results import OWN_HOST, HostMemoryEstimate, SaveEstimate

_WHEN = {"loading": "loading the weights", "steady": "training", "saving": "saving a checkpoint"}
# What makes the largest part of a node's host memory smaller, by its name (estimator.training.host,
# HostMemory.components).
_WAYS_OUT = {
    "processes": "start fewer processes per node",
    "workers": "start fewer data-loading workers",
    "weights": "spread the run over more nodes",
    "optimizer": "offload less, or spread the states over more nodes",
    "gradients": "offload less, or spread the states over more nodes",
    "pinned_rounding": "offload less, or spread the states over more nodes",
    "activations": "recompute activations instead of offloading them",
    "gathered_weights": "save sharded checkpoints instead of gathering the model on one node",
    "gathered_optimizer": "save sharded checkpoints instead of gathering the optimizer states on one node",
    "staged_copy": "spread the run over more nodes, so that each copies less",
    "serialisation": "spread the run over more nodes, so that each writes less",
}
# Of weights that a node loads whole, however many nodes there are.
_WHOLE = "take a framework whose ranks load their own shards"


@dataclass(frozen=True)
class HostNeeds:
    """Host memory and saving of one layout, what to beware of in either, and what the figures of saving are made of."""

    host: HostMemoryEstimate
    save: SaveEstimate
    warnings: tuple[str, ...]
    saving: Accounts


def _capacity(job: Job) -> HostCapacity | None:
    """Host memory of a node: the person's own figure, else what such nodes usually have."""
    own = job.plan.overrides.host_gib
    if own is not None:
        return HostCapacity(own * GIB, own * GIB, OWN_HOST)
    return host_capacity(job.machine.accelerator.id, job.machine.per_node)


def hosted_first(job: Job, estimates: Estimates, order: Ints) -> Ints:
    """The same order, but what takes more host memory than there is comes behind what else fits; as it was where
    nothing is offloaded."""
    fitting = order[estimates.fits[order]]
    usual = OFFLOAD.index(job.framework.recipe.offload)
    offloaded = estimates.layouts.offload[fitting]
    if not len(fitting) or int(offloaded[0]) in (0, usual):
        return order
    capacity = _capacity(job)
    if capacity is None:
        return order
    needed = host_memory(job, estimates.layouts.take(fitting), host_facts(job.framework.name)).peak
    lacking = needed > capacity.bytes
    return np.concatenate([fitting[~lacking], fitting[lacking], order[len(fitting) :]])


def holds_any(job: Job, layouts: Layouts) -> bool:
    """Whether a node has the host memory that one of the layouts needs, as far as that is known."""
    capacity = _capacity(job)
    if capacity is None:
        return True
    return bool((host_memory(job, layouts, host_facts(job.framework.name)).peak <= capacity.bytes).any())


def is_beyond(job: Job) -> bool:
    """Whether weights and states alone are more than devices and hosts hold together: known before any layout is."""
    capacity = _capacity(job)
    return beyond_all(job, capacity.bytes if capacity else math.inf)


def host_needs(job: Job, layouts: Layouts, memory: Memory, index: int, trains: bool) -> HostNeeds:
    """Of candidate `index` of `layouts`, whose device memory is `memory`; `trains` says whether that fits."""
    layout = layouts.take(np.array([index]))
    facts = host_facts(job.framework.name)
    whole = whole_model(job)
    needed = host_memory(job, layout, facts, whole=whole)
    phases = {phase: float(needed.total(phase)[0]) for phase in PHASES}
    worst = needed.peak_phase[0]
    capacity = _capacity(job)
    host = HostMemoryEstimate(
        per_node_bytes=phases[worst],
        phase=worst,
        capacity_bytes=capacity.bytes if capacity else None,
        capacity_low_bytes=capacity.low_bytes if capacity else None,
        capacity_source=capacity.source if capacity else None,
        fits=phases[worst] <= capacity.bytes if capacity else None,
        components={name: float(size[0]) for name, size in needed.components[worst].items()},
        phases=phases,
        page_cache_bytes=float(needed.page_cache[0]),
    )
    memory, gathered = replace(memory, resident=memory.resident[[index]]), float(needed.device_at_save[0])
    at_save = float(device_bytes_at_save(memory, needed.device_at_save)[0])
    size = checkpoint_size(job, facts, int(layout.zero_stage[0]), whole)
    save = SaveEstimate(
        device_bytes=at_save,
        fits=at_save * (1.0 + job.memory_above) <= job.usable_bytes,
        checkpoint_bytes=size.weights,
        resumable_bytes=size.resumable,
    )
    loads = facts.loads_sharded if int(layout.zero_stage[0]) == 3 else facts.loads
    warnings = [*_host_warnings(host, loads), *(_save_warnings(job, save, gathered) if trains else ())]
    return HostNeeds(host, save, tuple(warnings), save_accounts(size, float(memory.resident[0]), gathered))


def _host_warnings(host: HostMemoryEstimate, loads: str) -> list[str]:
    """Of the phases that need more than a node has, each with its bytes, and what makes the worst of them smaller.
    `loads` is who holds whole weights while they are loaded (estimator.training.node, HostFacts)."""
    have, least = host.capacity_bytes, host.capacity_low_bytes
    if have is None or least is None or host.per_node_bytes <= least:
        return []
    over = [phase for phase in PHASES if host.phases[phase] > (least if host.fits else have)]
    takes = " and ".join(f"{_WHEN[phase]} takes {gib(host.phases[phase])}" for phase in over)
    if host.fits:
        text = f"host memory can run out: {takes}, nodes of this kind have {gib(least)} to {gib(have)}"
    else:
        whose = "of a node" if host.is_named else "that a node of this kind usually has"
        text = f"host memory runs out: {takes} of the {gib(have)} {whose}"
    largest = max(host.components, key=lambda name: host.components[name])
    way = _WAYS_OUT[largest]
    if host.phase == "loading" and largest == "weights" and loads != "own_shard":
        way = _WHOLE
    return [f"{text}; {way}, or take nodes with more"]


def _save_warnings(job: Job, save: SaveEstimate, gathered_bytes: float) -> list[str]:
    """For a run that trains: whether it ends when its first checkpoint is saved."""
    if save.fits:
        return []
    high = save.device_bytes * (1.0 + job.memory_above)
    return [
        f"training fits, but saving a checkpoint may not: it gathers {gib(gathered_bytes)} on a device beside what "
        f"stays there, up to {gib(high)} of {gib(job.usable_bytes)} usable; save sharded checkpoints, or shard the "
        "states over more devices"
    ]
