"""From operators to one optimizer step: what overlaps with what, the pipeline bubble, and the traffic of sharding."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from estimator.kernels.activations import boundary_bytes
from estimator.kernels.attention import context_traffic
from estimator.kernels.collectives import Group, Groups, all_gather, all_reduce, all_to_all, dispatch, place, send
from estimator.kernels.compute import (
    DECISIVE,
    BlockTime,
    HeadTime,
    block_time,
    embedding_time,
    head_time,
    matmul_time,
    optimizer_time,
)
from estimator.kernels.offloading import link_rate, offloaded_seconds
from estimator.model.architecture import Block
from estimator.model.vision import tower_matmul
from estimator.plan.layouts import RECOMPUTE, SCHEDULES, Layouts, either
from estimator.plan.training.job import Job
from estimator.plan.training.options import switched_on
from estimator.plan.training.shards import Held, held_parameters
from estimator.plan.training.stages import (
    Floats,
    StageShape,
    mean_stage,
    micro_batch_tokens,
    recomputed_share,
    stage_shape,
    sum_of,
)
from estimator.rl.generation import generation_seconds
from estimator.training.launches import host_seconds, waiting
from estimator.training.matrix_updates import matrix_update_time
from estimator.training.memory import stage_memory
from estimator.training.states import model_states

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
    "offload",
    "generation",
    "stragglers",
)
# Part of 16 bits that a weight of four bits takes without its scales (definition).
_PACKED = 0.25
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


class Message(NamedTuple):
    """`times` collectives of `size` bytes a micro-batch (of data parallelism: a step) over one group; `seconds` are of
    all of them, before anything hides them. Arrays of shape (n,)."""

    group: Group
    size: Floats
    times: Floats | float
    seconds: Floats


@dataclass(frozen=True)
class Passes:
    """What one micro-batch takes, before it is put into a step.

    `blocks` and `traffic` (messages by kind) are of one layer of each kind of block, `head` and `embedding` (forward,
    backward) of the ends. `micro` are seconds on the stage that takes longest by component, `stage` says which one that
    is; `even` are the seconds of all stages together, divided by them. `ends` are those of the first stage and, where
    there are several, of the last.
    """

    groups: Groups
    blocks: list[BlockTime]
    traffic: list[dict[str, Message]]
    head: HeadTime
    embedding: tuple[Floats, Floats]
    micro: dict[str, Floats]
    stage: np.ndarray
    per_micro: Floats
    even: Floats
    ends: list[dict[str, Floats]]


def passes(job: Job, layouts: Layouts) -> Passes:
    """Of the first and the last stage, the one that takes longer decides."""
    groups = place(job, layouts)
    blocks = [block_time(job, block, layouts) for block in job.architecture.blocks]
    traffic = _traffic(job, layouts, groups)
    head, embedding = head_time(job, layouts), embedding_time(job, layouts)
    last = layouts.pp - 1
    options = [np.zeros_like(last), last] if layouts.max_of("pp") > 1 else [np.zeros_like(last)]
    layers = [
        _layer(job, layouts, block, time, communication)
        for block, time, communication in zip(job.architecture.blocks, blocks, traffic, strict=True)
    ]
    stages = [_stage(job, layouts, layers, blocks, head, embedding, stage) for stage in options]
    totals = [micro_batch_seconds(stage) for stage in stages]
    micro, per_micro, slowest, even = stages[0], totals[0], options[0], totals[0]
    if len(stages) > 1:
        later = totals[1] > totals[0]
        micro = {name: np.where(later, stages[1][name], micro[name]) for name in micro}
        per_micro, slowest = np.where(later, totals[1], totals[0]), np.where(later, last, 0)
        even = micro_batch_seconds(_stage(job, layouts, layers, blocks, head, embedding, None))
    return Passes(groups, blocks, traffic, head, embedding, micro, slowest, per_micro, even, stages)


def step_time(job: Job, layouts: Layouts) -> Step:
    """One step; of a run that ends in another precision the mean over all its steps."""
    step, share = _on_machine(job, _step_time(job, layouts)), job.training.fp8_healing
    if job.healing is None:
        return step
    healed = _on_machine(job.healing, _step_time(job.healing, layouts))
    parts = {name: (1.0 - share) * took + share * healed.components[name] for name, took in step.components.items()}
    return replace(step, components=parts, seconds=(1.0 - share) * step.seconds + share * healed.seconds)


def _step_time(job: Job, layouts: Layouts) -> Step:
    """The slowest stage's micro-batches, the bubble, and what of the communication is not hidden."""
    micro_passes = passes(job, layouts)
    groups, micro = micro_passes.groups, micro_passes.micro
    first = stage_shape(job.architecture, layouts, np.zeros_like(layouts.pp))
    held = held_parameters(job, layouts, first)
    m = layouts.grad_accum.astype(np.float64)

    components: dict[str, Floats] = dict.fromkeys(COMPONENTS, layouts.zeros())
    for name in (*MICRO, "host"):
        components[name] = m * micro[name]
    sends = pipeline_sends(job, layouts, groups)
    components["pipeline"] = m * sends
    if layouts.max_of("pp") > 1:
        # What a micro-batch takes on all stages together, less the slowest one's own.
        others = np.maximum(0.0, layouts.pp * micro_passes.even - micro_passes.per_micro)
        components["bubble"] = bubble_left(layouts) * (others + (layouts.pp - 1) * sends)
    components["data_parallel"] = _data_parallel(job, layouts, groups, held, micro, m)
    components["optimizer"] = optimizer_time(job, layouts, updated(job, layouts, held))
    if job.updates_matrices:
        components["optimizer"] = components["optimizer"] + sum_of(
            matrix_update_time(job, layouts, groups, first, held)
        )
    components["host"] = components["host"] + job.calibration.framework.step_host_s
    if layouts.max_of("offload"):
        passing = micro["forward"] + micro["backward"] + micro["recompute"] + micro["host"]
        # Copies to the host run beside what compute does not hide of the network's traffic, too.
        copying = offloaded_seconds(job, layouts, first, held, passing)
        components["offload"] = np.maximum(0.0, copying - components["data_parallel"])
    if job.pages_states:
        components["offload"] = components["offload"] + _paging(job, layouts, first)
    if job.training.stage in ("ppo", "grpo"):
        components["generation"] = generation_seconds(job, layouts)
    seconds = sum_of(components[name] for name in COMPONENTS)
    slack = straggler_share(job)
    components["stragglers"] = seconds * slack
    model_flop, hardware_flop = _flop(job, layouts, micro_passes.blocks, micro_passes.head)
    return Step(components, seconds * (1.0 + slack), model_flop, hardware_flop)


def _on_machine(job: Job, step: Step) -> Step:
    """The step on a machine of one's own, which takes so many times as long for all of it."""
    times = job.calibration.device.step
    if times == 1.0:
        return step
    components = {name: seconds * times for name, seconds in step.components.items()}
    return replace(step, components=components, seconds=step.seconds * times)


def _paging(job: Job, layouts: Layouts, shape: StageShape) -> Floats:
    """Pages of optimizer states that the device has no room for come in when they are updated, while others go out,
    which nothing hides: the kernel that updates them waits (bitsandbytes, prefetch_state)."""
    states = model_states(job, layouts, shape).optimizer
    held = stage_memory(job, layouts, shape.stage, detail=False).paged
    return (states - held) / link_rate(job)


def straggler_share(job: Job) -> float:
    """What waiting for the slowest of many nodes adds to a step, as a share of it; an array where the factor is one."""
    return job.calibration.framework.straggler * float(np.log2(max(1, job.machine.nodes)))


# What a step takes once for each micro-batch, the host aside.
MICRO = ("forward", "backward", "recompute", "extra_models", "tensor_parallel", "context_parallel", "expert_parallel")


def micro_batch_seconds(stage: dict[str, Floats]) -> Floats:
    return sum_of(stage[name] for name in (*MICRO, "host"))


def _layer(
    job: Job, layouts: Layouts, block: Block, time: BlockTime, communication: dict[str, Message]
) -> dict[str, Floats]:
    """Seconds of one micro-batch in one layer by component that it has, on whatever stage it is."""
    factors = job.calibration.framework
    tensor_hidden = factors.tensor_overlap * switched_on(job, layouts, "tp_overlap")
    expert_hidden = factors.expert_overlap * switched_on(job, layouts, "moe_overlap")
    seconds: dict[str, Floats] = {}
    repeated = 1.0
    if layouts.recomputes:
        repeated = 1.0 + 0.5 * (layouts.recompute == RECOMPUTE.index("full"))
    if layouts.max_of("tp") > 1:
        seconds["tensor_parallel"] = communication["tensor"].seconds * repeated * (1.0 - tensor_hidden)
    if "expert" in communication:
        seconds["expert_parallel"] = communication["expert"].seconds * repeated * (1.0 - expert_hidden)
    if "context" in communication:
        moving, attention = communication["context"].seconds, time.attention_forward + time.attention_backward
        beside = np.maximum(0.0, moving - attention * factors.compute)
        seconds["context_parallel"] = moving * repeated if job.framework.gathering.exchanges_heads else beside
    host, wait = host_seconds(job, layouts, block, time)
    device = (time.forward + time.backward + time.recompute) * factors.compute
    if seconds:
        # Waiting for the host covers communication too.
        device = device + sum_of(seconds.values())
    seconds["host"] = waiting(device, host) + wait
    return seconds


def _stage(
    job: Job,
    layouts: Layouts,
    layers: list[dict[str, Floats]],
    blocks: list[BlockTime],
    head: HeadTime,
    embedding: tuple[Floats, Floats],
    stage: np.ndarray | None,
) -> dict[str, Floats]:
    """Seconds of one micro-batch on one stage by component; without a stage, the mean of all."""
    shape = mean_stage(job.architecture, layouts) if stage is None else stage_shape(job.architecture, layouts, stage)
    out: dict[str, Floats] = {}
    share = recomputed_share(layouts, shape)
    for number, time, layer in zip(shape.layers, blocks, layers, strict=True):
        count = number if shape.visited is layouts.ones() else number * shape.visited
        parts = {"forward": time.forward, "backward": time.backward, **layer}
        if layouts.recomputes or job.training.tiled_mlp:
            parts["recompute"] = time.recompute + share * (time.forward - time.copied)
        for name, seconds in parts.items():
            out[name] = out[name] + count * seconds if name in out else count * seconds
    headed, (looked_up, scattered) = shape.has_head * shape.visited, embedding
    out["forward"] = out["forward"] + headed * head.forward + shape.has_embedding * looked_up
    out["backward"] = out["backward"] + headed * head.backward + shape.has_embedding * scattered
    out = dict.fromkeys((*MICRO, "host"), layouts.zeros()) | out
    out["extra_models"] = _extra_models(job, layouts, out) + shape.has_embedding * _seeing(job, layouts)
    for name in ("forward", "backward", "recompute", "extra_models"):
        out[name] = out[name] * job.calibration.framework.compute
    return out


def layer_seconds(job: Job, layouts: Layouts) -> tuple[list[Floats], Floats, Floats]:
    """Seconds of one micro-batch in one layer of each kind of block, in the head, and in the embedding: forward and
    backward with all that they wait for."""
    groups, compute = place(job, layouts), job.calibration.framework.compute

    def passed(forward: Floats, backward: Floats, again: Floats) -> Floats:
        extra = _extra_models(job, layouts, {"forward": forward, "backward": backward, "recompute": again})
        return compute * (forward + backward + again + extra)

    layers = []
    for block in job.architecture.blocks:
        time = block_time(job, block, layouts)
        layer = _layer(job, layouts, block, time, _block_communication(job, layouts, groups, block))
        layers.append(passed(time.forward, time.backward, time.recompute) + sum_of(layer.values()))
    head, (looked_up, scattered), zero = head_time(job, layouts), embedding_time(job, layouts), layouts.zeros()
    return layers, passed(head.forward, head.backward, zero), passed(looked_up, scattered, zero)


def _extra_models(job: Job, layouts: Layouts, stage: dict[str, Floats]) -> Floats:
    """Forward passes of a reference (also through switched-off adapters), and PPO's reward model and trained critic."""
    forward, trained = stage["forward"], stage["forward"] + stage["backward"] + stage["recompute"]
    match job.training.stage:
        case "dpo" | "ipo" | "grpo":
            return forward
        case "kto":  # Policy and reference read prompts with other prompts' answers besides (TRL, KTOTrainer).
            return 3.0 * forward
        case "ppo":
            return 2.0 * forward + trained
    return layouts.zeros()


def _seeing(job: Job, layouts: Layouts) -> Floats:
    """Passes of what reads images over those of one micro-batch: forward, and back and again where it is trained."""
    tower = job.architecture.vision
    if tower is None or not job.sees:
        return layouts.zeros()
    training = job.training
    columns, passed = tower_matmul(tower, job.sequence_patches, training.images + training.video_frames)
    each = matmul_time(job, job.patches(layouts), columns / layouts.tp, float(tower.hidden), head=True)
    again = np.where(layouts.recompute >= RECOMPUTE.index("full"), 4.0, 3.0)
    return tower.layers * each * passed * (again if training.vision == "trained" else 1.0)


def _traffic(job: Job, layouts: Layouts, groups: Groups) -> list[dict[str, Message]]:
    """Messages of one layer of each kind of block, made once of candidates side by side that send alike."""
    alike = layouts.runs(DECISIVE)
    if not alike:
        return [_block_communication(job, layouts, groups, block) for block in job.architecture.blocks]
    few = _traffic(job, alike.layouts, place(job, alike.layouts))

    def of_all(name: str, sent: Message) -> Message:
        times = alike.spread(sent.times) if isinstance(sent.times, np.ndarray) else sent.times
        return Message(getattr(groups, name), alike.spread(sent.size), times, alike.spread(sent.seconds))

    return [{name: of_all(name, sent) for name, sent in messages.items()} for messages in few]


def _block_communication(job: Job, layouts: Layouts, groups: Groups, block: Block) -> dict[str, Message]:
    """Messages of one block's forward and backward communication.

    Tensor: an all-reduce (or all-gather and reduce-scatter) after attention and after the MLP, each way (Shoeybi et al.
    2019, section 3). Expert: dispatch and combine, each way. Context: keys and values round the ring, twice as much
    back (Liu et al. 2023, Ring Attention).
    """
    tokens = micro_batch_tokens(job, layouts)
    row = tokens * job.architecture.hidden * job.activation_bytes
    sums = (block.mixer != "none") + (block.feed != "none")
    if job.architecture.parallel_block:
        sums = 1
    messages: dict[str, Message] = {}
    if layouts.max_of("tp") > 1:
        times = 2.0 * sums
        seconds = times * _gathered(job, layouts) * all_reduce(groups.tensor, row)
        messages["tensor"] = Message(groups.tensor, row, times, seconds)
    if block.experts and layouts.max_of("ep") > 1:
        # Tokens travel at the width that experts read, which may be a narrower latent one.
        rows, row_bytes = tokens / layouts.tp, float(block.expert_inputs * job.activation_bytes)
        sent = rows * (row_bytes * block.top_k)
        kernels, reach = "hybridep" if job.hybrid_dispatch else "deepep", block.expert_reach
        each = either(
            np.broadcast_to(switched_on(job, layouts, "moe_dispatcher"), layouts.tp.shape),
            lambda: dispatch(groups.expert, rows, row_bytes, float(block.top_k), kernels, reach),
            lambda: all_to_all(groups.expert, sent),
        )
        messages["expert"] = Message(groups.expert, sent, 4.0, 4.0 * each)
    if block.heads and layouts.max_of("cp") > 1:
        size, times, seconds = context_traffic(job, block, layouts, groups.context, tokens)
        messages["context"] = Message(groups.context, size, times, seconds)
    return messages


def _gathered(job: Job, layouts: Layouts) -> Floats:
    """What is left of an all-reduce's time where it is an all-gather of values cast before, and a reduce-scatter.

    Hand-written modules gather what sequence parallelism splits in the precision that they multiply it in (Transformer
    Engine, distributed.py, gather_along_first_dim).
    """
    if job.style != "fused" or job.compute_bytes >= job.activation_bytes:
        return layouts.ones()
    gathered = 0.5 * (1.0 + job.compute_bytes / job.activation_bytes)
    return np.where(layouts.sequence_parallel > 0, gathered, 1.0)


# Fields of a layout on which these depend.
_SENDING = ("tp", "sequence_parallel", "pp", "vpp", "cp", "dp", "micro_batch")


def pipeline_sends(job: Job, layouts: Layouts, groups: Groups) -> Floats:
    """Sends of one micro-batch that a stage waits for, forward and backward.

    1F1B sends and receives between passes; half of it is hidden. Interleaved stages overlap their sends with another
    part's pass (Megatron-LM, overlap_p2p_comm): what is left is in the bubble.
    """
    alike = layouts.runs(_SENDING)
    if alike:
        return alike.spread(pipeline_sends(job, alike.layouts, place(job, alike.layouts)))
    return (layouts.vpp == 1) * send(groups.pipeline, boundary_bytes(job, layouts))


def bubble_left(layouts: Layouts) -> Floats:
    """Part of the other stages' micro-batch that the slowest one waits for (Narayanan et al. 2021, section 2.2)."""
    waits = 1.0 / layouts.vpp
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
    if groups.data.idle and groups.expert_data.idle:
        return layouts.zeros()
    overlap = job.calibration.framework.data_overlap * job.calibration.device.network.overlaps
    # A device that waits for its host is free to communicate.
    passing = micro["forward"] + micro["backward"] + micro["host"]

    def exposed(moved: Floats, hides: Floats, overlap: Floats | float) -> Floats:
        return np.maximum(moved - hides * overlap, moved * (1.0 - overlap))

    def of_sharded() -> Floats:
        moved = _seconds(sharded_messages(job, layouts, groups, held, m))
        return exposed(moved, m * (passing + micro["recompute"]), overlap)

    def of_whole() -> Floats:
        messages = whole_messages(job, layouts, groups, held, m)
        hides = passing * _stage_two_rounds(job, layouts, m)
        hidden = overlap * switched_on(job, layouts, "dp_overlap")
        if job.chosen("dp_overlap") != "gradients":
            return exposed(_seconds(messages), hides, hidden)
        # Whole replicas gather sums of gradients, others weights, which then nothing hides.
        gathered = _seconds({"gather": messages.pop("gather")})
        alone = gathered * (layouts.zero_stage >= 1)
        return exposed(_seconds(messages) + gathered - alone, hides, hidden) + alone

    return either(layouts.zero_stage >= 3, of_sharded, of_whole)


def _seconds(messages: dict[str, list[Message]]) -> Floats:
    return sum_of(sum_of(part.seconds for part in parts) for parts in messages.values())


def _everything(
    job: Job, groups: Groups, size: float, times: Floats | float, dense: Floats, experts: Floats, group: Group
) -> list[Message]:
    """All parameters of either kind gathered `times` over, or their gradients reduced, at `size` bytes each."""
    parts = [(group, dense * size), (groups.expert_data, experts * size)]
    return [
        Message(members, moved, times, times * all_gather(members, moved))
        for members, moved in (parts if job.architecture.experts else parts[:1])
    ]


def sharded_messages(job: Job, layouts: Layouts, groups: Groups, held: Held, m: Floats) -> dict[str, list[Message]]:
    """What ZeRO-3 moves in one step, by what for."""
    framework = job.framework
    trained_dense, trained_experts = held.trained_dense + held.adapters, held.trained_experts
    reduces = m if framework.gradients.reduces_each_micro_batch else 1.0
    # Forward and again backward; quantised weights travel packed.
    gathers = 2.0 * m * job.packed(1.0, _PACKED)
    messages = {
        "gather": _everything(
            job, groups, framework.weights.compute_bytes, gathers, held.dense, held.experts, groups.shard
        ),
        "reduce": _everything(
            job, groups, framework.gradients.reduce_bytes, reduces, trained_dense, trained_experts, groups.shard
        ),
    }
    replicas = layouts.dp * layouts.cp / layouts.shard_group
    if replicas.max(initial=1.0) > 1.0:
        shards = trained_dense * framework.gradients.reduce_bytes / layouts.shard_group
        several = (replicas > 1).astype(np.float64)
        messages["replicas"] = [Message(groups.data, shards, several, several * all_reduce(groups.data, shards))]
    return messages


def whole_messages(job: Job, layouts: Layouts, groups: Groups, held: Held, m: Floats) -> dict[str, list[Message]]:
    """What ZeRO-0 to 2 move in one step, by what for."""
    framework = job.framework
    trained_dense, trained_experts = held.trained_dense + held.adapters, held.trained_experts
    # An all-reduce is a reduce-scatter and an all-gather.
    reduced = _stage_two_rounds(job, layouts, m)
    if framework.gradients.all_reduced:
        reduced = reduced * np.where(layouts.zero_stage >= 1, 2.0, 1.0)
    return {
        "reduce": _everything(
            job, groups, framework.gradients.reduce_bytes, reduced, trained_dense, trained_experts, groups.data
        ),
        "gather": _everything(
            job, groups, framework.weights.compute_bytes, 1.0, trained_dense, trained_experts, groups.data
        ),
    }


def moved_by_data(job: Job, layouts: Layouts, groups: Groups, held: Held) -> dict[str, list[Message]]:
    """What data parallelism moves in a step, of candidates that are all of ZeRO-3 or all of less."""
    idle = groups.data.idle and groups.expert_data.idle
    of = sharded_messages if layouts.zero_stage.min(initial=3) >= 3 else whole_messages
    return {} if idle else of(job, layouts, groups, held, layouts.grad_accum.astype(np.float64))


def _stage_two_rounds(job: Job, layouts: Layouts, m: Floats) -> Floats:
    """Stage 2 cannot accumulate full gradients, so it reduces in every micro-batch (DeepSpeed, stage_1_and_2.py)."""
    return np.where(layouts.zero_stage == 2, m if job.framework.gradients.reduces_each_micro_batch else 1.0, 1.0)


def updated(job: Job, layouts: Layouts, held: Held) -> Floats:
    """Parameters that one device's optimizer step updates."""
    return held.sharded(1, held.trained_dense + held.adapters, held.trained_experts)


def _flop(job: Job, layouts: Layouts, blocks: list[BlockTime], head: HeadTime) -> tuple[Floats, Floats]:
    """(model, hardware) FLOP of one step per device.

    Model FLOP follow PaLM's convention (Chowdhery et al. 2022, appendix B): forward once and backward twice, causal
    attention counted as the half that is needed, the head in, embedding look-ups and recompute out. Frozen weights
    need no weight gradient, so adapter runs count backward once.
    """
    forward, again = layouts.zeros(), layouts.zeros()
    for kind, block in enumerate(blocks):
        count = job.architecture.pattern.count(kind)
        forward = forward + count * block.forward_flop
        if layouts.recomputes or job.training.tiled_mlp:
            again = again + count * block.recompute_flop
    passes = 1.0 + job.trained_layer_share + job.weight_gradient_share
    per_micro = (forward + head.flop) / layouts.pp
    m = layouts.grad_accum
    model = m * passes * per_micro
    if not (layouts.recomputes or job.training.tiled_mlp):
        return model, model
    share = np.minimum(1.0, layouts.recompute_layers * layouts.pp / job.architecture.layers)
    again = again + np.where(layouts.recompute_layers > 0, share * forward, 0.0)
    return model, model + m * again / layouts.pp
