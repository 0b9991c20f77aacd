"""Which deployments a serving plan allows: all of them, or the one that it names."""

from __future__ import annotations

from itertools import product

import numpy as np

from estimator.errors import PlanError
from estimator.plan.schema import Layout
from estimator.plan.serving.deployments import USUAL_NODE, Deployments
from estimator.plan.serving.engine import most_tokens
from estimator.plan.serving.job import ServingJob
from estimator.serving.context import splits_context

_PARTS = ("tp", "pp", "ep", "dp")
# Times that all experts are held at the most.
_MOST_COPIES = 2


def shapes(job: ServingJob, parts: bool = False) -> list[tuple[int, int, int, int, int]]:
    """Valid (tp, pp, ep, dp, replicas) of the plan's devices, what its layout names held fixed. An engine that lays its
    layers over the devices of a machine takes all of them, or where replicas are sized any `parts` of them.

    Raises PlanError naming the field that nothing valid is left of.
    """
    layout = job.plan.layout
    _refuse_training_fields(job)
    count = job.machine.count
    splits: list[tuple[int, int, int, int, int]] = []
    tps, pps, eps, dps = (_values(job, name, parts) for name in _PARTS)
    for tp, pp in product(tps, pps):
        replicas, rest = divmod(count, tp * pp)
        if rest == 0:
            lanes = [dp for dp in dps if replicas % dp == 0]
            splits += [(tp, pp, ep, dp, replicas // dp) for ep in eps for dp in lanes if _runs(job, tp, ep, dp)]
    if not splits:
        named = [name for name in _PARTS if getattr(layout, name) is not None]
        values = ", ".join(f"{name}={getattr(layout, name)}" for name in named)
        problem = f"{values or 'the layout'} cannot be laid out on {count} devices"
        if layout.ep and not any((tp * dp) % layout.ep == 0 for tp in _values(job, "tp") for dp in _values(job, "dp")):
            problem = f"ep={layout.ep} does not divide tp x dp"
        raise PlanError(f"layout.{named[0] if named else 'tp'}", problem, [f"sizes whose product divides {count}"])
    return splits


def _runs(job: ServingJob, tp: int, ep: int, dp: int) -> bool:
    """Whether the experts divide, and the engine lays them and its lanes out so; what a plan names stands."""
    engine, layout, ranks = job.engine, job.plan.layout, tp * dp
    whole = layout.ep is not None or not engine.ep_whole or ep in (1, ranks)
    single = (layout.tp is not None and layout.dp is not None) or not engine.single_lanes or tp == 1 or dp == 1
    return ranks % ep == 0 and whole and single


def _refuse_training_fields(job: ServingJob) -> None:
    layout = job.plan.layout
    if job.context_parts > 1 and not job.engine.splits_context:
        raise PlanError("layout.cp", f"{job.engine.name} does not split its cache by context", [1])
    for name in ("vpp", "etp", "shard_group"):
        if (getattr(layout, name) or 1) > 1:
            raise PlanError(f"layout.{name}", "has no meaning for serving", _PARTS)
    if layout.zero_stage:
        raise PlanError("layout.zero_stage", "has no meaning for serving", _PARTS)
    if layout.offload not in (None, "none"):
        raise PlanError("layout.offload", "serving with weights in host memory is not estimated", ["none"])


def _values(job: ServingJob, name: str, parts: bool = False) -> list[int]:
    """Values of one size that the model, the engine and the devices allow."""
    architecture, engine, count = job.architecture, job.engine, job.machine.count
    size = getattr(job.plan.layout, name)
    if engine.splits_layers and size is None and name in ("tp", "pp") and not _names_split(job.plan.layout):
        stages = [n for n in range(1, count) if parts and count % n == 0 and n <= architecture.layers]
        return [1] if name == "tp" else [*stages, min(count, architecture.layers)]
    if name == "tp":
        heads = architecture.heads or max((block.ssm_inner for block in architecture.blocks), default=1)
        valid = [
            n for n in range(1, min(count, heads) + 1) if (heads % n == 0 and count % n == 0 and engine.tp) or n == 1
        ]
        alike = [n for n in valid if splits_context(job, n)]
        if not alike:
            sizes = f"no tensor group of {architecture.id} on {count} devices holds the same keys so many times"
            raise PlanError("layout.cp", f"cp={job.context_parts:.0f}: {sizes}", [1])
        valid = alike
    elif name == "pp":
        valid = [n for n in range(1, min(count, architecture.layers) + 1) if n == 1 or (count % n == 0 and engine.pp)]
    elif name == "dp":
        sharing = architecture.is_moe and engine.attention_dp
        valid = [n for n in range(1, count + 1) if count % n == 0] if sharing else [1]
        if size is not None and not architecture.is_moe:
            # Lanes of a dense model share nothing: they are replicas.
            return [1]
    else:
        routed = architecture.is_moe and engine.ep
        valid = [n for n in range(1, count + 1) if _holds(job, n)] if routed else [1]
    if size is None:
        return valid
    if size not in valid:
        raise PlanError(f"layout.{name}", _why_not(job, name, size), [str(n) for n in valid])
    return [size]


def _holds(job: ServingJob, ranks: int) -> bool:
    """Whether the experts can be laid over `ranks` devices: evenly, or with copies of some where that is offered."""
    experts = job.architecture.experts
    return experts % ranks == 0 or (job.engine.redundant_experts and USUAL_NODE < ranks <= _MOST_COPIES * experts)


def _names_split(layout: Layout) -> bool:
    return (layout.tp or 1) > 1 or (layout.pp or 0) > 0


def _why_not(job: ServingJob, name: str, value: int) -> str:
    architecture, count = job.architecture, job.machine.count
    setting = f"{name}={value}"
    if name == "tp" and not splits_context(job, value):
        return f"{setting} does not hold the same keys cp={job.context_parts:.0f} times"
    if name == "tp" and architecture.heads % value:
        return f"{setting} does not divide {architecture.heads} attention heads of {architecture.id}"
    if name == "ep" and architecture.is_moe and not _holds(job, value):
        return f"{setting} does not divide {architecture.experts} experts of {architecture.id}"
    if name == "ep" and not architecture.is_moe:
        return f"{architecture.id} has no experts"
    if value > count:
        return f"{setting} is more than the {count} devices"
    if name == "pp" and value > architecture.layers:
        return f"{setting} is more than {architecture.layers} layers of {architecture.id}"
    if name != "ep" and count % value:
        return f"{setting} does not divide {count} devices"
    return f"{setting} is not possible with {job.engine.name}"


def deployments(job: ServingJob, loads: list[dict[str, float]] | None = None, parts: bool = False) -> Deployments:
    """Every valid deployment under the plan's load, or under each of `loads` (its fields), layouts first; `parts` as
    `shapes` has it."""
    workload = job.inference
    rows = shapes(job, parts)
    base = {
        "input_len": float(workload.prompt_len),
        "output_len": float(workload.output_len),
        "concurrency": concurrency(job),
        "request_rate": request_rate(job),
        "requests": requests(job),
        "prefix_hit": workload.prefix_hit,
    }
    every = [(row, base | load) for load in (loads or [{}]) for row in rows]
    sizes = np.array([row for row, _ in every], dtype=np.float64).T
    load = {name: np.array([values[name] for _, values in every], dtype=np.float64) for name in base}
    most = float(workload.max_batch or job.engine.max_batch)
    if workload.max_batched_tokens is None:
        # The longest request that the engine is started for, which may be longer than those of the load.
        lengths = np.maximum(load["input_len"] + load["output_len"], float(workload.max_context or 0))
        tokens = np.zeros(len(every)) + most_tokens(job.engine, lengths, workload.scenario == "offline")
    else:
        tokens = np.full(len(every), float(workload.max_batched_tokens))
    return Deployments(*sizes, **load, max_batch=np.full(len(every), most), max_tokens=tokens)


# Benchmark clients send this many requests for each one in flight, the first ones all at once (InferenceMAX,
# benchmark_serving's --num-prompts).
_ROUNDS = 10.0


def requests(job: ServingJob) -> float:
    """Requests of the run; inf where there is no end of them."""
    workload = job.inference
    if workload.requests is not None:
        return float(workload.requests)
    return _ROUNDS * workload.concurrency if workload.concurrency is not None else np.inf


def request_rate(job: ServingJob) -> float:
    """Requests per second; 0 where clients wait for their answers, nan for as many as the limits of latency allow."""
    workload = job.inference
    if workload.request_rate is not None:
        return workload.request_rate
    limited = workload.ttft_slo_ms is not None or workload.tpot_slo_ms is not None
    at_random = workload.concurrency is None and workload.scenario in ("server", "interactive")
    return np.nan if limited and at_random else 0.0


def concurrency(job: ServingJob) -> float:
    """Requests in flight that the plan asks for; inf where all come at once or at a rate."""
    workload = job.inference
    if workload.request_rate is not None:
        return np.inf
    if workload.scenario == "single-stream":
        return 1.0
    if workload.scenario == "static-batch":
        return float(workload.concurrency or workload.max_batch or 1)
    if workload.concurrency is not None:
        return float(workload.concurrency)
    return np.inf
