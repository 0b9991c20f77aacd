"""What adapters keep for the backward pass beyond the frozen block, and what 4-bit matmuls need.

Elements per token as (whole on every tensor rank, split by tp, of the routed experts), like
`estimator.kernels.activations.saved_elements`. A matrix cut by columns reads what is whole, one cut by rows what is
split.
"""

from __future__ import annotations

import numpy as np

from estimator.model.architecture import Block, WeightMatrix
from estimator.plan.layouts import Layouts
from estimator.plan.training.job import Job
from estimator.plan.training.stages import Floats, lora_targets, micro_batch_tokens, shard

Elements = tuple[float, float, float]
# DoRA keeps the frozen and the adapted output of each matrix for its magnitude (peft, tuners/lora/dora.py).
_DORA_OUTPUTS = 2.0
# 16-bit weight-sized temporaries of its norm.
_DORA_WEIGHTS = 5.0
# An int32 shift and its int8 result.
_GPTQ_BYTES = 5.0
# A dropped copy of an input has a mask of one byte per element besides.
_DROPOUT_MASK = 0.5


def is_tiled(job: Job, block: Block) -> bool:
    """Whether the block's MLP is computed tile by tile."""
    return job.tile_tokens is not None and block.feed == "dense"


def adapter_elements(job: Job, block: Block, tiled: bool = False) -> Elements:
    """Inputs of the adapted matrices, what the first adapter matrix makes of them, and DoRA's outputs.

    Adapters that run in another dtype than the base (`adapter_copies`: fp32 under autocast, as PEFT has them) have a
    copy of the input each; others share what is kept of it. Dropout makes copies in any case. Those that are computed
    in tiles count where `tiled` asks for them, and only there.
    """
    sums = [0.0, 0.0, 0.0]
    if not job.uses_adapters:
        return 0.0, 0.0, 0.0
    lora, shared = job.training.lora, set[tuple[str, int]]()
    for matrix in lora_targets(job, block):
        if tiled != (is_tiled(job, block) and matrix.role == "mlp"):
            continue
        rows = block.top_k if matrix.role == "expert" else 1
        place = _place(matrix)
        sums[place] += rows * _input(job, matrix, shared)
        sums[place] += rows * lora.rank
        if job.training.method == "dora":
            sums[_output_place(matrix)] += rows * _DORA_OUTPUTS * matrix.outputs
    if not tiled and job.framework.activations.expands_kv and _adapts_part_of_qkv(job, block):
        # A fused projection that is adapted in part copies the adapted part into its place (litgpt, zero_pad).
        sums[1] += block.heads * block.head_dim + block.kv_heads * block.v_head_dim
    return sums[0], sums[1], sums[2]


def _input(job: Job, matrix: WeightMatrix, shared: set[tuple[str, int]]) -> float:
    """Elements kept of one adapted matrix's input; `shared` collects the inputs that are kept already."""
    fused = job.framework.activations.expands_kv and matrix.role == "attention" and matrix.split == "column"
    group = (matrix.role + matrix.split, matrix.inputs)
    dropped = job.training.lora.dropout > 0
    if (job.framework.adapters.copies_inputs or dropped) and not (fused and group in shared):
        shared.add(group)
        return matrix.inputs * (1.0 + _DROPOUT_MASK * dropped)
    if group in shared or (matrix.role == "attention" and matrix.split == "row"):
        return 0.0
    shared.add(group)
    return float(matrix.inputs)


def _adapts_part_of_qkv(job: Job, block: Block) -> bool:
    names = {matrix.name for matrix in lora_targets(job, block)} & {"q_proj", "k_proj", "v_proj"}
    return block.mixer == "attention" and 0 < len(names) < 3


def _place(matrix: WeightMatrix) -> int:
    return 2 if matrix.role == "expert" else (1 if matrix.split == "row" else 0)


def _output_place(matrix: WeightMatrix) -> int:
    return 2 if matrix.role == "expert" else (0 if matrix.split == "row" else 1)


def leaked_bytes(job: Job, block: Block, layouts: Layouts) -> Floats:
    """Inputs that a 4-bit matmul keeps although its weight is frozen and whatever is recomputed, shape (n,).

    bitsandbytes before 0.43.3 (MatMul4Bit.forward, ctx.tensors), once for each distinct input, and once more for an
    older graph that is still referred to.
    """
    leaks = job.quantised and job.training.lora.quantisation != "gptq"
    copies = job.framework.adapters.quantised_inputs if leaks else 0.0
    if not copies:
        return layouts.zeros()
    total, seen = 0.0, set[tuple[str, int]]()
    for matrix in block.matrices:
        together = job.architecture.parallel_block and matrix.split == "column"
        name = "block" if together else matrix.role + matrix.split
        if matrix.role == "router" or (name, matrix.inputs) in seen:
            continue
        seen.add((name, matrix.inputs))
        total += copies * matrix.inputs * (block.top_k if matrix.role == "expert" else 1)
    return job.activation_bytes * micro_batch_tokens(job, layouts) * total / layouts.tp


def working_elements(job: Job, block: Block) -> float:
    """Temporaries per token of the widest adapted matrix while its gradients are made: the casts of its input and of
    its gradient, and their dropped copies (split by tp)."""
    if not job.uses_adapters:
        return 0.0
    widest = max((matrix.inputs for matrix in lora_targets(job, block)), default=0)
    casts = 3.0 if job.framework.adapters.copies_inputs else 2.0
    return widest * (casts + 2.0 * (job.training.lora.dropout > 0))


def matrix_working_bytes(job: Job, block: Block, layouts: Layouts) -> Floats:
    """Weight-sized temporaries of one block while it is at work.

    NF4 is unpacked to 16 bits before each use (bitsandbytes, dequantize_4bit). GPTQ keeps what it unpacked for the
    backward pass, by way of 32-bit shifts (auto-gptq, qlinear_cuda_old). DoRA's norm needs BA, its sum with the weight,
    and an identity (peft, dora.py, forward).
    """
    if not (job.quantised or job.training.method == "dora"):
        return layouts.zeros()
    largest, every = layouts.zeros(), layouts.zeros()
    gptq = job.quantised and job.training.lora.quantisation == "gptq"
    for matrix in block.matrices:
        routed = matrix.copies if matrix.role == "expert" else 1
        elements = routed * matrix.inputs * matrix.outputs / shard(matrix, layouts)
        need = (_GPTQ_BYTES if gptq else job.activation_bytes) * job.quantises(matrix) * elements
        if job.training.method == "dora" and matrix in lora_targets(job, block):
            need = (
                need + _DORA_WEIGHTS * job.activation_bytes * elements + 2.0 * job.activation_bytes * matrix.inputs**2
            )
        largest = np.maximum(largest, need)
        every = every + elements
    return largest + job.activation_bytes * every * gptq
