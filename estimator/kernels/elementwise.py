"""Memory-bound operators: what norms, sums, activations, routing, casts, adapters and the loss move, and their kernels.

Everything is counted from the implementations, per element of an activation (16 bits unless all runs in 32): what each
kernel reads plus what it writes. Four `Style`s of implementation:
- eager: Hugging Face modules as shipped, one kernel an arithmetic operation, norms and rotary embedding through fp32;
- native: PyTorch's own fused norm, everything else one kernel an operation;
- compiled: what torch.compile or XLA fuses (a sum into the norm after it, activation, rotary embedding, loss);
- fused: hand-written kernels (Transformer Engine, Apex, Liger).

Counts per token are plain numbers; arrays over n candidate layouts, of shape (n,), are made once at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from estimator.model.architecture import Block
from estimator.plan.layouts import Layouts
from estimator.plan.training.framework import Style
from estimator.plan.training.job import Job
from estimator.plan.training.options import switched_on
from estimator.plan.training.stages import Floats, block_parameters, lora_targets, shard, sum_of
from estimator.units import FP32_BYTES


@dataclass(frozen=True)
class Operators:
    """Bytes through device memory per micro-batch (arrays of shape (n,)), and kernels launched (numbers)."""

    forward_bytes: Floats
    backward_bytes: Floats
    forward_kernels: float
    backward_kernels: float

    def __add__(self, other: Operators) -> Operators:
        return Operators(
            self.forward_bytes + other.forward_bytes,
            self.backward_bytes + other.backward_bytes,
            self.forward_kernels + other.forward_kernels,
            self.backward_kernels + other.backward_kernels,
        )


class Cost(NamedTuple):
    """Elements moved per element of its input, forward and backward, and kernels forward and backward."""

    forward: float
    backward: float
    kernels: float
    kernels_backward: float


def _styled(eager: Cost, native: Cost, compiled: Cost, fused: Cost) -> dict[Style, Cost]:
    return {"eager": eager, "native": native, "compiled": compiled, "fused": fused}


# RMSNorm. Eager is LlamaRMSNorm: to fp32, square, mean, + eps, rsqrt, product, back, times weight; autograd twice that.
# The others are timings of (N, C) norms over the bandwidth that streaming reaches, on H200 and GB200
# (NVIDIA/cudnn-frontend benchmark/norms/results@3929da2: cudnn, pytorch, torch_compile).
NORM = _styled(Cost(18.0, 44.0, 8, 16), Cost(2.5, 7.4, 1, 2), Cost(2.2, 6.7, 1, 3), Cost(2.0, 3.2, 1, 2))
# The same on a residual stream in fp32 (torch.autocast): no cast in, twice the bytes of all else.
_NORM_WIDE = Cost(14.0, 36.0, 6, 13)
# Each matmul that reads an fp32 value casts it for itself, and its gradient back, which is then summed (autocast).
_CAST_WIDE = Cost(3.0, 9.0, 1, 2)
# The residual sum, and in backward the sum of the two gradients. A compiler makes it part of the norm.
RESIDUAL = _styled(Cost(3.0, 3.0, 1, 1), Cost(3.0, 3.0, 1, 1), Cost(2.0, 2.0, 0, 0), Cost(3.0, 3.0, 1, 1))
# One of q and k. Eager: half of it negated, the halves joined, two products and a sum (apply_rotary_pos_emb); native:
# a complex product in fp32 (torchtitan apply_rotary_emb).
ROTARY = _styled(Cost(10.0, 12.0, 5, 7), Cost(10.0, 10.0, 5, 5), Cost(2.0, 2.0, 0.5, 0.5), Cost(2.0, 2.0, 1, 1))
# act(gate) * up, per element of one of the two.
GATED = _styled(Cost(5.0, 9.0, 2, 3), Cost(5.0, 9.0, 2, 3), Cost(3.0, 5.0, 1, 1), Cost(3.0, 5.0, 1, 1))
_PLAIN = Cost(2.0, 3.0, 1, 1)
# One without a gate of routed experts: its result times the token's score in fp32 and back, one kernel an operation,
# where gated ones have a kernel for all of it (Megatron-core, experts.py bias_act_func).
_WEIGHED_PLAIN = Cost(8.0, 20.0, 3, 6)
# NewGELUActivation: eight operations on tensors.
_GELU_BY_HAND = Cost(17.0, 30.0, 8, 14)
_COPY = Cost(2.0, 2.0, 1, 1)
# A random mask of bytes besides input and output; hand-written kernels drop while they sum.
_DROPOUT = _styled(Cost(2.5, 2.5, 1, 1), Cost(2.5, 2.5, 1, 1), Cost(0.5, 0.5, 0, 0), Cost(0.5, 0.5, 0, 0))
# Depthwise convolution over the inner width (causal_conv1d), and the norm gated by z (input, gate, output).
_CONVOLUTION = Cost(2.0, 4.0, 1, 2)
_GATED_NORM = _styled(Cost(21.0, 48.0, 10, 19), Cost(3.0, 6.0, 1, 2), Cost(3.0, 6.0, 1, 2), Cost(3.0, 6.0, 1, 2))
# Scores of all experts in fp32, the choice of the largest, and the auxiliary loss, per expert.
_ROUTER = _styled(Cost(12.0, 12.0, 6, 6), Cost(12.0, 12.0, 10, 8), Cost(8.0, 8.0, 5, 5), Cost(8.0, 8.0, 4, 4))
# Tokens to experts and back, per copy of a token. Eager: each expert gathers, weighs and adds its own (index_add);
# native: sort, gather, scatter (torchtitan grouped experts); fused: permute and unpermute with the weighted sum.
_ROUTED = _styled(Cost(7.0, 9.0, 12, 12), Cost(5.0, 7.0, 12, 12), Cost(4.0, 5.0, 6, 6), Cost(4.0, 5.0, 6, 6))
# The bias of an expert's last matrix, times the score of each token, added and joined expert by expert in fp32
# (Megatron-core, experts.py TEGroupedMLP._apply_bias); elsewhere one sum.
_EXPERT_BIAS = _styled(Cost(3.0, 1.0, 1, 1), Cost(3.0, 1.0, 1, 1), Cost(1.0, 1.0, 0, 1), Cost(14.0, 18.0, 4, 7))
# With experts on several devices, copies are sorted by local expert after the exchange and back before the next.
_RESORTED = 4.0
# Rows of each expert are copied to a multiple of 16 before its matmuls in 8 bits, and back behind them (Megatron-core,
# TEGroupedMLP: quantization_padding, of tokens and of their scores), per copy of a token.
_PADDED = Cost(4.0, 4.0, 4, 4)
# Kernels of one expert's turn in a loop over experts (MixtralSparseMoeBlock), its matmuls apart.
_EXPERT_LOOP = (6.0, 10.0)


class _Sum:
    """Adds up costs of one token: in elements on every tensor rank (`whole`), and in those split by tp."""

    def __init__(self) -> None:
        self.whole, self.whole_back, self.split, self.split_back = 0.0, 0.0, 0.0, 0.0
        self.kernels, self.kernels_back = 0.0, 0.0

    def whole_of(self, width: float, cost: Cost) -> None:
        self.whole += width * cost.forward
        self.whole_back += width * cost.backward
        self._launch(cost)

    def split_of(self, width: float, cost: Cost) -> None:
        self.split += width * cost.forward
        self.split_back += width * cost.backward
        self._launch(cost)

    def _launch(self, cost: Cost) -> None:
        self.kernels += cost.kernels
        self.kernels_back += cost.kernels_backward

    def over(self, job: Job, layouts: Layouts, tokens: Floats) -> Operators:
        outside, inside = (
            tokens * job.activation_bytes / layouts.outside_split,
            tokens * job.activation_bytes / layouts.tp,
        )
        forward = outside * self.whole + inside * self.split
        backward = outside * self.whole_back + inside * self.split_back
        return Operators(forward, backward, self.kernels, self.kernels_back)


def block_operators(job: Job, block: Block, layouts: Layouts, tokens: Floats, style: Style) -> Operators:
    """Norms, sums, mixer and feed-forward operators of one block besides matmuls and the mixer's core."""
    total = _Sum()
    _block(job, block, style, total)
    return _resorted(job, block, layouts, tokens, total.over(job, layouts, tokens))


def token_operators(job: Job, block: Block, layouts: Layouts, tokens: Floats, style: Style) -> Operators:
    """Everything that goes by the token: `block_operators`, `cast_operators` and `adapter_operators` in one sum."""
    total = _Sum()
    _block(job, block, style, total)
    casts = job.compute_bytes < job.activation_bytes
    if casts:
        _casts(job, block, style, total)
    if job.uses_adapters:
        _adapters(job, block, style, total)
    operators = _resorted(job, block, layouts, tokens, total.over(job, layouts, tokens))
    if casts:
        operators = operators + _cast_apart(job, block, layouts, tokens, style)
    return operators + _measured_weights(job, block, layouts) if job.training.method == "dora" else operators


def _block(job: Job, block: Block, style: Style, total: _Sum) -> None:
    hidden = job.architecture.hidden
    sums = 1 if job.architecture.parallel_block else (block.mixer != "none") + (block.feed != "none")
    for _ in range(block.norms):
        total.whole_of(hidden, _norm(job, style))
    for _ in range(sums):
        total.whole_of(hidden * job.stream_elements, RESIDUAL[style])
        if job.architecture.dropout:
            total.whole_of(hidden, _DROPOUT[style])
    if job.stream_elements > 1.0:
        for _ in range(_readers(block)):
            total.whole_of(hidden, _CAST_WIDE)
    _split_inputs(job, block, style, total)
    _mixer(job, block, style, total)
    _feed(job, block, style, total)


def _split_inputs(job: Job, block: Block, style: Style, total: _Sum) -> None:
    """In backward, gradients of what several matmuls read are summed, and those of one matmul's parts are joined.

    Hand-written modules make one matmul of each group, and write its gradient in place.
    """
    if style == "fused" or not job.trains_blocks:
        return
    joined = block.heads * block.head_dim + 2.0 * block.kv_heads * block.head_dim
    for role in ("attention", "mlp"):
        readers = sum(1 for m in block.matrices if m.split == "column" and m.role == role)
        if readers > 1:
            summed = readers + 1.0 if style == "compiled" else 3.0 * (readers - 1)
            total.whole_of(job.architecture.hidden, Cost(0.0, summed, 0, readers - 1))
        elif readers == 1 and role == "attention":
            total.split_of(joined, Cost(0.0, 2.0, 0, 1))


def _resorted(job: Job, block: Block, layouts: Layouts, tokens: Floats, operators: Operators) -> Operators:
    """`operators` with the sorting of tokens whose experts are on several devices.

    DeepEP's and HybridEP's kernels send copies from where they are, and what arrives is sorted once.
    """
    if not block.experts:
        return operators
    size = block.top_k * block.expert_inputs * job.activation_bytes
    apart = (layouts.ep > 1) & ~np.broadcast_to(switched_on(job, layouts, "moe_dispatcher"), layouts.ep.shape)
    moved = apart * (tokens * (_RESORTED * size)) * _copies_share(layouts)
    return operators + Operators(moved, moved, 2.0, 2.0)


def _copies_share(layouts: Layouts) -> Floats:
    """Part of a micro-batch's copies that a tensor rank has: those of its sequence part, and of all the ranks that hold
    slices of the same expert."""
    return np.minimum(1.0, layouts.etp / layouts.outside_split)


def _norm(job: Job, style: Style) -> Cost:
    if style == "eager":
        if job.architecture.norm == "layernorm":
            return NORM["native"]
        return _NORM_WIDE if job.stream_elements > 1.0 else NORM["eager"]
    return NORM[style]


def _readers(block: Block) -> int:
    """Matmuls that read a norm's output."""
    return sum(1 for m in block.matrices if m.split == "column" and m.role in ("attention", "mlp", "ssm"))


def _mixer(job: Job, block: Block, style: Style, total: _Sum) -> None:
    q, k = block.heads * block.head_dim, block.kv_heads * block.head_dim
    out, v = block.heads * block.v_head_dim, block.kv_heads * block.v_head_dim
    if block.mixer == "attention":
        if not job.architecture.position_parameters:
            total.split_of(q, ROTARY[style])
            total.split_of(k, ROTARY[style])
        if block.qk_norm:
            total.split_of(q, NORM[style])
            total.split_of(k, NORM[style])
        if job.framework.activations.expands_kv and block.kv_heads < block.heads:
            total.split_of(q + k, Cost(1.0, 1.0, 1, 1))
            total.split_of(out + v, Cost(1.0, 1.0, 1, 1))
        if job.framework.activations.hf_modules and block.copied_output:
            total.split_of(out, _COPY)
    elif block.mixer == "mla":
        # Rotary parts of the queries and the one shared key, then both joined with the rest for every head.
        total.split_of(block.heads * block.rope_head_dim, ROTARY[style])
        total.whole_of(block.rope_head_dim, ROTARY[style])
        if style != "compiled":
            total.split_of(q, _COPY)
            total.split_of(q, _COPY)
        latent = block.kv_lora_rank + sum(m.outputs for m in block.matrices if m.name == "q_a_proj")
        total.whole_of(latent, NORM[style])
    elif block.mixer != "none":
        total.split_of(block.ssm_inner, _CONVOLUTION)
        total.split_of(block.ssm_inner, _COPY)
        total.split_of(block.ssm_inner, _GATED_NORM[style])


def _feed(job: Job, block: Block, style: Style, total: _Sum) -> None:
    hf_modules = style == "eager" and job.framework.activations.hf_modules
    by_hand = hf_modules and job.architecture.activation in ("gelu_new", "gelu_fast")
    activation = GATED[style] if block.gated else _GELU_BY_HAND if by_hand else _PLAIN
    if block.ffn_width:
        total.split_of(block.ffn_width, activation)
    if not block.experts:
        return
    hidden, copies = job.architecture.hidden, float(block.top_k * block.expert_inputs)
    of_experts = _WEIGHED_PLAIN if job.framework.operators.weighs_apart and not block.gated else activation
    total.split_of(block.top_k * block.expert_width, of_experts)
    if block.shared_width:
        total.split_of(block.shared_width, activation)
        total.whole_of(hidden, RESIDUAL[style])
    total.whole_of(block.experts, _ROUTER[style])
    total.whole_of(copies, _ROUTED[style])
    if any(m.role == "expert" and m.split == "row" and m.bias for m in block.matrices):
        total.whole_of(copies, _EXPERT_BIAS[style])
    if _loops_experts(job, style):
        total.kernels += _EXPERT_LOOP[0] * block.experts
        total.kernels_back += _EXPERT_LOOP[1] * block.experts


def cast_operators(job: Job, block: Block, layouts: Layouts, tokens: Floats, style: Style) -> Operators:
    """Casts of matmul operands to 8 or 4 bits: inputs forward, gradients backward, weights once a micro-batch or step.

    Each is read in 16 bits and written row-wise and, for the gradients of weights that have any, column-wise too,
    unless the matrix unit reads both ways (`one_copy_families`; block-scaled formats always need both: their scales run
    along the contracted dimension). A scale that comes from the whole tensor costs a pass of its own (torchao's dynamic
    scaling, nvfp4's second level). A fused norm writes low precision in place of 16 bits (Transformer Engine,
    LayerNormLinear).
    """
    if job.compute_bytes >= job.activation_bytes:
        return Operators(layouts.zeros(), layouts.zeros(), 0.0, 0.0)
    total = _Sum()
    _casts(job, block, style, total)
    return total.over(job, layouts, tokens) + _cast_apart(job, block, layouts, tokens, style)


def _cast_apart(job: Job, block: Block, layouts: Layouts, tokens: Floats, style: Style) -> Operators:
    """Casts of weights, and of each copy of a token for itself, after it has travelled in 16 bits (Transformer Engine,
    GroupedLinear). Rows are padded by what the router chooses in recipes of block-scaled formats, and by exchanges of
    kernels as they sort them, for nothing more."""
    weights = _cast_weights(job, block, layouts, style)
    if not block.experts:
        return weights
    total, padded = _Sum(), layouts.zeros()
    cast, gradient = _cast_of(job, style)
    copies = block.top_k * block.expert_inputs
    total.whole_of(copies, cast)
    for matrix in block.matrices:
        if matrix.role == "expert" and matrix.split != "column":
            total.whole_of(matrix.outputs * block.top_k, gradient)
    if style == "fused" and job.training.precision == "fp8":
        explicit = (layouts.ep <= 1) | ~np.broadcast_to(switched_on(job, layouts, "moe_dispatcher"), layouts.ep.shape)
        padded = explicit * (tokens * (copies * job.activation_bytes))
        total.kernels += _PADDED.kernels
        total.kernels_back += _PADDED.kernels_backward
    share = _copies_share(layouts)
    moved = [
        (tokens * (job.activation_bytes * elements) + pad * padded) * share
        for elements, pad in ((total.whole, _PADDED.forward), (total.whole_back, _PADDED.backward))
    ]
    return weights + Operators(moved[0], moved[1], total.kernels, total.kernels_back)


def _cast_of(job: Job, style: Style) -> tuple[Cost, Cost]:
    """Casts of a matmul's input, and of the gradient of its output."""
    written, scanned = _cast_cost(job, style)
    # The kernel that casts to 4 bits finds the largest value on its way; eight bits' scale is a kernel of its own.
    launched = scanned * (job.compute_bytes >= 1.0)
    moved = 1.0 + scanned + written
    return Cost(moved, 0.0, 1 + launched, 0), Cost(0.0, moved, 0, 1 + launched)


def _cast_cost(job: Job, style: Style) -> tuple[float, float]:
    """What a cast writes per element, and how often it reads the tensor once more for its scale."""
    blocked = job.training.precision in ("mxfp8", "mxfp4", "nvfp4")
    both = blocked or job.machine.accelerator.family not in job.framework.weights.one_copy_families
    both = both and job.trains_blocks
    written = job.compute_bytes / job.activation_bytes * (2.0 if both else 1.0)
    scanned = 1.0 if job.training.precision == "nvfp4" or (not blocked and style != "fused") else 0.0
    return written, scanned


def _casts(job: Job, block: Block, style: Style, total: _Sum) -> None:
    written, scanned = _cast_cost(job, style)
    cast, gradient = _cast_of(job, style)
    after_norm = cast
    if style == "fused":
        after_norm = cast._replace(forward=max(0.0, written - 1.0) + scanned, kernels=cast.kernels - 1)
    hidden = job.architecture.hidden
    for _ in range((block.mixer != "none") + (block.feed != "none")):
        total.whole_of(hidden, after_norm)
    total.split_of(block.heads * block.v_head_dim or block.ssm_inner, cast)
    total.split_of(block.ffn_width + block.shared_width + block.top_k * block.expert_width, cast)
    for matrix in block.matrices:
        if matrix.role == "router" or (matrix.role == "expert" and matrix.split != "column"):
            continue
        width = matrix.outputs * (block.top_k * 1.0 if matrix.role == "expert" else matrix.copies)
        (total.split_of if matrix.split == "column" else total.whole_of)(width, gradient)


def _cast_weights(job: Job, block: Block, layouts: Layouts, style: Style) -> Operators:
    """Frozen weights that are held in 8 or 4 bits were cast when they were loaded."""
    if job.low_precision_weights and not job.trains_blocks:
        return Operators(layouts.zeros(), layouts.zeros(), 0.0, 0.0)
    elements = 1.0 + sum(_cast_cost(job, style))
    cached = job.low_precision_weights or job.framework.weights.low_precision_copies
    held = sum_of(m.parameters / shard(m, layouts) for m in block.matrices if m.role != "router")
    moved = held * (elements * job.activation_bytes) / (layouts.grad_accum if cached else 1.0)
    return Operators(moved, layouts.zeros(), float(len(block.matrices)), 0.0)


# Per element of a target's input and of its output, for a LoRA branch in one kernel (what it reads is read once, and
# added to the output once), with fp32 adapters under torch.autocast (the input is cast up by PEFT and down again by
# autocast), and in the operators of peft lora/layer.py.
_BRANCHES = {
    "fused": (Cost(1.0, 4.0, 1, 3), Cost(3.0, 2.0, 1, 2)),
    "wide": (Cost(7.0, 11.0, 3, 5), Cost(6.0, 4.0, 3, 3)),
    "plain": (Cost(1.0, 5.0, 1, 3), Cost(6.0, 4.0, 3, 3)),
}
# Dropout of a branch's input: in fp32 two 16-bit elements read, two written, and a mask of one byte; else half of that.
_DROPPED, _DROPPED_WIDE = Cost(2.25, 2.25, 1, 1), Cost(4.5, 4.5, 1, 1)
# DoRA multiplies the base output and the branch's with magnitude over norm (peft dora.py, forward).
_SCALED = Cost(4.0, 6.0, 2, 4)
# Per weight of a target: W + BA is made, and its columns are measured (peft dora.py, get_weight_norm).
_MEASURED = Cost(4.0, 0.0, 6, 0)


def adapter_operators(job: Job, block: Block, layouts: Layouts, tokens: Floats, style: Style) -> Operators:
    """LoRA branches: rank-r matmuls are bound by what they read and write of inputs and outputs.

    PEFT (lora/layer.py): the input cast to the adapter's fp32 and dropped, A, B, the scale, the sum with the base
    output and a cast back; kernels that fuse the branch read the input and add to the output once.
    """
    total = _Sum()
    if job.uses_adapters:
        _adapters(job, block, style, total)
    operators = total.over(job, layouts, tokens)
    return operators + _measured_weights(job, block, layouts) if job.training.method == "dora" else operators


def _adapters(job: Job, block: Block, style: Style, total: _Sum) -> None:
    wide = job.framework.adapters.copies_inputs and job.framework.adapters.held_bytes > job.activation_bytes
    read, write = _branch(job, wide, style)
    for matrix in lora_targets(job, block):
        times = block.top_k * 1.0 if matrix.role == "expert" else float(matrix.copies)
        into, out = (total.whole_of, total.split_of) if matrix.split == "column" else (total.split_of, total.whole_of)
        into(times * matrix.inputs, read)
        out(times * matrix.outputs, write)


def _measured_weights(job: Job, block: Block, layouts: Layouts) -> Operators:
    """DoRA makes W + BA and measures its columns before each forward pass (peft dora.py, get_weight_norm)."""
    held = sum_of(m.parameters / shard(m, layouts) for m in lora_targets(job, block))
    return Operators(held * _MEASURED.forward * job.activation_bytes, layouts.zeros(), float(_MEASURED.kernels), 0.0)


def _branch(job: Job, wide: bool, style: Style) -> tuple[Cost, Cost]:
    """Costs per element of a target's input and of its output."""
    read, write = _BRANCHES["fused" if style == "fused" else "wide" if wide else "plain"]
    if job.training.lora.dropout:
        read = _together(read, _DROPPED_WIDE if wide else _DROPPED)
    if job.training.method == "dora":
        write = _together(write, _SCALED)
    return read, write


def _together(first: Cost, more: Cost) -> Cost:
    return Cost(
        first.forward + more.forward,
        first.backward + more.backward,
        first.kernels + more.kernels,
        first.kernels_backward + more.kernels_backward,
    )


# Bytes per parameter and kernels per matrix that make 16-bit weights of quantised ones: NF4 with 8-bit scales
# (bitsandbytes dequantize_4bit after dequantize_blockwise), with fp32 scales, and GPTQ in PyTorch operators (AutoGPTQ
# qlinear_cuda_old.py: shifts, masks, zeros, scales: 17 bytes, of which those in 8 bits run at half the bandwidth).
_UNPACKED = {"nf4": (2.6, 3.0), "nf4-single": (2.6, 1.0), "gptq": (31.0, 10.0)}


def dequantise_operators(job: Job, block: Block, layouts: Layouts) -> Operators:
    """Quantised weights are unpacked before each use, forward and backward; the matmul's own reading is not counted.

    Unpacked in plain operators (GPTQ), autograd keeps the 16-bit weights for the backward pass.
    """
    none = layouts.zeros()
    if not job.quantised:
        return Operators(none, none, 0.0, 0.0)
    size, kernels = _UNPACKED[job.training.lora.quantisation]
    packed = [matrix for matrix in block.matrices if job.quantises(matrix)]
    moved = size * sum_of(matrix.parameters / shard(matrix, layouts) for matrix in packed)
    launched = kernels * sum(matrix.copies if matrix.role == "expert" else 1 for matrix in packed)
    if job.training.lora.quantisation == "gptq":
        return Operators(moved, none, launched, 0.0)
    return Operators(moved, moved, launched, launched)


def weight_operators(job: Job, block: Block, layouts: Layouts, style: Style) -> Operators:
    """What one micro-batch moves per weight of a block: casts of autocast, copies of FSDP, sums of gradients.

    Autocast casts every fp32 weight down, and its gradient up. Sharded weights (ZeRO-3) are copied out of the gathered
    buffer forward and backward, their gradients into the buffer that is reduced, unless they are views of these.
    Otherwise gradients are added to what earlier micro-batches left: Megatron's matmul kernel does so in fp32
    (gradient_accumulation_fusion), autograd by a kernel of its own where there is more than one micro-batch.
    """
    dense, experts = block_parameters(block, layouts)
    held, framework = dense + experts if block.experts else dense, job.framework
    sharded = layouts.zero_stage >= 3
    cast = (
        FP32_BYTES + job.activation_bytes if framework.weights.cast_cache and job.activation_bytes < FP32_BYTES else 0.0
    )
    copied = copied_out(job, block, layouts)
    forward = held * cast + copied
    if not job.trains_blocks:
        return Operators(forward, copied, 0.0, 0.0)
    gradient = framework.gradients.held_bytes
    if style == "fused" and framework.gradients.stay:
        summed = 2.0 * gradient - job.activation_bytes
    else:
        summed = (layouts.grad_accum > 1) * (job.activation_bytes + 2.0 * gradient)
    # Where nothing is copied the matmul writes the wider gradient itself.
    read = job.activation_bytes if framework.gathering.copies_gradients else -job.activation_bytes
    reduced = framework.gradients.reduce_bytes + read
    backward = held * (cast + np.where(sharded, reduced, summed)) * job.weight_gradient_share + copied
    tensors = float(len(block.matrices))
    kernels = tensors if cast else 0.0
    return Operators(forward, backward, kernels, kernels + tensors)


def copied_out(job: Job, block: Block, layouts: Layouts) -> Floats:
    """Bytes that copying a block's weights out of what was gathered for one pass moves; what is recomputed has those of
    the backward pass."""
    if not job.framework.gathering.copies_weights:
        return layouts.zeros()
    dense, experts = block_parameters(block, layouts)
    return (layouts.zero_stage >= 3) * (2.0 * job.framework.weights.compute_bytes) * (dense + experts)


# Bytes per 16-bit logit, forward and backward, and kernels. Chunked: each chunk's gradient replaces its logits (Liger);
# slim: one kernel reads logits twice and writes their gradient; torch: fp32 copy, log-softmax and its gradient, cast
# back; split: Megatron's vocab-parallel cross-entropy (tensor_parallel/cross_entropy.py), in fp32 throughout.
LOSS = {
    "chunked": Cost(4.0, 4.0, 8, 2),
    "slim": Cost(4.0, 4.0, 3, 2),
    "torch": Cost(14.0, 22.0, 4, 5),
    "split": Cost(38.0, 14.0, 12, 5),
}
_SLIM_BYTES = 4.0


def loss_kind(job: Job, style: Style) -> str:
    """Which of LOSS a job's loss is: what it holds at its peak (the framework's profile) tells what it writes."""
    framework = job.framework
    compiled = framework.loss.compiled_logit_bytes if job.training.compile else None
    held = framework.loss.logit_bytes if compiled is None else compiled
    if job.fused_loss:
        if job.fused_logit_bytes is None:
            return "chunked"
        held = job.fused_logit_bytes
    if held <= _SLIM_BYTES:
        return "slim"
    return "split" if style == "fused" else "torch"


def head_operators(job: Job, layouts: Layouts, tokens: Floats, style: Style) -> Operators:
    """The norm before the head, and the loss over the vocabulary that a rank holds."""
    cost, norm, hidden = LOSS[loss_kind(job, style)], _norm(job, style), job.architecture.hidden
    logits = tokens * (job.head_outputs * job.activation_bytes / 2.0) / layouts.tp
    outside = tokens * (hidden * job.activation_bytes) / layouts.outside_split
    return Operators(
        logits * cost.forward + outside * norm.forward,
        logits * cost.backward + outside * norm.backward,
        cost.kernels + norm.kernels,
        cost.kernels_backward + norm.kernels_backward,
    )


def embedding_operators(job: Job, layouts: Layouts, tokens: Floats) -> Operators:
    """Rows gathered forward; backward their gradients added into a zeroed gradient of the whole table."""
    hidden, size = job.architecture.hidden, job.activation_bytes
    rows = tokens * (hidden * size) / layouts.outside_split
    if not job.trains_outside:
        return Operators(2.0 * rows, layouts.zeros(), 1.0, 0.0)
    table = job.architecture.embedding_parameters * size / layouts.tp
    return Operators(2.0 * rows, 3.0 * rows + table, 1.0, 3.0)


def matmul_kernels(job: Job, block: Block, layouts: Layouts, style: Style) -> tuple[Floats, Floats]:
    """Matmuls launched by one block, forward and backward; experts one by one where the modules loop over them."""
    forward = layouts.ones() * len(block.matrices)
    if _loops_experts(job, style):
        experts = [matrix.copies for matrix in block.matrices if matrix.role == "expert"]
        forward = forward - len(experts)
        for copies in experts:
            forward = forward + np.maximum(1.0, copies / layouts.ep)
    return forward, forward * (1.0 if job.uses_adapters else 2.0)


def _loops_experts(job: Job, style: Style) -> bool:
    packed = job.quantised and job.framework.adapters.quantises_experts
    loops = job.framework.operators.loops_experts or (packed and job.framework.activations.hf_modules)
    return style == "eager" and loops


def adapted_modules(job: Job, block: Block) -> int:
    """Matrices of a block that have adapters."""
    return len(lora_targets(job, block)) if job.uses_adapters else 0
