"""Memory per device: a sum of named components for the fullest pipeline stage, at the worse of two peaks.

The forward/backward peak holds activations and logits; the optimizer-step peak holds the step's temporaries instead.
Every array has shape (n,), one entry a candidate layout.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from estimator.activations import block_bytes, boundary_bytes, kept_bytes, micro_batch_tokens
from estimator.job import Job
from estimator.layouts import OFFLOAD, RECOMPUTE, SCHEDULES, Layouts
from estimator.stages import Floats, StageShape, recomputed_share, stage_shape, sum_of
from estimator.states import States, model_states, world_size

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


@dataclass(frozen=True)
class Memory:
    """`components[name]` and `total` have shape (n,); `step_peak` is true where the optimizer step decides."""

    components: dict[str, Floats]
    total: Floats
    step_peak: np.ndarray


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
    states = model_states(job, layouts, shape)
    activations = _activations(job, layouts, shape)
    logits = _logits_and_loss(job, layouts, shape)
    extra = _extra_models(job, layouts, states, activations)
    buffers = states.buffers
    context = np.full(len(layouts), job.calibration.context_bytes)
    context = context + np.where(world_size(layouts) > 1, job.calibration.collective_bytes, 0.0)

    resident = states.weights + states.gradients + states.optimizer + extra["resident"] + buffers
    passes = activations + logits + extra["working"]
    forward_backward = resident + passes
    step = resident + states.step
    at_step = step > forward_backward
    zero = np.zeros(len(layouts))
    components = {
        "weights": states.weights,
        "gradients": states.gradients,
        "optimizer": states.optimizer,
        "activations": np.where(at_step, zero, activations),
        "logits_and_loss": np.where(at_step, zero, logits),
        "extra_models": extra["resident"] + np.where(at_step, zero, extra["working"]),
        "communication_buffers": buffers,
        "step_temporaries": np.where(at_step, states.step, zero),
        "framework_and_context": context,
        "allocator_slack": job.calibration.slack * np.where(at_step, states.step, passes),
    }
    return Memory(components, sum_of(components.values()), at_step)


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
    recomputes = np.isin(layouts.recompute, (RECOMPUTE.index("full"), RECOMPUTE.index("block")))
    selective = layouts.recompute == RECOMPUTE.index("selective")
    kept = np.zeros(len(layouts))
    working = np.zeros(len(layouts))
    boundary = boundary_bytes(job, layouts)
    again = recomputed_share(layouts, shape)
    for kind, block in enumerate(job.architecture.blocks):
        everything = block_bytes(job, block, layouts)
        per_layer = kept_bytes(job, block, layouts, everything) * (1.0 - again) + boundary * again
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


def _extra_models(job: Job, layouts: Layouts, states: States, activations: Floats) -> dict[str, Floats]:
    """Frozen reference (DPO, KTO, IPO, GRPO, PPO), and for PPO a frozen reward model and a trained critic (TRL).

    Frozen copies are held in the compute dtype and sharded as the weights are. The KV cache of generated samples (PPO,
    GRPO) is not in here; `estimator.training` warns of it.
    """
    zero = np.zeros(len(layouts))
    stage = job.training.stage
    share = np.where(layouts.zero_stage >= 3, layouts.shard_group, 1)
    frozen = states.parameters * job.activation_bytes / share
    resident = frozen if job.has_reference else zero
    working = zero
    if stage == "ppo":
        critic = states.weights + states.gradients + states.optimizer
        resident = resident + frozen + critic
        working = activations
    return {"resident": resident, "working": working}
