"""What the host spends on the launches of a layer, and how long a device waits for it.

Every kernel costs its launch. Hand-written modules cost more: what Python does around the kernels of Megatron's or
Transformer Engine's linear modules takes several launches' time, forward and, as they are autograd functions in Python,
backward too. CUDA graphs save all of it.
"""

from __future__ import annotations

import numpy as np

from estimator.kernels.compute import BlockTime
from estimator.kernels.elementwise import adapted_modules
from estimator.model.architecture import Block
from estimator.plan.layouts import Floats, Layouts
from estimator.plan.training.job import Job
from estimator.plan.training.options import switched_on

# Part of the host's work that is left where graphs replay the static parts of a layer: routing leaves experts outside
# (Megatron-core, cuda_graph_scope attn, moe_router, moe_preprocess).
_GRAPHED = {"none": 1.0, "layers": 0.1, "full": 0.0}
_GRAPHED_EXPERTS = {"none": 1.0, "layers": 0.7, "full": 0.0}

# What a collective costs the host, in kernels: besides its own launch, the events by which its stream waits for the
# caller's and the caller's for it (torch ProcessGroupNCCL.cpp, collective).
_COLLECTIVE_LAUNCHES = 3.0
# How much longer a module in 8 bits takes the host than one in 16: casts, and scales of both passes ("more than 2x more
# time", NVIDIA/TransformerEngine issue 761).
_LOW_PRECISION = 2.0
# Modules of grouped matmuls of a layer of experts: up (with its gate) and down.
_EXPERT_MODULES = 2.0


def host_seconds(job: Job, layouts: Layouts, block: Block, time: BlockTime) -> tuple[Floats, Floats | float]:
    """(Host seconds of one layer and micro-batch, seconds that the device waits in any case).

    The host launches kernels one by one, but for those in CUDA graphs, and runs the hooks of sharded modules. Experts
    that drop no token have as many rows as routing gives them, which the host must know before it goes on
    (Megatron-core token_dispatcher.py, _maybe_dtoh_and_synchronize).
    """
    factors, gathering = job.calibration.framework, job.framework.gathering
    passes = _passes(time)
    launches = time.kernels
    if layouts.max_of("tp") > 1:
        sums = (block.mixer != "none") + (block.feed != "none")
        launches = launches + (layouts.tp > 1) * (_COLLECTIVE_LAUNCHES * sums) * passes
    if block.experts and job.framework.operators.launches_each_expert and job.style == "fused":
        one_by_one = np.maximum(1.0, block.experts / layouts.ep) - 1.0
        launches = launches + one_by_one * (_EXPERT_MODULES * (passes + 1.0))
    left = (_GRAPHED_EXPERTS if block.experts else _GRAPHED)[job.cuda_graph]
    host = left * (factors.kernel_host_s * launches + _modules_s(job, block) * passes)
    if gathering.hook_s:
        modules = len(block.matrices) + block.norms + 2 * adapted_modules(job, block)
        host = host + (layouts.zero_stage >= 3) * (gathering.hook_s * modules) * passes
    host = host * job.machine.accelerator.host_slowness
    if block.experts and job.cuda_graph != "full" and not job.chosen("moe_capacity"):
        flex = switched_on(job, layouts, "moe_dispatcher")
        return host, np.where(flex, factors.dispatch_wait_s, factors.expert_wait_s)
    return host, 0.0


def _modules_s(job: Job, block: Block) -> float:
    """What the hand-written modules of a layer take the host in one pass, their kernels' launches apart.

    Matrices that read the same input are one module, and so is the attention core.
    """
    if job.style != "fused":
        return 0.0
    linear = len({(matrix.role, matrix.split) for matrix in block.matrices if matrix.role != "router"})
    low = _LOW_PRECISION if job.compute_bytes < job.activation_bytes else 1.0
    return job.framework.operators.module_host_s * low * (linear + (block.mixer != "none"))


def _passes(time: BlockTime) -> Floats:
    """Forward, backward, and forward again where most of a layer is recomputed."""
    return np.where(time.kernels_recompute > 0.5 * time.kernels_forward, 3.0, 2.0)


def waiting(device: Floats, host: Floats) -> Floats:
    """How long a device waits for a host that needs `host` seconds to launch work of `device` seconds.

    The larger of the two decides; where they are close, both do, as some layers wait and others do not (the fourth root
    of the sum of fourth powers, by square roots, which round alike for one entry and for many).
    """
    square = (host / device) * (host / device)
    return device * (np.sqrt(np.sqrt(1.0 + square * square)) - 1.0)
