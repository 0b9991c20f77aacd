"""What no layout of a job can be below, and what no layout of a base can be below: cheap enough to rule most out before
anything is estimated. Bytes per device or of all devices together, seconds per optimizer step."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from estimator.kernels.attention import core_flop, flash_share, keys_seen
from estimator.kernels.compute import block_time, head_time
from estimator.model.architecture import Block
from estimator.plan.layouts import RECOMPUTE, Floats, Layouts
from estimator.plan.training.job import Job
from estimator.plan.training.options import left_open, switched_on
from estimator.plan.training.stages import StageShape, mean_stage, stage_shape
from estimator.rl.generation import least_generation_s
from estimator.search.space import Enumerated, Rows
from estimator.training.memory import context_bytes, fullest_stages, stage_memory
from estimator.training.schedule import bubble_left, layer_seconds, straggler_share
from estimator.training.states import model_states

# Bytes per quantised parameter that are in any format, without its scales.
_LEAST_QUANTISED = 0.5
# FLOP per parameter and token: two forward, two for gradients of inputs, two for those of weights.
_FORWARD, _WITH_INPUTS, _WITH_WEIGHTS = 2.0, 4.0, 6.0
# Sequences of a micro-batch with which no kernel takes more by the token than with fewer.
_MANY_SEQUENCES = 128
# Rows of queries that fill any device.
_MANY_ROWS = 1e12
# How many times as large as their count numbers may be for a table of them to cost less than sorting.
_SPARSE = 64
# What a bound is lowered by, so that sums which round otherwise leave it one.
_ROUNDED = 1.0 - 1e-9


def least_bytes(job: Job) -> float:
    """Bytes of weights and optimizer states that all devices together hold at the least, in whatever layout.

    Each parameter is held once. 0 where states may be in host memory.
    """
    if job.plan.layout.offload not in (None, "none") or job.overridden_bytes:
        return 0.0
    return least_weights(job) + least_states(job)


def least_weights(job: Job) -> float:
    """Bytes of one copy of the weights at the least, wherever they are."""
    parameters = job.architecture.parameters
    if job.quantised:
        blocks = [job.architecture.blocks[kind] for kind in job.architecture.pattern]
        wide = (1.0 - job.quantised_part) * sum(block.parameters for block in blocks)
        return (parameters - wide) * _LEAST_QUANTISED + wide * job.activation_bytes
    return parameters * (min(job.weight_bytes, 1.0) if job.low_precision_weights else job.weight_bytes)


def least_states(job: Job) -> float:
    """Bytes of one copy of the optimizer states at the least; 0 where the driver may move them to the host."""
    optimizer = job.optimizer
    plain = optimizer.matrix_elements is None and not optimizer.rank
    if not (job.trains_outside and plain) or job.pages_states:
        return 0.0
    # States of 8 bits are given in bytes, others by the element of what is updated, 16 bits at the least.
    each = optimizer.state_elements * min(2.0, job.updated_bytes) + optimizer.state_bytes
    return job.architecture.parameters * each


def beyond_all(job: Job, host_bytes: float) -> bool:
    """Whether weights and states are more than devices and hosts of `host_bytes` a node hold together, in whatever
    layout; weights are on the devices where the framework has no way to put them elsewhere."""
    if job.overridden_bytes:
        return False
    devices = job.machine.count * job.usable_bytes / (1.0 + job.memory_above)
    weights, hosts = least_weights(job) * _ROUNDED, job.machine.nodes * host_bytes
    if not any("params" in name for name in (job.plan.layout.offload or "", *job.framework.limits.offloads)):
        return weights > devices
    return weights + least_states(job) * _ROUNDED > devices + hosts


def least_training_s(job: Job) -> float:
    """Seconds of a step if every device multiplied the model's matrices at the rate of large products, and computed
    attention at the rate of many rows, all the time, with nothing generated."""
    method = job.training.method
    forward = method == "freeze" or job.one_block
    each = _WITH_INPUTS if job.uses_adapters else _FORWARD if forward else _WITH_WEIGHTS
    architecture, device = job.architecture, job.calibration.device
    inside = architecture.active_parameters - architecture.embedding_parameters - architecture.head_parameters
    rate = job.peak_flops * device.matmul * job.surface.height
    seconds = each * max(0.0, inside) / rate
    for kind, block in enumerate(architecture.blocks):
        seconds += architecture.pattern.count(kind) * _least_attention_s(job, block)
    return float(seconds * job.tokens_per_step / job.machine.count) * device.step * _ROUNDED


def least_kernels_s(job: Job) -> float:
    """As `least_training_s`, by the kernels that a step runs whatever its layout: each takes least by the token where
    it has many rows, and nothing but experts is split. Dearer to ask, and closer."""
    architecture, none = job.architecture, np.zeros(1, dtype=np.int64)
    sizes = dict.fromkeys((each.name for each in fields(Layouts)), none + 1)
    sizes |= dict.fromkeys(("zero_stage", "recompute", "recompute_layers", "offload", "schedule"), none)
    sequences = max(_MANY_SEQUENCES, job.training.micro_batch or 1)
    sizes |= {"ep": none + max(1, architecture.experts), "micro_batch": none + sequences}
    layouts = Layouts(**sizes | {"grad_accum": none + job.global_batch})
    head = head_time(job, layouts)
    seconds = head.forward + head.backward
    # Split sequences may have another kernel of attention.
    halves = replace(layouts, cp=none + 2) if job.calibration.device.split_kernel else None
    for kind, block in enumerate(architecture.blocks):
        whole = block_time(job, block, layouts)
        least = attention = whole.attention_forward + whole.attention_backward
        if halves is not None:
            half = block_time(job, block, halves)
            least = np.minimum(attention, 2.0 * (half.attention_forward + half.attention_backward))
        each = whole.forward + whole.backward - attention + least
        seconds = seconds + architecture.pattern.count(kind) * each
    seconds = seconds * (job.calibration.framework.compute * job.global_batch / (sequences * job.machine.count))
    return max(least_training_s(job), float(seconds[0]) * _ROUNDED)


def _least_attention_s(job: Job, block: Block) -> float:
    """Seconds per token of one block's attention in a flash kernel whose rows fill the device; 0 for another core."""
    if job.training.attention == "eager" or block.mixer not in ("attention", "mla") or not block.heads:
        return 0.0
    device = job.calibration.device
    keys = np.array([keys_seen(block, float(job.seq_len), job.image_keys)])
    windowed = block.window is not None and block.window < job.seq_len
    kernels = [kernel for kernel in (device.attention_kernel, device.split_kernel) if kernel is not None]
    shares = [flash_share(kernel, block, keys, np.array([_MANY_ROWS]), windowed) for kernel in kernels]
    forward, backward = (np.max(part, axis=0) for part in zip(*shares, strict=True))
    flop, backward_flop = core_flop(block, block.heads * keys)
    peak = job.head_peak_flops * device.attention
    return float((flop / forward + backward_flop / backward * job.trained_layer_share)[0] / peak)


def least_memory(job: Job, every: Enumerated) -> Floats:
    """For each base the bytes that a device takes with one micro-batch of one sequence a step, in the recompute mode
    that keeps least. Of recompute of some layers only, without activations. 0 where the user gives components of the
    memory."""
    bases = every.leanest()
    if job.overridden_bytes:
        return bases.zeros()
    mode = max((mode for mode in range(len(RECOMPUTE)) if every.has(mode)), default=0)
    if mode == RECOMPUTE.index("block"):
        return least_resident(job, bases) * _ROUNDED
    each, last = replace(bases, recompute=np.full_like(bases.pp, mode)), bases.pp - 1
    stages = [np.zeros_like(last), last] if bases.max_of("pp") > 1 else [np.zeros_like(last)]
    return np.max([stage_memory(job, each, stage, detail=False).total for stage in stages], axis=0) * _ROUNDED


def least_resident(job: Job, bases: Layouts) -> Floats:
    """Bytes of weights, optimizer states, gradients and device context on the stage that has most of them."""
    resident = bases.zeros()
    for stage in fullest_stages(job, bases):
        states = model_states(job, bases, stage_shape(job.architecture, bases, stage))
        stays = states.weights + states.gradients
        resident = np.maximum(resident, stays if job.pages_states else stays + states.optimizer)
    return resident + context_bytes(job, bases)


def least_seconds(job: Job, every: Enumerated, rows: Rows) -> Floats:
    """For each of these `rows` of `every` the seconds of its layers, head and embedding, and of the bubble,
    and the least of generation, without what data parallelism, the pipeline and the optimizer add; shape (n,).

    Layers take the same in all layouts that split and shard them alike, so each kind of them is timed once. Casts that
    a step makes once are taken as if it had as many micro-batches as there can be.
    """
    layouts, base = every.written(rows), rows["base"]
    kinds, place = _alike(job, every, layouts, base)
    layers, head, embedding = layer_seconds(job, kinds)
    bases = every.leanest()
    first = stage_shape(job.architecture, bases, np.zeros_like(bases.pp))
    last = stage_shape(job.architecture, bases, bases.pp - 1)

    each = [head[place], embedding[place], *(seconds[place] for seconds in layers)]

    def on(shape: StageShape) -> Floats:
        blocks = [count * shape.visited for count in shape.layers]
        total = (shape.has_head * shape.visited)[base] * each[0]
        for often, seconds in zip([shape.has_embedding, *blocks], each[1:], strict=True):
            total += often[base] * seconds
        return total

    slowest = np.maximum(on(first), on(last))
    others = np.maximum(0.0, layouts.pp * on(mean_stage(job.architecture, bases)) - slowest)
    seconds = layouts.grad_accum * slowest + bubble_left(layouts) * others + least_generation_s(job)
    return seconds * ((1.0 + straggler_share(job)) * job.calibration.device.step * _ROUNDED)


def _alike(job: Job, every: Enumerated, layouts: Layouts, base: np.ndarray) -> tuple[Layouts, np.ndarray]:
    """(One layout of each kind, which kind each layout is of): those whose layers take the same time."""
    split = [every.bases[name] for name in ("tp", "cp", "ep", "etp")]
    label = _numbered([*split, every.bases["zero_stage"] >= 3])[base]
    varied = [layouts.micro_batch, layouts.sequence_parallel, layouts.recompute, layouts.grad_accum > 1]
    # Other options of the layers depend on what is told apart already.
    if left_open(job, "moe_overlap") and layouts.max_of("ep") > 1:
        varied.append(switched_on(job, layouts, "moe_overlap"))
    for column in map(np.asarray, varied):
        least = int(column.min())
        label = label * (int(column.max()) - least + 1) + (column - least)
    firsts, place = _told_apart(label)
    kinds = layouts.take(firsts)
    return replace(kinds, grad_accum=np.where(kinds.grad_accum > 1, job.global_batch, 1)), place


def _numbered(columns: list[np.ndarray]) -> np.ndarray:
    """One number for each combination of values, none of them negative; shape (n,)."""
    label = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        label = _told_apart(label * (int(column.max()) + 1) + column)[1]
    return label


def _told_apart(label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(Where each value comes first, the place of each entry's value among them), as np.unique has them, without
    sorting where the numbers are small."""
    size = int(label.max()) + 1
    if size > _SPARSE * len(label):
        _, firsts, place = np.unique(label, return_index=True, return_inverse=True)
        return firsts, place
    first = np.full(size, -1)
    first[label[::-1]] = np.arange(len(label) - 1, -1, -1)
    values = np.flatnonzero(first >= 0)
    number = np.empty(size, dtype=np.int64)
    number[values] = np.arange(len(values))
    return first[values], number[label]
