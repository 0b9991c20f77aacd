"""What an optimizer multiplies: Muon makes the update of each matrix orthogonal, SOAP steps in its eigenbases.

Newton-Schulz iterations in 16 bits, X <- a X + (b A + c A A) X with A = X X', on the shorter side (Jordan et al. 2024).
They need the whole matrix. Tensor parallel ranks each gather it and do the same work (Megatron-LM, muon_tp_mode
duplicated). Where states are sharded, every matrix has one owner in the group, and what the largest one takes is the
least (Megatron-LM, LayerWiseDistributedOptimizer; DeepSpeed, stage_1_and_2.py; prime-rl and Axolotl, whose shards
travel to the owner and back); where they are not, every replica does all of it.

SOAP (Vyas et al. 2024, algorithm 3; KL-Shampoo's factors, arXiv 2509.03378) multiplies each device's own part of a
matrix of m rows and n columns by squares of its sides: 8 (m m n + m n n) + 2 (m^3 + n^3) FLOP in fp32 for factors and
gradients, and for the first moment and the bases 4 (m m n + m n n) + 20/3 (m^3 + n^3) in TF32, the QR decomposition
counted as if it were matmuls, which is the least (NVIDIA-NeMo/Emerging-Optimizers, legacy_soap/soap.py, step).

Arrays have shape (n,); times are seconds of one step.
"""

from __future__ import annotations

import numpy as np

from estimator.kernels.collectives import Groups, all_gather
from estimator.kernels.compute import matmul_time
from estimator.model.architecture import WeightMatrix
from estimator.plan.layouts import Layouts
from estimator.plan.training.job import Job, precision_peak
from estimator.plan.training.shards import Held, reached
from estimator.plan.training.stages import Floats, StageShape, sum_of
from estimator.training.optimizers import cut_matrix, stepped_matrices
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
    """(What is multiplied, what is gathered for it)."""
    if job.optimizer.square_bytes:
        return _eigenbases_s(job, layouts, shape, held), layouts.zeros()
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


# FLOP of SOAP's step by (products with one side's square, cubes of sides), and the precision that they are in.
_PRODUCTS = {"fp32": (8.0, 2.0), "tf32": (4.0, 20.0 / 3)}


def _eigenbases_s(job: Job, layouts: Layouts, shape: StageShape, held: Held) -> Floats:
    rates = {
        precision: (precision_peak(job.machine.accelerator.peak_flops, precision) or job.head_peak_flops)
        * (job.calibration.device.matmul * job.head_surface.height)
        for precision in _PRODUCTS
    }
    summed = {routed: layouts.zeros() for routed in (False, True)}
    largest = layouts.zeros()
    for count, block in zip(reached(job, shape).layers, job.architecture.blocks, strict=True):
        for matrix in stepped_matrices(job, block):
            copies, rows, columns = cut_matrix(matrix, layouts)
            mixed, cubes = rows * columns * (rows + columns), rows**3 + columns**3
            each = sum_of((by * mixed + of * cubes) / rates[name] for name, (by, of) in _PRODUCTS.items())
            routed = matrix.role == "expert"
            summed[routed] = summed[routed] + count * copies * each
            largest = np.maximum(largest, np.where(count > 0, each, 0.0))
    return np.maximum(largest, held.sharded(1, summed[False], summed[True]))


def _iteration_s(job: Job, layouts: Layouts, matrix: WeightMatrix) -> Floats:
    short, long = (float(side) * layouts.ones() for side in sorted((matrix.inputs, matrix.outputs)))
    return (
        matmul_time(job, short, short, long, head=True)
        + matmul_time(job, short, short, short, head=True)
        + matmul_time(job, short, long, short, head=True)
    )
