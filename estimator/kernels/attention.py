"""Seconds of the token mixers' cores on one device: attention of softmax, and the scans that stand for it.

A flash kernel computes S = QK^T, the softmax and PV tile by tile (Dao 2023, FlashAttention-2, algorithm 1), so that
only matmuls and exponentials count. Its share of the matrix peak falls with narrow heads (one exponential a score,
whatever the width: Shah et al. 2024, FlashAttention-3, section 2.3), with few keys per query (first and masked tiles),
and with too few rows of queries to fill the device. All arrays have shape (n,), one entry a candidate layout.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from estimator.kernels.activations import shared_heads
from estimator.kernels.collectives import Group, all_to_all, send
from estimator.model.architecture import Block
from estimator.plan.calibration import AttentionKernel, ScanKernel
from estimator.plan.layouts import Layouts
from estimator.plan.training.job import Job
from estimator.plan.training.stages import Floats

# Kernels forward and backward where scores go through memory (transformers, eager_attention_forward).
_EAGER_KERNELS = (6.0, 9.0)
# Batched matmuls of scores reach this part of what the blocks' matmuls do: their depth is one head (QK^T) and their
# output as narrow (PV).
_SCORE_MATMULS = 0.8
# Part of the matrix peak that no attention kernel was seen to pass, however wide its heads (cuDNN on GB300: 0.84).
MOST = 0.85
# Kernels of one call of a flash kernel: forward, and backward (row sums of dO * O, main kernel, cast of dQ).
_FLASH_KERNELS = (1.0, 3.0)
# A ring's parts: half of them concern half of the queries; elements read and written per element of the output (scaled,
# then added) and of gradients (added) (Transformer Engine, context_parallel.py, AttnFuncWithCPAndKVP2P).
_MERGED_ROWS = 0.75
_MERGED_OUTPUTS, _MERGED_GRADIENTS = 5.0, 3.0


@dataclass(frozen=True)
class CoreTime:
    """Seconds on the device per micro-batch, model FLOP of the forward pass, and launches; arrays of shape (n,)."""

    forward: Floats
    backward: Floats
    flop: Floats
    kernels_forward: Floats
    kernels_backward: Floats


def keys_seen(block: Block, tokens_per_sequence: float, image_keys: float = 0.0) -> float:
    """Keys that a query of a causal sequence sees on average, bounded by the block's window where it has one; those of
    images in a layer of cross-attention.

    `tokens_per_sequence` is the length of what attention does not cross: the sequence, or one document of a packed one
    where documents are masked from each other.
    """
    if block.crosses:
        return max(1.0, image_keys)
    if block.window is not None and block.window < tokens_per_sequence:
        return block.window * (1.0 - block.window / (2.0 * tokens_per_sequence))
    return tokens_per_sequence / 2.0


def core_flop(block: Block, scores: Floats) -> tuple[Floats, Floats]:
    """FLOP of `scores` (queries x keys over all heads), forward and backward.

    Forward multiplies QK^T and PV; backward makes S again, and dP, dQ, dK and dV (Dao 2023, section 3.1.2).
    """
    q, v = block.head_dim, block.v_head_dim
    return 2.0 * (q + v) * scores, 2.0 * (3.0 * q + 2.0 * v) * scores


def attention_time(job: Job, block: Block, layouts: Layouts, tokens: Floats, kernel: AttentionKernel) -> CoreTime:
    """The attention core of one block for `tokens` tokens of one rank, whose queries see the keys of all cp ranks.

    Context parallelism brings keys in cp parts (ring attention: Liu et al. 2023), each a call of its own with fewer
    keys per query, whose results are added to those so far, or has the whole sequence of some heads (Ulysses). Eager
    attention computes the whole square and moves every score through memory several times.
    """
    heads = block.heads / layouts.tp
    rows = tokens * heads
    if job.training.attention == "eager":
        return _eager(job, block, layouts, rows)
    keys = keys_seen(block, float(job.seq_len), job.image_keys)
    windowed = block.window is not None and block.window < job.seq_len
    flop, backward_flop = core_flop(block, rows * keys)
    calls = layouts.ones() if job.framework.gathering.exchanges_heads else layouts.cp.astype(np.float64)
    rate = job.machine.accelerator.peak_flops.get(kernel.rate) if kernel.rate != "bf16" else job.head_peak_flops
    peak = (rate or job.head_peak_flops) * job.calibration.device.attention
    shares = flash_share(kernel, block, keys / calls, rows, windowed)
    if (other := job.calibration.device.split_kernel) is not None and layouts.max_of("cp") > 1:
        alone = flash_share(other, block, keys / calls, rows, windowed)
        shares = tuple(np.where(layouts.cp > 1, split, usual) for split, usual in zip(alone, shares, strict=True))
    forward, backward = shares
    merged, merged_back = _merged(job, block, tokens / layouts.tp, calls - 1.0)
    return CoreTime(
        forward=flop / (peak * forward) + merged,
        backward=(backward_flop / (peak * backward) + merged_back) * job.trained_layer_share,
        flop=flop,
        kernels_forward=calls * _FLASH_KERNELS[0],
        kernels_backward=calls * _FLASH_KERNELS[1],
    )


def context_traffic(
    job: Job, block: Block, layouts: Layouts, group: Group, tokens: Floats
) -> tuple[Floats, Floats | float, Floats]:
    """(bytes of a message, how many, their seconds) that attention over split sequences brings for `tokens` of a rank.

    A ring passes keys and values on, once forward and twice backward. Ulysses exchanges queries, keys, values and
    outputs, each way once, keys and values of every rank's own head where there are fewer (DeepSpeed, ulysses_sp.py).
    """
    each = tokens * job.activation_bytes * (block.head_dim + block.v_head_dim) / layouts.tp
    if job.framework.gathering.exchanges_heads:
        size = 0.5 * each * (block.heads + shared_heads(block, layouts))
        return size, 4.0, 4.0 * all_to_all(group, size)
    size, times = each * block.kv_heads, 3.0 * (layouts.cp - 1).astype(np.float64)
    return size, times, times * send(group, size)


def _merged(job: Job, block: Block, tokens: Floats, parts: Floats) -> tuple[Floats, Floats]:
    """Seconds of adding up what `parts` more calls of a ring give, forward and backward.

    Outputs are scaled and added, gradients of queries, keys and values added.
    """
    moved = tokens * (_MERGED_ROWS * job.activation_bytes) * parts
    second = moved / (job.machine.accelerator.memory_bandwidth * job.calibration.device.memory)
    outputs = block.heads * block.v_head_dim
    gradients = block.heads * block.head_dim + block.kv_heads * (block.head_dim + block.v_head_dim)
    return _MERGED_OUTPUTS * outputs * second, _MERGED_GRADIENTS * gradients * second


def flash_share(
    kernel: AttentionKernel, block: Block, keys: Floats, rows: Floats, windowed: bool
) -> tuple[Floats, Floats]:
    """Part of the matrix peak that a call reaches, forward and backward; `keys` per query and `rows` of all heads."""
    width = 0.5 * (block.head_dim + block.v_head_dim)
    half, half_backward = kernel.half_keys, kernel.half_keys_backward
    if windowed:
        half = half_backward = kernel.half_window
    filled = rows / (rows + kernel.half_rows)
    forward = min(MOST, kernel.forward * width / (width + kernel.half_dim))
    backward = min(MOST, kernel.backward * width / (width + kernel.half_dim_backward))
    return filled * (forward * keys / (keys + half)), filled * (backward * keys / (keys + half_backward))


def _eager(job: Job, block: Block, layouts: Layouts, rows: Floats) -> CoreTime:
    """Scores of the whole square as matmuls and passes through memory; model FLOP are those of the causal half.

    A fused softmax that needs whole groups of score matrices falls back to single operators where it does not get them
    (Megatron-LM fused_softmax.py, is_kernel_available).
    """
    device, framework = job.calibration.device, job.framework
    scores = rows * float(job.seq_len)
    flop, _ = core_flop(block, scores)
    rate = job.head_peak_flops * (device.matmul * job.head_surface.height * _SCORE_MATMULS)
    forward_bytes, backward_bytes = framework.operators.score_bytes
    if framework.operators.score_group:
        whole = (layouts.micro_batch * block.heads // layouts.tp) % framework.operators.score_group == 0
        whole = whole & (job.seq_len <= framework.operators.score_longest)
        loose_forward, loose_backward = framework.operators.loose_score_bytes
        forward_bytes = np.where(whole, forward_bytes, loose_forward)
        backward_bytes = np.where(whole, backward_bytes, loose_backward)
    moved = scores * (job.activation_bytes / 2.0) / (job.machine.accelerator.memory_bandwidth * device.memory)
    seen, _ = core_flop(block, rows * keys_seen(block, float(job.seq_len), job.image_keys))
    ones = np.ones(len(rows))
    return CoreTime(
        forward=flop / rate + forward_bytes * moved,
        backward=(2.0 * flop / rate + backward_bytes * moved) * job.trained_layer_share,
        flop=seen,
        kernels_forward=_EAGER_KERNELS[0] * ones,
        kernels_backward=_EAGER_KERNELS[1] * ones,
    )


def scan_time(job: Job, block: Block, layouts: Layouts, tokens: Floats, kernel: ScanKernel) -> CoreTime:
    """State-space and linear-attention scans (Mamba, Mamba-2's SSD, gated delta rule) of `tokens` tokens of one rank.

    Their chunked kernels are bound by what they write and read between steps: chunk states, decays and corrections.
    """
    accelerator, device = job.machine.accelerator, job.calibration.device
    inner = tokens * block.ssm_inner / layouts.tp
    passes = kernel.passes + kernel.passes_per_state * block.state_size
    reached = device.memory * (device.scan if kernel.borrowed else 1.0)
    forward = inner * job.activation_bytes * passes / (accelerator.memory_bandwidth * reached)
    ones = np.ones(len(layouts))
    return CoreTime(
        forward=forward,
        backward=kernel.backward * forward * job.trained_layer_share,
        flop=inner * 4.0 * max(1, block.state_size),
        kernels_forward=kernel.kernels * ones,
        kernels_backward=kernel.kernels_backward * ones,
    )


def no_core(layouts: Layouts) -> CoreTime:
    """A block without a mixer."""
    zero = np.zeros(len(layouts))
    return CoreTime(zero, zero, zero, zero, zero)
