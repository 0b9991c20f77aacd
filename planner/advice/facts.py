"""What is known about an estimated plan, as flat facts by name: what advice is chosen by and its texts are filled from.

Fields of the complete plan go by their Plan paths (layout.tp); options that a plan leaves to its framework are told as
they turn out. Every plan of a kind has the same names; what a plan has no figure for is None.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from estimator.kernels.collectives import place
from estimator.machine.hardware import Machine
from estimator.model.architecture import Architecture
from estimator.plan.schema import Plan
from estimator.units import GIB
from knowledge.mfu_targets import mfu_target
from planner.serving.planned import Served, finite
from planner.serving.planned import memory_of as serving_memory_of
from planner.training.planned import Planned

Facts = dict[str, Any]
# Parts of a step that are communication, by the name of their limit.
_COMMUNICATION = ("tensor-parallel", "context-parallel", "expert-parallel", "data-parallel", "pipeline")
_LIMITS = (
    "compute", "memory bandwidth", "host", "recompute", "pipeline bubble", "optimizer step", "stragglers",
    "offloading", "generation", *(f"{name} communication" for name in _COMMUNICATION),
)  # fmt: skip
_SERVING_LIMITS = ("weights bandwidth", "cache bandwidth", "compute", "communication", "host", "prompts")
_OPTIONS = ("tp_overlap", "moe_dispatcher", "moe_overlap", "moe_capacity")


def training_facts(found: Planned) -> Facts:
    """Facts of a training plan with the chosen layout."""
    job, estimates, index = found.job, found.estimates, found.index
    layouts, memory = estimates.layouts, estimates.memory
    facts = _of_plan(found.plan) | _of_model(job.architecture) | _of_machine(job.machine)
    facts |= {f"workload.{name}": job.chosen(name) for name in _OPTIONS}
    facts |= {"workload.fused_loss": job.fused_loss, "workload.cuda_graph": job.cuda_graph}
    groups = place(job, layouts.take(np.array([index])))
    axes = {
        "tp": groups.tensor, "cp": groups.context, "ep": groups.expert, "dp": groups.data, "shard": groups.shard,
        "pp": groups.pipeline,
    }  # fmt: skip
    crosses = [name for name, group in axes.items() if bool(np.all(group.crosses)) and float(group.size[0]) > 1]
    parts, step_s = found.diagnosis.limits, float(estimates.step.seconds[index])
    shares = {name: parts.get(name, 0.0) / step_s for name in _LIMITS}
    total, capacity = float(memory.total[index]), job.usable_bytes
    mfu = float(estimates.mfu[index])
    target = mfu_target(
        job.machine.accelerator.family,
        job.training.precision,
        float(job.architecture.active_parameters),
        job.architecture.is_moe,
    )
    low_precision = {"fp8", "mxfp8", "nvfp4"}
    facts |= {f"time.share.{_plain(name)}": share for name, share in shares.items()}
    facts |= {f"memory.share.{name}": float(values[index]) / capacity for name, values in memory.components.items()}
    facts |= {f"memory.{name}_bytes": float(values[index]) for name, values in memory.components.items()}
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
        "fits": found.fits,
        "memory.share": float(estimates.high_bytes[index]) / capacity if capacity else None,
        "memory.per_device_bytes": total,
        "memory.capacity_bytes": capacity,
        "memory.host_fits": found.around.host.fits,
        "memory.save_fits": found.around.save.fits,
        "memory.checkpoint_bytes": found.around.save.resumable_bytes,
        "time.share.communication": sum(shares[f"{name} communication"] for name in _COMMUNICATION),
        "estimate.step_s": step_s,
        "estimate.tokens_per_s": job.tokens_per_step / step_s,
        "estimate.mfu": mfu,
        "estimate.bottleneck": found.diagnosis.bottleneck,
        "batch.grad_accum": int(layouts.grad_accum[index]),
        "batch.tokens": job.tokens_per_step,
        "batch.tokens_per_device": job.tokens_per_step / job.machine.count,
        "batch.micro_tokens": int(layouts.micro_batch[index]) * job.seq_len,
        "batch.steps": job.steps,
        "run.hours": None if job.steps is None else job.steps * step_s / 3600.0,
        "run.tokens_per_parameter": (
            None
            if job.training.dataset_tokens is None
            else job.training.dataset_tokens * job.training.epochs / job.architecture.parameters
        ),
        # Adapters and frozen layers do less work a token, so that runs of whole models say nothing about them.
        "mfu_target.low": target.low if target and not job.uses_adapters else None,
        "mfu_target.median": target.median if target and not job.uses_adapters else None,
        "mfu_target.high": target.high if target and not job.uses_adapters else None,
        "mfu_target.runs": target.runs if target and not job.uses_adapters else None,
        "mfu_target.of": target.of if target and not job.uses_adapters else None,
        "mfu_target.share": mfu / target.median if target and not job.uses_adapters else None,
    }
    return facts


def serving_facts(found: Served) -> Facts:
    """Facts of a serving plan with the chosen deployment under its load."""
    job, entry, machine = found.job, found.entry, found.job.machine
    steady, these, memory = found.estimates.steady, found.estimates.deployments, serving_memory_of(found)
    facts = _of_plan(found.plan) | _of_model(job.architecture) | _of_machine(machine)
    replica = found.layout["tp"] * found.layout["pp"] * found.layout["dp"]
    spans = {"tp": found.layout["tp"], "pp": found.layout["tp"] * found.layout["pp"], "dp": replica}
    step_s = sum(found.limits.values())
    running = float(steady.running[entry] * these.lanes[entry])
    workload = job.inference
    context = workload.input_len + workload.output_len
    facts |= {f"time.share.{_plain(name)}": found.limits.get(name, 0.0) / step_s for name in _SERVING_LIMITS}
    facts |= {f"memory.share.{name}": value / memory.capacity_bytes for name, value in memory.components.items()}
    facts |= {
        "workload.kind": "serving",
        "workload.kv_dtype": job.kv_dtype,
        "workload.weight_bits": job.block_bytes * 8.0,
        "workload.chunked_prefill": job.mixes,
        "workload.cuda_graph": job.graphs,
        "workload.engine": job.engine.name,
        "machine.crosses_node": [
            name for name, size in spans.items() if size > machine.fast_domain and found.layout[name] > 1
        ],
        "fits": found.fits,
        "meets_slo": found.meets_slo,
        "memory.share": memory.per_device_bytes / memory.capacity_bytes if memory.capacity_bytes else None,
        "memory.per_device_bytes": memory.per_device_bytes,
        "memory.capacity_bytes": memory.capacity_bytes,
        "memory.kv_tokens": memory.kv_tokens,
        "memory.max_concurrency": memory.max_concurrency,
        "memory.waits": found.queue[2],
        "estimate.ttft_s": finite(steady.ttft_s[entry]),
        "estimate.tpot_s": float(steady.tpot_s[entry]),
        "estimate.output_tokens_per_s": float(found.estimates.output_tokens_per_s[entry]),
        "estimate.running": running,
        "estimate.running_per_replica": running / int(these.replicas[entry]),
        "estimate.saturated": bool(steady.saturated[entry]),
        "estimate.bottleneck": found.bottleneck,
        "estimate.replicas": int(these.replicas[entry]),
        "load.context": context,
        "load.prompt_share": workload.input_len / context,
        "load.offline": math.isinf(float(these.concurrency[entry])),
    }
    return facts


def said(name: str, value: Any) -> str:
    """A fact as advice says it: bytes in GiB, seconds, shares in percent, and large counts with their suffix."""
    last = name.rpartition(".")[2]
    if value is None:
        return "an unknown number of" if last in ("steps", "hours") else "unknown"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list | tuple):
        return " and ".join(map(str, value)) or "none"
    if isinstance(value, str):
        return value
    if name.endswith("_bytes"):
        return f"{value / GIB:,.1f} GiB"
    if name.endswith("_s") and not name.endswith("per_s"):
        return f"{value:.3g} s" if value >= 1.0 else f"{1e3 * value:.3g} ms"
    if ".share" in name or last in ("mfu", "low", "median", "high", "prompt_share"):
        return f"{100.0 * value:.0f} %"
    if last in ("parameters", "active_parameters"):
        return f"{value / 1e9:.3g}B"
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 100 else f"{value:.3g}"


def _of_plan(plan: Plan) -> Facts:
    """Each field of the complete plan under its path."""
    data = plan.model_dump(mode="json", exclude={"name", "model", "overrides"})
    facts: Facts = {}

    def add(path: str, value: Any) -> None:
        if isinstance(value, dict):
            for name, inner in value.items():
                add(f"{path}.{name}" if path else name, inner)
        else:
            facts[path] = value

    add("", data)
    return facts


def _of_model(architecture: Architecture) -> Facts:
    mixers = sorted({block.mixer for block in architecture.blocks})
    return {
        "model.id": architecture.id,
        "model.parameters": architecture.parameters,
        "model.active_parameters": architecture.active_parameters,
        "model.layers": architecture.layers,
        "model.hidden": architecture.hidden,
        "model.vocab": architecture.vocab,
        "model.context": architecture.context or None,
        "model.experts": architecture.experts,
        "model.heads": architecture.heads,
        "model.kv_heads": architecture.kv_heads,
        "model.mixers": mixers,
        "model.head_share": architecture.vocab * architecture.hidden / architecture.active_parameters,
    }


def _of_machine(machine: Machine) -> Facts:
    device, kinds = machine.accelerator, machine.accelerator.peak_flops
    several = machine.nodes > 1
    return {
        "accelerator.id": device.id,
        "accelerator.name": device.name,
        "accelerator.vendor": device.vendor,
        "accelerator.family": device.family,
        "accelerator.memory_bytes": device.memory_bytes,
        "accelerator.precisions": sorted(kind for kind, rate in kinds.items() if rate),
        "accelerator.link": device.scaleup_link.partition(" ")[0],
        "accelerator.topology": device.topology,
        "machine.count": machine.count,
        "machine.nodes": machine.nodes,
        "machine.per_node": machine.per_node,
        "machine.fast_domain": machine.fast_domain,
        "machine.network": machine.network.name if several else None,
        "machine.network_kind": machine.network.name.partition("-")[0] if several else None,
        "machine.network_bytes_per_s_per_device": (
            machine.network.bandwidth_per_node / machine.per_node if several else None
        ),
        "machine.network_gbit_per_s_per_device": (
            8e-9 * machine.network.bandwidth_per_node / machine.per_node if several else None
        ),
    }


def _plain(name: str) -> str:
    return name.replace("-parallel", "_parallel").replace(" ", "_")
