"""How a framework uses a node's host memory, what one node of a pipeline stage holds, and what page-locking rounds up.

Arrays have shape (n,), one entry a candidate; sizes are bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from estimator.plan.layouts import Ints, Layouts, unsplit
from estimator.plan.training.job import Job
from estimator.plan.training.shards import Held, held_parameters
from estimator.plan.training.stages import Floats, StageShape, shard, stage_shape
from estimator.training.states import States, model_states

# Bytes per parameter of the checkpoints that are loaded, and of 16-bit copies.
HALF_BYTES = 2.0
Whole = tuple[States, Held]


@dataclass(frozen=True)
class HostFacts:
    """How one framework uses host memory.

    `loads` says who holds a whole copy of the weights while they are loaded ('own_shard': nobody; 'by_tensor': the
    first rank hands on one tensor after the other), `loads_sharded` the same at ZeRO-3. `maps_files`: a copy in the
    file's own dtype stays in the page cache. `casts`: weights that train in another dtype are cast on the host, whole.
    `fuses_experts`: routed experts are copied into one tensor. `one_process` per node instead of one per device;
    `workers` are the data-loading processes of each.

    Offloaded optimizer states take `offload_extra_bytes` per trained parameter beyond what they take on a device.
    `pinned_bytes` are the page-locked buffers among all that, per trained parameter; `pinned_flat` is true where each
    is one buffer, not one per tensor. `offload_weight_copies` are 16-bit copies of trained weights beside the offloaded
    ones.

    `save` is how a checkpoint reaches the disk, `save_sharded` the same at ZeRO-3: 'copied' (the first rank copies what
    it holds), 'gathered' (the first rank collects everything), 'staged' (every rank copies what it holds),
    'deduplicated' (every rank copies its part of what is written), 'streamed' (tensor by tensor). `can_stage` is true
    where asynchronous saving, which stages, is an option. Gathered weights take `gathered_bytes` per parameter (None:
    as held) and pass over the device one `gathered_unit` at a time: a unit of FSDP, the tensors of a module, a tensor.
    With `gathers_optimizer` the states follow, held beside the weights where `gathers_together`. `gathers_frozen`: an
    adapter run gathers the frozen weights too. `disk_weight_copies` is how often a resumable checkpoint has the
    weights; `merges_adapters` is true where the merged model is written besides the adapters.

    `process_bytes`, `worker_bytes` and `file_bytes` (the most of one weights file) are the same for all frameworks.
    """

    name: str
    loads: Literal["every_rank", "first_rank", "by_tensor", "own_shard"]
    loads_sharded: Literal["every_rank", "first_rank", "by_tensor", "own_shard"]
    maps_files: bool
    casts: bool
    fuses_experts: bool
    one_process: bool
    workers: float
    offload_extra_bytes: float
    pinned_bytes: tuple[float, ...]
    pinned_flat: bool
    offload_weight_copies: float
    save: Literal["copied", "gathered", "staged", "deduplicated", "streamed"]
    save_sharded: Literal["copied", "gathered", "staged", "deduplicated", "streamed"]
    can_stage: bool
    gathered_bytes: float | None
    gathered_unit: Literal["unit", "module", "tensor"]
    gathers_optimizer: bool
    gathers_together: bool
    gathers_frozen: bool
    disk_weight_copies: float
    merges_adapters: bool
    process_bytes: float
    worker_bytes: float
    file_bytes: float
    source: str


@dataclass(frozen=True)
class Node:
    """One node whose devices all belong to one stage: `ranks` devices, each with `states` when nothing is offloaded.

    `whole` are the states of the undivided model, `adapters` the bytes of all its adapters (`adapter_bytes`).
    """

    job: Job
    layouts: Layouts
    facts: HostFacts
    shape: StageShape
    held: Held
    states: States
    whole: States
    adapters: float
    ranks: int

    @property
    def processes(self) -> int:
        return 1 if self.facts.one_process else self.ranks

    @property
    def trained(self) -> Floats:
        """Trained parameters whose optimizer states one device keeps."""
        held = self.held
        return held.sharded(1, held.trained_dense + held.adapters, held.trained_experts)

    @property
    def sharded(self) -> np.ndarray:
        """Where the framework shards weights, be it over one device."""
        return self.layouts.zero_stage >= 3


def node_of(job: Job, layouts: Layouts, facts: HostFacts, stage: Ints, whole: Whole) -> Node:
    """A full node of pipeline stage `stage` of every candidate; `whole` is `whole_model(job)`."""
    shape = stage_shape(job.architecture, layouts, stage)
    resident = replace(layouts, offload=np.zeros_like(layouts.offload)) if layouts.max_of("offload") else layouts
    return Node(
        job=job,
        layouts=layouts,
        facts=facts,
        shape=shape,
        held=held_parameters(job, layouts, shape),
        states=model_states(job, resident, shape),
        whole=whole[0],
        adapters=float(adapter_bytes(job, whole[1])[0]),
        ranks=min(job.machine.per_node, job.machine.count),
    )


def whole_model(job: Job) -> Whole:
    """The states and parameters of the model on one device with nothing split or offloaded; shape (1,)."""
    layout = unsplit()
    shape = stage_shape(job.architecture, layout, np.zeros(1, dtype=np.int64))
    return model_states(job, layout, shape), held_parameters(job, layout, shape)


def adapter_bytes(job: Job, held: Held) -> Floats:
    """Adapters before any sharding, with the embedding and head that are trained as copies beside them."""
    return held.adapters * job.framework.adapters.held_bytes + held.copied * job.framework.weights.held_bytes


def rounded(size: Floats) -> Floats:
    """The block that a page-locked buffer takes: the next power of two (PyTorch, CachingHostAllocatorImpl::allocate,
    unless pinned_max_round_threshold_mb is set)."""
    return np.where(size > 0, np.exp2(np.ceil(np.log2(np.maximum(size, 1.0)))), 0.0)


def rounding_of_weights(node: Node) -> Floats:
    """Per node: what page-locking adds to offloaded weights, one buffer for each tensor of a device's share."""
    if not node.layouts.weights_offloaded.any():
        return np.zeros(len(node.layouts))
    held = node.held
    weights = node.states.weights - held.sharded(3, adapter_bytes(node.job, held))
    size = weights / np.maximum(1.0, held.sharded(3, held.dense, held.experts))
    extra = _over_tensors(node, lambda part: rounded(part * size) - part * size)
    return np.where(node.layouts.weights_offloaded, extra * node.ranks, 0.0)


def rounding_of_states(node: Node) -> Floats:
    """Per node: what page-locking adds to buffers beside the offloaded optimizer."""
    if not node.layouts.optimizer_offloaded.any():
        return np.zeros(len(node.layouts))
    buffers = node.facts.pinned_bytes
    trained = np.maximum(1.0, node.trained)
    if node.facts.pinned_flat:
        # ZeRO-3 steps groups of parameters, each with a buffer of its own (sub_group_size).
        limit = node.job.framework.gathering.live_parameters
        group = (
            trained if limit is None else np.where(node.layouts.zero_stage >= 3, np.minimum(limit, trained), trained)
        )
        full = np.floor(trained / group)
        rest = trained - full * group
        taken = sum((full * rounded(group * size) + rounded(rest * size) for size in buffers), np.zeros(len(trained)))
        extra = taken - sum(buffers) * trained
    else:
        # A shard of the distributed optimizer is a range of whole tensors.
        share = np.minimum(1.0, trained / np.maximum(1.0, node.held.total))
        extra = np.zeros(len(trained))
        for size in buffers:
            extra = extra + share * _over_tensors(node, lambda part, b=size: rounded(part * b) - part * b, split=False)
    return np.where(node.layouts.optimizer_offloaded, np.maximum(0.0, extra) * node.ranks, 0.0)


def _over_tensors(node: Node, of: Callable[[Floats], Floats], split: bool = True) -> Floats:
    """The sum of `of(elements)` over one device's tensors, or over its parts of them where ZeRO `split`s each."""
    held, layouts = node.held, node.layouts
    dense, routed = (held.group, held.expert_group) if split else (np.ones(len(layouts)), np.ones(len(layouts)))
    total = of(held.outside / dense)
    for count, block in zip(node.shape.layers, node.job.architecture.blocks, strict=True):
        for matrix in block.matrices:
            expert = matrix.role == "expert"
            copies = matrix.copies / (layouts.ep if expert else np.ones(len(layouts)))
            part = matrix.copies * matrix.inputs * matrix.outputs / shard(matrix, layouts) / copies
            total = total + count * copies * of(part / (routed if expert else dense))
    return total
