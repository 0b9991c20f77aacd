"""Which deployments a serving plan allows: all of them, or the one that it names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from estimator.errors import PlanError
from estimator.plan.layouts import Floats, Ints
from estimator.plan.schema import Layout
from estimator.plan.serving.deployments import USUAL_NODE, Deployments
from estimator.plan.serving.engine import most_tokens
from estimator.plan.serving.job import ServingJob
from estimator.serving.context import splits_context

_PARTS = ("tp", "pp", "ep", "dp")
# Layouts that an error names.
_SHOWN = 4
# Times that all experts are held at the most.
_MOST_COPIES = 2


def shapes(job: ServingJob, parts: bool = False) -> Ints:
    """Valid splits of the plan's devices, an array of shape (n, 5): tp, pp, ep, dp, replicas; what the plan's layout
    names is held fixed. An engine that lays its layers over the devices of a machine takes all of them, or where
    replicas are sized any `parts` of them.

    Raises PlanError naming the field that nothing valid is left of.
    """
    _refuse_training_fields(job)
    tps, pps, eps, dps = (np.array(_values(job, name, parts), dtype=np.int64) for name in _PARTS)
    used = tps[:, None, None] * pps[:, None] * dps
    at, stage, lane = np.nonzero(job.machine.count % used == 0)
    tp, dp = tps[at], dps[lane]
    place, spread = np.nonzero((tp * dp)[:, None] % eps == 0)
    tp, dp, pp, ep = tp[place], dp[place], pps[stage[place]], eps[spread]
    laid = _laid_out(job, tp, ep, dp)
    valid = laid & _whole_blocks(job, tp, tp * dp // ep)
    if not valid.any():
        raise _nothing_left(job, cut=bool(laid.any()))
    rows = np.stack([tp, pp, ep, dp, job.machine.count // (tp * pp * dp)], axis=1)[valid]
    return rows[np.lexsort(rows[:, 3::-1].T)]


def _laid_out(job: ServingJob, tp: Ints, ep: Ints, dp: Ints) -> np.ndarray:
    """Where the engine lays experts and lanes out so; what a plan names stands."""
    engine, layout = job.engine, job.plan.layout
    whole = np.bool_(layout.ep is not None or not engine.ep_whole) | (ep == 1) | (ep == tp * dp)
    single = np.bool_((layout.tp is not None and layout.dp is not None) or not engine.single_lanes)
    return whole & (single | (tp == 1) | (dp == 1))


def _whole_blocks(job: ServingJob, tp: Ints, etp: Ints) -> np.ndarray:
    """Where each device's part of a feed-forward layer is whole blocks of weights that share a scale, as far as the
    engine asks for that; an expert is cut in `etp`."""
    fine = np.ones(len(tp), dtype=bool)
    for block in job.architecture.blocks:
        for width, cut, side in (
            (block.ffn_width, tp, job.weights.block), (block.shared_width, tp, job.weights.block),
            (block.expert_width, etp, job.weights.expert_block),
        ):  # fmt: skip
            asked = side if job.engine.whole_blocks and side > 1 else 1
            fine &= (cut == 1) | (width % (cut * asked) == 0)
    return fine


def _nothing_left(job: ServingJob, cut: bool) -> PlanError:
    """What is wrong with a layout of which nothing valid is left; `cut` where only parts of matrices are."""
    layout, count = job.plan.layout, job.machine.count
    named = [name for name in _PARTS if getattr(layout, name) is not None]
    sizes = ", ".join(f"{name}={getattr(layout, name)}" for name in named) or "every layout"
    field = f"layout.{named[0] if named else 'tp'}"
    if layout.ep and not any((tp * dp) % layout.ep == 0 for tp in _values(job, "tp") for dp in _values(job, "dp")):
        return PlanError(field, f"ep={layout.ep} does not divide tp x dp", [f"sizes whose product divides {count}"])
    if not cut:
        problem = f"{sizes} cannot be laid out on {count} devices"
        return PlanError(field, problem, [f"sizes whose product divides {count}"])
    side = max(job.weights.block, job.weights.expert_block)
    blocks = f"no whole blocks of {side} weights of {job.weights.name}, which {job.engine.name} does not load"
    return PlanError(field, f"{sizes} cuts {job.architecture.id} in parts that are {blocks}", _loaded(job))


def _loaded(job: ServingJob) -> list[str]:
    """The widest layouts beside one that is not loaded."""
    if job.plan.layout.tp is None and job.plan.layout.ep is None:
        return []
    rows = shapes(replace(job, plan=job.plan.patch({"layout.tp": None, "layout.ep": None})))
    return list(dict.fromkeys(f"tp={tp} ep={ep} dp={dp}" for tp, _, ep, dp, _ in rows[::-1].tolist()))[:_SHOWN]


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
    under = [base | load for load in (loads or [{}])]
    sizes = np.tile(rows.T.astype(np.float64), len(under))
    values = np.array([[float(fields[name]) for fields in under] for name in base]).repeat(len(rows), axis=1)
    load = dict(zip(base, values, strict=True))
    count = len(rows) * len(under)
    if workload.max_batched_tokens is None:
        # The longest request that the engine is started for, which may be longer than those of the load.
        lengths = np.maximum(load["input_len"] + load["output_len"], float(workload.max_context or 0))
        tokens = np.zeros(count) + most_tokens(job.engine, lengths, workload.scenario == "offline")
    else:
        tokens = np.full(count, float(workload.max_batched_tokens))
    return Deployments(*sizes, **load, max_batch=_most_at_once(job, sizes[3]), max_tokens=tokens)


def _most_at_once(job: ServingJob, lanes: Floats) -> Floats:
    """Sequences of a step of each of `lanes`: the plan's, or the engine's, which for drafts shares its own out."""
    workload, engine = job.inference, job.engine
    most = np.full(len(lanes), float(workload.max_batch or engine.max_batch))
    if workload.max_batch or not workload.speculative_tokens or not engine.drafting_batch:
        return most
    return np.minimum(most, np.maximum(1.0, np.floor(engine.drafting_batch / lanes)))


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
