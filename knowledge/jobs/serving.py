"""From a serving Plan to a ServingJob: every name looked up, every gap filled, and said."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from typing import Any

from estimator.errors import PlanError
from estimator.machine.decode import DecodeKernel
from estimator.machine.hardware import Accelerator, Machine
from estimator.model.architecture import Architecture
from estimator.model.weight_format import Kernel, WeightFormat
from estimator.plan.assumptions import Assumption
from estimator.plan.calibration import DeviceFactors
from estimator.plan.schema import Inference, Plan
from estimator.plan.serving.engine import Engine
from estimator.plan.serving.factors import ServingFactors
from estimator.plan.serving.job import ServingJob
from knowledge.engines import (
    SERVERS,
    engine,
    engines_known,
    kernels_for,
    kernels_of,
    reads_format,
    runs_on,
    usual_engine,
)
from knowledge.fitted.decode import decode_kernel, expert_kernel
from knowledge.fitted.serving import serving_factors
from knowledge.fitted.training import calibration, surfaces
from knowledge.jobs.images import seen
from knowledge.jobs.unlike import usual_processor, with_parts
from knowledge.machines.catalogue import machine, no_accelerator
from knowledge.machines.counted import find_devices
from knowledge.machines.networks import network_factors, with_given_links
from knowledge.models.catalogue import find_architecture
from knowledge.models.known import checkpoints, facts_of
from knowledge.models.weight_formats import plan_format, weight_format
from knowledge.speculation import usual_acceptance

_PLAIN_DEFAULTS = {
    "engine": "a common engine",
    "weight_dtype": "weights as most models are published",
    "scenario": "clients that wait for answers",
}
USUAL_CLIENTS = 32
_OF_A_DESKTOP = 4
# 20 tokens/s are 15 words/s of English, three times as fast as people read; agents and code want no less.
PATIENT_TPOT_MS = 50.0
_GGUF = ("bf16", "q8_0", "q4_k_m")
_EXPERT_SPREAD = 10.0
# Families whose checkpoints in 8 bits have a scale per block of 128 (quantization_config of their config.json).
_BLOCK_SCALED = ("deepseek-v3", "kimi-k2", "minimax-m2", "glm-5", "qwen3", "qwen3.5")


def serving_job(plan: Plan) -> ServingJob:
    """The ServingJob of a serving plan. Raises PlanError for an unknown or ambiguous name, or what cannot be."""
    job = _on_one_kind(plan)
    if plan.cluster.beside:
        return with_parts(job, _on_one_kind)
    for name in ("device_layers", "host_experts"):
        if getattr(plan.inference, name) is not None:
            if not job.engine.lends_from:
                problem = f"{job.engine.name} holds nothing in the memory of a processor"
                raise PlanError(f"workload.{name}", problem, ["llamacpp"])
            # What cards do not hold lies in their host.
            job = _on_one_kind(plan.patch({"cluster.beside": [usual_processor(job.machine.accelerator)]}))
            return with_parts(job, _on_one_kind)
    return job


def with_cache(job: ServingJob, kv_dtype: str) -> ServingJob:
    """The same with a cache in a format that its plan leaves open, as if the plan named it."""
    if job.parts:
        return serving_job(job.plan.patch({"workload.kv_dtype": kv_dtype}))
    return replace(
        job,
        plan=job.plan.patch({"workload.kv_dtype": kv_dtype}),
        kv_dtype=kv_dtype,
        decode_kernels=_cores(job.engine, job.machine.accelerator, kv_dtype),
        assumptions=tuple(row for row in job.assumptions if row.field != "workload.kv_dtype"),
    )


def _on_one_kind(plan: Plan) -> ServingJob:
    """The same on accelerators that are all alike."""
    workload = plan.inference
    if plan.cluster.accelerator is None:
        raise no_accelerator()
    architecture, said_model = find_architecture(plan.model)
    devices = find_devices(plan.cluster.accelerator)
    accelerator = devices.match.value
    assumptions: list[Assumption] = []
    if said_model:
        assumptions.append(Assumption("model", architecture.id, said_model))
    if note := devices.match.note:
        assumptions.append(Assumption("cluster.accelerator", accelerator.id, note))
    count, counted = _count(plan, devices.count)
    assumptions += counted
    per_node = plan.cluster.per_node or devices.per_node
    cluster, sentences = machine(accelerator, count, per_node, plan.cluster.interconnect)
    cluster = with_given_links(cluster, plan.overrides)
    if per_node is None and count > 1:
        assumptions.append(Assumption("cluster.per_node", cluster.per_node, f"usual for {accelerator.name}"))
    if plan.cluster.interconnect == "auto" and cluster.nodes > 1:
        assumptions.append(Assumption("cluster.interconnect", cluster.network.name, "; ".join(sentences)))
    beside = plan.overrides.host_gib is not None or plan.cluster.beside is not None
    changes, assumed = _filled(workload, cluster, architecture, beside)
    placed = {"accelerator": accelerator.id, "count": count, "per_node": cluster.per_node}
    filled = plan.patch({"workload": changes, "cluster": placed})
    runs = _engine(filled, accelerator, architecture)
    cluster = replace(cluster, accelerator=_paced(accelerator, runs))
    filled, sized = _with_context(filled, runs, architecture)
    assumed += sized
    name = filled.inference.weight_dtype
    weights = weight_format(_entry(name, architecture, runs), runs.name, architecture, filled.inference.weight_bits)
    kernel, expert_matmul = weights.kernel(accelerator.peak_flops), weights.experts.kernel(accelerator.peak_flops)
    kv_dtype, family = filled.inference.kv_dtype, kernels_of(accelerator.family)
    if kv_dtype == "auto":
        narrow = runs.fp8_cache and weights.name in ("fp8", "fp8_block", "nvfp4") and "fp8" in runs.cache_formats
        kv_dtype = "fp8" if narrow else "bf16"
        assumed.append(Assumption("workload.kv_dtype", "auto", f"{kv_dtype}, as {runs.name} keeps the cache"))
    job = ServingJob(
        plan=filled,
        architecture=architecture,
        machine=cluster,
        engine=runs,
        weights=weights,
        kernel=kernel,
        expert_matmul=expert_matmul,
        kv_dtype=kv_dtype,
        device=_device(accelerator, runs),
        decode_kernels=_cores(runs, accelerator, kv_dtype),
        expert_kernel=expert_kernel(family, _expert_entry(weights, expert_matmul), accelerator.timed_as),
        expert_spread=_EXPERT_SPREAD if architecture.is_moe else 1.0,
        factors=_factors(runs, accelerator, kernel),
        assumptions=(*assumptions, *assumed),
    )
    if not job.peak_flops:
        known = sorted(accelerator.peak_flops)
        raise PlanError("workload.weight_dtype", f"no matmul rate is known for {accelerator.name}", known)
    return job


def published(architecture: Architecture) -> str:
    """The format of a Plan that the model's own checkpoint holds; '' for 16 bits."""
    return plan_format(architecture.weight_format) if architecture.weight_format else ""


def offered_formats(architecture: Architecture, runs: Engine, accelerator: Accelerator) -> list[str]:
    """Formats that a search may take, the checkpoint's own first, as far as the engine has kernels for them there.

    Of weights in 16 bits every format can be made. Those that are published with fewer bits are not quantised again:
    besides them there are the other checkpoints of the same model. Where none can be read, weights are unpacked.
    """
    own, peaks = published(architecture), accelerator.peak_flops
    wide = "bf16" if "bf16" in peaks else "fp16"
    if "gguf" in runs.weight_formats and runs.name not in SERVERS:
        wanted = [own, *_GGUF] if own else list(_GGUF)
    elif own:
        wanted = [own, *_kin_formats(architecture)]
    else:
        narrow = next((kind for kind in ("nvfp4", "mxfp4") if kind in peaks and reads_format(runs, kind)), None)
        narrow = narrow or next((kind for kind in ("awq", "gptq", "int4") if reads_format(runs, kind)), "")
        wanted = [wide, "fp8" if "fp8" in peaks else "int8", narrow]
    return [kind for kind in dict.fromkeys(wanted) if kind and reads_format(runs, kind)] or [wide]


def _kin_formats(architecture: Architecture) -> list[str]:
    """Formats of the other checkpoints that share the architecture."""
    facts = facts_of(architecture.id)
    base = (facts.shares or facts.id) if facts else architecture.id
    return [plan_format(row.weight_format or "bf16") for row in checkpoints() if row.shares == base]


def _entry(name: str, architecture: Architecture, runs: Engine) -> str:
    """The entry of the weight formats that a Plan's format means for this model: what its own checkpoint holds, where
    that is of the kind."""
    if architecture.weight_format and plan_format(architecture.weight_format) == name:
        return architecture.weight_format
    if name == "mxfp4" and not architecture.is_moe and runs.name in SERVERS:
        return "mxfp4_linear"
    return "fp8_block" if name == "fp8" and architecture.family in _BLOCK_SCALED else name


def _engine(plan: Plan, accelerator: Accelerator, architecture: Architecture) -> Engine:
    """The plan's engine. Raises PlanError where it does not run on the accelerator, or not this model."""
    runs = engine(plan.inference.engine, plan.inference.software_version, accelerator)
    if runs_on(runs, accelerator) and kernels_for(runs, architecture):
        return runs
    able = [other for other in engines_known() if kernels_for(engine(other, None, accelerator), architecture)]
    problem = f"{runs.name} does not run on {accelerator.name}"
    if runs_on(runs, accelerator):
        problem = f"{runs.name} has no kernels on {accelerator.name} for the attention of {architecture.id}"
    raise PlanError("workload.engine", problem, able)


def _device(accelerator: Accelerator, runs: Engine) -> DeviceFactors:
    """What is fitted for the accelerator. Engines read prompts with FlashAttention-3 where it runs."""
    attention = "flash3" if accelerator.family == "Hopper" else "flash"
    family = kernels_of(accelerator.family)
    kin = family if family != accelerator.family else ""
    of_device = surfaces(accelerator.timed_as, kin, cores=accelerator.cores)
    device = replace(calibration(family, "", accelerator, attention).device, surfaces=of_device)
    if _own_kernels(runs, accelerator) or runs.row_products:
        # No tiles to fill: a processor has few cores, and a token alone is multiplied row by row of the weights.
        plain = {kind: replace(surface, wave_outputs=0.0) for kind, surface in device.surfaces.items()}
        device = replace(device, surfaces=plain)
    return replace(device, network=network_factors(accelerator, runs.all_reduce)) if runs.all_reduce else device


def _cores(runs: Engine, accelerator: Accelerator, kv_dtype: str) -> tuple[DecodeKernel, DecodeKernel]:
    """Attention of generation over keys and values, and over MLA's compressed cache."""
    family, timed = kernels_of(accelerator.family), accelerator.timed_as
    return (
        decode_kernel(family, "attention", kv_dtype, runs.name, timed),
        decode_kernel(family, "mla", kv_dtype, runs.name, timed),
    )


def _factors(runs: Engine, accelerator: Accelerator, kernel: Kernel) -> ServingFactors:
    """What was fitted; an engine that brings kernels for processors reads at its own rate there."""
    fitted = serving_factors(runs.name, accelerator.family)
    if not _own_kernels(runs, accelerator):
        return fitted
    reached = _device(accelerator, runs).surfaces[kernel.kind].memory
    return replace(fitted, decode=reached / runs.processor_read, experts=1.0)


# What GeForce's tensor cores do in 8 bits a core and clock, from Turing to Blackwell, and the part of a product's time
# that unpacking and scaling are there: it sustains 0.23 of their rate, and arithmetic alone would 0.7.
_CORE_FLOPS, _LANE_FLOPS, _UNPACKING = 2048.0, 256.0, 2 / 3


def _paced(accelerator: Accelerator, runs: Engine) -> Accelerator:
    """Faster tensor cores make products no faster by what vector lanes do beside them, and slower ones no slower."""
    peak = accelerator.peak_flops.get("int8")
    if not (runs.unpacks and peak and accelerator.vendor == "NVIDIA"):
        return accelerator
    cycles = (accelerator.cores or 0) * (accelerator.clock_hz or 0.0) or accelerator.vector_flops / _LANE_FLOPS
    paced = 1.0 / ((1.0 - _UNPACKING) / peak + _UNPACKING / (_CORE_FLOPS * cycles))
    return replace(accelerator, peak_flops=accelerator.peak_flops | {"int8": paced})


def _own_kernels(runs: Engine, accelerator: Accelerator) -> bool:
    """Whether a processor runs kernels that the engine brings, and no library's."""
    return accelerator.family == "CPU" and bool(runs.processor_read)


def _count(plan: Plan, named: int | None) -> tuple[int, list[Assumption]]:
    """Devices, and why where neither the plan says nor what is `named`."""
    if stated := plan.cluster.count or named:
        return stated, []
    sizes = [getattr(plan.layout, name) or 1 for name in ("tp", "pp", "dp")]
    size = sizes[0] * sizes[1] * sizes[2]
    why = "as many as the layout names" if size > 1 else "one device unless a number is given"
    return size, [Assumption("cluster.count", size, why)]


def _filled(
    workload: Inference, cluster: Machine, architecture: Architecture, beside: bool
) -> tuple[dict[str, Any], list[Assumption]]:
    """(Changes to the workload, assumptions made). `beside` is true where the host's memory, or devices of other kinds,
    are there for weights."""
    accelerator = cluster.accelerator
    stated = workload.model_fields_set
    changes, assumed = seen(workload, architecture)
    own = published(architecture)
    usual = usual_engine(architecture, accelerator, workload.weight_dtype if "weight_dtype" in stated else own)
    why = f"the usual engine of such weights on {accelerator.name}"
    if beside and accelerator.personal:
        usual, why = "llamacpp", "the engine that shares weights with the host"
    if "engine" not in stated and usual not in (None, workload.engine):
        changes["engine"] = usual
        assumed.append(Assumption("workload.engine", usual, why))
        stated = stated | {"engine"}
    if "weight_dtype" not in stated:
        runs = engine(changes.get("engine", workload.engine), workload.software_version, accelerator)
        if own and reads_format(runs, own):
            changes["weight_dtype"] = own
            assumed.append(Assumption("workload.weight_dtype", own, "weights as this checkpoint is published"))
            stated = stated | {"weight_dtype"}
        elif runs.usual_format:
            changes["weight_dtype"] = runs.usual_format
            why = f"what {runs.name} is usually given"
            assumed.append(Assumption("workload.weight_dtype", runs.usual_format, why))
            stated = stated | {"weight_dtype"}
        elif "bf16" not in accelerator.peak_flops:
            changes["weight_dtype"] = "fp16"
            assumed.append(Assumption("workload.weight_dtype", "fp16", f"{accelerator.name} has no units for bf16"))
            stated = stated | {"weight_dtype"}
    if workload.speculative_tokens and "acceptance" not in stated:
        changes["acceptance"], why = usual_acceptance(
            architecture.id, workload.speculative_tokens, workload.draft_method
        )
        assumed.append(Assumption("workload.acceptance", changes["acceptance"], why))
    lengths = _lengths(workload, architecture)
    changes |= {row.field.removeprefix("workload."): row.value for row in lengths}
    assumed += [*lengths, *_plain(workload, stated)]
    open_load = workload.concurrency is None and workload.request_rate is None
    limited = workload.ttft_slo_ms is not None or workload.tpot_slo_ms is not None
    if open_load and limited and workload.scenario in ("server", "interactive"):
        why = "as many requests as the latency limits allow"
        assumed.append(Assumption("workload.request_rate", None, why))
        if workload.tpot_slo_ms is None:
            changes["tpot_slo_ms"] = PATIENT_TPOT_MS
            why = "20 tokens/s for each user, as only the first token was limited"
            assumed.append(Assumption("workload.tpot_slo_ms", PATIENT_TPOT_MS, why))
    elif open_load and workload.scenario in ("server", "interactive"):
        clients, why = USUAL_CLIENTS, "a moderately busy server"
        # One person uses what people have at home: a desktop's cards, or several devices that hold layers one after the
        # other.
        runs = engine(changes.get("engine", workload.engine), None, accelerator)
        if accelerator.personal and (cluster.count <= _OF_A_DESKTOP or beside or runs.splits_layers):
            clients, why = 1, f"one person at {accelerator.name}"
        changes["concurrency"] = clients
        assumed.append(Assumption("workload.concurrency", clients, why))
    return changes, assumed


def _plain(workload: Inference, stated: Set[str]) -> list[Assumption]:
    rows = [Assumption(f"workload.{name}", getattr(workload, name), why) for name, why in _PLAIN_DEFAULTS.items()]
    return [row for row in rows if row.field.removeprefix("workload.") not in stated]


def _lengths(workload: Inference, architecture: Architecture) -> list[Assumption]:
    """Lengths of prompts and answers where they are not said, in tokens: common ones, or what a short context takes."""
    stated = workload.model_fields_set
    room = workload.max_context or architecture.context
    usual = {"input_len": "a common length of prompts", "output_len": "a common length of answers"}
    rows = [Assumption(f"workload.{name}", getattr(workload, name), why) for name, why in usual.items()]
    rows = [row for row in rows if row.field.removeprefix("workload.") not in stated]
    left = (room or 0) - sum(getattr(workload, name) for name in usual if name in stated)
    asked = sum(row.value for row in rows)
    if not room or asked <= left or left < len(rows):
        return rows
    why = f"as much as the context of {room:,} tokens takes"
    return [replace(row, value=max(1, int(left * row.value / asked)), why=why) for row in rows]


def _with_context(plan: Plan, runs: Engine, architecture: Architecture) -> tuple[Plan, list[Assumption]]:
    """The plan with the longest request that the engine makes room for unless told otherwise, where it has one."""
    if not runs.context or plan.inference.max_context is not None:
        return plan, []
    size = min(runs.context, architecture.context) if architecture.context else runs.context
    why = f"the context that {runs.name} makes room for on such a device; its cache is as large from the start"
    return plan.patch({"workload.max_context": size}), [Assumption("workload.max_context", size, why)]


def _expert_entry(weights: WeightFormat, matmul: Kernel) -> str:
    """The entry of fitted kernels of experts that stands for these weights."""
    if weights.name == "mxfp4":
        return "mxfp4" if matmul.activation_bits < 16 else "mxfp4_weights"
    return matmul.kind
