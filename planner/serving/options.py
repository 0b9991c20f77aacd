"""Which engines, weight formats and accelerators a question about serving leaves to be tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from estimator.errors import PlanError
from estimator.machine.hardware import Accelerator
from estimator.plan.schema import Plan
from estimator.plan.serving.job import ServingJob
from knowledge.engines import engine, engines_known, runs_on
from knowledge.jobs.serving import serving_job
from knowledge.machines.catalogue import find_accelerator
from planner.result import Assumption
from planner.serving.warnings import reads

# Other engines answer one user, or a few, and no one chooses them for many.
_SERVERS = ("vllm", "sglang", "trtllm")
_GGUF = ("bf16", "q8_0", "q4_k_m")


@dataclass(frozen=True)
class Options:
    """The jobs to try, what was chosen in the user's place, and what cannot be, in words."""

    jobs: list[ServingJob]
    assumptions: list[Assumption]
    skipped: list[str]


def options(
    plan: Plan,
    engines: Sequence[str] | None,
    weight_dtypes: Sequence[str] | None,
    accelerators: Sequence[str] | None,
) -> Options:
    """A job for each accelerator, engine and weight format. Raises PlanError where none of them can be.

    What a list names stands before what the plan names. Left open are the servers that run on a device, and formats: 16
    bits, 8 and 4 where the device computes in them or reads them.
    """
    names = list(dict.fromkeys(accelerators or [plan.cluster.accelerator or ""]))
    if not names[0] and plan.cluster.accelerator is None:
        raise PlanError(
            "cluster.accelerator", "is required: name the accelerator", ["h100-sxm", "a100-sxm-80gb", "mi300x"]
        )
    jobs: list[ServingJob] = []
    skipped: dict[str, PlanError | None] = {}
    tried_engines: dict[str, None] = {}
    tried_formats: dict[str, None] = {}
    for name in names:
        device = find_accelerator(name).value
        for engine_name in _engines(plan, engines, device):
            for dtype in _formats(plan, weight_dtypes, device, engine_name):
                changes = {"workload.engine": engine_name, "workload.weight_dtype": dtype}
                try:
                    job = serving_job(plan.patch(changes | {"cluster.accelerator": device.id}))
                except PlanError as error:
                    skipped[f"{engine_name} {dtype} on {device.id}: {error}"] = error
                    continue
                if not reads(job):
                    skipped[f"{job.engine.name} does not read {job.inference.weight_dtype} weights"] = None
                    continue
                tried_engines[engine_name], tried_formats[dtype] = None, None
                jobs.append(job)
    if not jobs:
        errors = [error for error in skipped.values() if error]
        if errors:
            raise errors[0]
        raise PlanError("engines", "; ".join(skipped) or "none runs on these accelerators", engines_known())
    assumptions = []
    if not engines and "engine" not in plan.inference.model_fields_set:
        why = "servers that run on the devices; name engines to try others"
        assumptions.append(Assumption(field="engines", value=list(tried_engines), why=why))
    if not weight_dtypes and "weight_dtype" not in plan.inference.model_fields_set:
        why = "usual formats that the devices compute in or read; fewer bits can cost quality"
        assumptions.append(Assumption(field="weight_dtypes", value=list(tried_formats), why=why))
    return Options(jobs, assumptions, list(skipped))


def _engines(plan: Plan, named: Sequence[str] | None, device: Accelerator) -> list[str]:
    """Those named, else the servers that run on the device, and llama.cpp where none of them does."""
    if named:
        return list(dict.fromkeys(named))
    if "engine" in plan.inference.model_fields_set:
        return [plan.inference.engine]
    runnable = [name for name in engines_known() if runs_on(engine(name, None, device), device)]
    return [name for name in runnable if name in _SERVERS] or [name for name in runnable if name == "llamacpp"]


def _formats(plan: Plan, named: Sequence[str] | None, device: Accelerator, engine_name: str) -> Iterator[str]:
    if named:
        yield from dict.fromkeys(named)
    elif "weight_dtype" in plan.inference.model_fields_set:
        yield plan.inference.weight_dtype
    elif engine_name == "llamacpp":
        yield from _GGUF
    else:
        peaks = device.peak_flops
        yield "bf16" if "bf16" in peaks else "fp16"
        yield "fp8" if "fp8" in peaks else "int8"
        yield "nvfp4" if "nvfp4" in peaks else "mxfp4" if "mxfp4" in peaks else "awq"
