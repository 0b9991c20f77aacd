"""Model states of one device: weights, gradients, optimizer states, their buffers, and the optimizer step's
temporaries.

What ZeRO shards and from which stage on: Rajbhandari et al. 2020, section 5. Arrays have shape (n,), one entry a
candidate; sizes are bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from estimator.model.architecture import Block
from estimator.plan.layouts import Layouts
from estimator.plan.training.job import Job
from estimator.plan.training.shards import Held, has_second_copy, held_parameters, world_size
from estimator.plan.training.stages import Floats, StageShape, block_parameters, of_stage, sum_of
from estimator.training.optimizers import largest_tensor, optimizer_memory

# Bytes per quantised parameter. NF4: 4 bits and, per block of 64, an fp32 absolute maximum, which double quantisation
# stores in 8 bits with one fp32 per 256 blocks (Dettmers et al. 2023, section 3). GPTQ: 4 bits and, per group of 128, a
# 16-bit scale and a 4-bit zero.
_QUANTISED_BYTES = {
    "nf4": 0.5 + 1.0 / 64 + 4.0 / (64 * 256),
    "nf4-single": 0.5 + 4.0 / 64,
    "gptq": 0.5 + 2.5 / 128,
}


@dataclass(frozen=True)
class States:
    """`head_buffers` is what stands beside the states while the loss is made, `buffers` while blocks run backward.

    `step` are the optimizer step's temporaries, `parameters` counts those of the stage's own model.
    """

    weights: Floats
    gradients: Floats
    optimizer: Floats
    buffers: Floats
    head_buffers: Floats
    step: Floats
    parameters: Floats


def model_states(job: Job, layouts: Layouts, shape: StageShape) -> States:
    """The states of one pipeline stage of every candidate."""
    return of_stage("states", job, layouts, lambda: _alike_states(job, layouts, shape))


# Fields of a layout on which states depend; what is recomputed and how large micro-batches are do not matter to them.
_DECISIVE = ("tp", "sequence_parallel", "pp", "vpp", "schedule", "cp", "ep", "etp", "dp", "zero_stage", "shard_group",
             "offload", "accumulates")  # fmt: skip


def _alike_states(job: Job, layouts: Layouts, shape: StageShape) -> States:
    """The states, computed once for neighbours that have the same."""
    alike = shape.alike(layouts, _DECISIVE)
    if alike is None:
        return _model_states(job, layouts, shape)
    states = _model_states(job, alike.layouts, shape.of(alike.starts))
    return States(**{field.name: alike.spread(getattr(states, field.name)) for field in fields(States)})


def _model_states(job: Job, layouts: Layouts, shape: StageShape) -> States:
    held = held_parameters(job, layouts, shape)
    optimizer, step = optimizer_memory(job, layouts, shape, held)
    weights = weights_held(job, layouts, held)
    at_head, backward = buffers_held(job, layouts, shape, held)
    return States(
        weights=np.where(layouts.weights_offloaded, 0.0, weights) if layouts.max_of("offload") else weights,
        gradients=gradients_held(job, layouts, shape, held),
        optimizer=optimizer,
        buffers=sum_of(backward.values()),
        head_buffers=sum_of(at_head.values()),
        step=step,
        parameters=held.total,
    )


def buffers_held(
    job: Job, layouts: Layouts, shape: StageShape, held: Held
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Buffers beside the states by what they are for: while the loss is made, and while blocks run backward."""
    shared = {
        "casts_and_buckets": _casts_and_buckets(job, layouts, held),
        "dummy_gradients": _dummy_gradients(job, layouts, shape),
    }
    at_head, backward = _gathered(job, layouts, held)
    return (
        shared | {"gathered": at_head, "head_gradient": _head_gradient(job, layouts, shape)},
        shared | {"gathered": backward, "second_gradients": _second_gradients(job, layouts, held)},
    )


def _keeps_gathered(job: Job, layouts: Layouts, held: Held) -> np.ndarray:
    """FSDP that does not reshard after forward counts as stage 2: weights are sharded, and gathered ones are kept."""
    return (layouts.zero_stage == 2) & (job.framework.gathering.live_units > 0) & (held.group > 1)


def weights_held(job: Job, layouts: Layouts, held: Held) -> Floats:
    framework = job.framework
    inside = held.dense - held.outside
    if job.quantised:
        # What is not quantised (embedding, norms and mostly the head) stays in 16 bits.
        packed = _QUANTISED_BYTES[job.training.lora.quantisation]
        head = packed if framework.adapters.quantised_head else job.activation_bytes
        outside = (held.outside - held.head) * job.activation_bytes + held.head * head
        wide = packed if framework.adapters.quantises_experts else job.activation_bytes
        dense, experts = inside * packed + outside, held.experts * wide
    else:
        size, outside = _weight_bytes(job)
        dense, experts = inside * size + held.outside * outside, held.experts * size
    weights = held.sharded(3, dense, experts)
    if framework.gathering.live_units:
        weights = np.where(_keeps_gathered(job, layouts, held), held.sharded(2, dense, experts), weights)
    if has_second_copy(job):
        # A second copy within the shard group, of the weights as they are held.
        in_group = (layouts.zero_stage >= 3) & (layouts.shard_group < held.group) & (layouts.shard_group > 1)
        weights = weights + np.where(in_group, (dense + experts) / layouts.shard_group, 0.0)
    if not job.uses_adapters:
        return weights
    copies = held.copied * framework.weights.held_bytes
    return weights + held.sharded(3, held.adapters * framework.adapters.held_bytes + copies)


def _weight_bytes(job: Job) -> tuple[float, float]:
    """Per parameter of the blocks, and of embedding and head, which stay wide where blocks are held in 8 bits."""
    size = job.weight_bytes
    if job.compute_bytes >= job.activation_bytes:
        return size, size
    weights = job.framework.weights
    keeps = job.training.method == "full" or weights.frozen_transposed
    transposed = keeps and job.machine.accelerator.family not in weights.one_copy_families
    low = job.compute_bytes * (2.0 if transposed else 1.0)
    if job.low_precision_weights:
        return low, size
    return size + low * job.framework.weights.low_precision_copies, size


def gradients_held(job: Job, layouts: Layouts, shape: StageShape, held: Held) -> Floats:
    """What a device keeps of gradients from one micro-batch to the next.

    Weights that are updated within the backward pass have the gradient of one tensor at a time, or where they are
    gathered by units the sharded ones of a unit (torchtune, full_finetune_single_device.py and _distributed.py).
    """
    framework = job.framework
    if job.training.optimizer_in_backward:
        size, largest = framework.gradients.held_bytes, largest_tensor(job, layouts, shape, held)
        if not framework.gathering.live_units:
            return largest * size
        return np.where(held.group > 1, np.maximum(held.unit / held.group, largest), largest) * size
    size = framework.gradients.held_bytes if job.optimizer.keeps_gradients else 0.0
    accumulates = layouts.grad_accum > 1
    gradients = held.sharded(2, held.trained_dense * size, held.trained_experts * size)
    if framework.gathering.live_units and not framework.gradients.reduces_each_micro_batch:
        # Gradients stay whole while they accumulate, those of frozen weights in the same flat parameter too (FSDP1,
        # no_sync and use_orig_params).
        whole = (held.total - held.outside if job.uses_adapters else held.trained) * framework.weights.compute_bytes
        unsharded = accumulates & (layouts.zero_stage >= 2) & (held.group > 1)
        gradients = np.where(unsharded, whole, gradients)
    if framework.gathering.live_units and layouts.max_of("pp") > 1:
        gradients = np.where(_accumulates_whole(job, layouts, held), held.trained * size, gradients)
    if job.uses_adapters:
        gradients = gradients + held.sharded(2, held.adapters * framework.adapters.held_bytes)
    if not layouts.max_of("offload"):
        return gradients
    # Gradients follow an offloaded optimizer (DeepSpeed, stage3.py) and offloaded weights (FSDP2, CPUOffloadPolicy).
    deepspeed = framework.gathering.live_parameters is not None
    away = layouts.optimizer_offloaded if deepspeed else layouts.everything_offloaded
    return np.where(away & (layouts.zero_stage >= 2), 0.0, gradients)


def _gathered(job: Job, layouts: Layouts, held: Held) -> tuple[Floats, Floats]:
    """Gathered weights (while the loss is made, while blocks run backward), and gradients on their way to be reduced.

    DeepSpeed bounds them by its live parameters; FSDP has a unit at work and the next one, and its root all the time,
    frozen weights without the copies that gradients need (torch.distributed.fsdp, _fully_shard/_fsdp_param_group.py
    wait_for_unshard: what was gathered is freed once it is copied out).
    """
    framework = job.framework
    size, reduce_bytes = framework.weights.compute_bytes, framework.gradients.reduce_bytes
    gathers = (layouts.zero_stage >= 3) & ((held.group > 1) | layouts.everything_offloaded)
    packed = job.packed(size, _QUANTISED_BYTES[job.training.lora.quantisation])
    # What is quantised is gathered as it is kept, packed; embeddings and head are not quantised.
    most = held.outside * size + (held.total - held.outside) * packed
    if framework.gathering.live_parameters is not None:
        live = np.where(gathers, np.minimum(framework.gathering.live_parameters * size, most), 0.0)
        return live, live
    if not framework.gathering.live_units:
        return layouts.zeros(), layouts.zeros()
    trains = not job.uses_adapters
    unit, root = held.unit, held.outside
    if framework.gathering.splits_root:
        root = np.maximum(held.outside - held.head, held.head)
    at_head = root * (size + reduce_bytes * trains) + framework.gathering.live_units * unit * packed
    copies = framework.gathering.gathered_copies if trains else framework.gathering.live_units
    reduced = framework.gathering.reduced_copies * trains
    # The gradient of a root waits for the end of backward, where it is copied once to be reduced.
    at_root = root * (min(max(copies - 1.0, 1.0), 2.0) * size + min(reduced, 1.0) * reduce_bytes)
    if framework.gathering.splits_root:
        # Embedding and head come and go as units do: one's gradients are reduced while the first blocks run backward.
        blocks = unit * copies * packed + (np.maximum(unit, root) + unit * (reduced - 1.0)) * reduce_bytes * trains
        backward = np.maximum(blocks, at_root + unit * reduce_bytes * trains)
    else:  # it stays gathered
        backward = unit * (copies * packed + reduced * reduce_bytes) + at_root
    # Without resharding all is gathered, and gradients on their way come on top; a pipeline that accumulates them whole
    # reduces one unit at a time.
    kept = _keeps_gathered(job, layouts, held)
    on_way = np.where(
        layouts.pp > 1, unit * reduce_bytes, (unit + root) * (size + framework.gathering.reduced_copies * reduce_bytes)
    )
    both = []
    for part, more in ((at_head, root * reduce_bytes), (backward, on_way)):
        part = np.where(gathers, np.minimum(part, (1.0 + framework.gathering.reduced_copies) * most), 0.0)
        both.append(np.where(kept, most + more * trains, part))
    return both[0], both[1]


def _casts_and_buckets(job: Job, layouts: Layouts, held: Held) -> Floats:
    """Cast copies of all weights that autocast keeps, and the buckets of gradient reduction."""
    framework = job.framework
    # Autocast caches the casts of weights that get a gradient; a frozen matmul keeps its own for the backward pass.
    cast = held.trained * framework.weights.compute_bytes if framework.weights.cast_cache else layouts.zeros()
    if job.uses_adapters and job.frozen_bytes > job.activation_bytes and not framework.gathering.live_units:
        cast = cast + (held.total - held.outside) * framework.weights.compute_bytes
    if not framework.gradients.bucket_bytes:
        return cast
    trained = held.trained + held.adapters
    buckets = np.minimum(framework.gradients.bucket_bytes, trained * framework.gradients.reduce_bytes)
    return cast + np.where(world_size(layouts) > layouts.pp * layouts.tp, buckets, 0.0)


def _accumulates_whole(job: Job, layouts: Layouts, held: Held) -> np.ndarray:
    """Gathered weights have unsharded gradients while a pipeline accumulates micro-batches (torchtitan)."""
    return (layouts.grad_accum > 1) & _keeps_gathered(job, layouts, held) & (layouts.pp > 1)


def _second_gradients(job: Job, layouts: Layouts, held: Held) -> Floats:
    """Sharded gradients that stay while those of the next micro-batch are made: DeepSpeed's averaged ones
    (stage_1_and_2.py), and FSDP's besides unsharded ones."""
    if job.framework.gathering.live_parameters is not None:
        second = (layouts.zero_stage == 2) & (layouts.grad_accum > 1)
    elif job.framework.gathering.live_units and layouts.max_of("pp") > 1:
        second = _accumulates_whole(job, layouts, held)
    else:
        return layouts.zeros()
    sharded = held.sharded(2, held.trained_dense, held.trained_experts)
    return np.where(second, sharded, 0.0) * job.framework.gradients.held_bytes


def _dummy_gradients(job: Job, layouts: Layouts, shape: StageShape) -> Floats:
    """One 16-bit tensor for each weight shape (Transformer Engine, get_dummy_wgrad)."""
    total = layouts.zeros()
    if not job.framework.gradients.dummies or job.uses_adapters:
        return total
    for count, block in zip(shape.layers, job.architecture.blocks, strict=True):
        total = np.maximum(total, np.where(count > 0, _distinct(block, layouts), 0.0))
    return total * job.framework.weights.compute_bytes


def _distinct(block: Block, layouts: Layouts) -> Floats:
    """Parameters of a block's matrices with only one of the routed experts."""
    return layouts.memoised(("distinct", block), lambda: _sum_of_distinct(block, layouts))


def _sum_of_distinct(block: Block, layouts: Layouts) -> Floats:
    total = block_parameters(block, layouts)[0] - block.vector_parameters
    for matrix in block.matrices:
        if matrix.role == "expert":
            total = total + matrix.inputs * matrix.outputs / layouts.etp
    return total


def _head_gradient(job: Job, layouts: Layouts, shape: StageShape) -> Floats:
    """The same for the head while the loss is made (Megatron, ColumnParallelLinear)."""
    if not job.framework.gradients.dummies or job.training.method != "full":
        return layouts.zeros()
    table = job.architecture.embedding_parameters / layouts.tp * job.framework.weights.compute_bytes
    return shape.has_head * table
