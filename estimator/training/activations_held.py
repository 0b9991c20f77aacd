"""Activations of one pipeline stage: what is kept of the micro-batches in flight, and what the layer at work needs."""

from __future__ import annotations

import numpy as np

from estimator.kernels.activations import (
    attention_gradient_elements,
    block_bytes,
    boundary_bytes,
    expert_working_elements,
    gathered_key_elements,
    gradient_elements,
    kept_bytes,
    saved_by_operator,
    tile_bytes,
)
from estimator.kernels.adapters import leaked_bytes, matrix_working_bytes, working_elements
from estimator.model.architecture import Block
from estimator.plan.layouts import OFFLOAD, RECOMPUTE, SCHEDULES, Layouts
from estimator.plan.training.job import Job
from estimator.plan.training.shards import reached
from estimator.plan.training.stages import Floats, StageShape, micro_batch_tokens, recomputed_share


def in_flight(layouts: Layouts, stage: np.ndarray) -> Floats:
    """Micro-batches whose activations a stage holds at once, in units of the stage's whole layers.

    1F1B: pp - stage. Interleaved: warm-up of 2 (pp - stage - 1) + (vpp - 1) pp chunks and the one at work, each 1/vpp
    of the layers (Narayanan et al. 2021, section 2.2; Megatron, forward_backward_pipelining_with_interleaving). GPipe:
    all. V-half: half of (pp + 2) on every stage (Qi et al. 2024, table 1). DualPipe: pp + 1 (DeepSeek-V3 report, table
    2), which pass through half of the device's layers each.
    """
    held = (layouts.pp - stage).astype(np.float64)
    if layouts.max_of("vpp") > 1:
        chunks = 2.0 * (layouts.pp - stage - 1) + (layouts.vpp - 1) * layouts.pp + 1.0
        held = np.where(layouts.vpp > 1, chunks / layouts.vpp, held)
    name = SCHEDULES.index
    if layouts.max_of("schedule") > name("interleaved"):
        held = np.where(layouts.schedule == name("v-half"), (layouts.pp + 2) // 2, held)
        held = np.where(layouts.schedule == name("dualpipe"), (layouts.pp + 1.0) / 2.0, held)
        held = np.where(layouts.schedule == name("gpipe"), np.inf, held)
    return np.minimum(held, layouts.grad_accum)


def activations_held(job: Job, layouts: Layouts, shape: StageShape) -> tuple[Floats, Floats]:
    """Kept activations of the micro-batches in flight, and what the block at work needs besides."""
    offloads = layouts.max_of("offload") >= OFFLOAD.index("activations")
    kept = largest = working = layouts.zeros()
    boundary = boundary_bytes(job, layouts)
    reaches = reached(job, shape)
    for kind, block in enumerate(job.architecture.blocks):
        per_layer, leaked, need = _of_one_layer(job, block, layouts, shape, boundary)
        kept = kept + reaches.layers[kind] * leaked
        present = reaches.layers[kind] > 0
        working = np.maximum(working, np.where(present, need, 0.0))
        if offloads:
            largest = np.maximum(largest, np.where(present, per_layer, 0.0))
    kept = kept * in_flight(layouts, shape.stage)
    if offloads:
        # Offloaded activations come and go by layer: those of one layer at work and of one on its way.
        kept = np.where(layouts.activations_offloaded, np.minimum(kept, 2.0 * largest), kept)
    if layouts.max_of("pp") > 1 and job.framework.activations.stage_buffers:
        pipelined = np.where(layouts.pp > 1, job.framework.activations.stage_buffers * layouts.grad_accum, 0.0)
        kept = kept + pipelined * boundary
    return kept, working


def _of_one_layer(
    job: Job, block: Block, layouts: Layouts, shape: StageShape, boundary: Floats
) -> tuple[Floats, Floats, Floats]:
    """What a layer keeps in the mean of its stage, that with what leaks, and what it needs at work besides."""

    def compute() -> tuple[Floats, Floats, Floats]:
        everything, per_layer, need = block_activations(job, block, layouts)
        if layouts.max_of("recompute_layers"):
            again = recomputed_share(layouts, shape)
            per_layer = per_layer * (1.0 - again) + boundary * again
        if layouts.recomputes:
            need = need + np.where(layouts.recompute > RECOMPUTE.index("none"), everything - per_layer, 0.0)
        return per_layer, per_layer + leaked_bytes(job, block, layouts), need

    # Only layers that are recomputed one by one are another share on another stage.
    return compute() if layouts.max_of("recompute_layers") else layouts.memoised(("one layer", job, block), compute)


def block_activations(job: Job, block: Block, layouts: Layouts) -> tuple[Floats, Floats, Floats]:
    """Of one block: everything it saves, what of that it keeps, and temporaries while its gradients are made."""

    def compute() -> tuple[Floats, Floats, Floats]:
        everything = block_bytes(job, block, layouts)
        temporary = job.activation_bytes * micro_batch_tokens(job, layouts) * _gradient_elements(job, block, layouts)
        temporary = temporary + matrix_working_bytes(job, block, layouts) + tile_bytes(job, block, layouts)
        return everything, kept_bytes(job, block, layouts, everything), temporary

    return layouts.memoised(("block activations", job, block), compute)


def _gradient_elements(job: Job, block: Block, layouts: Layouts) -> Floats:
    """Elements per token that stand beside what a block saved while its gradients are made: the most of its two parts,
    of which the feed-forward one comes first and has freed what it kept when attention's turn comes."""
    whole, split = gradient_elements(job, block)
    feed = np.maximum(working_elements(job, block), split) / layouts.tp + (
        np.maximum(whole, expert_working_elements(job, block)) / layouts.outside_split
    )
    if job.framework.allocator == "planned":
        return feed
    freed = sum(saved_by_operator(job, block).get("feed_forward", (0.0, 0.0, 0.0)))
    attention = attention_gradient_elements(job, block) + gathered_key_elements(job, block, layouts)
    return np.maximum(feed, (attention - freed) / layouts.tp + job.architecture.hidden / layouts.outside_split)
