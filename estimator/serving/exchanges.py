"""What the devices of a replica send each other in a pass: sums over tensor groups, tokens to experts and back, and
values to the next stage of a pipeline.

Collectives of serving are by timings of them alone: what training steps lose of links is no part. Arrays have shape
(k, n): k passes of n deployments.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from estimator.kernels.collectives import (
    Group,
    all_gather,
    all_to_all,
    connect,
    copies_by_node,
    one_shot_all_reduce,
    reduce_scatter,
    send,
)
from estimator.machine.links import KernelLimits
from estimator.plan.layouts import Floats
from estimator.plan.serving.deployments import Deployments
from estimator.plan.serving.job import ServingJob
from estimator.serving.operators import sums

# What dispatch or combine take besides moving bytes: 128 tokens of 7168 elements to 8 experts take 77 and 114 us over
# NVLink at 160 GB/s, 118 to 194 and 195 to 369 us over 16 to 256 ranks at 50 GB/s (deepseek-ai/DeepEP, README, H800).
_EXCHANGE_S = 3.0e-5
# Tokens of a rank up to which its kernels for low latency are used (num_max_dispatch_tokens_per_rank of the engines).
LOW_LATENCY_TOKENS = 256.0


def collectives(job: ServingJob, these: Deployments, tokens: Floats) -> Floats:
    """Sums over tensor groups after each mixer and feed-forward of `tokens`, and the sends between pipeline stages."""
    seconds = np.zeros_like(tokens)
    size = tokens * job.running.hidden * job.wide_bytes
    if job.machine.count == 1:
        return seconds
    device = job.device
    tensor = _tensor_group(job, these)
    every, shared = sums(job.running)
    if not tensor.idle:
        local = every + np.where(these.dp > 1, 0.0, shared)
        engine = job.engine
        limits = KernelLimits(engine.direct_limits, engine.one_shot_limits, engine.switch_limits)
        seconds = seconds + local * one_shot_all_reduce(tensor, size, limits)
    if these.pp.max(initial=1.0) > 1:
        pipeline = connect(job.machine, device.network, these.pp, these.tp * these.dp)
        seconds = seconds + (these.pp - 1) * send(pipeline, size / these.tp)
    return seconds


@lru_cache(maxsize=8)
def _tensor_group(job: ServingJob, these: Deployments) -> Group:
    """The devices that share each layer's matmuls. Every pass of an estimate asks for the same ones."""
    device = job.device
    return connect(job.machine, device.network, these.tp, np.ones_like(these.tp))


def lane_exchanges(job: ServingJob, these: Deployments, tokens: Floats, generating: NDArray[np.bool_]) -> Floats:
    """Seconds in which `tokens` of each lane go to the experts that lanes share, and their results come back, in all
    layers.

    Either everybody gets everything and adds up everything (all-gather and reduce-scatter), as engines sum over tensor
    groups, or each token goes to the ranks of its experts alone (all-to-all: DeepEP, pplx, NVLink one-sided). Kernels
    of that kind go by their own timings: what an engine's sums lose or gain is no part of them.
    """
    sharing, (_, shared) = these.dp > 1, sums(job.running)
    if not shared or not sharing.any():
        return np.zeros_like(tokens)
    ranks = these.tp * these.dp
    experts = connect(job.machine, job.device.network, ranks, np.ones_like(ranks))
    every = tokens * _expert_inputs(job) * job.wide_bytes * these.dp
    seconds = job.factors.collective * (all_gather(experts, every) + reduce_scatter(experts, every))
    chosen = job.exchanges_directly(these)
    if chosen.any():
        seconds = np.where(chosen, _direct(job, these, experts, tokens, generating), seconds)
    return np.where(sharing, shared * seconds, 0.0)


def _expert_inputs(job: ServingJob) -> float:
    """Elements of a token that experts read: the model's width, or the narrower one that it is projected to before."""
    return float(max(block.expert_inputs for block in job.running.blocks if block.experts))


def _direct(
    job: ServingJob, these: Deployments, experts: Group, tokens: Floats, generating: NDArray[np.bool_]
) -> Floats:
    """Of one layer, all-to-all in the format that the experts' matmuls read, and the results in 16 bits."""
    hidden, top_k = _expert_inputs(job), float(max(block.top_k for block in job.running.blocks))
    own = tokens / these.tp
    reached = these.ep * -np.expm1(top_k * np.log1p(-1.0 / np.maximum(these.ep, 1.0 + 1e-9)))
    # Kernels for few tokens send a copy for each expert, and are the only ones that graphs of generation hold; those
    # for many send one to each node, from where it is spread.
    few = (own <= LOW_LATENCY_TOKENS) | generating
    once = copies_by_node(experts, top_k)
    copies, crossing = np.where(few, top_k, reached), np.where(few, 1.0, once * top_k / reached)
    sent = own * hidden * copies
    dispatch = all_to_all(experts, sent * job.expert_operand_bytes[0], crossing)
    combine = all_to_all(experts, sent * job.wide_bytes, crossing)
    # Devices of a tensor group have a part of their lane's tokens each.
    whole = all_gather(_tensor_group(job, these), tokens * hidden * job.wide_bytes)
    return dispatch + combine + 2.0 * _EXCHANGE_S + whole
