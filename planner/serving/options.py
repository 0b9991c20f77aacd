"""Which engines, weight formats and accelerators a question about serving leaves to be tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from estimator.errors import PlanError
from estimator.machine.hardware import Accelerator
from estimator.model.architecture import Architecture
from estimator.plan.schema import Plan
from estimator.plan.serving.job import ServingJob
from knowledge.engines import OF_ONE, SERVERS, engine, engines_known, kernels_for
from knowledge.jobs.serving import offered_formats, serving_job, with_cache
from knowledge.machines.catalogue import find_accelerator, no_accelerator
from knowledge.models.catalogue import find_architecture
from planner.asked.serving import BestServingRequest, SizeServingRequest
from planner.result import Assumption
from planner.serving.warnings import engine_doubts

# What is tried of a device where no number is said: as much as a box has, in a rack whose links join more too.
_MOST_DEVICES = 8
# The cache beside weights of so few bits each, scales of their blocks among them.
_NARROW, _NARROW_BITS = "fp8", 9.0


@dataclass(frozen=True)
class SearchLists:
    """What a request lists to be tried; None where it lists nothing."""

    engines: Sequence[str] | None = None
    weight_dtypes: Sequence[str] | None = None
    kv_dtypes: Sequence[str] | None = None

    @classmethod
    def of(cls, request: BestServingRequest | SizeServingRequest) -> SearchLists:
        return cls(request.engines, request.weight_dtypes, request.kv_dtypes)


@dataclass(frozen=True)
class Options:
    """The jobs to try, what was chosen in the user's place, and what cannot be, in words. `parts` is true where a job
    stands for one replica on any part of its devices."""

    jobs: list[ServingJob]
    assumptions: list[Assumption]
    skipped: list[str]
    parts: bool = False


def options(
    plan: Plan,
    asked: SearchLists,
    accelerators: Sequence[str] | None = None,
    parts: bool = False,
) -> Options:
    """A job for each accelerator, engine and weight format, and each number of devices where that is open, or with
    `parts` one for all of them. Raises PlanError where none of them can be.

    What is listed stands before what the plan names. Left open are the servers that run on a device, and the formats
    that they have kernels for there: the checkpoint's own, or 16 bits, 8 and 4. The cache is the plan's unless formats
    of it are listed; where neither is, `_with_usual_cache`.
    """
    engines, weight_dtypes = asked.engines, asked.weight_dtypes
    caches = list(dict.fromkeys(asked.kv_dtypes or [plan.inference.kv_dtype]))
    names = list(dict.fromkeys(accelerators or [plan.cluster.accelerator or ""]))
    if not names[0] and plan.cluster.accelerator is None:
        raise no_accelerator()
    model, _ = find_architecture(plan.model)
    jobs: list[ServingJob] = []
    skipped: dict[str, PlanError | None] = {}
    for name in names:
        device = find_accelerator(name).value
        able = _engines(plan, engines, model, device)
        formats = [(server, dtype) for server in able for dtype in _formats(plan, weight_dtypes, model, device, server)]
        counts = _counts(plan, device) if accelerators else [plan.cluster.count]
        counts = counts[-1:] if parts else counts
        for count, (engine_name, dtype), cache in product(counts, formats, caches):
            changes = {"workload.engine": engine_name, "workload.weight_dtype": dtype}
            changes |= {"workload.kv_dtype": cache} if asked.kv_dtypes else {}
            try:
                job = _with_usual_cache(
                    serving_job(plan.patch(changes | {"cluster.accelerator": device.id, "cluster.count": count})),
                    listed=bool(asked.kv_dtypes),
                )
            except PlanError as error:
                skipped[f"{engine_name} {dtype} on {device.id}: {error}"] = error
                continue
            if doubts := engine_doubts(job):
                skipped |= dict.fromkeys(doubts)
                continue
            jobs.append(job)
    if not jobs:
        errors = [error for error in skipped.values() if error]
        if errors:
            raise errors[0]
        raise PlanError("engines", "; ".join(skipped) or "none runs on these accelerators", engines_known())
    several = bool(accelerators) and _counts_open(plan)
    return Options(jobs, _assumptions(plan, asked, jobs), list(skipped), parts and several)


def _assumptions(plan: Plan, asked: SearchLists, jobs: Sequence[ServingJob]) -> list[Assumption]:
    """What is tried of what nobody named."""
    named, tried = plan.inference.model_fields_set, [job.inference for job in jobs]
    rows = []
    if not asked.engines and "engine" not in named:
        why = "servers that run on the devices; name engines to try others"
        rows.append(("engines", [serving.engine for serving in tried], why))
    if not asked.weight_dtypes and "weight_dtype" not in named:
        why = "formats that the engines have kernels for there; fewer bits can cost quality"
        rows.append(("weight_dtypes", [serving.weight_dtype for serving in tried], why))
    if (
        plan.inference.kv_dtype == "auto"
        and any(serving.kv_dtype == _NARROW for serving in tried)
        and not asked.kv_dtypes
    ):
        why = "as narrow as weights of 8 bits and fewer, where the engine keeps serving; name kv_dtypes to try others"
        rows.append(("kv_dtypes", [_NARROW], why))
    return [Assumption(field=field, value=list(dict.fromkeys(values)), why=why) for field, values, why in rows]


def _with_usual_cache(job: ServingJob, listed: bool) -> ServingJob:
    """The job with a cache in eight bits where none is named or `listed`, the weights are in no more and the engine
    keeps one: so every engine is asked for the same. It degrades answers "only minimally" (vLLM,
    quantization/fp8_e4m3_kvcache), and holds twice the requests; checkpoints of that kind by NVIDIA and AMD come with
    its scales."""
    open_cache = job.inference.kv_dtype == "auto" and not listed
    if not open_cache or job.weights.bits > _NARROW_BITS or job.kv_dtype == _NARROW:
        return job
    return with_cache(job, _NARROW) if _NARROW in job.engine.cache_formats else job


def _counts(plan: Plan, device: Accelerator) -> list[int | None]:
    """Numbers of a device to try: the plan's, else parts of a node, or of the nodes that switches join, up to a box."""
    if not _counts_open(plan):
        return [plan.cluster.count]
    most = min(joined_devices(device), _MOST_DEVICES)
    return [2**power for power in range(most.bit_length())]


def _counts_open(plan: Plan) -> bool:
    return not (plan.cluster.count or plan.layout.tp or plan.layout.pp or plan.layout.dp)


def joined_devices(device: Accelerator) -> int:
    """Devices of a node, or of all nodes that the same switches join, as in a rack."""
    beyond = device.per_node > 1 and device.topology in ("switch", "torus")
    return max(device.per_node, device.scaleup_domain if beyond else 1)


def _engines(plan: Plan, named: Sequence[str] | None, model: Architecture, device: Accelerator) -> list[str]:
    """Those named, else the servers that run the model on the device, and llama.cpp and MLX where none of them does or
    where the device is one person's."""
    if named:
        return list(dict.fromkeys(named))
    if "engine" in plan.inference.model_fields_set:
        return [plan.inference.engine]
    able = [name for name in (*SERVERS, *OF_ONE) if kernels_for(engine(name, None, device), model)]
    return able if device.personal else [name for name in able if name in SERVERS] or able


def _formats(
    plan: Plan, named: Sequence[str] | None, model: Architecture, device: Accelerator, engine_name: str
) -> list[str]:
    """Those named, else those that the engine can be given of the model there."""
    if named:
        return list(dict.fromkeys(named))
    if "weight_dtype" in plan.inference.model_fields_set:
        return [plan.inference.weight_dtype]
    return offered_formats(model, engine(engine_name, plan.inference.software_version, device), device)
