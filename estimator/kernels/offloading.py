"""Seconds that states in host memory cost: the optimizer step on the host, and what crosses the host link.

Optimizer states stay on the host, where its processors update them; gradients go there and weights come back (ZeRO-
Offload, Ren et al. 2021, section 3). Offloaded weights cross the link before every gather, forward and backward
(ZeRO-Infinity, Rajbhandari et al. 2021, section 5), offloaded activations once each way. Copies run beside compute,
which hides them as far as it lasts. Arrays have shape (n,), one entry a candidate layout.
"""

from __future__ import annotations

import numpy as np

from estimator.kernels.activations import block_bytes, boundary_bytes, kept_bytes
from estimator.plan.layouts import Layouts
from estimator.plan.training.job import Job
from estimator.plan.training.shards import Held
from estimator.plan.training.stages import Floats, StageShape, recomputed_share
from estimator.units import BYTES_PER_GB, FP32_BYTES

# Part of the host link's rate that copies from page-locked memory reach: about 12.5 of 15.75 GB/s over PCIe 3 x16.
LINK_SHARE = 0.8
# Bytes/s of a node's memory that an optimizer step there reaches: the median of published steps. They are far apart:
# 1.1e11 (Adam alone of 10B parameters in 2.57 s on two Xeon 8168, Ren et al. 2021, table 4), 7.6e10 (72B over four
# nodes of eight A100 in 10 s, DeepSpeed issue 6834), 7.1e10 and 5.1e10 with cores bound to ranks and without (3B over
# two A100 in steps of 2.38 and 3.08 s, DeepSpeed pull request 7474), 3.4e10 (1.2B in 1.5 s, DeepSpeed issue 6695),
# 1.8e10 (7B over eight A800 in about 16 s, one thread a process).
_HOST_ADAM = 6.0e10
# The part of a host's memory bandwidth that it reaches with a thread on every core, where that is known: 1.1e11 of the
# 2.56e11 bytes/s of two Xeon 8168 (six channels of DDR4-2666 each; Ren et al. 2021, table 4).
_HOST_SHARE = 0.43
# Numbers per parameter that DeepSpeed reads and writes beside Adam: gradients are multiplied by what scales and clips
# them, whatever that is (unscale_and_clip_grads), and weights are read to be cast (stage_1_and_2.py, step; stage3.py,
# _reassign_or_swap_out_partitioned_parameters).
_AROUND_ADAM = 3.0
# How much longer Adam takes in single PyTorch operators on the host (Ren et al. 2021, table 4: 14.76 s to 2.57 s).
_UNFUSED = 5.7


# Part of 16 bits that a weight of four bits takes without its scales (definition).
_PACKED = 0.25


def link_rate(job: Job) -> float:
    """Bytes/s that copies between a device and its host reach, one way."""
    return LINK_SHARE * job.machine.accelerator.host_bandwidth


def host_step_seconds(job: Job, layouts: Layouts, trained: Floats) -> Floats:
    """Seconds of one optimizer step on the host over `trained` parameters per device; 0 where states are on the device.

    All devices of a node share its memory. Updated weights are copied back meanwhile, block by block, so that the
    longer of both counts, but by DeepSpeed once all are updated and cast; those that stay on the host are not.
    """
    away = layouts.optimizer_offloaded
    if not away.any():
        return np.zeros(len(layouts))
    ranks = min(job.machine.per_node, job.machine.count)
    element = FP32_BYTES if job.uses_adapters else job.updated_bytes
    own = _own_adam(job)
    passes = job.optimizer.traffic_elements * element * (1.0 if own or job.framework.optimizer.fused else _UNFUSED)
    if own:
        passes += _AROUND_ADAM * element + job.framework.weights.compute_bytes
    known = job.plan.overrides.host_gb_per_s
    updating = trained * (ranks * passes / (_HOST_ADAM if known is None else _HOST_SHARE * known * BYTES_PER_GB))
    back = np.where(layouts.weights_offloaded, 0.0, trained * (job.framework.weights.compute_bytes / link_rate(job)))
    return np.where(away, updating + back if own else np.maximum(updating, back), 0.0)


def _own_adam(job: Job) -> bool:
    """Whether states on the host are updated by DeepSpeed's Adam, step by step (_optimizer_step)."""
    return job.framework.gathering.live_parameters is not None


def offloaded_seconds(job: Job, layouts: Layouts, shape: StageShape, held: Held, passing: Floats) -> Floats:
    """Seconds per optimizer step that copies to and from the host take beyond the compute that hides them.

    `passing` are seconds of one micro-batch forward and backward, recompute and waiting for the host included, of which
    at most the part `data_overlap` hides copies. Both directions of the link run side by side: weights come in and
    activations go out forward; weights, activations and sums of gradients come in, and gradients go out backward.
    """
    if not (layouts.offload > 0).any():
        return np.zeros(len(layouts))
    m = layouts.grad_accum.astype(np.float64)
    weights = _weight_bytes(job, layouts, held)
    gradients, sums = _gradient_bytes(job, layouts, held, m)
    activations = _activation_bytes(job, layouts, shape)
    moved = np.maximum(weights, activations) * m + np.maximum((weights + activations) * m + sums, gradients)
    copying, hidden = moved / link_rate(job), job.calibration.framework.data_overlap
    return np.maximum(copying - hidden * (m * passing), copying * (1.0 - hidden))


def _weight_bytes(job: Job, layouts: Layouts, held: Held) -> Floats:
    """What of its shard one device copies in for one pass over all its layers."""
    size = job.weight_bytes * job.packed(1.0, _PACKED)
    return layouts.weights_offloaded * held.sharded(3, held.dense, held.experts) * size


def _gradient_bytes(job: Job, layouts: Layouts, held: Held, m: Floats) -> tuple[Floats, Floats]:
    """(Bytes that go to the host in one step, bytes that come back).

    From stage 2 on every micro-batch's shard of gradients is added on the device to the sum so far, which comes from
    the host and goes back (DeepSpeed, async_accumulate_grad_in_cpu_via_gpu); otherwise the sum goes there once.
    DeepSpeed casts it to fp32 before (async_inplace_copy_grad_to_fp32_buffer_from_gpu); stage 3 sums on the host even
    where there is one micro-batch (partition_grads).
    """
    framework, there = job.framework, layouts.optimizer_offloaded

    def of_sum(size: float, adapted: float) -> Floats:
        whole = held.sharded(2, held.trained_dense * size, held.trained_experts * size)
        return there * (whole + held.sharded(2, held.adapters * adapted))

    once = of_sum(framework.gradients.held_bytes, framework.adapters.held_bytes)
    each = (layouts.zero_stage >= 2) & framework.gradients.reduces_each_micro_batch
    if not _own_adam(job):
        times = np.where(each, m, 1.0)
        return once * times, once * (times - 1.0)
    times = np.where(each & ((m > 1.0) | (layouts.zero_stage >= 3)), m, 0.0)
    return once * times + of_sum(FP32_BYTES, FP32_BYTES), once * np.maximum(0.0, times - 1.0)


def _activation_bytes(job: Job, layouts: Layouts, shape: StageShape) -> Floats:
    """What all layers of a stage keep of one micro-batch, where that goes to the host."""
    there = layouts.activations_offloaded
    if not there.any():
        return np.zeros(len(layouts))
    again, boundary, kept = recomputed_share(layouts, shape), boundary_bytes(job, layouts), np.zeros(len(layouts))
    for count, block in zip(shape.layers, job.architecture.blocks, strict=True):
        of_one = kept_bytes(job, block, layouts, block_bytes(job, block, layouts))
        kept = kept + count * (of_one * (1.0 - again) + boundary * again)
    return there * kept
