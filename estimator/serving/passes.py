"""Seconds of one forward pass of a serving engine: some sequences that generate, and some prompt tokens.

Every pass reads all weights that its tokens reach, and the keys and values of its sequences (Pope et al. 2022,
Efficiently Scaling Transformer Inference, section 2.1). Partial results are summed over devices by kernels of the
engine's own. Arrays have shape (k, n): k passes of n deployments.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from estimator.kernels.attention import core_flop, flash_share
from estimator.machine.decode import (
    CachedHeads,
    decode_attention_seconds,
    expert_seconds,
    experts_reached,
    routed,
)
from estimator.machine.matmul import MatmulRates, matmul_seconds
from estimator.model.architecture import Block
from estimator.model.vision import tower_matmul
from estimator.plan.layouts import Floats
from estimator.plan.serving.deployments import Deployments
from estimator.plan.serving.job import HeldPart, ServingJob, kind_peak
from estimator.serving.context import context_exchanges
from estimator.serving.exchanges import LOW_LATENCY_TOKENS, collectives, lane_exchanges
from estimator.serving.memory import weights_by_kind
from estimator.serving.operators import merged, moved
from estimator.units import BITS_PER_BYTE, FP32_BYTES

# Part of a device's memory bandwidth that kernels which only move values reach: timed decoding kernels, which read a
# cache, reach 0.71 to 1.0 of it on most families (decode_factors.yaml).
_STREAMED = 0.85
# Rotary, Hadamard transform and cast of queries and keys (6), norm of the keys, two writes to the cache of the index,
# weights of the heads, scores, top k, the table of what was chosen (DeepSeek-V3.2, inference/model.py, Indexer).
_CHOOSING_KERNELS = 13.0
# Part of the device that kernels for many tokens work on: 24 of 132 multiprocessors (the same, Buffer.set_num_sms).
_EXCHANGE_SHARE = 24.0 / 132.0
# How much more often the most popular expert is met than the least once copies are placed by load: an assumption.
_BALANCED_SPREAD = 1.5
# Part of the host link's rate that copies reach, as in training (estimator/kernels/offloading.py).
_COPIED = 0.8
# A copy between host and card with the wait for it: an assumption.
_CROSSING_S = 3.0e-5


@dataclass(frozen=True)
class PassTime:
    """Seconds on the devices by what they are spent on, arrays of shape (k, n); `host` is between two passes."""

    matmul: Floats
    attention: Floats
    memory: Floats
    collective: Floats
    host: Floats

    def part(self, index: int | slice) -> PassTime:
        """Some of the k passes."""
        return PassTime(
            self.matmul[index], self.attention[index], self.memory[index], self.collective[index], self.host[index]
        )

    def with_part(self, other: PassTime) -> PassTime:
        """The same with what another device takes before or after it."""
        return PassTime(
            self.matmul + other.matmul,
            self.attention + other.attention,
            self.memory + other.memory,
            self.collective + other.collective,
            self.host + other.host,
        )

    @property
    def total(self) -> Floats:
        return self.matmul + self.attention + self.memory + self.collective + self.host


def pass_time(
    job: ServingJob,
    these: Deployments,
    decoding: Floats,
    reading: Floats,
    context: Floats,
    lanes: Floats | float = 1.0,
) -> PassTime:
    """A pass of all layers with `decoding` sequences of `context` tokens in each lane, and `reading` prompt tokens in
    that part of them which `lanes` is: the others wait for these.

    A pipeline takes the sum of its stages for one micro-batch: `decoding` and `reading` are those of one. Where tokens
    go to experts over the network the engine may cut the pass in two halves that compute and travel by turns (SGLang's
    two-batch overlap, vLLM's dual-batch overlap), if that is faster.
    """
    if job.parts:
        return reduce(PassTime.with_part, (_part_time(part, these, decoding, reading, context) for part in job.parts))
    whole = _one_batch(job, these, decoding, reading, context, lanes)
    overlapping = job.overlaps_batches(these)
    if not overlapping.any():
        return whole
    half = _one_batch(job, these, 0.5 * decoding, 0.5 * reading, context, lanes)
    tokens = 0.5 * (decoding * job.checked_tokens + reading) / these.tp
    busy = (tokens > LOW_LATENCY_TOKENS) & (reading > 0.0)
    both = 2.0 / (1.0 - np.where(busy, _EXCHANGE_SHARE, 0.0))
    computing = half.matmul + half.attention + half.memory
    exposed = np.maximum(0.0, half.collective - 0.5 * both * computing) + half.collective / job.running.layers
    taken = overlapping & (both * computing + 2.0 * exposed < whole.total - whole.host)
    return PassTime(
        np.where(taken, both * half.matmul, whole.matmul),
        np.where(taken, both * half.attention, whole.attention),
        np.where(taken, both * half.memory, whole.memory),
        np.where(taken, 2.0 * exposed, whole.collective),
        whole.host,
    )


def _part_time(part: HeldPart, these: Deployments, decoding: Floats, reading: Floats, context: Floats) -> PassTime:
    """What one of several unlike devices takes for what it holds, and the way there and back.

    For many tokens the weights of a processor are copied to a card, which is faster with them (llama.cpp,
    GGML_OP_OFFLOAD_MIN_BATCH).
    """
    job, own = part.job, part.of(these)
    taken = _one_batch(job, own, decoding, reading, context, 1.0)
    tokens = decoding * job.checked_tokens + reading
    link = (job if part.lent is None else part.lent).machine.accelerator.host_bandwidth * _COPIED
    way = tokens * job.running.hidden * job.wide_bytes / link + _CROSSING_S
    if part.lent is not None and job.engine.lends_from:
        card = _one_batch(part.lent, own, decoding, reading, context, 1.0)
        copying = _copied_bytes(job, own, tokens) / link
        lent = tokens >= job.engine.lends_from
        taken = PassTime(
            matmul=np.where(lent, card.matmul, taken.matmul),
            attention=np.where(lent, card.attention, taken.attention),
            memory=np.where(lent, card.memory, taken.memory),
            collective=np.where(lent, card.collective + copying, taken.collective),
            host=np.where(lent, card.host, taken.host),
        )
    return replace(taken, collective=taken.collective + part.crossings * way)


def _copied_bytes(job: ServingJob, these: Deployments, tokens: Floats) -> Floats:
    """Bytes of a part's weights that a pass of `tokens` reaches."""
    held = weights_by_kind(job, these)
    reached = np.ones(tokens.shape)
    for block in job.running.blocks:
        if block.experts:
            reached = experts_reached(
                np.maximum(tokens, 1.0), float(block.experts), float(block.top_k), job.expert_spread
            )
    return held["dense"] + held["experts"] * reached


def _one_batch(
    job: ServingJob, these: Deployments, decoding: Floats, reading: Floats, context: Floats, lanes: Floats | float
) -> PassTime:
    factors = job.factors
    checked = decoding * job.checked_tokens
    tokens = checked + reading
    rows = np.maximum(tokens, 1e-9)
    # What the lanes send to the experts that they share, each in the mean.
    shared = np.maximum(checked + lanes * reading, 1e-9)
    # A matmul of both is weighed by their tokens, but never shorter than generation's alone.
    count, few = len(rows), np.maximum(checked, 1e-9)
    mixed = ((reading > 0.0) & (checked > 0.0)).any(axis=1)
    both = _matmuls(
        job,
        these,
        np.concatenate([rows, few[mixed]]),
        np.concatenate([shared, few[mixed]]),
        np.concatenate([checked + reading / these.read_len, checked[mixed]]),
    )
    generation = both[:count].copy()
    generation[mixed] = both[count:]
    generation = np.where(checked > 0.0, generation, 0.0)
    share = reading / rows
    weight = factors.prefill * share + factors.decode * (1.0 - share)
    matmul = np.maximum(factors.decode * generation, weight * both[:count])
    attention = factors.decode * _decode_cores(job, these, decoding, context)
    attention = attention + factors.prefill * _prompt_cores(job, these, reading)
    matmul = matmul + factors.prefill * _seeing(job, these, reading)
    layers = float(job.running.layers)
    memory = weight * _memory_bound(job, these, rows) + factors.layer_s * layers
    # Kernels of replayed graphs start sooner after each other than alone.
    sooner = factors.launch - 1.0
    for_matmuls, for_attention, for_others = _starts(job, tokens * these.dp)
    matmul, memory = matmul + sooner * for_matmuls, memory + sooner * for_others + factors.launch * _unfused_s(job)
    attention = attention + sooner * for_attention * (decoding > 0.0)
    collective = factors.collective * collectives(job, these, rows)
    collective = collective + lane_exchanges(job, these, shared, reading == 0.0)
    if job.context_parts > 1:
        collective = collective + factors.collective * context_exchanges(job, these, checked)
    # Every stage of a pipeline schedules and samples for itself, and has its own part of a pass to hide that behind.
    stages = np.ones_like(these.pp) if job.engine.splits_layers else these.pp
    host = factors.host * (job.engine.host_step_s + job.engine.host_sequence_s * decoding)
    device = matmul + attention + memory + collective
    # What is launched kernel by kernel takes at least as long as the launches.
    replayed = (reading == 0.0) & (decoding <= job.engine.graph_batch) | (tokens <= job.engine.mixed_graph_tokens)
    launches = 0.0 if job.graphs else np.ones(tokens.shape)
    launches = np.where(replayed, launches, 1.0) * _launch_s(job)
    waits = np.maximum(0.0, launches - device)
    host = np.maximum(0.0, host - np.where(job.hides_host(stages), (device + waits) / stages, 0.0))
    return PassTime(matmul, attention, memory, collective, stages * (host + factors.step_s) + waits)


def _starts(job: ServingJob, tokens: Floats) -> tuple[Floats, float, float]:
    """Seconds of a pass of `tokens` that timings of single kernels give to their starts: matmuls, attention, others."""
    architecture = job.running
    _, _, kernels = moved(architecture, job.casts)
    matmuls, attention = np.full(tokens.shape, float(merged(architecture).times.sum() * job.surface.launch_s)), 0.0
    sorting = np.where(_alone(job, tokens), _row_kernels_s(job), float(job.expert_kernel.launch_s))
    for kind, block in enumerate(architecture.blocks):
        count = architecture.pattern.count(kind)
        if block.heads:
            attention += count * float(job.decode_kernels[block.mixer == "mla"].launch_s)
        if block.experts:
            matmuls = matmuls + count * (sorting + 2.0 * float(job.expert_surface.launch_s))
    return matmuls, attention, kernels * job.device.launch_s


# Kernels of a layer, and of one with experts, of engines whose operators are fused as they are counted here.
_FUSED = (10, 15)


def _unfused_s(job: ServingJob) -> float:
    """Starts of the kernels that the engine has besides, as it fuses less."""
    engine, blocks = job.engine, job.running.blocks
    more = (
        engine.expert_kernels - _FUSED[1] if block.experts else engine.layer_kernels - _FUSED[0] for block in blocks
    )
    counts = map(job.running.pattern.count, range(len(blocks)))
    return job.device.launch_s * sum(count * max(0, each) for count, each in zip(counts, more, strict=True))


# What a layer launches besides its kernels where nothing is replayed: the order and sums of experts, splits and copies
# of latents, casts to 8 bits. With eager_launch_s, steps that were timed without graphs: Qwen3-30B-A3B 0.72 ms a layer
# (vLLM, issue 45709), DeepSeek-V2-Lite 0.92 (SGLang, pull 1401), DeepSeek-V3 1.35 (SGLang, pull 12160).
_OF_EXPERTS, _OF_LATENTS, _OF_CASTS = 10, 8, 4


def _launch_s(job: ServingJob) -> Floats:
    """Seconds that the host takes to launch a pass kernel by kernel: as is typical of compiled ones, times what was
    fitted, and no less than was timed where nothing is compiled."""
    engine, pattern, launched = job.engine, job.running.pattern, 0
    for kind, block in enumerate(job.running.blocks):
        each = engine.expert_kernels + _OF_EXPERTS if block.experts else engine.layer_kernels
        each += _OF_LATENTS * (block.mixer == "mla") + _OF_CASTS * job.casts
        launched += pattern.count(kind) * each
    timed = 0.0 if job.graphs else engine.eager_launch_s
    return np.maximum(job.factors.host * engine.launch_s, timed) * launched


def _matmuls(job: ServingJob, these: Deployments, tokens: Floats, shared: Floats, picked: Floats) -> Floats:
    """All layers' matmuls and the head for `tokens` of one lane, of which `picked` need logits; experts get `shared` of
    each lane. Shape (k, n)."""
    accelerator = job.machine.accelerator
    bandwidth, width = accelerator.memory_bandwidth, job.wide_bytes
    table, tp = merged(job.running), these.tp
    columns = (table.outputs - table.kv) / tp + np.maximum(table.kv / tp, table.kv_unit)
    each = matmul_seconds(
        MatmulRates(job.surface, job.peak_flops, bandwidth, job.operand_bytes, width),
        tokens,
        np.where(table.column, columns, table.outputs),
        np.where(table.row, table.inputs / tp, table.inputs),
    )
    seconds = np.einsum("i,ijk->jk", table.times, each)
    routed_s = 0.0
    for kind, block in enumerate(job.running.blocks):
        if block.experts:
            routed_s = routed_s + float(job.running.pattern.count(kind)) * _experts(job, these, block, shared)
    if table.shared and job.engine.shared_beside:
        seconds = seconds - _beside(job, these, tokens, each[table.shared], routed_s)
    seconds = seconds + routed_s
    # Only the last token of a prompt needs logits.
    head_bytes = (width, job.weights.head_bits / BITS_PER_BYTE)
    rates = MatmulRates(job.device.surfaces["bf16"], job.wide_peak_flops, bandwidth, head_bytes, width)
    columns, hidden = job.running.vocab / these.tp, float(job.running.hidden)
    return seconds + matmul_seconds(rates, picked, columns, hidden)


def _beside(job: ServingJob, these: Deployments, tokens: Floats, each: Floats, routed_s: Floats | float) -> Floats:
    """Seconds of shared experts' matmuls, `each` of shape (shapes, k, n), that pass while the routed ones take
    `routed_s`. What they read and calculate takes its time beside others, too: starts and waits alone are hidden."""
    table, surface = merged(job.running), job.surface
    times = table.times[table.shared]
    weights = float(times @ (table.outputs * table.inputs)[table.shared, 0, 0]) / these.tp
    reading = weights * job.operand_bytes[1] / (job.machine.accelerator.memory_bandwidth * surface.memory)
    working = 2.0 * tokens * weights / (job.peak_flops * surface.height)
    alone = np.einsum("i,ijk->jk", times, each)
    hidden = np.clip(alone - np.maximum(reading, working), 0.0, routed_s)
    return np.where(tokens <= job.engine.shared_beside, hidden, 0.0)


def _seeing(job: ServingJob, these: Deployments, reading: Floats) -> Floats:
    """The tower's pass over the patches of the images among `reading` prompt tokens of one lane; shape (k, n)."""
    tower, workload = job.running.vision, job.inference
    if tower is None or not workload.visual_tokens:
        return np.zeros_like(reading)
    patches = np.maximum(reading * (job.patches / these.input_len), 1e-9)
    rates = MatmulRates(
        job.device.surfaces["bf16"], job.wide_peak_flops, job.machine.accelerator.memory_bandwidth, (2.0, 2.0), 2.0
    )
    columns, passed = tower_matmul(tower, job.patches, workload.images + workload.video_frames)
    seconds = tower.layers * matmul_seconds(rates, patches, columns / these.tp, float(tower.hidden))
    return np.where(reading > 0.0, seconds * passed, 0.0)


def _dealt(job: ServingJob, these: Deployments, block: Block, tokens: Floats) -> tuple[Floats, Floats]:
    """(Rows, experts with any) of the fullest rank: those beyond a node hold copies of popular experts, placed by load
    (DeepSeek's EPLB, as the engines have it)."""
    rows, reached = np.empty_like(tokens), np.empty_like(tokens)
    for places, spread in ((~these.wide, np.inf), (these.wide, _BALANCED_SPREAD)):
        if places.any():
            load = (tokens[:, places], float(block.experts), float(block.top_k), these.ep[places])
            rows[:, places], reached[:, places] = routed(*load, min(spread, job.expert_spread))
    return rows, reached


def _experts(job: ServingJob, these: Deployments, block: Block, tokens: Floats) -> Floats:
    """The routed experts of one layer: the tokens of all lanes go to the experts of all devices of a replica."""
    rows, reached = _dealt(job, these, block, tokens * these.dp)
    bandwidth = job.machine.accelerator.memory_bandwidth
    rates = MatmulRates(job.expert_surface, job.expert_peak_flops, bandwidth, job.expert_operand_bytes)
    hidden, width = float(block.expert_inputs), block.expert_width / these.etp
    matmuls = 3.0 if block.gated else 2.0
    seconds = expert_seconds(job.expert_kernel, rates, rows, reached, hidden, width, matmuls)
    if job.engine.row_products:
        # A token alone: its experts are matrices that a vector is multiplied by, without sorting and without tiles.
        up = matmul_seconds(rates, np.ones_like(rows), (matmuls - 1.0) * width * block.top_k, hidden)
        down = matmul_seconds(rates, np.ones_like(rows), hidden * block.top_k, width)
        # What is fitted to grouped kernels says nothing of these.
        return np.where(_alone(job, tokens * these.dp), up + down + _row_kernels_s(job), job.factors.experts * seconds)
    return job.factors.experts * seconds


def _alone(job: ServingJob, tokens: Floats) -> np.ndarray:
    """Whether experts are read for one token, by an engine that has kernels for that."""
    return (tokens <= 1.0) & job.engine.row_products


def _row_kernels_s(job: ServingJob) -> float:
    """Starts of what stands around an expert's matrices for one token."""
    return (job.engine.expert_kernels - job.engine.layer_kernels) * job.device.launch_s


def _decode_cores(job: ServingJob, these: Deployments, decoding: Floats, context: Floats) -> Floats:
    seconds = np.zeros_like(decoding)
    accelerator, parts = job.machine.accelerator, job.context_parts
    for kind, block in enumerate(job.running.blocks):
        count = float(job.running.pattern.count(kind))
        if block.heads:
            latent = block.mixer == "mla"
            key = block.kv_lora_rank + block.rope_head_dim if latent else block.head_dim
            value = block.kv_lora_rank if latent else block.v_head_dim
            read = block.kv_heads if job.engine.grouped_queries else block.heads
            core = decode_attention_seconds(
                job.decode_kernels[latent],
                accelerator.memory_bandwidth,
                job.wide_peak_flops,
                decoding,
                _entries_seen(job, block, context / parts),
                CachedHeads(
                    heads=block.heads / these.tp * parts,
                    kv_heads=1.0 if latent else np.maximum(1.0, read / these.tp),
                    head_dim=key,
                    v_head_dim=value,
                    element_bytes=job.kv_bytes,
                    window=block.window if job.engine.bounds_windows else None,
                    latent=latent,
                ),
                job.checked_tokens,
            )
            seconds = seconds + count * (core + _choosing(job, block, decoding * job.checked_tokens, decoding, context))
        elif block.ssm_inner:
            # The state in fp32, read and written.
            state = 2.0 * FP32_BYTES * block.ssm_inner * max(1, block.state_size) / these.tp
            seconds = seconds + count * decoding * state / (accelerator.memory_bandwidth * _STREAMED)
    return np.where(decoding > 0.0, seconds, 0.0)


def _prompt_cores(job: ServingJob, these: Deployments, reading: Floats) -> Floats:
    """The attention core of `reading` prompt tokens, whose prompts have `input_len` tokens, cached ones included."""
    seconds = np.zeros_like(reading)
    cached = these.input_len - these.read_len
    for kind, block in enumerate(job.running.blocks):
        count = float(job.running.pattern.count(kind))
        if block.heads:
            rows = np.maximum(reading, 1e-9) * block.heads / these.tp
            window = block.window if job.engine.bounds_windows else None
            span = these.read_len / 2.0 + cached + 0.0 * rows
            keys = _entries_seen(job, block, span)
            share, _ = flash_share(job.device.attention_kernel, block, keys, rows, windowed=False)
            if window is not None:
                bounded = _keys(window, these.read_len) + 0.0 * rows
                narrow, _ = flash_share(job.device.attention_kernel, block, bounded, rows, windowed=True)
                passes = these.input_len > window
                keys, share = np.where(passes, bounded, keys), np.where(passes, narrow, share)
            core = core_flop(block, rows * keys)[0] / (job.wide_peak_flops * share)
            if block.chosen_keys and block.rope_head_dim:
                core = np.minimum(
                    core * _latent_cost(block), core_flop(block, rows * span)[0] / (job.wide_peak_flops * share)
                )
            seconds = seconds + count * (core + _choosing(job, block, reading, reading / these.read_len, span))
        elif block.ssm_inner and block.mixer in job.device.scans:
            scan = job.device.scans[block.mixer]
            passes = scan.passes + scan.passes_per_state * block.state_size
            traffic = reading * block.ssm_inner / these.tp * passes * job.wide_bytes
            seconds = seconds + count * traffic / (job.machine.accelerator.memory_bandwidth * _STREAMED)
    return np.where(reading > 0.0, seconds, 0.0)


def _entries_seen(job: ServingJob, block: Block, context: Floats) -> Floats:
    """Entries of the cache that a query attends to, of `context` tokens before it."""
    if block.crosses:
        return np.full_like(context, max(1.0, job.image_keys))
    entries = context / block.cache_every
    if block.chosen_keys:
        entries = np.minimum(entries, float(block.chosen_keys))
    return entries + np.minimum(context, float(block.local_window))


def _latent_cost(block: Block) -> float:
    """FLOP of a score of sparse latent attention, which works on the latent itself, over one with keys and values."""
    return (2.0 * block.kv_lora_rank + block.rope_head_dim) / (block.head_dim + block.v_head_dim)


def _choosing(job: ServingJob, block: Block, queries: Floats, sequences: Floats, context: Floats) -> Floats:
    """Seconds in which `queries` of `sequences` sequences choose their entries, `context` tokens each behind them: all
    keys of the index are scored by every head in 8 bits (DeepSeek-V3.2, equation 1)."""
    if not block.index_dim or not block.chosen_keys:
        return np.zeros_like(queries)
    entries = context / block.cache_every
    rate = kind_peak(job.machine.accelerator.peak_flops, "fp8") * job.device.surfaces["bf16"].height
    scoring = 2.0 * block.index_heads * block.index_dim * queries * entries / rate
    bandwidth = job.machine.accelerator.memory_bandwidth * _STREAMED
    reading = sequences * entries * block.index_dim / bandwidth
    return np.maximum(scoring, reading) + _CHOOSING_KERNELS * job.device.launch_s


def _keys(window: int, tokens: Floats) -> Floats:
    """Keys that a token of a prompt sees on average through a window."""
    return np.where(tokens > window, window * (1.0 - window / (2.0 * np.maximum(tokens, window))), tokens / 2.0)


def _memory_bound(job: ServingJob, these: Deployments, tokens: Floats) -> Floats:
    """Norms with the residual sum, rotary embedding with the write to the cache, activation, casts, routing."""
    whole, split, kernels = moved(job.running, job.casts)
    traffic = tokens * job.wide_bytes * (whole + split / these.tp)
    bandwidth = job.machine.accelerator.memory_bandwidth * _STREAMED
    return traffic / bandwidth + kernels * job.device.launch_s
