"""check_fit for serving: whether a deployment has room, and what would give it some, or turn room into speed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from estimator.serving.memory import serving_memory
from knowledge.engines import engine, reads_format
from knowledge.jobs.serving import offered_formats
from planner.change import Change
from planner.evidence import evidence_of
from planner.results import FitCheck, Remedy
from planner.serving.planned import Served, memory_of, plan_serving
from planner.serving.warnings import reads, warnings_of

_PERSONAL = "llamacpp"
_MORE_DEVICES = (2, 4, 8, 16)
# What nothing takes by itself, for what it costs in quality.
FEWEST_BITS = ("q3_k_m", "q2_k")
_SIZES = ("layout.tp", "layout.pp", "layout.ep", "layout.dp")
# One percent faster is within what an estimate can tell apart; less is no reason to change a plan.
_GAIN = 0.99


def fit_of(asked: Plan) -> FitCheck:
    served = plan_serving(asked)
    memory = memory_of(served)
    return FitCheck(
        plan=served.complete_plan,
        assumptions=served.assumptions,
        fits=memory.fits,
        tight=False,
        headroom_bytes=headroom(served),
        memory=memory,
        largest_micro_batch=None,
        largest_seq_len=memory.longest_request,
        max_concurrency=memory.max_concurrency,
        meets_slo=served.meets_slo,
        remedies=_remedies(served, asked),
        relaxations=_relaxations(served) if memory.fits else [],
        warnings=warnings_of(served),
        evidence=evidence_of(served.job),
    )


def headroom(served: Served) -> float:
    """What is left for the cache beside one request of the longest length wanted; negative where it has no room."""
    deployment = served.estimates.deployments.take(np.array([served.entry]))
    memory = serving_memory(served.job, deployment)
    left = float(memory.room[0] - memory.components["kv_cache"][0])
    return left if left >= 0.0 else min(left, float(memory.capacity - memory.total[0]))


def _remedies(served: Served, asked: Plan) -> list[Remedy]:
    """Changes that lower the memory per device, those that fit first, then by slowdown."""
    now = float(served.pool.of(served.index)[0].memory.total[served.entry])
    told = [
        remedy for change in changes(served) if (remedy := _tried(served, change)) and remedy.per_device_bytes < now
    ]
    for times in _MORE_DEVICES:
        count = served.job.machine.count * times
        free = {name: None for name in _SIZES if getattr(asked.layout, name.rpartition(".")[2]) is None}
        # A plan that names fewer devices than a node has is not one of small nodes.
        node = {} if asked.cluster.per_node else {"cluster.per_node": None}
        what = f"{count} devices instead of {served.job.machine.count}"
        why = "weights and cache are dealt over more devices"
        change = Change("count", {"cluster.count": count, **free, **node}, what, why, "hardware")
        remedy = _tried(served, change)
        if remedy and remedy.per_device_bytes < now:
            told.append(remedy)
            if remedy.fits:
                break
    return sorted(told, key=lambda remedy: (not remedy.fits, remedy.slowdown))


def changes(served: Served) -> Iterator[Change]:
    """What may lower the memory of a plan on the devices that it has."""
    job, layout, count = served.job, served.layout, served.job.machine.count
    for name, what in (("tp", "tensor parallelism"), ("pp", "pipeline stages")):
        size = layout[name] * 2
        if size * layout["dp"] * (layout["pp"] if name == "tp" else layout["tp"]) <= count:
            patch = {f"layout.{name}": size} | ({"layout.ep": None} if name == "tp" else {})
            yield Change(name, patch, f"{what} over {size}", "each device holds less of weights and cache")
    weights = job.inference.weight_dtype
    few_bits = [kind for kind in FEWEST_BITS if reads_format(job.engine, kind)]
    for dtype in (*offered_formats(job.architecture, job.engine, job.machine.accelerator), *few_bits):
        if dtype != weights:
            why = "weights take fewer bits; quality can suffer"
            patch = {"workload.weight_dtype": dtype, "workload.weight_bits": None}
            yield Change("weight_dtype", patch, f"{dtype} weights", why, "quality")
    yield from _shared_out(served)
    narrow = next((kind for kind in ("fp8", "int8") if kind in job.engine.cache_formats), None)
    if job.kv_bytes > 1.0 and narrow:
        why = "keys and values take half the room"
        yield Change("kv_dtype", {"workload.kv_dtype": narrow}, f"an {narrow} cache", why, "quality")
    tokens = int(served.estimates.deployments.max_tokens[served.entry])
    if tokens > 2048:
        why = "the largest step needs less, and prompts are read in smaller pieces"
        yield Change("max_batched_tokens", {"workload.max_batched_tokens": 2048}, "at most 2,048 tokens per step", why)


def _shared_out(served: Served) -> Iterator[Change]:
    """Weights of few bits in llama.cpp, which is what people run on a card of their own, where another engine has no
    room."""
    job, device = served.job, served.job.machine.accelerator
    if not device.personal or job.engine.name == _PERSONAL or served.fits:
        return
    for dtype in offered_formats(job.architecture, engine(_PERSONAL, None, device), device):
        patch = {"workload.engine": _PERSONAL, "workload.weight_dtype": dtype, "workload.weight_bits": None}
        why = "made for one person's card; fewer bits can cost quality"
        yield Change("engine", patch, f"llama.cpp with {dtype} weights", why, "quality")


def _relaxations(served: Served) -> list[Remedy]:
    """Changes that use the room of a plan that fits to make it faster, the fastest first."""
    useful = [remedy for change in looser(served) if (remedy := _tried(served, change)) and remedy.fits]
    return sorted(
        (remedy_told for remedy_told in useful if remedy_told.slowdown < _GAIN), key=lambda remedy: remedy.slowdown
    )


def looser(served: Served) -> list[Change]:
    """Changes that take more memory and may give speed."""
    layout = served.layout
    tried: list[Change] = []
    for name, what in (("tp", "tensor parallelism"), ("pp", "pipeline stages")):
        if layout[name] > 1:
            patch = {f"layout.{name}": layout[name] // 2} | ({"layout.ep": None} if name == "tp" else {})
            why = "more replicas, of fewer devices that talk to each other"
            tried.append(Change(f"fewer_{name}", patch, f"{what} over {layout[name] // 2}", why))
    workload, _ = served.job.inference, served.queue
    if workload.max_batch and served.queue[1]:
        change = Change("max_batch", {"workload.max_batch": None}, "no limit of requests in a step", "more run at once")
        tried.append(change)
    return tried


def _tried(served: Served, change: Change) -> Remedy | None:
    """The changed plan's figures; None where it is not valid."""
    try:
        other = plan_serving(served.plan.patch(change.patch))
    except PlanError:
        return None
    if not reads(other.job):
        return None
    now, size = (float(side.estimates.memory.total[side.entry]) for side in (served, other))
    before, after = (float(side.estimates.output_tokens_per_s[side.entry]) for side in (served, other))
    lent = other.plan.cluster.beside is not None and served.plan.cluster.beside is None
    return Remedy(
        patch=dict(change.patch),
        what=f"{change.what}, some of them in host memory" if lent else change.what,
        why=change.why,
        in_host_memory=lent,
        per_device_bytes=size,
        saves_bytes=now - size,
        fits=other.fits,
        slowdown=before / after,
    )
