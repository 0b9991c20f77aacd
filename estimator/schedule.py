"""From operators to one optimizer step: what overlaps with what, the pipeline bubble, and the traffic of sharding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from estimator.activations import boundary_bytes
from estimator.architecture import Block
from estimator.compute import BlockTime, HeadTime, block_time, head_time, memory_time, optimizer_time
from estimator.job import Job
from estimator.layouts import SCHEDULES, Layouts
from estimator.network import Group, Groups, all_gather, all_reduce, all_to_all, place, send
from estimator.shards import Held, held_parameters
from estimator.stages import Floats, micro_batch_tokens, recomputed_share, stage_shape, sum_of

COMPONENTS = (
    "forward",
    "backward",
    "recompute",
    "extra_models",
    "tensor_parallel",
    "context_parallel",
    "expert_parallel",
    "data_parallel",
    "pipeline",
    "bubble",
    "optimizer",
    "host",
    "stragglers",
)
# Part of 1F1B's bubble that is left. Zero-bubble schedules fill the wait of a stage with weight gradients (Qi et al.
# 2023, table 1: a third for ZB-H1); V-half leaves a half (Qi et al. 2024, table 1), DualPipe too (DeepSeek-V3 report,
# table 2).
_BUBBLE_LEFT = {"zero-bubble": 1.0 / 3, "v-half": 0.5, "dualpipe": 0.5}


@dataclass(frozen=True)
class Step:
    """One optimizer step: `components[name]` sum to `seconds`; FLOP are per device. Arrays of shape (n,)."""

    components: dict[str, Floats]
    seconds: Floats
    model_flop: Floats
    hardware_flop: Floats


def step_time(job: Job, layouts: Layouts) -> Step:
    """The slowest stage's micro-batches, the bubble, and what of the communication is not hidden."""
    groups = place(job, layouts)
    blocks = [block_time(job, block, layouts) for block in job.architecture.blocks]
    traffic = [_block_communication(job, layouts, groups, block) for block in job.architecture.blocks]
    head = head_time(job, layouts)
    held = held_parameters(job, layouts, stage_shape(job.architecture, layouts, np.zeros_like(layouts.pp)))
    last = layouts.pp - 1
    options = [np.zeros_like(last)] if int(last.max(initial=0)) == 0 else [np.zeros_like(last), last]
    stages = [_stage(job, layouts, blocks, traffic, head, stage) for stage in options]
    totals = np.stack([_micro_batch_seconds(stage) for stage in stages])
    slowest = totals.argmax(axis=0)
    column = np.arange(len(layouts))
    micro = {name: np.stack([stage[name] for stage in stages])[slowest, column] for name in stages[0]}
    m = layouts.grad_accum.astype(np.float64)
    per_micro = totals[slowest, column]

    components = {name: np.zeros(len(layouts)) for name in COMPONENTS}
    for name in (*_MICRO, "host"):
        components[name] = m * micro[name]
    sends = _pipeline(job, layouts, groups)
    components["pipeline"] = m * sends
    components["bubble"] = _bubble(layouts) * (per_micro + sends)
    components["data_parallel"] = _data_parallel(job, layouts, groups, held, micro, m)
    components["optimizer"] = optimizer_time(job, layouts, _updated(job, layouts, held))
    components["host"] = components["host"] + job.calibration.framework.step_host_s
    seconds = sum_of(components[name] for name in COMPONENTS)
    nodes = max(1, job.machine.nodes)
    slack = job.calibration.framework.straggler * np.log2(nodes)
    components["stragglers"] = seconds * slack
    model_flop, hardware_flop = _flop(job, layouts, blocks, head)
    return Step(components, seconds * (1.0 + slack), model_flop, hardware_flop)


_MICRO = ("forward", "backward", "recompute", "extra_models", "tensor_parallel", "context_parallel", "expert_parallel")


def _micro_batch_seconds(stage: dict[str, Floats]) -> Floats:
    return sum_of(stage[name] for name in (*_MICRO, "host"))


def _stage(
    job: Job,
    layouts: Layouts,
    blocks: list[BlockTime],
    traffic: list[dict[str, Floats]],
    head: HeadTime,
    stage: np.ndarray,
) -> dict[str, Floats]:
    """Seconds of one micro-batch on one stage by component."""
    shape = stage_shape(job.architecture, layouts, stage)
    factors = job.calibration.framework
    zero = np.zeros(len(layouts))
    out: dict[str, Floats] = dict.fromkeys((*_MICRO, "host"), zero)
    share = recomputed_share(layouts, shape)
    for layers, time, comm in zip(shape.layers, blocks, traffic, strict=True):
        count = layers * shape.visited
        out["forward"] = out["forward"] + count * time.forward
        out["backward"] = out["backward"] + count * time.backward
        out["recompute"] = out["recompute"] + count * (time.recompute + share * time.forward)
        compute = time.forward + time.backward + time.recompute
        hidden = factors.tensor_overlap
        repeated = 1.0 + np.where(time.recompute > 0.5 * time.forward, 0.5, 0.0)
        out["tensor_parallel"] = out["tensor_parallel"] + count * comm["tensor"] * repeated * (1.0 - hidden)
        out["expert_parallel"] = out["expert_parallel"] + count * comm["expert"] * repeated * (1.0 - hidden)
        attention = (time.attention_forward + time.attention_backward) * factors.compute
        ring = np.maximum(0.0, comm["context"] - attention)
        out["context_parallel"] = out["context_parallel"] + count * ring
        host = factors.host_s * (3.0 + np.where(time.recompute > 0, 1.0, 0.0))
        out["host"] = out["host"] + count * _wait(compute * factors.compute, host)
    out["forward"] = out["forward"] + shape.has_head * shape.visited * head.forward
    out["backward"] = out["backward"] + shape.has_head * shape.visited * head.backward
    hidden_bytes = micro_batch_tokens(job, layouts) * job.architecture.hidden * job.activation_bytes
    out["forward"] = out["forward"] + shape.has_embedding * memory_time(job, 2.0 * hidden_bytes, 1.0)
    out["extra_models"] = _extra_models(job, out)
    for name in ("forward", "backward", "recompute", "extra_models"):
        out[name] = out[name] * factors.compute
    return out


def _wait(device: Floats, host: Floats) -> Floats:
    """How long a device waits for a host that needs `host` seconds to launch work of `device` seconds.

    The larger of the two decides; where they are close, both do, as some layers wait and others do not (the fourth root
    of the sum of fourth powers, by square roots, which round alike for one entry and for many).
    """
    square = (host / device) * (host / device)
    return device * (np.sqrt(np.sqrt(1.0 + square * square)) - 1.0)


def _extra_models(job: Job, stage: dict[str, Floats]) -> Floats:
    """Forward passes of a reference (also through switched-off adapters), and PPO's reward model and trained critic."""
    forward, trained = stage["forward"], stage["forward"] + stage["backward"] + stage["recompute"]
    match job.training.stage:
        case "dpo" | "ipo" | "kto" | "grpo":
            return forward
        case "ppo":
            return 2.0 * forward + trained
    return np.zeros_like(forward)


def _block_communication(job: Job, layouts: Layouts, groups: Groups, block: Block) -> dict[str, Floats]:
    """Seconds of one block's forward and backward communication.

    Tensor: an all-reduce (or all-gather and reduce-scatter) after attention and after the MLP, each way (Shoeybi et al.
    2019, section 3). Expert: dispatch and combine, each way. Context: keys and values round the ring, twice as much
    back (Liu et al. 2023, Ring Attention).
    """
    tokens = micro_batch_tokens(job, layouts)
    row = tokens * job.architecture.hidden * job.activation_bytes
    sums = (block.mixer != "none") + (block.feed != "none")
    if job.architecture.parallel_block:
        sums = 1
    tensor = 2.0 * sums * all_reduce(groups.tensor, row)
    expert = np.zeros(len(layouts))
    if block.experts:
        expert = 4.0 * all_to_all(groups.expert, row * block.top_k / layouts.tp)
    keys = tokens * job.activation_bytes * block.kv_heads * (block.head_dim + block.v_head_dim) / layouts.tp
    context = 3.0 * (layouts.cp - 1) * send(groups.context, keys) if block.heads else np.zeros(len(layouts))
    return {"tensor": tensor, "expert": expert, "context": context}


def _pipeline(job: Job, layouts: Layouts, groups: Groups) -> Floats:
    """Sends of one micro-batch that a stage waits for: forward and backward, once per virtual stage; half is hidden."""
    return layouts.vpp * send(groups.pipeline, boundary_bytes(job, layouts))


def _bubble(layouts: Layouts) -> Floats:
    """Micro-batch times that the slowest stage waits (Narayanan et al. 2021, section 2.2)."""
    waits = (layouts.pp - 1) / layouts.vpp
    for name, left in _BUBBLE_LEFT.items():
        waits = np.where(layouts.schedule == SCHEDULES.index(name), waits * left, waits)
    return waits


def _data_parallel(
    job: Job, layouts: Layouts, groups: Groups, held: Held, micro: dict[str, Floats], m: Floats
) -> Floats:
    """Gradient reduction and the gathering of what is sharded, less what compute hides.

    ZeRO-0 all-reduces once a step; ZeRO-1 and 2 reduce-scatter and gather the updated weights. ZeRO-3 gathers each
    micro-batch's weights for forward and again for backward, and reduces every micro-batch where the framework does not
    accumulate unsharded gradients. Replicas of a shard group all-reduce their shards once a step.
    """
    framework, factors = job.framework, job.calibration.framework
    trained_dense, trained_experts = held.trained_dense + held.adapters, held.trained_experts
    reduce_bytes = framework.reduce_bytes

    def both(dense_bytes: Floats, expert_bytes: Floats, dense_group: Group) -> Floats:
        return all_gather(dense_group, dense_bytes) + all_gather(groups.expert_data, expert_bytes)

    reduce_once = both(trained_dense * reduce_bytes, trained_experts * reduce_bytes, groups.data)
    weights_once = both(trained_dense * framework.compute_bytes, trained_experts * framework.compute_bytes, groups.data)
    sharded = layouts.zero_stage >= 3
    gather = both(held.dense * framework.compute_bytes, held.experts * framework.compute_bytes, groups.shard)
    if job.quantised:
        gather = gather * 0.25
    shard_reduce = both(trained_dense * reduce_bytes, trained_experts * reduce_bytes, groups.shard)
    replicas = np.maximum(1.0, layouts.dp * layouts.cp / layouts.shard_group)
    across = np.where(replicas > 1, all_reduce(groups.data, trained_dense * reduce_bytes / layouts.shard_group), 0.0)
    reduces = m if framework.reduces_each_micro_batch else 1.0
    every_micro = 2.0 * m * gather + reduces * shard_reduce + across
    # Stage 2 cannot accumulate full gradients, so it reduces in every micro-batch (DeepSpeed, stage_1_and_2.py).
    stage_two = np.where(layouts.zero_stage == 2, reduces, 1.0)
    once = stage_two * reduce_once + weights_once
    compute = micro["forward"] + micro["backward"] + micro["recompute"]
    hides_every = m * compute * factors.data_overlap
    hides_once = (micro["backward"] + micro["forward"]) * factors.data_overlap * stage_two
    exposed_every = np.maximum(every_micro - hides_every, every_micro * (1.0 - factors.data_overlap))
    exposed_once = np.maximum(once - hides_once, once * (1.0 - factors.data_overlap))
    return np.where(sharded, exposed_every, exposed_once)


def _updated(job: Job, layouts: Layouts, held: Held) -> Floats:
    """Parameters that one device's optimizer step updates."""
    return held.sharded(1, held.trained_dense + held.adapters, held.trained_experts)


def _flop(job: Job, layouts: Layouts, blocks: list[BlockTime], head: HeadTime) -> tuple[Floats, Floats]:
    """(model, hardware) FLOP of one step per device.

    Model FLOP follow PaLM's convention (Chowdhery et al. 2022, appendix B): forward once and backward twice, causal
    attention counted as the half that is needed, the head in, embedding look-ups and recompute out. Frozen weights
    need no weight gradient, so adapter runs count backward once.
    """
    forward, again = np.zeros(len(layouts)), np.zeros(len(layouts))
    for kind, block in enumerate(blocks):
        count = job.architecture.pattern.count(kind)
        forward = forward + count * block.forward_flop
        again = again + count * block.recompute_flop
    passes = 2.0 if job.uses_adapters else 1.0 + 2.0 * job.trained_layer_share
    per_micro = (forward + head.flop) / layouts.pp
    m = layouts.grad_accum
    share = np.minimum(1.0, layouts.recompute_layers * layouts.pp / job.architecture.layers)
    again = again + np.where(layouts.recompute_layers > 0, share * forward, 0.0)
    model = m * passes * per_micro
    return model, model + m * again / layouts.pp
