"""Parameters that one device of a pipeline stage holds, which are trained, and over how many devices ZeRO shards them.

Rajbhandari et al. 2020, section 5. Arrays have shape (n,), one entry a candidate; sizes are parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from estimator.plan.layouts import Layouts
from estimator.plan.training.job import Job
from estimator.plan.training.stages import Floats, StageShape, block_parameters, of_stage, stage_parameters, sum_of


@dataclass(frozen=True)
class Held:
    """Parameters on one device of a stage before data-parallel sharding, and over how many devices each kind is
    sharded.

    `outside` is the part of `dense` that is not in blocks (embedding, head), `head` the part of that which is the head,
    `unit` the largest block, `routed` whether there are routed experts at all. `copied` are the embedding and head that
    are trained beside adapters, which are copies (PEFT, modules_to_save).
    """

    dense: Floats
    experts: Floats
    adapters: Floats
    outside: Floats
    head: Floats
    copied: Floats
    trained_dense: Floats
    trained_experts: Floats
    unit: Floats
    group: Floats
    expert_group: Floats
    layouts: Layouts
    shards_optimizer: bool
    routed: bool

    @cached_property
    def total(self) -> Floats:
        return self.dense + self.experts

    @cached_property
    def trained(self) -> Floats:
        return self.trained_dense + self.trained_experts

    @cached_property
    def alone(self) -> bool:
        """Whether no candidate has a second device to shard over."""
        return float(self.group.max(initial=1.0)) <= 1.0

    def sharded(self, from_stage: int, dense: Floats, experts: Floats | float = 0.0) -> Floats:
        """What one device holds of sizes that are sharded from ZeRO stage `from_stage` on."""
        from_stage = 0 if from_stage == 1 and self.shards_optimizer else from_stage
        if self.alone or self.layouts.max_of("zero_stage") < from_stage:
            return dense + experts if self.routed else dense
        sharded = self.layouts.memoised(("sharded from", from_stage), lambda: self.layouts.zero_stage >= from_stage)
        if not self.routed:
            return np.where(sharded, dense / self.group, dense)
        return np.where(sharded, dense / self.group + experts / self.expert_group, dense + experts)


def world_size(layouts: Layouts) -> np.ndarray:
    return layouts.memoised(("world",), lambda: layouts.tp * layouts.pp * layouts.cp * layouts.dp)


def held_parameters(job: Job, layouts: Layouts, shape: StageShape) -> Held:
    """What one device of the stage of every candidate holds."""
    return of_stage("held", job, layouts, lambda: _held_parameters(job, layouts, shape))


def _held_parameters(job: Job, layouts: Layouts, shape: StageShape) -> Held:
    outside, head = _outside_blocks(job, layouts, shape)
    dense, experts, adapters = stage_parameters(job, layouts, shape, outside)
    unit = layouts.zeros()
    for count, block in zip(shape.layers, job.architecture.blocks, strict=True):
        unit = np.maximum(unit, np.where(count > 0, sum_of(block_parameters(block, layouts)), 0.0))
    group = (layouts.dp * layouts.cp if has_second_copy(job) else layouts.shard_group).astype(np.float64)
    routed = job.architecture.experts > 0
    expert_group = group
    if routed:
        copies = world_size(layouts) / (layouts.pp * layouts.ep * layouts.etp)
        expert_group = np.maximum(1.0, np.minimum(group, copies))
    trained, trained_experts = _trained(job, layouts, shape, dense, experts)
    copied = layouts.zeros()
    if job.uses_adapters and job.training.lora.train_embeddings:
        copied = outside
        trained = trained + copied
    return Held(
        dense=dense,
        experts=experts,
        adapters=adapters + _embedding_adapters(job, layouts, shape) if job.uses_adapters else adapters,
        outside=outside,
        head=head,
        copied=copied,
        trained_dense=trained,
        trained_experts=trained_experts,
        unit=unit,
        group=group,
        expert_group=expert_group,
        layouts=layouts,
        shards_optimizer=job.framework.optimizer.always_sharded,
        routed=routed,
    )


def _trained(job: Job, layouts: Layouts, shape: StageShape, dense: Floats, experts: Floats) -> tuple[Floats, Floats]:
    """The stage's own parameters that are trained: (dense, routed experts)."""
    if job.uses_adapters:
        return layouts.zeros(), layouts.zeros()
    if job.training.method == "freeze":
        return stage_parameters(job, layouts, reached(job, shape), layouts.zeros())[:2]
    return _largest_block(job, layouts, shape) if job.one_block else (dense, experts)


def _largest_block(job: Job, layouts: Layouts, shape: StageShape) -> tuple[Floats, Floats]:
    """(Dense, routed experts) of the stage's largest layer."""
    dense, experts = layouts.zeros(), layouts.zeros()
    for count, block in zip(shape.layers, job.architecture.blocks, strict=True):
        shared, routed = block_parameters(block, layouts)
        larger = (count > 0) & (shared + routed > dense + experts)
        dense, experts = np.where(larger, shared, dense), np.where(larger, routed, experts)
    return dense, experts


def reached(job: Job, shape: StageShape) -> StageShape:
    """The layers of the stage that the backward pass reaches: all, or with freeze the last few of the last stage."""
    if job.training.method != "freeze":
        return shape
    limits = zip(shape.layers, job.reached_layers, strict=True)
    return replace(shape, layers=tuple(np.minimum(layers, most) * shape.has_head for layers, most in limits))


def has_second_copy(job: Job) -> bool:
    """Whether a shard group holds a second copy of the weights while all else stays sharded over everyone, as ZeRO++
    has it (Wang et al. 2023, section 3.2). FSDP's hybrid sharding keeps everything within the group."""
    return job.framework.gathering.live_parameters is not None


def _outside_blocks(job: Job, layouts: Layouts, shape: StageShape) -> tuple[Floats, Floats]:
    """(Embedding, head, positions and the other parameters outside the blocks on one device of the stage, the head).

    A tied head on a stage of its own is a second copy (Megatron, shared_embedding_or_output_weight).
    """
    architecture = job.architecture
    table = architecture.vocab * architecture.hidden / layouts.tp
    head = architecture.head_parameters / layouts.tp
    if job.training.stage == "rm":
        head = architecture.hidden * layouts.ones()
    elif architecture.tied:
        head = head + (np.where(layouts.pp > 1, table, 0.0) if job.framework.weights.ties else table)
    first = table + architecture.position_parameters
    head = shape.has_head * head
    return shape.has_embedding * first + head + shape.has_head * architecture.extra_parameters, head


def _embedding_adapters(job: Job, layouts: Layouts, shape: StageShape) -> Floats:
    """LoRA parameters on the embedding and the head, where they are named as targets."""
    names = {name.strip() for name in job.training.lora.targets.split(",")}
    on_embedding, on_head = "embed_tokens" in names, "lm_head" in names
    size = job.training.lora.rank * (job.architecture.vocab / layouts.tp + job.architecture.hidden)
    return size * (shape.has_embedding * on_embedding + shape.has_head * on_head)
