"""Seconds that reinforcement training spends generating the samples of one optimizer step (PPO, GRPO).

The prompts are read in one forward pass, then every token is a pass of its own over all samples at once: it reads all
weights and the keys and values so far (Pope et al. 2022, Efficiently Scaling Transformer Inference, section 2.1). Who
generates (`workload.rollout`) decides the rest:
- trainer: the trained model itself, launched kernel by kernel from Python (TRL, GRPOTrainer without vLLM), its cache
  copied each time it grows (transformers, DynamicCache.update), sharded weights gathered once before
  (TRL, ds3_gather_for_generation);
- colocated: an engine on the same devices (TRL, vllm_mode colocate; verl's hybrid engine), which is the serving model
  (serving.py) with all samples sent at once and the prompts of a group read once;
- separate: other devices generate while these train, so that nothing is added here.

All samples are taken to have the mean length `response_len`: where lengths vary, a step waits for the longest one
besides. Arrays have shape (n,), one entry a candidate layout.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from estimator.kernels.attention import core_flop, flash_share, keys_seen
from estimator.kernels.collectives import Group, all_gather, group, one_shot_all_reduce
from estimator.kernels.compute import matmul_time, memory_time
from estimator.kernels.elementwise import (
    adapter_operators,
    block_operators,
    dequantise_operators,
    matmul_kernels,
    weight_operators,
)
from estimator.model.architecture import Block
from estimator.plan.layouts import Layouts, unsplit
from estimator.plan.serving.deployments import Deployments
from estimator.plan.serving.engine import most_tokens
from estimator.plan.serving.job import ServingJob
from estimator.plan.training.job import Job
from estimator.plan.training.shards import held_parameters
from estimator.plan.training.stages import Floats, stage_shape, sum_of
from estimator.serving.estimates import estimate
from estimator.units import FP32_BYTES

STAGES = ("ppo", "grpo")
# Part of 16 bits that a weight of four bits takes without its scales (definition).
_PACKED = 0.25
# Part of its memory that an engine may fill with weights; the rest is for the cache. Published recipes split models
# about this far (NeMo RL 0.6, performance summary: Qwen3-235B over 16 H100, DeepSeek-V3 over 32).
_MOST_WEIGHTS = 0.9
# Passes over the cache in one step: attention reads it, and it is grown by concatenation, so read and written too.
_CACHE_PASSES = 3.0
# Kernels of a layer that do so: keys and values are joined with those so far, and attention reads them.
_CACHE_KERNELS = 3.0
# A forward pass is launched from Python modules, of which the backward pass, half of the kernels that the mean host
# time of a kernel is fitted on, has none.
_FORWARD_LAUNCH = 2.0
# Kernels that pick the next tokens: penalties, temperature, top-k and top-p, softmax, draw (transformers
# generation/logits_process.py; the stopping criteria besides).
_SAMPLING_KERNELS = 30.0


@dataclass(frozen=True)
class Generator:
    """The trained model that generates: every entry is a copy over `layouts.tp` devices that makes `samples` at once.
    `tensor` joins its devices."""

    layouts: Layouts
    tensor: Group
    samples: Floats


def lengths(job: Job) -> tuple[float, float]:
    """(Tokens of a prompt, tokens generated per sample)."""
    response = float(job.training.response_len or max(1, job.seq_len // 2))
    return max(1.0, job.seq_len - response), response


def generation_seconds(job: Job, layouts: Layouts) -> Floats:
    """Seconds per optimizer step for the step's samples; 0 where nothing is generated, or elsewhere."""
    if not _generates(job) or not len(layouts):
        return np.zeros(len(layouts))
    gathering = gather_seconds(job, layouts)
    if job.rollout is not None:
        return np.asarray(gathering + engine_seconds(job, job.rollout), dtype=np.float64)
    generator = trainer(job, layouts)
    prompt, response = lengths(job)
    reading, decoding = pass_seconds(job, generator, prompt, prompt + response / 2.0)
    return gathering + reading + response * decoding


def least_generation_s(job: Job) -> float:
    """Seconds per optimizer step that generation takes in whatever layout: an engine's own, or what the host takes to
    launch the passes of the trained model, whose experts may all be on devices of their own."""
    if not _generates(job):
        return 0.0
    if job.rollout is not None:
        return engine_seconds(job, job.rollout)
    experts = max(1, *(block.experts for block in job.architecture.blocks))
    spread = replace(unsplit(), ep=np.array([experts]))
    kernels = _pass(job, Generator(spread, group(job, spread.tp, spread.tp), np.ones(1)), np.ones((1, 1)))[1][0]
    layers, nothing = float(job.architecture.layers), np.zeros(1)
    reading = _launched(job, nothing, kernels + layers)
    decoding = _launched(job, nothing, kernels + _CACHE_KERNELS * layers)
    return float((reading + lengths(job)[1] * decoding)[0])


def _generates(job: Job) -> bool:
    return job.training.stage in STAGES and job.training.rollout != "separate"


def engine_seconds(job: Job, rollout: ServingJob) -> float:
    """Seconds that engines on all devices take for the samples of one step; they are laid out for themselves, so that
    it is the same for all candidates."""
    return float(job.global_batch / estimate(rollout, engines(job, rollout)).requests_per_s[0])


def engines(job: Job, rollout: ServingJob) -> Deployments:
    """Copies of the model in engines over all devices, one entry: each over the fewest devices that it takes."""
    size = engine_size(job)
    ones = np.ones(1)
    prompt, response = lengths(job)
    samples = float(job.global_batch) * ones
    return Deployments(
        tp=size * ones,
        pp=ones,
        ep=ones,
        dp=ones,
        replicas=max(1, job.machine.count // size) * ones,
        input_len=prompt * ones,
        output_len=response * ones,
        concurrency=samples,
        request_rate=0.0 * ones,
        requests=samples,
        max_batch=float(rollout.engine.max_batch) * ones,
        max_tokens=float(most_tokens(rollout.engine, prompt + response)) * ones,
        prefix_hit=(1.0 - 1.0 / _shared(job)) * ones,
    )


def engine_size(job: Job) -> int:
    """Devices of one copy of the model in an engine: the fewest, doubled from one, on which its weights leave room."""
    weights = job.architecture.parameters * float(job.activation_bytes)
    share, size = job.training.engine_share * job.usable_bytes * _MOST_WEIGHTS, 1
    while weights / size > share and job.machine.count % (2 * size) == 0:
        size *= 2
    return size


def engine_weights(job: Job) -> float:
    """Bytes of the weights on each device of an engine that has its own."""
    return job.architecture.parameters * float(job.activation_bytes) / engine_size(job)


def engine_bytes(job: Job, weights: Floats | float) -> Floats:
    """Bytes of a device that an engine takes: the part that it is given, or where its weights do not fit in that, what
    it has to be given."""
    return np.maximum(job.training.engine_share * job.usable_bytes, np.asarray(weights) / _MOST_WEIGHTS)


def trainer(job: Job, layouts: Layouts) -> Generator:
    """Each replica makes the samples of its own step at once; context-parallel ranks, which hold whole weights, share
    them. Pipeline stages run one after the other, so that their layers add up as if they were on one device."""
    whole = replace(layouts, sequence_parallel=np.zeros_like(layouts.tp), zero_stage=np.zeros_like(layouts.tp))
    samples = np.maximum(1.0, layouts.micro_batch * layouts.grad_accum / layouts.cp)
    return Generator(whole, group(job, layouts.tp, np.ones_like(layouts.tp)), samples)


def _shared(job: Job) -> int:
    """Samples that have the same prompt, which an engine reads and keeps once."""
    return job.training.group_size if job.training.stage == "grpo" else 1


def _cache_share(block: Block, tp: np.ndarray | float) -> Floats:
    """Part of a block's cache on one of `tp` devices: heads are split, and held twice where there are fewer of them;
    the compressed cache of MLA is whole on each."""
    return np.maximum(1.0 / np.asarray(tp), 1.0 / max(1, block.kv_heads if block.mixer == "attention" else 1))


def gather_seconds(job: Job, layouts: Layouts) -> Floats:
    """Seconds until whole weights stand where they generate: gathered where they are sharded, and handed to an engine
    through device memory. Once a step."""
    sharded, engine = layouts.zero_stage >= 3, job.rollout is not None
    if not (engine or sharded.any()):
        return np.zeros(len(layouts))
    shape = stage_shape(job.architecture, layouts, np.zeros_like(layouts.pp))
    held_bytes = held_parameters(job, layouts, shape).total * job.framework.weights.compute_bytes
    if job.quantised:
        held_bytes = held_bytes * _PACKED
    members = group(job, layouts.shard_group, layouts.tp)
    seconds = np.where(sharded, all_gather(members, held_bytes), 0.0)
    return seconds + memory_time(job, 2.0 * held_bytes, 1.0) if engine else seconds


def pass_seconds(job: Job, generator: Generator, prompt: float, context: float) -> tuple[Floats, Floats]:
    """(Seconds of the pass that reads all prompts of `prompt` tokens, seconds of one token for each sample, whose mean
    length so far is `context` tokens)."""
    tokens = generator.samples * prompt
    device, kernels = _pass(job, generator, np.stack([tokens, generator.samples]))
    reading, decoding = device[0] + _reading(job, generator, tokens, prompt), device[1]
    moved = generator.samples * job.activation_bytes * (_CACHE_PASSES * _cached(job, generator, context))
    layers = float(job.architecture.layers)
    decoding = decoding + memory_time(job, moved, _CACHE_KERNELS * layers)
    decoding = _launched(job, decoding, kernels[1] + _CACHE_KERNELS * layers)
    return _launched(job, reading, kernels[0] + layers), decoding


def _cached(job: Job, generator: Generator, context: float) -> Floats:
    """Elements of keys, values and recurrent states (in fp32, read and written) of one sample on one device."""
    tp = generator.layouts.tp
    elements = np.zeros(len(tp))
    for kind, block in enumerate(job.architecture.blocks):
        cached = block.kv_elements_per_token * min(context, block.window or context) * _cache_share(block, tp)
        state = 2.0 * FP32_BYTES * block.ssm_inner * max(1, block.state_size) / (job.activation_bytes * tp)
        elements = elements + job.architecture.pattern.count(kind) * (cached + state)
    return elements


def _reading(job: Job, generator: Generator, tokens: Floats, prompt: float) -> Floats:
    """Seconds of the attention core of `tokens` prompt tokens, as in training."""
    seconds, device = np.zeros_like(tokens), job.calibration.device
    peak = job.head_peak_flops * device.attention
    for kind, block in enumerate(job.architecture.blocks):
        if block.heads:
            rows = tokens * block.heads / generator.layouts.tp
            keys = np.full_like(tokens, keys_seen(block, prompt))
            windowed = block.window is not None and block.window < prompt
            share, _ = flash_share(device.attention_kernel, block, keys, rows, windowed)
            seconds = seconds + job.architecture.pattern.count(kind) * core_flop(block, rows * keys)[0] / (peak * share)
    return seconds


def _launched(job: Job, device: Floats, kernels: Floats) -> Floats:
    """Seconds of a pass that takes the devices `device` seconds and that the host launches."""
    kernel_s = job.calibration.framework.kernel_host_s * _FORWARD_LAUNCH
    return np.maximum(device, kernel_s * (kernels + _SAMPLING_KERNELS))


def _pass(job: Job, generator: Generator, tokens: Floats) -> tuple[Floats, Floats]:
    """(Device seconds, kernels launched) of all layers and the head, the attention core apart; `tokens` of shape
    (k, n) are those of k passes."""
    layouts, architecture = generator.layouts, job.architecture
    seconds, kernels, sums = _matmuls(job, layouts, tokens), np.zeros(len(layouts)), 0
    for kind, block in enumerate(architecture.blocks):
        count = architecture.pattern.count(kind)
        sums += count * (1 if architecture.parallel_block else (block.mixer != "none") + (block.feed != "none"))
        moved = block_operators(job, block, layouts, tokens, job.own_style)
        moved = moved + weight_operators(job, block, layouts, job.own_style)
        if job.quantised:
            moved = moved + dequantise_operators(job, block, layouts)
        if job.uses_adapters:
            moved = moved + adapter_operators(job, block, layouts, tokens, job.own_style)
        seconds = seconds + count * memory_time(job, moved.forward_bytes, moved.forward_kernels)
        kernels = kernels + count * (matmul_kernels(job, block, layouts, job.own_style)[0] + moved.forward_kernels)
    if not generator.tensor.idle:
        reduced = one_shot_all_reduce(generator.tensor, tokens * (architecture.hidden * job.activation_bytes))
        seconds = seconds + sums * reduced
    # Only the last token of a sample needs logits.
    rows = np.minimum(tokens, generator.samples)
    head = matmul_time(job, rows, architecture.vocab / layouts.tp, architecture.hidden, head=True)
    return seconds + head, np.broadcast_to(kernels, tokens.shape)


def _matmuls(job: Job, layouts: Layouts, tokens: Floats) -> Floats:
    """Seconds of all layers' matmuls, shape (k, n). Few tokens reach few experts: each draws `top_k` of them.

    One call times matrices of all kinds, along an axis before the others.
    """
    blocks = enumerate(job.architecture.blocks)
    every = [(job.architecture.pattern.count(kind), block, m) for kind, block in blocks for m in block.matrices]
    seconds = np.zeros_like(tokens)
    for expert in (False, True):
        chosen = [(count, block, m) for count, block, m in every if (m.role == "expert") is expert]
        if not chosen:
            continue
        part = layouts.etp if expert else layouts.tp
        outputs, inputs, copies, top_k = (
            np.array(values, dtype=np.float64)[:, None, None]
            for values in zip(*((m.outputs, m.inputs, m.copies, block.top_k) for _, block, m in chosen), strict=True)
        )
        columns = outputs / np.where([[[m.split == "column"]] for *_, m in chosen], part, 1)
        depth = inputs / np.where([[[m.split == "row"]] for *_, m in chosen], part, 1)
        rows = tokens
        if expert:
            drawn = tokens * (layouts.ep * layouts.etp / layouts.tp)
            held = np.maximum(1.0, copies / layouts.ep)
            reached = np.maximum(1.0, held * (1.0 - (1.0 - top_k / copies) ** drawn))
            rows, copies = drawn * (top_k * held / copies) / reached, reached
        times = matmul_time(job, rows, columns, depth, copies)
        seconds = seconds + sum_of(count * time for (count, *_), time in zip(chosen, times, strict=True))
    return seconds
