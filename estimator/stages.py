"""How a model's layers, embedding and head spread over pipeline stages, and how parameters split within a stage."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from estimator.architecture import Architecture, Block, Matrix
from estimator.job import Job
from estimator.layouts import RECOMPUTE, SCHEDULES, Ints, Layouts

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class StageShape:
    """One pipeline stage of each candidate: arrays of shape (n,), `layers[k]` counts the layers of block kind k.

    `visited` is the part of them that one micro-batch passes through: half under DualPipe, else all.
    """

    stage: Ints
    layers: tuple[Floats, ...]
    has_embedding: Floats
    has_head: Floats
    visited: Floats

    @property
    def layer_count(self) -> Floats:
        return sum_of(self.layers)


def stage_shape(architecture: Architecture, layouts: Layouts, stage: Ints) -> StageShape:
    """Layers are dealt in order, as evenly as can be, the longer stages first.

    Two schedules give a device a second part: V-half cuts the layers into 2 pp parts and deals them there and back, so
    that the first device has both ends (Qi et al. 2024, section 3.3); DualPipe runs the pipeline from both ends at
    once, with a second copy of the weights (DeepSeek-V3 report, section 3.2.1).
    """
    split = layouts.pp > 1
    folded = split & (layouts.schedule == SCHEDULES.index("v-half"))
    doubled = split & (layouts.schedule == SCHEDULES.index("dualpipe"))
    parts = np.where(folded, 2 * layouts.pp, layouts.pp)
    counts = _dealt(architecture, parts, stage)
    if (folded | doubled).any():
        second = _dealt(architecture, parts, parts - 1 - stage)
        counts = [first + other * (folded | doubled) for first, other in zip(counts, second, strict=True)]
    first, last = stage == 0, stage == layouts.pp - 1
    return StageShape(
        stage=stage,
        layers=tuple(counts),
        has_embedding=(first | (doubled & last)).astype(np.float64),
        has_head=(np.where(folded, first, last) | (doubled & first)).astype(np.float64),
        visited=np.where(doubled, 0.5, 1.0),
    )


def _dealt(architecture: Architecture, parts: Ints, part: Ints) -> list[Floats]:
    """Layers of each block kind in one of `parts` parts."""
    base, longer = architecture.layers // parts, architecture.layers % parts
    start = part * base + np.minimum(part, longer)
    stop = start + base + (part < longer)
    pattern = np.asarray(architecture.pattern)
    counts = []
    for kind in range(len(architecture.blocks)):
        before = np.concatenate([[0], np.cumsum(pattern == kind)])
        counts.append((before[stop] - before[start]).astype(np.float64))
    return counts


def micro_batch_tokens(job: Job, layouts: Layouts) -> Floats:
    """Tokens of one micro-batch that one context-parallel rank holds; shape (n,)."""

    def tokens() -> Floats:
        return layouts.micro_batch * job.sequences_per_sample * (job.seq_len / layouts.cp)

    return layouts.once("tokens", (job,), tokens)


def sum_of(parts: Iterable[Floats]) -> Floats:
    """The sum of arrays, term by term: np.sum groups the terms of a single entry otherwise than those of many."""
    return reduce(np.add, parts)


def shard(matrix: Matrix, layouts: Layouts) -> Floats:
    """Into how many parts tensor and expert parallelism cut the copies of a matrix on one device's stage."""
    if matrix.role == "expert":
        return (layouts.ep * layouts.etp).astype(np.float64)
    if matrix.split == "none":
        return np.ones(len(layouts))
    return layouts.tp.astype(np.float64)


def block_parameters(block: Block, layouts: Layouts) -> tuple[Floats, Floats]:
    """Parameters of one block on one device as (dense, routed experts). Vectors and routers are replicated over tp."""
    return layouts.once("parameters", (block,), lambda: _block_parameters(block, layouts))


def _block_parameters(block: Block, layouts: Layouts) -> tuple[Floats, Floats]:
    dense = np.full(len(layouts), float(block.vector_parameters))
    experts = np.zeros(len(layouts))
    for matrix in block.matrices:
        part = matrix.parameters / shard(matrix, layouts)
        if matrix.role == "expert":
            experts += part
        else:
            dense += part
    return dense, experts


def adapter_parameters(job: Job, block: Block, layouts: Layouts) -> Floats:
    """LoRA parameters of one block on one device: rank x (inputs + outputs) of each target, cut like its matrix.

    LoRA, Hu et al. 2021, section 4.1. DoRA adds a magnitude per output (Liu et al. 2024, equation 5).
    """
    if not job.uses_adapters:
        return np.zeros(len(layouts))
    return layouts.once("adapters", (job, block), lambda: _adapter_parameters(job, block, layouts))


def _adapter_parameters(job: Job, block: Block, layouts: Layouts) -> Floats:
    total = np.zeros(len(layouts))
    rank = job.training.lora.rank
    magnitude = 1 if job.training.method == "dora" else 0
    for matrix in lora_targets(job, block):
        size = matrix.copies * (rank * (matrix.inputs + matrix.outputs) + magnitude * matrix.outputs)
        total += size / shard(matrix, layouts)
    return total


def stage_parameters(job: Job, layouts: Layouts, shape: StageShape, outside: Floats) -> tuple[Floats, Floats, Floats]:
    """(dense, routed experts, adapters) on one device of the stage, with `outside` parameters that are in no block."""
    dense, experts, adapters = outside, np.zeros(len(layouts)), np.zeros(len(layouts))
    for count, block in zip(shape.layers, job.architecture.blocks, strict=True):
        block_dense, block_experts = block_parameters(block, layouts)
        dense = dense + count * block_dense
        experts = experts + count * block_experts
        adapters = adapters + count * adapter_parameters(job, block, layouts)
    return dense, experts, adapters


def recomputed_share(layouts: Layouts, shape: StageShape) -> Floats:
    """Part of the stage's layers that block:N recomputes; 0 for the other modes."""
    share = np.minimum(1.0, layouts.recompute_layers / np.maximum(1.0, shape.layer_count))
    return np.where(layouts.recompute == RECOMPUTE.index("block"), share, 0.0)


def lora_targets(job: Job, block: Block) -> list[Matrix]:
    """The block's matrices that carry an adapter. 'all-linear' leaves out the router, as PEFT does."""
    wanted = job.training.lora.targets.strip()
    roles = {"all-linear": ("attention", "mlp", "expert", "shared_expert", "ssm"), "attention": ("attention",)}
    roles["mlp"] = ("mlp", "expert", "shared_expert")
    if wanted in roles:
        return [matrix for matrix in block.matrices if matrix.role in roles[wanted]]
    names = {name.strip() for name in wanted.split(",")}
    return [matrix for matrix in block.matrices if matrix.name in names]
