"""How a model's layers, embedding and head spread over pipeline stages, and how parameters split within a stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import TypeVar

import numpy as np

from estimator.model.architecture import Architecture, Block, WeightMatrix
from estimator.plan.layouts import RECOMPUTE, SCHEDULES, Floats, Ints, Layouts, Runs
from estimator.plan.training.job import Job

T = TypeVar("T")


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

    def of(self, index: Ints) -> StageShape:
        """The stages of these candidates."""
        ends = (values[index] for values in (self.has_embedding, self.has_head, self.visited))
        return StageShape(self.stage[index], tuple(count[index] for count in self.layers), *ends)

    def alike(self, layouts: Layouts, names: tuple[str, ...]) -> Runs | None:
        """As Layouts.runs, where the stages are those of the same candidates."""
        return same_stages(layouts, self.stage, names)


def same_stages(layouts: Layouts, stage: Ints, names: tuple[str, ...]) -> Runs | None:
    """Neighbours that are alike in `names` and of which the same stage is meant; None where some are not."""
    alike = layouts.runs(names)
    return alike if alike and alike.holds(stage) else None


def mean_stage(architecture: Architecture, layouts: Layouts) -> StageShape:
    """The mean of all stages: what a micro-batch passes through, divided by them."""
    part = 1.0 / layouts.pp
    return StageShape(
        stage=np.zeros_like(layouts.pp),
        layers=tuple(architecture.pattern.count(kind) * part for kind in range(len(architecture.blocks))),
        has_embedding=part,
        has_head=part,
        visited=np.ones(len(layouts)),
    )


def stage_shape(architecture: Architecture, layouts: Layouts, stage: Ints) -> StageShape:
    """Layers are dealt in order, as evenly as can be, the longer stages first.

    Two schedules give a device a second part: V-half cuts the layers into 2 pp parts and deals them there and back, so
    that the first device has both ends (Qi et al. 2024, section 3.3); DualPipe runs the pipeline from both ends at
    once, with a second copy of the weights (DeepSeek-V3 report, section 3.2.1).
    """
    if layouts.max_of("pp") <= 1:
        return layouts.memoised(
            ("only stage", architecture.pattern, len(architecture.blocks)), lambda: _only_stage(architecture, layouts)
        )
    if alike := same_stages(layouts, stage, ("pp", "schedule")):
        shape = stage_shape(architecture, alike.layouts, stage[alike.starts])
        ends = (alike.spread(values) for values in (shape.has_embedding, shape.has_head, shape.visited))
        return StageShape(stage, tuple(alike.spread(count) for count in shape.layers), *ends)
    first, last = stage == 0, stage == layouts.pp - 1
    if layouts.max_of("schedule") < _FIRST_DOUBLE:
        counts = _dealt(architecture, layouts.pp, stage)
        return StageShape(stage, counts, first.astype(np.float64), last.astype(np.float64), layouts.ones())
    split = layouts.pp > 1
    folded = split & (layouts.schedule == SCHEDULES.index("v-half"))
    doubled = split & (layouts.schedule == SCHEDULES.index("dualpipe"))
    parts = np.where(folded, 2 * layouts.pp, layouts.pp)
    ends = _dealt(architecture, parts, stage), _dealt(architecture, parts, parts - 1 - stage)
    return StageShape(
        stage=stage,
        layers=tuple(first + other * (folded | doubled) for first, other in zip(*ends, strict=True)),
        has_embedding=(first | (doubled & last)).astype(np.float64),
        has_head=(np.where(folded, first, last) | (doubled & first)).astype(np.float64),
        visited=np.where(doubled, 0.5, 1.0),
    )


# Of SCHEDULES, where those begin that give a device a second part.
_FIRST_DOUBLE = min(SCHEDULES.index("v-half"), SCHEDULES.index("dualpipe"))


def _only_stage(architecture: Architecture, layouts: Layouts) -> StageShape:
    """Every layer and both ends, where no candidate has a pipeline."""
    ones = layouts.ones()
    counts = tuple(ones * architecture.pattern.count(kind) for kind in range(len(architecture.blocks)))
    return StageShape(np.zeros_like(layouts.pp), counts, ones, ones, ones)


def of_stage(name: str, job: Job, layouts: Layouts, compute: Callable[[], T]) -> T:
    """What `compute` makes of a stage of `stage_shape`: once where no candidate has a pipeline, so only one stage."""
    return compute() if layouts.max_of("pp") > 1 else layouts.memoised((name, job), compute)


def _dealt(architecture: Architecture, parts: Ints, part: Ints) -> tuple[Floats, ...]:
    """Layers of each block kind in one of `parts` parts."""
    base, longer = np.divmod(architecture.layers, parts)
    if len(architecture.blocks) == 1:
        return ((base + (part < longer)).astype(np.float64),)
    start = part * base + np.minimum(part, longer)
    stop = start + base + (part < longer)
    return tuple(
        before[stop] - before[start] for before in _layers_before(architecture.pattern, len(architecture.blocks))
    )


@lru_cache(maxsize=64)
def _layers_before(pattern: tuple[int, ...], kinds: int) -> list[Floats]:
    """For each block kind, how many of the first i layers are of it; arrays of shape (layers + 1,)."""
    layers = np.asarray(pattern)
    return [np.concatenate([[0.0], np.cumsum(layers == kind)]) for kind in range(kinds)]


def micro_batch_tokens(job: Job, layouts: Layouts) -> Floats:
    """Tokens of one micro-batch that one context-parallel rank holds; shape (n,)."""

    def tokens() -> Floats:
        return layouts.micro_batch * job.sequences_per_sample * (job.seq_len / layouts.cp)

    return layouts.memoised(("tokens", job), tokens)


def sum_of(parts: Iterable[Floats]) -> Floats:
    """The sum of arrays, term by term: np.sum groups the terms of a single entry otherwise than those of many."""
    return reduce(np.add, parts)


def shard(matrix: WeightMatrix, layouts: Layouts) -> Floats:
    """Into how many parts tensor and expert parallelism cut the copies of a matrix on one device's stage."""
    if matrix.role == "expert":
        return layouts.memoised(("experts cut",), lambda: (layouts.ep * layouts.etp).astype(np.float64))
    if matrix.split == "none":
        return layouts.ones()
    return layouts.memoised(("cut",), lambda: layouts.tp.astype(np.float64))


def block_parameters(block: Block, layouts: Layouts) -> tuple[Floats, Floats]:
    """Parameters of one block on one device as (dense, routed experts). Vectors and routers are replicated over tp."""
    return layouts.memoised(("parameters", block), lambda: _block_parameters(block, layouts))


def _block_parameters(block: Block, layouts: Layouts) -> tuple[Floats, Floats]:
    whole, split, routed = float(block.vector_parameters), 0.0, 0.0
    for matrix in block.matrices:
        if matrix.role == "expert":
            routed += matrix.parameters
        elif matrix.split == "none":
            whole += matrix.parameters
        else:
            split += matrix.parameters
    experts = routed / (layouts.ep * layouts.etp) if routed else layouts.zeros()
    return whole + split / layouts.tp, experts


def adapter_parameters(job: Job, block: Block, layouts: Layouts) -> Floats:
    """LoRA parameters of one block on one device: rank x (inputs + outputs) of each target, cut like its matrix.

    LoRA, Hu et al. 2021, section 4.1. DoRA adds a magnitude per output (Liu et al. 2024, equation 5).
    """
    if not job.uses_adapters:
        return layouts.zeros()
    return layouts.memoised(("adapters", job, block), lambda: _adapter_parameters(job, block, layouts))


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
    zero = layouts.zeros()
    dense, experts, adapters = outside, zero, zero
    for count, block in zip(shape.layers, job.architecture.blocks, strict=True):
        block_dense, block_experts = block_parameters(block, layouts)
        dense = dense + count * block_dense
        if block.experts:
            experts = experts + count * block_experts
        if job.uses_adapters:
            adapters = adapters + count * adapter_parameters(job, block, layouts)
    return dense, experts, adapters


def recomputed_share(layouts: Layouts, shape: StageShape) -> Floats:
    """Part of the stage's layers that block:N recomputes; 0 for the other modes."""
    if not layouts.max_of("recompute_layers"):
        return layouts.zeros()
    share = np.minimum(1.0, layouts.recompute_layers / np.maximum(1.0, shape.layer_count))
    return np.where(layouts.recompute == RECOMPUTE.index("block"), share, 0.0)


def lora_targets(job: Job, block: Block) -> list[WeightMatrix]:
    """The block's matrices that carry an adapter. 'all-linear' leaves out the router, as PEFT does; experts have none
    where they are no linear modules."""
    wanted, adapts = job.training.lora.targets.strip(), job.framework.adapters.adapts_experts
    linear = [matrix for matrix in block.matrices if adapts or matrix.role != "expert"]
    roles = {"all-linear": ("attention", "mlp", "expert", "shared_expert", "ssm"), "attention": ("attention",)}
    roles["mlp"] = ("mlp", "expert", "shared_expert")
    if wanted in roles:
        return [matrix for matrix in linear if matrix.role in roles[wanted]]
    names = {name.strip() for name in wanted.split(",")}
    # PEFT takes the end of a name: shared_experts.gate_proj is a gate_proj.
    return [matrix for matrix in linear if matrix.name.removeprefix("shared_") in names]
