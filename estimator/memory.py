"""Memory per device: a sum of named components for the fullest pipeline stage, at the worse of two peaks.

The forward/backward peak holds activations and logits; the optimizer-step peak holds the step's temporaries instead.
Every array has shape (n,), one entry a candidate layout.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from estimator.activations import block_bytes, kept_bytes, micro_batch_tokens
from estimator.job import FREEZE_LAYERS, Job
from estimator.layouts import OFFLOAD, RECOMPUTE, SCHEDULES, Layouts
from estimator.stages import (
    Floats,
    StageShape,
    adapter_parameters,
    block_parameters,
    stage_shape,
    sum_of,
)

COMPONENTS = (
    "weights",
    "gradients",
    "optimizer",
    "activations",
    "logits_and_loss",
    "extra_models",
    "communication_buffers",
    "step_temporaries",
    "framework_and_context",
    "allocator_slack",
)
# NF4: 4 bits and, per block of 64, an absolute maximum that double quantisation stores in 8 bits with one fp32 per 256
# blocks (Dettmers et al. 2023, section 3).
_NF4_BYTES = 0.5 + 1.0 / 64 + 4.0 / (64 * 256)
# Adapters are kept in fp32 with fp32 gradients (PEFT, autocast_adapter_dtype).
_ADAPTER_BYTES = 4.0


@dataclass(frozen=True)
class Memory:
    """`components[name]` and `total` have shape (n,); `step_peak` is true where the optimizer step decides."""

    components: dict[str, Floats]
    total: Floats
    step_peak: np.ndarray

    def take(self, index: np.ndarray) -> Memory:
        return Memory({k: v[index] for k, v in self.components.items()}, self.total[index], self.step_peak[index])


def device_memory(job: Job, layouts: Layouts) -> tuple[Memory, np.ndarray]:
    """The fullest stage of every candidate, and which stage that is.

    Layers are dealt evenly and fewer micro-batches are in flight on later stages, so the first, second and last stage
    bound all others.
    """
    last = layouts.pp - 1
    options = [np.zeros_like(last)]
    if int(last.max(initial=0)) > 0:
        options += [np.minimum(1, last), last]
    candidates = [stage_memory(job, layouts, stage) for stage in options]
    totals = np.stack([memory.total for memory in candidates])
    fullest = totals.argmax(axis=0)
    column = np.arange(len(layouts))
    pick = {name: np.stack([memory.components[name] for memory in candidates])[fullest, column] for name in COMPONENTS}
    step_peak = np.stack([memory.step_peak for memory in candidates])[fullest, column]
    return Memory(pick, totals[fullest, column], step_peak), np.stack(options)[fullest, column]


def stage_memory(job: Job, layouts: Layouts, stage: np.ndarray) -> Memory:
    """Memory of one pipeline stage (shape (n,)) of every candidate."""
    shape = stage_shape(job.architecture, layouts, stage)
    states = _model_states(job, layouts, shape)
    activations = _activations(job, layouts, shape)
    logits = _logits_and_loss(job, layouts, shape)
    extra = _extra_models(job, layouts, states, activations)
    buffers = states["buffers"]
    context = np.full(len(layouts), job.calibration.context_bytes)
    context = context + np.where(_world(layouts) > 1, job.calibration.collective_bytes, 0.0)

    resident = states["weights"] + states["gradients"] + states["optimizer"] + extra["resident"] + buffers
    passes = activations + logits + extra["working"]
    forward_backward = resident + passes
    step = resident + states["step"]
    at_step = step > forward_backward
    zero = np.zeros(len(layouts))
    components = {
        "weights": states["weights"],
        "gradients": states["gradients"],
        "optimizer": states["optimizer"],
        "activations": np.where(at_step, zero, activations),
        "logits_and_loss": np.where(at_step, zero, logits),
        "extra_models": extra["resident"] + np.where(at_step, zero, extra["working"]),
        "communication_buffers": buffers,
        "step_temporaries": np.where(at_step, states["step"], zero),
        "framework_and_context": context,
        "allocator_slack": job.calibration.slack * np.where(at_step, states["step"], passes),
    }
    return Memory(components, sum_of(components.values()), at_step)


def _world(layouts: Layouts) -> np.ndarray:
    return layouts.tp * layouts.pp * layouts.cp * layouts.dp


def _model_states(job: Job, layouts: Layouts, shape: StageShape) -> dict[str, Floats]:
    """Weights, gradients, optimizer states and their buffers (ZeRO: Rajbhandari et al. 2020, section 5)."""
    framework, optimizer = job.framework, job.optimizer
    dense, experts, adapters, largest = _stage_parameters(job, layouts, shape)
    total = dense + experts
    trained_dense, trained_experts = _trained(job, layouts, shape, dense, experts)
    expert_copies = _world(layouts) / (layouts.pp * layouts.ep * layouts.etp)
    group = layouts.shard_group.astype(np.float64)
    # A shard group of ZeRO-3 is a second copy of the weights, sharded within the group; all else stays sharded over
    # everyone (ZeRO++, Wang et al. 2023, section 3.2). FSDP's hybrid sharding keeps everything within the group.
    secondary = np.zeros(len(layouts))
    if framework.live_parameters is not None:
        everyone = (layouts.dp * layouts.cp).astype(np.float64)
        secondary = np.where((layouts.zero_stage >= 3) & (group < everyone), framework.compute_bytes / group, 0.0)
        group = everyone
    expert_group = np.maximum(1.0, np.minimum(group, expert_copies))

    def sharded(from_stage: int, dense_part: Floats, expert_part: Floats) -> Floats:
        """What one device holds when sharding starts at ZeRO stage `from_stage`."""
        on = layouts.zero_stage >= from_stage
        return np.where(on, dense_part / group + expert_part / expert_group, dense_part + expert_part)

    weight_bytes = framework.weight_bytes
    frozen = total - trained_dense - trained_experts
    if job.quantised:
        blocks = frozen - _embedding_parameters(job, layouts, shape)
        rest = _embedding_parameters(job, layouts, shape) * framework.quantised_rest_bytes
        held_dense = blocks * _NF4_BYTES + rest
        weights = np.where(layouts.zero_stage >= 3, held_dense / group, held_dense)
    elif job.uses_adapters or job.training.method == "freeze":
        # Frozen weights are loaded in the compute dtype: no optimizer ever needs them in full precision.
        weights = sharded(3, dense * job.frozen_bytes, experts * job.frozen_bytes)
    else:
        weights = sharded(3, dense * weight_bytes, experts * weight_bytes)
    weights = weights + secondary * total
    weights = weights + sharded(3, adapters * _ADAPTER_BYTES, np.zeros(len(layouts)))

    # FSDP that does not reshard after forward (stage 2) keeps all gathered weights, and while a pipeline accumulates
    # micro-batches, unsharded gradients (torchtitan, parallelize_llama and its pipeline schedules).
    unsharded = (layouts.zero_stage == 2) & (framework.live_units > 0) & (group > 1)
    if framework.live_units > 0 and not job.quantised:
        frozen_bytes = job.frozen_bytes if job.uses_adapters else weight_bytes
        weights = np.where(unsharded, sharded(1, dense * frozen_bytes, experts * frozen_bytes), weights)
    if framework.live_parameters is None:
        gathered = np.minimum(framework.live_units * largest, total) * framework.compute_bytes
    else:
        gathered = np.minimum(framework.live_parameters, total) * framework.compute_bytes
    gathers = (layouts.zero_stage >= 3) & (group > 1)
    buffers = np.where(gathers, gathered, 0.0) + np.where(unsharded, total * framework.compute_bytes, 0.0)
    if framework.cast_cache and not job.uses_adapters:
        buffers = buffers + np.where(gathers, 0.0, total * framework.compute_bytes)

    gradient_bytes = framework.gradient_bytes if optimizer.keeps_gradients else 0.0
    gradients = sharded(2, trained_dense * gradient_bytes, trained_experts * gradient_bytes)
    accumulates = unsharded & (layouts.pp > 1) & (layouts.grad_accum > 1)
    gradients = np.where(accumulates, (trained_dense + trained_experts) * gradient_bytes, gradients)
    gradients = gradients + sharded(2, adapters * _ADAPTER_BYTES, np.zeros(len(layouts)))
    trained = trained_dense + trained_experts + adapters
    reduces = _world(layouts) > layouts.pp * layouts.tp
    buffers = buffers + np.where(reduces, np.minimum(framework.bucket_bytes, trained * framework.reduce_bytes), 0.0)

    state = optimizer.state_elements * job.updated_bytes + optimizer.state_bytes + framework.master_bytes
    states = sharded(1, trained_dense * state, trained_experts * state)
    adapter_state = optimizer.state_elements * _ADAPTER_BYTES + optimizer.state_bytes
    states = states + sharded(1, adapters * adapter_state, np.zeros(len(layouts)))
    temporary = 0.0 if framework.fused_optimizer else optimizer.step_elements
    stepped = sharded(1, trained_dense, trained_experts)
    step = temporary * job.updated_bytes * stepped
    if framework.live_parameters is not None:
        # Stage 3 steps through groups of parameters, so its fp32 copies are those of one group (sub_group_size).
        group_size = np.minimum(stepped, framework.live_parameters)
        stepped = np.where(layouts.zero_stage >= 3, group_size, stepped)
    step = step + framework.step_bytes * stepped
    step = step + temporary * _ADAPTER_BYTES * sharded(1, adapters, np.zeros(len(layouts)))

    offloads_optimizer = np.isin(layouts.offload, (OFFLOAD.index("optimizer"), OFFLOAD.index("params")))
    states = np.where(offloads_optimizer, 0.0, states)
    step = np.where(offloads_optimizer, 0.0, step)
    weights = np.where((layouts.offload == OFFLOAD.index("params")) & (layouts.zero_stage >= 3), 0.0, weights)
    return {
        "weights": weights,
        "gradients": gradients,
        "optimizer": states,
        "step": step,
        "buffers": buffers,
        "parameters": total,
    }


def _embedding_parameters(job: Job, layouts: Layouts, shape: StageShape) -> Floats:
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


def _stage_parameters(job: Job, layouts: Layouts, shape: StageShape) -> tuple[Floats, Floats, Floats, Floats]:
    """Parameters on one device of the stage: (dense, routed experts, adapters, largest gathered unit)."""
    dense = _embedding_parameters(job, layouts, shape)
    largest = dense.copy()
    experts = np.zeros(len(layouts))
    adapters = np.zeros(len(layouts))
    for kind, block in enumerate(job.architecture.blocks):
        block_dense, block_experts = block_parameters(block, layouts)
        dense = dense + shape.layers[kind] * block_dense
        experts = experts + shape.layers[kind] * block_experts
        adapters = adapters + shape.layers[kind] * adapter_parameters(job, block, layouts)
        largest = np.maximum(largest, np.where(shape.layers[kind] > 0, block_dense + block_experts, 0.0))
    return dense, experts, adapters, largest


def _trained(job: Job, layouts: Layouts, shape: StageShape, dense: Floats, experts: Floats) -> tuple[Floats, Floats]:
    """The part of the stage's own parameters that is trained (adapters apart)."""
    if job.uses_adapters:
        return np.zeros(len(layouts)), np.zeros(len(layouts))
    if job.training.method == "freeze":
        in_blocks = dense - _embedding_parameters(job, layouts, shape)
        share = np.minimum(1.0, FREEZE_LAYERS / np.maximum(1.0, shape.layer_count)) * shape.has_head
        return in_blocks * share, experts * share
    return dense, experts


def in_flight(layouts: Layouts, stage: np.ndarray) -> Floats:
    """Micro-batches whose activations a stage holds at once, in units of the stage's whole layers.

    1F1B: pp - stage. Interleaved: warm-up of 2 (pp - stage - 1) + (vpp - 1) pp chunks and the one at work, each 1/vpp
    of the layers (Narayanan et al. 2021, section 2.2; Megatron, forward_backward_pipelining_with_interleaving). GPipe:
    all. DualPipe: pp + 1 (DeepSeek-V3 report, table 2).
    """
    name = SCHEDULES.index
    plain = (layouts.pp - stage).astype(np.float64)
    chunks = 2.0 * (layouts.pp - stage - 1) + (layouts.vpp - 1) * layouts.pp + 1.0
    held = np.where(layouts.vpp > 1, chunks / layouts.vpp, plain)
    held = np.where(layouts.schedule == name("dualpipe"), layouts.pp + 1.0, held)
    held = np.where(layouts.schedule == name("gpipe"), np.inf, held)
    return np.minimum(held, layouts.grad_accum)


def _activations(job: Job, layouts: Layouts, shape: StageShape) -> Floats:
    """Kept activations of the micro-batches in flight, and the working set of the block being recomputed."""
    block_mode = layouts.recompute == RECOMPUTE.index("block")
    recomputes = np.isin(layouts.recompute, (RECOMPUTE.index("full"), RECOMPUTE.index("block")))
    selective = layouts.recompute == RECOMPUTE.index("selective")
    kept = np.zeros(len(layouts))
    working = np.zeros(len(layouts))
    tokens = micro_batch_tokens(job, layouts)
    outside = np.where(layouts.sequence_parallel > 0, layouts.tp, 1)
    boundary = job.activation_bytes * tokens * job.architecture.hidden / outside
    recomputed_share = np.where(
        block_mode, np.minimum(1.0, layouts.recompute_layers / np.maximum(1.0, shape.layer_count)), 0.0
    )
    for kind, block in enumerate(job.architecture.blocks):
        everything = block_bytes(job, block, layouts)
        per_layer = kept_bytes(job, block, layouts)
        per_layer = per_layer * (1.0 - recomputed_share) + boundary * recomputed_share
        kept = kept + shape.layers[kind] * per_layer
        present = shape.layers[kind] > 0
        working = np.maximum(working, np.where(present & (recomputes | selective), everything - per_layer, 0.0))
    kept = kept * in_flight(layouts, shape.stage) * job.trained_layer_share
    kept = np.where(layouts.offload == OFFLOAD.index("activations"), 2.0 * boundary, kept)
    return kept + working + shape.has_embedding * boundary


def _logits_and_loss(job: Job, layouts: Layouts, shape: StageShape) -> Floats:
    """Output head and loss on the last stage.

    Unfused, `logit_bytes` per logit at the peak: 16-bit logits, fp32 log-softmax, and their gradients. Fused (Liger,
    cut cross-entropy) the logits exist one chunk at a time, and the gradient of the hidden states is kept.
    """
    architecture = job.architecture
    tokens = micro_batch_tokens(job, layouts)
    hidden_bytes = 2.0 * job.activation_bytes * tokens * architecture.hidden
    if job.fused_loss:
        chunk = np.minimum(tokens, np.maximum(1.0, tokens * architecture.hidden / architecture.vocab))
        logits = job.framework.logit_bytes * chunk * architecture.vocab / layouts.tp
    else:
        logits = job.framework.logit_bytes * tokens * architecture.vocab / layouts.tp
        if architecture.logit_softcap:
            logits = logits + job.activation_bytes * tokens * architecture.vocab / layouts.tp
    return shape.has_head * (logits + hidden_bytes)


def _extra_models(job: Job, layouts: Layouts, states: dict[str, Floats], activations: Floats) -> dict[str, Floats]:
    """Frozen reference (DPO, KTO, IPO, GRPO, PPO), and for PPO a frozen reward model and a trained critic (TRL).

    Frozen copies are held in the compute dtype and sharded as the weights are. The KV cache of generated samples (PPO,
    GRPO) is not in here; `estimator.training` warns of it.
    """
    zero = np.zeros(len(layouts))
    stage = job.training.stage
    share = np.where(layouts.zero_stage >= 3, layouts.shard_group, 1)
    frozen = states["parameters"] * job.activation_bytes / share
    resident = frozen if job.has_reference else zero
    working = zero
    if stage == "ppo":
        critic = states["weights"] + states["gradients"] + states["optimizer"]
        resident = resident + frozen + critic
        working = activations
    return {"resident": resident, "working": working}
