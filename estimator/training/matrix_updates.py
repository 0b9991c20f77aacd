"""What an optimizer multiplies: Muon makes the update of each matrix orthogonal.

Newton-Schulz iterations in 16 bits, X <- a X + (b A + c A A) X with A = X X', on the shorter side (Jordan et al. 2024).
They need the whole matrix. Tensor parallel ranks each gather it and do the same work (Megatron-LM, muon_tp_mode
duplicated). Where states are sharded, every matrix has one owner in the group, and what the largest one takes is the
least (Megatron-LM, LayerWiseDistributedOptimizer; DeepSpeed, stage_1_and_2.py; prime-rl and Axolotl, whose shards
travel to the owner and back); where they are not, every replica does all of it. Arrays have shape (n,); times are
seconds of one step.
"""

from __future__ import annotations

import numpy as np

from estimator.kernels.collectives import Groups, all_gather
from estimator.kernels.compute import matmul_time
from estimator.model.architecture import WeightMatrix
from estimator.plan.layouts import Layouts
from estimator.plan.training.job import Job
from estimator.plan.training.shards import Held, reached
from estimator.plan.training.stages import Floats, StageShape
from estimator.units import FP32_BYTES


def _whole_matrices(job: Job, layouts: Layouts, shape: StageShape) -> list[tuple[WeightMatrix, Floats]]:
    """The matrices of a stage's blocks, each with how many of it one device works on before states are sharded."""
    return [
        (matrix, count * matrix.copies / (layouts.ep if matrix.role == "expert" else 1.0))
        for count, block in zip(reached(job, shape).layers, job.architecture.blocks, strict=True)
        for matrix in block.matrices
    ]


def matrix_update_time(
    job: Job, layouts: Layouts, groups: Groups, shape: StageShape, held: Held
) -> tuple[Floats, Floats]:
    """(Iterations, what is gathered for them)."""
    dense, experts, largest = layouts.zeros(), layouts.zeros(), layouts.zeros()
    cut = layouts.zeros()
    for matrix, count in _whole_matrices(job, layouts, shape):
        each = job.optimizer.newton_schulz_steps * _iteration_s(job, layouts, matrix)
        if matrix.role == "expert":
            experts = experts + count * each
        else:
            dense = dense + count * each
            cut = cut + count * (matrix.inputs * matrix.outputs * (matrix.split != "none"))
        largest = np.maximum(largest, np.where(count > 0, each, 0.0))
    iterations = np.maximum(largest, held.sharded(1, dense, experts))
    gathered = all_gather(groups.tensor, held.sharded(1, cut) * FP32_BYTES)
    shards = held.trained_dense / held.group + held.trained_experts / held.expert_group
    travels = 2.0 * all_gather(groups.shard, shards * FP32_BYTES) * (layouts.zero_stage >= 3)
    return iterations, gathered + travels


def _iteration_s(job: Job, layouts: Layouts, matrix: WeightMatrix) -> Floats:
    short, long = (float(side) * layouts.ones() for side in sorted((matrix.inputs, matrix.outputs)))
    return (
        matmul_time(job, short, short, long, head=True)
        + matmul_time(job, short, short, short, head=True)
        + matmul_time(job, short, long, short, head=True)
    )
