"""Time of one block's operators on one device: matmuls by their real shard, attention, and memory-bound operators.

A matmul of (M, N, K) takes the longer of its arithmetic at the fitted efficiency and its bytes at memory bandwidth,
plus a launch (roofline: Williams et al. 2009). All arrays have shape (n,); times are seconds per micro-batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from estimator.architecture import Block
from estimator.job import Job
from estimator.layouts import RECOMPUTE, Layouts
from estimator.stages import Floats, lora_targets, micro_batch_tokens, shard, sum_of

# Backward of attention runs five matmuls where forward runs two (Dao 2023, FlashAttention-2, section 3.1).
_ATTENTION_BACKWARD = 2.5
# Kernels of the same operators in backward, per kernel in forward: each differentiable input has its own gradient.
_BACKWARD_KERNELS = 2.0


@dataclass(frozen=True)
class BlockTime:
    """Seconds of one block and micro-batch on one device, and its model FLOP (forward)."""

    matmul_forward: Floats
    matmul_backward: Floats
    attention_forward: Floats
    attention_backward: Floats
    memory_forward: Floats
    memory_backward: Floats
    forward_flop: Floats
    recompute: Floats
    recompute_flop: Floats

    @property
    def forward(self) -> Floats:
        return self.matmul_forward + self.attention_forward + self.memory_forward

    @property
    def backward(self) -> Floats:
        return self.matmul_backward + self.attention_backward + self.memory_backward


def matmul_time(job: Job, m: Floats, n: Floats, k: Floats, copies: Floats | float, *, head: bool = False) -> Floats:
    """Seconds of `copies` matmuls of (m, n, k) launched as one kernel."""
    device, accelerator = job.calibration.device, job.machine.accelerator
    element = job.activation_bytes if head else job.compute_bytes
    low = element < 2
    peak = (job.head_peak_flops if head else job.peak_flops) * (device.low_matmul if low else device.matmul)
    efficiency = m / (m + device.half_m) * (n / (n + device.half_n)) * (k / (k + device.half_k))
    arithmetic = 2.0 * m * n * k / (peak * efficiency)
    traffic = element * (m * k + n * k) + job.activation_bytes * m * n
    moving = traffic / (accelerator.memory_bandwidth * device.memory)
    return copies * np.maximum(arithmetic, moving) + device.launch_s


def memory_time(job: Job, traffic_bytes: Floats, kernels: float) -> Floats:
    """Seconds to move `traffic_bytes` through device memory in `kernels` launches."""
    device = job.calibration.device
    return traffic_bytes / (job.machine.accelerator.memory_bandwidth * device.memory) + kernels * device.launch_s


def block_time(job: Job, block: Block, layouts: Layouts) -> BlockTime:
    tokens = micro_batch_tokens(job, layouts)
    forward, backward, flop = _matmuls(job, block, layouts, tokens)
    attention, attention_back, attention_flop = _attention(job, block, layouts, tokens)
    memory = _memory_bound(job, block, layouts, tokens)
    adapter = _adapters(job, block, layouts, tokens)
    quantised = _dequantise(job, block, layouts)
    memory_forward = memory + adapter + quantised
    memory_backward = (_BACKWARD_KERNELS * (memory + adapter) + quantised) * job.trained_layer_share

    again = (layouts.recompute == RECOMPUTE.index("full")).astype(np.float64)
    selective = layouts.recompute == RECOMPUTE.index("selective")
    # Keeping every other matmul output means that the others run again.
    matmul_share = np.where(selective, 0.5 if job.framework.selective == "ops" else 0.0, again)
    core_share = np.where(selective, 1.0 if job.framework.selective == "attention" else 0.0, again)
    recompute = matmul_share * (forward + memory_forward) + core_share * attention
    return BlockTime(
        matmul_forward=forward,
        matmul_backward=backward,
        attention_forward=attention,
        attention_backward=attention_back,
        memory_forward=memory_forward,
        memory_backward=memory_backward,
        forward_flop=flop + attention_flop,
        recompute=recompute,
        recompute_flop=matmul_share * flop + core_share * attention_flop,
    )


def _matmuls(job: Job, block: Block, layouts: Layouts, tokens: Floats) -> tuple[Floats, Floats, Floats]:
    """(forward s, backward s, forward FLOP). Frozen weights need no weight gradient: one matmul instead of two."""
    ones = np.ones(len(layouts))
    forward, backward, flop = np.zeros(len(layouts)), np.zeros(len(layouts)), np.zeros(len(layouts))
    gradients = 1.0 if job.uses_adapters else 2.0
    for matrix in block.matrices:
        rows, columns, depth, copies = tokens, ones * matrix.outputs, ones * matrix.inputs, ones * matrix.copies
        if matrix.role == "expert":
            columns = columns / layouts.etp if matrix.split == "column" else columns
            depth = depth / layouts.etp if matrix.split == "row" else depth
            copies = np.maximum(1.0, copies / layouts.ep)
            rows = tokens * block.top_k * layouts.etp / layouts.tp / copies
        else:
            part = shard(matrix, layouts)
            columns = columns / part if matrix.split == "column" else columns
            depth = depth / part if matrix.split == "row" else depth
        once = matmul_time(job, rows, columns, depth, copies)
        forward = forward + once
        backward = backward + gradients * once
        flop = flop + 2.0 * rows * columns * depth * copies
    return forward, backward * job.trained_layer_share, flop


def _attention(job: Job, block: Block, layouts: Layouts, tokens: Floats) -> tuple[Floats, Floats, Floats]:
    """(forward s, backward s, forward FLOP) of the attention core: causal, so half of the square; windows bound it."""
    if not block.heads or block.mixer not in ("attention", "mla"):
        return _scan(job, block, layouts, tokens)
    device = job.calibration.device
    seq = float(job.seq_len)
    span = seq / 2.0
    if block.window is not None and block.window < seq:
        span = block.window * (1.0 - block.window / (2.0 * seq))
    heads = block.heads / layouts.tp
    flop = 2.0 * tokens * span * heads * (block.head_dim + block.v_head_dim)
    peak = job.head_peak_flops
    forward = flop / (peak * device.attention_forward) + device.launch_s
    backward = _ATTENTION_BACKWARD * flop / (peak * device.attention_backward) + _BACKWARD_KERNELS * device.launch_s
    if job.training.attention == "eager":
        # Scores go through memory: written, masked, normalised and read again, in fp32 and in 16 bits.
        traffic = tokens * seq * heads * (4.0 * 4 + 4.0 * job.activation_bytes)
        moving = memory_time(job, traffic, 0.0)
        forward, backward = forward + moving, backward + 2.0 * moving
    return forward, backward * job.trained_layer_share, flop


def _scan(job: Job, block: Block, layouts: Layouts, tokens: Floats) -> tuple[Floats, Floats, Floats]:
    """State-space and linear-attention scans: bound by memory, state_size multiply-adds per inner element."""
    if not block.ssm_inner:
        zero = np.zeros(len(layouts))
        return zero, zero, zero
    inner = block.ssm_inner / layouts.tp
    forward = memory_time(job, 4.0 * job.activation_bytes * tokens * inner, 2.0)
    flop = tokens * inner * 4.0 * max(1, block.state_size)
    return forward, _BACKWARD_KERNELS * forward, flop


def _memory_bound(job: Job, block: Block, layouts: Layouts, tokens: Floats) -> Floats:
    """Norms, residual sums, rotary embedding and activation, by the bytes that they read and write.

    Unfused RMSNorm goes through fp32 copies: about four passes over its input instead of two.
    """
    size = job.activation_bytes
    eager = job.framework.activation == "eager" and not job.training.compile
    passes = 8.0 if eager else 2.0
    outside, hidden = layouts.outside_split, job.architecture.hidden
    traffic = tokens * hidden * size * (block.norms * passes + 2.0 * 3.0) / outside
    if block.heads:
        rotated = block.heads * block.head_dim + block.kv_heads * block.head_dim
        traffic = traffic + tokens * rotated * size * (6.0 if eager else 2.0) / layouts.tp
    width = block.ffn_width + block.shared_width + block.top_k * block.expert_width
    traffic = traffic + tokens * width * size * ((5.0 if eager else 3.0) if block.gated else 2.0) / layouts.tp
    if block.experts:
        # Permute tokens to experts and back, and the weighted sum: each copy is written and read.
        traffic = traffic + tokens * block.top_k * hidden * size * 6.0 / outside
    return memory_time(job, traffic, job.framework.block_kernels)


def _adapters(job: Job, block: Block, layouts: Layouts, tokens: Floats) -> Floats:
    """LoRA branches: too narrow to be bound by arithmetic, so by what they read and write of inputs and outputs."""
    if not job.uses_adapters:
        return np.zeros(len(layouts))
    traffic = np.zeros(len(layouts))
    targets = lora_targets(job, block)
    for matrix in targets:
        rows = tokens * block.top_k if matrix.role == "expert" else tokens
        width = matrix.inputs + 3.0 * matrix.outputs
        if job.training.method == "dora":
            width += 2.0 * matrix.outputs
        traffic = traffic + rows * width * job.activation_bytes / layouts.tp
    return memory_time(job, traffic, 4.0 * len(targets))


def _dequantise(job: Job, block: Block, layouts: Layouts) -> Floats:
    """NF4 weights are unpacked to 16 bits before each use: half a byte read, two written, two read again."""
    if not job.quantised:
        return np.zeros(len(layouts))
    parameters = sum_of(matrix.parameters / shard(matrix, layouts) for matrix in block.matrices)
    return memory_time(job, (0.5 + 2.0 + 2.0) * parameters, 2.0 * len(block.matrices))


@dataclass(frozen=True)
class HeadTime:
    """Seconds of the output head and the loss per micro-batch, and the head's forward FLOP."""

    forward: Floats
    backward: Floats
    flop: Floats


def head_time(job: Job, layouts: Layouts) -> HeadTime:
    tokens = micro_batch_tokens(job, layouts)
    ones = np.ones(len(layouts))
    columns = job.architecture.vocab / layouts.tp
    once = matmul_time(job, tokens, columns, ones * job.architecture.hidden, 1.0, head=True)
    passes = 2.0 * job.activation_bytes if job.fused_loss else job.framework.logit_bytes
    loss = memory_time(job, tokens * columns * passes, 4.0)
    gradients = 1.0 if job.uses_adapters else 2.0
    flop = 2.0 * tokens * columns * job.architecture.hidden
    return HeadTime(once + loss, gradients * once + loss, flop)


def optimizer_time(job: Job, layouts: Layouts, trained: Floats) -> Floats:
    """Seconds of one optimizer step over `trained` parameters per device, by the bytes it reads and writes."""
    element = job.updated_bytes if not job.uses_adapters else 4.0
    device_bytes = trained * job.optimizer.traffic_elements * element
    offloaded = layouts.offload > 0
    over_host = device_bytes / job.machine.accelerator.host_bandwidth
    return np.where(offloaded & (layouts.offload < 3), over_host, memory_time(job, device_bytes, 4.0))
