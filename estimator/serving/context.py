"""A cache split by its tokens over the devices of a tensor group that would hold the same keys (vLLM's decode context
parallelism; Helix parallelism, Bhatia et al. 2025): each has a part of every request, for the heads of all of them."""

from __future__ import annotations

import numpy as np

from estimator.kernels.collectives import all_gather, connect, reduce_scatter
from estimator.plan.layouts import Floats
from estimator.plan.serving.deployments import Deployments
from estimator.plan.serving.job import ServingJob


def splits_context(job: ServingJob, tp: int) -> bool:
    """Whether `tp` devices hold every key as often as the plan's parts, or a multiple of that. Windows and recurrent
    states are not split."""
    parts, blocks = int(job.context_parts), job.architecture.blocks
    if parts == 1:
        return True
    whole = all(block.heads and not block.window and not block.ssm_inner for block in blocks)
    return whole and all(tp % ((block.kv_heads if block.mixer == "attention" else 1) * parts) == 0 for block in blocks)


def context_exchanges(job: ServingJob, these: Deployments, tokens: Floats) -> Floats:
    """Seconds of a pass in which devices that share a context gather the queries of `tokens`, and add up what each has
    found for them; shape (k, n). Prompts are gathered as they are read, which is hidden behind their attention."""
    seconds = np.zeros_like(tokens)
    parts = np.full(len(these), job.context_parts)
    group = connect(job.machine, job.device.network, parts, np.ones_like(parts))
    for kind, block in enumerate(job.architecture.blocks):
        if block.heads:
            latent = block.mixer == "mla"
            key = block.kv_lora_rank + block.rope_head_dim if latent else block.head_dim
            value = block.kv_lora_rank if latent else block.v_head_dim
            rows = tokens * block.heads / these.tp * job.context_parts * job.wide_bytes
            each = all_gather(group, rows * key) + reduce_scatter(group, rows * value)
            seconds = seconds + float(job.architecture.pattern.count(kind)) * each
    return seconds
