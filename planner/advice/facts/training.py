"""Facts of a training plan with the chosen layout."""

from __future__ import annotations

import numpy as np

from estimator.kernels.collectives import place
from knowledge.mfu_targets import mfu_target
from planner.advice.facts.plan import Facts, machine_facts, model_facts, plain, plan_facts
from planner.training.planned import Planned
from planner.training.run import run_of

# Parts of a step that are communication, by the name of their limit.
_COMMUNICATION = ("tensor-parallel", "context-parallel", "expert-parallel", "data-parallel", "pipeline")
_LIMITS = (
    "compute", "memory bandwidth", "host", "recompute", "pipeline bubble", "optimizer step", "stragglers",
    "offloading", "generation", *(f"{name} communication" for name in _COMMUNICATION),
)  # fmt: skip
_OPTIONS = ("dp_overlap", "tp_overlap", "moe_dispatcher", "moe_overlap", "moe_capacity")


def training_facts(planned: Planned) -> Facts:
    job, estimates, index = planned.job, planned.estimates, planned.index
    layouts, memory = estimates.layouts, estimates.memory
    facts = plan_facts(planned.plan) | model_facts(job.architecture) | machine_facts(job.machine)
    facts |= {f"workload.{name}": planned.options.get(name, job.chosen(name)) for name in _OPTIONS}
    facts |= {"layout.shard_group": planned.plan.layout.hybrid_group}
    facts |= {"workload.fused_loss": job.fused_loss, "workload.cuda_graph": job.cuda_graph}
    groups = place(job, layouts.take(np.array([index])))
    axes = {
        "tp": groups.tensor, "cp": groups.context, "ep": groups.expert, "dp": groups.data, "shard": groups.shard,
        "pp": groups.pipeline,
    }  # fmt: skip
    crosses = [name for name, group in axes.items() if bool(np.all(group.crosses)) and float(group.size[0]) > 1]
    parts, step_s = planned.diagnosis.limits, float(estimates.step.seconds[index])
    run = run_of(planned)
    shares = {name: parts.get(name, 0.0) / step_s for name in _LIMITS}
    total, capacity = float(memory.total[index]), job.usable_bytes
    mfu = float(estimates.mfu[index])
    low_precision = {"fp8", "mxfp8", "mxfp4", "nvfp4"}
    facts |= {f"time.share.{plain(name)}": share for name, share in shares.items()}
    for name, values in memory.components.items():
        held = float(values[index])
        facts |= {f"memory.{name}_bytes": held, f"memory.share.{name}": held / capacity if capacity else None}
    facts |= {
        "workload.kind": "training",
        "workload.adapters": job.uses_adapters,
        "workload.low_precision": job.training.precision in low_precision,
        "machine.crosses_node": crosses,
        "framework.name": job.framework.name,
        "framework.tp": job.framework.limits.tp,
        "framework.pp": job.framework.limits.pp,
        "framework.cp": job.framework.limits.cp,
        "framework.measured": job.calibration.time_measured,
        "fits": planned.fits,
        "memory.share": float(estimates.high_bytes[index]) / capacity if capacity else None,
        "memory.per_device_bytes": total,
        "memory.capacity_bytes": capacity,
        "memory.host_fits": planned.host_needs.host.fits,
        "memory.save_fits": planned.host_needs.save.fits,
        "memory.checkpoint_bytes": planned.host_needs.save.resumable_bytes,
        "time.share.communication": sum(shares[f"{name} communication"] for name in _COMMUNICATION),
        "estimate.step_s": step_s,
        "estimate.tokens_per_s": job.tokens_per_step / step_s,
        "estimate.mfu": mfu,
        "estimate.bottleneck": planned.diagnosis.bottleneck,
        "batch.grad_accum": int(layouts.grad_accum[index]),
        "batch.tokens": job.tokens_per_step,
        "batch.tokens_per_device": job.tokens_per_step / job.machine.count,
        "batch.micro_tokens": int(layouts.micro_batch[index]) * job.seq_len,
        "batch.steps": job.steps,
        "run.hours": None if run is None else run.hours,
        "run.tokens_per_parameter": (
            None
            if job.training.dataset_tokens is None
            else job.training.dataset_tokens * job.training.epochs / job.architecture.parameters
        ),
    }
    return facts | _mfu_facts(planned, mfu)


def _mfu_facts(planned: Planned, mfu: float) -> Facts:
    """What measured runs of models of this size reach. Adapters and frozen layers do less work a token, so that runs of
    whole models say nothing about them."""
    job = planned.job
    target = mfu_target(
        job.machine.accelerator.family,
        job.training.precision,
        float(job.architecture.active_parameters),
        job.architecture.is_moe,
    )
    if target is None or job.uses_adapters:
        return dict.fromkeys(f"mfu_target.{name}" for name in ("low", "median", "high", "runs", "of", "share"))
    return {
        "mfu_target.low": target.low,
        "mfu_target.median": target.median,
        "mfu_target.high": target.high,
        "mfu_target.runs": target.runs,
        "mfu_target.of": target.of,
        "mfu_target.share": mfu / target.median,
    }
