"""Optimizer states of one device and the temporaries of one optimizer step, per trained matrix where its shape matters.

Arrays have shape (n,), one entry a candidate; sizes are bytes. What each optimizer keeps is data
(`knowledge/data/frameworks.yaml`, optimizers; `estimator.plan.training.framework.OptimizerFacts` says what the fields
mean).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from estimator.model.architecture import Architecture, Block, WeightMatrix
from estimator.plan.layouts import Layouts
from estimator.plan.training.job import Job
from estimator.plan.training.shards import Held, reached
from estimator.plan.training.stages import Floats, StageShape

_FP32 = 4.0


@dataclass(frozen=True)
class Shapes:
    """Sums over matrices of one device: elements, rows and columns together, and the longer and the shorter side.

    `largest` is the biggest one. In elements, shape (n,).
    """

    elements: Floats
    sides: Floats
    longer: Floats
    shorter: Floats
    largest: Floats


def matrix_shapes(job: Job, layouts: Layouts, shape: StageShape) -> tuple[Shapes, Shapes]:
    """What a stage's block matrices measure after tensor and expert parallelism cut them: (dense, routed experts)."""
    sums = {routed: [layouts.zeros()] * len(fields(Shapes)) for routed in (False, True)}
    for count, block in zip(shape.layers, job.architecture.blocks, strict=True):
        for matrix in block.matrices:
            part = sums[matrix.role == "expert"]
            copies, rows, columns = cut_matrix(matrix, layouts)
            several = count * copies
            part[0] = part[0] + several * rows * columns
            part[1] = part[1] + several * (rows + columns)
            part[2] = part[2] + several * np.maximum(rows, columns)
            part[3] = part[3] + several * np.minimum(rows, columns)
            part[4] = np.maximum(part[4], np.where(count > 0, rows * columns, 0.0))
    return Shapes(*sums[False]), Shapes(*sums[True])


def _largest_bytes(job: Job) -> float:
    """Temporaries per element of the largest tensor."""
    facts, element = job.optimizer, job.updated_bytes
    if facts.casts and element < _FP32:
        return (facts.largest_elements + 2.0) * _FP32
    return facts.largest_elements * element


def largest_tensor(job: Job, layouts: Layouts, shape: StageShape, held: Held) -> Floats:
    """Elements of the largest tensor that one device steps: a matrix, whole where its update is orthogonal, or the
    embedding where that is trained."""
    if job.updates_matrices and job.optimizer.newton_schulz_steps:
        return layouts.ones() * max(m.inputs * m.outputs for block in job.architecture.blocks for m in block.matrices)
    dense, experts = matrix_shapes(job, layouts, reached(job, shape))
    table = np.where(held.trained_dense > held.dense - held.outside, _table(job.architecture, layouts, shape), 0.0)
    return np.maximum(held.sharded(1, np.maximum(dense.largest, table)), held.sharded(1, 0.0 * table, experts.largest))


def _table(architecture: Architecture, layouts: Layouts, shape: StageShape) -> Floats:
    """Elements of the embedding or the head on a stage that has one."""
    return np.maximum(shape.has_embedding, shape.has_head) * architecture.embedding_parameters / layouts.tp


def cut_matrix(matrix: WeightMatrix, layouts: Layouts) -> tuple[Floats, Floats, Floats]:
    """(Copies, rows, columns) of a matrix that one device has after tensor and expert parallelism."""
    routed = matrix.role == "expert"
    cut = layouts.etp if routed else layouts.tp
    copies = matrix.copies / layouts.ep if routed else matrix.copies * layouts.ones()
    rows = matrix.outputs / (cut if matrix.split == "column" else layouts.ones())
    columns = matrix.inputs / (cut if matrix.split == "row" else layouts.ones())
    return copies, rows, columns


def optimizer_memory(job: Job, layouts: Layouts, shape: StageShape, held: Held) -> tuple[Floats, Floats]:
    """(states with the master copy, temporaries of one step), both nothing where the optimizer runs on the host."""
    states, step = states_held(job, layouts, shape, held), _step(job, layouts, shape, held)
    if not layouts.max_of("offload"):
        return states, step
    away = layouts.optimizer_offloaded
    return np.where(away, 0.0, states), np.where(away, 0.0, step)


def _master_bytes(job: Job) -> float:
    """Per trained parameter, what the optimizer's own copy of the weights takes."""
    master = job.framework.optimizer.master_bytes
    remainders = job.framework.optimizer.remainders and job.compute_bytes == job.activation_bytes < master
    return master - job.activation_bytes if remainders else master


def masters_held(job: Job, held: Held) -> Floats:
    """What there is of the states before the first step: the optimizer's own copy of the weights."""
    master = _master_bytes(job)
    return held.sharded(1, (held.trained_dense + held.adapters) * master, held.trained_experts * master)


def states_held(job: Job, layouts: Layouts, shape: StageShape, held: Held) -> Floats:
    facts, master = job.optimizer, _master_bytes(job)
    element = job.updated_bytes
    size = facts.state_elements * element + facts.state_bytes + master
    states = held.sharded(1, held.trained_dense * size, held.trained_experts * size)
    if facts.square_bytes and not job.uses_adapters:
        states = states + held.sharded(1, *_squares(job, layouts, reached(job, shape)))
    if not job.uses_adapters and (facts.matrix_elements is not None or facts.side_bytes):
        dense, experts = (_apart(job, shapes) for shapes in matrix_shapes(job, layouts, reached(job, shape)))
        states = states + held.sharded(1, dense, experts)
    if not job.uses_adapters:
        return states
    # Adapters are small matrices themselves, too small to be projected to a low rank.
    plain = facts.state_elements if facts.matrix_elements is None or facts.rank else facts.matrix_elements
    updated = job.framework.optimizer.master_bytes or job.framework.adapters.held_bytes
    return states + held.sharded(1, held.adapters * (plain * updated + facts.state_bytes + master))


def _apart(job: Job, shapes: Shapes) -> Floats:
    """What block matrices need beyond `state_elements` for each of their parameters; negative where it is less."""
    facts = job.optimizer
    instead = 0.0 if facts.matrix_elements is None else facts.matrix_elements - facts.state_elements
    projected = facts.rank * (facts.longer_elements * shapes.longer + facts.shorter_elements * shapes.shorter)
    return job.updated_bytes * (instead * shapes.elements + projected) + facts.side_bytes * shapes.sides


def stepped_matrices(job: Job, block: Block) -> list[WeightMatrix]:
    """The matrices of a block as an optimizer sees them: those that read the same input are one where modules are
    written by hand (Megatron-core, linear_qkv and linear_fc1)."""
    if job.framework.operators.style != "fused":
        return list(block.matrices)
    joined: dict[tuple[str, str, int, int], WeightMatrix] = {}
    for matrix in block.matrices:
        key = (matrix.role, "column" if matrix.split == "column" else matrix.name, matrix.inputs, matrix.copies)
        before = joined.get(key)
        joined[key] = replace(matrix, outputs=matrix.outputs + before.outputs) if before else matrix
    return list(joined.values())


def _squares(job: Job, layouts: Layouts, shape: StageShape) -> tuple[Floats, Floats]:
    """Bytes of a stage's Kronecker factors and eigenbases before sharding: (dense, routed experts)."""
    held = {routed: layouts.zeros() for routed in (False, True)}
    for count, block in zip(shape.layers, job.architecture.blocks, strict=True):
        for matrix in stepped_matrices(job, block):
            copies, rows, columns = cut_matrix(matrix, layouts)
            routed = matrix.role == "expert"
            held[routed] = held[routed] + count * copies * (job.optimizer.square_bytes * (rows**2 + columns**2))
    return held[False], held[True]


def _step(job: Job, layouts: Layouts, shape: StageShape, held: Held) -> Floats:
    """Every stepped parameter has temporaries where the step goes over all tensors at once (foreach), else the largest
    tensor has. DeepSpeed steps flat partitions, which count as one tensor, and at stage 3 groups of parameters
    (sub_group_size). Within the backward pass one tensor is stepped at a time."""
    framework, facts = job.framework, job.optimizer
    stepped = held.sharded(1, held.trained_dense, held.trained_experts)
    if job.training.optimizer_in_backward:
        stepped = np.minimum(stepped, largest_tensor(job, layouts, shape, held))
    step = job.updated_bytes * stepped
    if job.uses_adapters:
        step = step + (framework.optimizer.master_bytes or framework.adapters.held_bytes) * held.sharded(
            1, held.adapters
        )
    step = (0.0 if framework.optimizer.fused else facts.step_elements) * step
    flat = framework.gathering.live_parameters is not None and framework.optimizer.master_bytes > 0
    if flat:
        group = np.minimum(stepped, framework.gathering.live_parameters or 0.0)
        stepped = np.where(layouts.zero_stage >= 3, group, stepped)
    if facts.largest_elements:
        largest = stepped if flat else largest_tensor(job, layouts, shape, held)
        whole = largest if job.updates_matrices else np.minimum(stepped, largest)
        step = step + _largest_bytes(job) * whole
    return step + framework.optimizer.step_bytes * stepped
