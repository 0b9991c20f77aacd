"""Model states of one device: weights, gradients, optimizer states, their buffers, and the optimizer step's
temporaries.

What ZeRO shards and from which stage on: Rajbhandari et al. 2020, section 5. Arrays have shape (n,), one entry a
candidate; sizes are bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from estimator.job import FREEZE_LAYERS, Job
from estimator.layouts import OFFLOAD, Layouts
from estimator.stages import Floats, StageShape, block_parameters, stage_parameters, sum_of

# NF4: 4 bits and, per block of 64, an absolute maximum that double quantisation stores in 8 bits with one fp32 per 256
# blocks (Dettmers et al. 2023, section 3).
_NF4_BYTES = 0.5 + 1.0 / 64 + 4.0 / (64 * 256)
# Adapters are kept in fp32 with fp32 gradients (PEFT, autocast_adapter_dtype).
_ADAPTER_BYTES = 4.0


@dataclass(frozen=True)
class Held:
    """Parameters on one device of a stage before data-parallel sharding, and over how many devices each kind is
    sharded.

    `outside` is the part of `dense` that is not in blocks (embedding, head), `largest` the biggest unit FSDP gathers.
    """

    dense: Floats
    experts: Floats
    adapters: Floats
    outside: Floats
    trained_dense: Floats
    trained_experts: Floats
    largest: Floats
    group: Floats
    expert_group: Floats
    zero_stage: np.ndarray

    @property
    def total(self) -> Floats:
        return self.dense + self.experts

    @property
    def trained(self) -> Floats:
        return self.trained_dense + self.trained_experts

    def sharded(self, from_stage: int, dense: Floats, experts: Floats | float = 0.0) -> Floats:
        """What one device holds of sizes that are sharded from ZeRO stage `from_stage` on."""
        split = dense / self.group + experts / self.expert_group
        return np.where(self.zero_stage >= from_stage, split, dense + experts)


@dataclass(frozen=True)
class States:
    weights: Floats
    gradients: Floats
    optimizer: Floats
    buffers: Floats
    step: Floats
    parameters: Floats


def world_size(layouts: Layouts) -> np.ndarray:
    return layouts.tp * layouts.pp * layouts.cp * layouts.dp


def model_states(job: Job, layouts: Layouts, shape: StageShape) -> States:
    """The states of one pipeline stage of every candidate."""
    held = _held(job, layouts, shape)
    optimizer, step = _optimizer(job, layouts, held)
    weights = _weights(job, layouts, held)
    offloaded = (layouts.offload == OFFLOAD.index("params")) & (layouts.zero_stage >= 3)
    return States(
        weights=np.where(offloaded, 0.0, weights),
        gradients=_gradients(job, layouts, held),
        optimizer=optimizer,
        buffers=_buffers(job, layouts, held),
        step=step,
        parameters=held.total,
    )


def _held(job: Job, layouts: Layouts, shape: StageShape) -> Held:
    outside = _outside_blocks(job, layouts, shape)
    dense, experts, adapters = stage_parameters(job, layouts, shape, outside)
    largest = outside
    for count, block in zip(shape.layers, job.architecture.blocks, strict=True):
        largest = np.maximum(largest, np.where(count > 0, sum_of(block_parameters(block, layouts)), 0.0))
    share = _trained_share(job, shape)
    group = (layouts.dp * layouts.cp if _second_copy(job) else layouts.shard_group).astype(np.float64)
    copies = world_size(layouts) / (layouts.pp * layouts.ep * layouts.etp)
    return Held(
        dense=dense,
        experts=experts,
        adapters=adapters,
        outside=outside,
        trained_dense=(dense - outside) * share if job.training.method == "freeze" else dense * share,
        trained_experts=experts * share,
        largest=largest,
        group=group,
        expert_group=np.maximum(1.0, np.minimum(group, copies)),
        zero_stage=layouts.zero_stage,
    )


def _second_copy(job: Job) -> bool:
    """Whether a shard group holds a second copy of the weights while all else stays sharded over everyone, as ZeRO++
    has it (Wang et al. 2023, section 3.2). FSDP's hybrid sharding keeps everything within the group."""
    return job.framework.live_parameters is not None


def _keeps_gathered(job: Job, layouts: Layouts, held: Held) -> np.ndarray:
    """FSDP that does not reshard after forward counts as stage 2: weights are sharded, and gathered ones are kept."""
    return (layouts.zero_stage == 2) & (job.framework.live_units > 0) & (held.group > 1)


def _outside_blocks(job: Job, layouts: Layouts, shape: StageShape) -> Floats:
    """Embedding, head, positions and the other parameters outside the blocks on one device of the stage.

    A tied head on a stage of its own is a second copy (Megatron, shared_embedding_or_output_weight).
    """
    architecture = job.architecture
    table = architecture.vocab * architecture.hidden / layouts.tp
    head = architecture.head_parameters / layouts.tp
    if architecture.tied:
        head = head + np.where(layouts.pp > 1, table, 0.0)
    first = table + architecture.position_parameters
    return shape.has_embedding * first + shape.has_head * (head + architecture.extra_parameters)


def _trained_share(job: Job, shape: StageShape) -> Floats | float:
    """The part of the stage's own parameters that is trained (adapters apart); freeze trains the last layers only."""
    if job.uses_adapters:
        return 0.0
    if job.training.method == "freeze":
        return np.minimum(1.0, FREEZE_LAYERS / np.maximum(1.0, shape.layer_count)) * shape.has_head
    return 1.0


def _weights(job: Job, layouts: Layouts, held: Held) -> Floats:
    framework = job.framework
    if job.quantised:
        blocks = (held.total - held.outside) * _NF4_BYTES
        weights = held.sharded(3, blocks + held.outside * framework.quantised_rest_bytes)
    else:
        # Frozen weights are loaded in the compute dtype: no optimizer ever needs them in full precision.
        frozen = job.uses_adapters or job.training.method == "freeze"
        size = job.frozen_bytes if frozen else framework.weight_bytes
        full, split = (held.sharded(stage, held.dense * size, held.experts * size) for stage in (3, 2))
        weights = np.where(_keeps_gathered(job, layouts, held), split, full)
    if _second_copy(job):
        in_group = (layouts.zero_stage >= 3) & (layouts.shard_group < held.group)
        weights = weights + np.where(in_group, held.total * framework.compute_bytes / layouts.shard_group, 0.0)
    return weights + held.sharded(3, held.adapters * _ADAPTER_BYTES)


def _gradients(job: Job, layouts: Layouts, held: Held) -> Floats:
    size = job.framework.gradient_bytes if job.optimizer.keeps_gradients else 0.0
    gradients = held.sharded(2, held.trained_dense * size, held.trained_experts * size)
    # While a pipeline accumulates micro-batches, gathered weights have unsharded gradients (torchtitan's schedules).
    accumulates = _keeps_gathered(job, layouts, held) & (layouts.pp > 1) & (layouts.grad_accum > 1)
    gradients = np.where(accumulates, held.trained * size, gradients)
    return gradients + held.sharded(2, held.adapters * _ADAPTER_BYTES)


def _buffers(job: Job, layouts: Layouts, held: Held) -> Floats:
    """Gathered units, cast copies, and the buckets of gradient reduction."""
    framework = job.framework
    live = framework.live_parameters
    units = framework.live_units * held.largest if live is None else np.full(len(layouts), live)
    gathers = (layouts.zero_stage >= 3) & (held.group > 1)
    gathered = np.where(gathers, np.minimum(units, held.total), 0.0)
    gathered = np.where(_keeps_gathered(job, layouts, held), held.total, gathered)
    if framework.cast_cache and not job.uses_adapters:
        gathered = np.where(gathers, gathered, held.total)
    buckets = np.minimum(framework.bucket_bytes, (held.trained + held.adapters) * framework.reduce_bytes)
    reduces = world_size(layouts) > layouts.pp * layouts.tp
    return gathered * framework.compute_bytes + np.where(reduces, buckets, 0.0)


def _optimizer(job: Job, layouts: Layouts, held: Held) -> tuple[Floats, Floats]:
    """(states with the master copy, temporaries of one step)."""
    framework, optimizer = job.framework, job.optimizer
    size = optimizer.state_elements * job.updated_bytes + optimizer.state_bytes + framework.master_bytes
    states = held.sharded(1, held.trained_dense * size, held.trained_experts * size)
    adapter_size = optimizer.state_elements * _ADAPTER_BYTES + optimizer.state_bytes
    states = states + held.sharded(1, held.adapters * adapter_size)

    temporary = 0.0 if framework.fused_optimizer else optimizer.step_elements
    stepped = held.sharded(1, held.trained_dense, held.trained_experts)
    step = temporary * (job.updated_bytes * stepped + _ADAPTER_BYTES * held.sharded(1, held.adapters))
    if framework.live_parameters is not None:
        # Stage 3 steps through groups of parameters, so its fp32 copies are those of one group (sub_group_size).
        stepped = np.where(layouts.zero_stage >= 3, np.minimum(stepped, framework.live_parameters), stepped)
    step = step + framework.step_bytes * stepped

    offloaded = np.isin(layouts.offload, (OFFLOAD.index("optimizer"), OFFLOAD.index("params")))
    return np.where(offloaded, 0.0, states), np.where(offloaded, 0.0, step)
