"""The search over layouts, engines, weight formats, accelerators and loads: one vectorised call for each engine, format
and accelerator."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from estimator.errors import PlanError
from estimator.plan.layouts import Floats, Ints
from estimator.plan.schema import Inference
from estimator.plan.serving.deployments import Deployments
from estimator.plan.serving.job import ServingJob
from estimator.serving.estimates import estimate
from estimator.serving.space import deployments
from knowledge.evidence import served_before
from knowledge.figures import gib, percent, rate, seconds
from launchers.render import unsaid
from planner.asked.serving import BestServingRequest
from planner.evidence import evidence_of
from planner.named import counted
from planner.serving.loads import under_loads
from planner.serving.options import Options, SearchLists, options
from planner.serving.patience import alone, patient, told, without_first
from planner.serving.planned import Served, choice, chosen_of, goal_of, old_price, settled, summary
from planner.serving.pool import Goal, Pool, Slo, feasible, front, goal_order, pool_of, slo_of
from planner.serving.prices import hourly_column
from planner.serving.results import BestServing, ServingChoice, ServingRejected
from planner.serving.warnings import kinds_of, warnings_of

_GOAL_NAMES: dict[Goal, str] = {"throughput": "throughput", "latency": "time", "cost": "cost"}
_SHOWN_FRONT = 40


def best_serving(request: BestServingRequest) -> BestServing:
    """Find the best way to serve."""
    started = time.perf_counter()
    plan, read = counted(request.to_plan())
    workload = plan.inference
    goal: Goal = request.goal or goal_of(plan)
    open_load, assumed = load_is_open(workload), []
    if open_load and alone(plan, request.accelerators):
        plan, open_load = plan.patch({"workload.concurrency": 1}), False
        assumed = [("workload.concurrency", 1, "one person uses such a machine")]
    else:
        plan, assumed = patient(plan, goal)
    slo = slo_of(plan.inference)
    # One client stands for each number of them that is tried.
    asked = plan.patch({"workload.concurrency": 1}) if open_load else plan
    tried = options(asked, SearchLists.of(request), request.accelerators, open_load)
    usd_per_device, skipped = request.usd_per_device_hour, list(tried.skipped)
    pool, refused = _pool(tried, open_load, usd_per_device, slo)
    if open_load and assumed and not feasible(pool, slo).any():
        plan, assumed = without_first(plan, assumed)
        slo = slo_of(plan.inference)
        pool, refused = _pool(tried, open_load, usd_per_device, slo)
    skipped += refused
    order = goal_order(pool, goal, slo)
    if open_load and slo.limits_any and goal != "latency":
        order = _fullest_first(pool, order, feasible(pool, slo))
    best = int(order[0])
    chosen = settled(plan, pool, best, slo, usd_per_device, _changes(pool, best, request, goal, open_load))
    allowed = feasible(pool, slo)
    cheap = -pool.usd_per_million
    reason = "as many as the latency limits allow" if slo.limits_any else f"the best load for the goal of {goal}"
    more = [("workload.concurrency", chosen.job.inference.concurrency, reason)] if open_load else []
    return BestServing(
        plan=chosen.complete_plan,
        assumptions=[*read, *chosen_of(chosen, tried.assumptions, [*assumed, *more])],
        goal=goal,
        best=choice(pool, best, slo),
        meets_slo=bool(allowed[best]) if slo.limits_any else None,
        why=[*_why(pool, order, chosen, allowed, told(assumed)), *_tied(pool, order, allowed, goal)],
        alternatives=[choice(pool, index, slo) for index in _alternatives(pool, order, request.top)],
        pareto=[choice(pool, int(i), slo) for i in _thinned(front(pool, allowed, pool.per_device))],
        pareto_cost=[choice(pool, int(i), slo) for i in _thinned(front(pool, allowed, cheap))],
        rejected=list(_rejected(pool, order, goal, slo)),
        by_accelerator=_by_accelerator(pool, order, slo),
        candidates=_different(pool, np.ones(len(pool), dtype=bool)),
        feasible=_different(pool, allowed),
        skipped=skipped,
        seconds=time.perf_counter() - started,
        warnings=[
            *_unwritten(chosen),
            *_beside_measured(pool, order, allowed),
            *warnings_of(chosen),
            *old_price(chosen),
        ],
        warning_kinds=kinds_of(chosen),
        evidence=evidence_of(chosen.job),
    )


def _unwritten(chosen: Served) -> list[str]:
    why = unsaid(chosen.plan)
    return [f"no launch files say this deployment ({why})"] if why else []


def _beside_measured(pool: Pool, order: Ints, allowed: np.ndarray) -> list[str]:
    """Where nobody measured the best deployment, which one that somebody did comes next."""
    known = np.array([_served_before(job) for job in pool.jobs], dtype=bool)[pool.option]
    if known[order[0]] or not (known & allowed).any():
        return []
    job, other = pool.job(int(order[0])), int(next(index for index in order if known[index] and allowed[index]))
    device, measured = job.machine.accelerator, pool.job(other).machine.accelerator
    on = "" if measured.id == device.id else f" on {measured.name}"
    return [
        f"no {job.engine.name} runs on {device.name} measured; the best deployment with measured runs is "
        f"{summary(pool, other)}{on}, with {rate(float(pool.per_device[other]))} output tokens/s per device"
    ]


def _served_before(job: ServingJob) -> bool:
    device = job.machine.accelerator
    return not device.announced and served_before(job.engine.name, device.family) > 0


def load_is_open(workload: Inference) -> bool:
    """Whether the plan leaves it to the search how many requests are in flight."""
    has_load = workload.concurrency is not None or workload.request_rate is not None
    return not has_load and workload.scenario not in ("offline", "single-stream")


def _pool(tried: Options, open_load: bool, usd_per_device: float | None, slo: Slo) -> tuple[Pool, list[str]]:
    """Everything that is estimated, and what has no valid layout. Raises PlanError where nothing has one."""
    rows: list[tuple[ServingJob, Deployments]] = []
    refused: list[PlanError] = []
    for job in tried.jobs:
        try:
            candidates = deployments(job, parts=tried.parts)
        except PlanError as error:
            refused.append(error)
            continue
        if tried.parts:
            # Two replicas on twice the devices under twice the load are the same deployment again.
            candidates = replace(candidates, replicas=np.ones(len(candidates)))
        rows.append((job, candidates))
    if not rows:
        raise refused[0]
    loaded = under_loads(rows, slo) if open_load else [estimate(*row) for row in rows]
    priced_rows = [
        (job, estimates, priced(job, estimates.deployments, usd_per_device))
        for (job, _), estimates in zip(rows, loaded, strict=True)
    ]
    return pool_of(priced_rows), list(dict.fromkeys(str(error) for error in refused))


def priced(job: ServingJob, candidates: Deployments, usd_per_device: float | None) -> Floats:
    """USD per hour of each deployment's devices; NaN where no price is known."""
    return hourly_column(job.machine, job.plan.goal.provider, candidates.devices, candidates.devices, usd_per_device)


def _changes(pool: Pool, index: int, request: BestServingRequest, goal: Goal, open_load: bool) -> dict[str, Any]:
    """What the best deployment has that the plan leaves open, besides engine, format and layout."""
    estimates, entry = pool.of(index)
    changes: dict[str, Any] = {}
    if request.accelerators:
        device = pool.job(index).machine.accelerator
        changes |= {"cluster.accelerator": device.id, "cluster.count": int(pool.devices[index])}
    if open_load:
        changes["workload.concurrency"] = round(float(estimates.deployments.concurrency[entry]))
    if request.goal:
        changes["goal.objective"] = _GOAL_NAMES[goal]
    return changes


def _why(pool: Pool, order: Ints, chosen: Served, allowed: np.ndarray, limits: list[str]) -> list[str]:
    """Sentences, `limits` that were assumed among the first."""
    best, met = int(order[0]), " and meet the limits" if chosen.slo.limits_any else ""
    waits = f"Bottleneck: {chosen.bottleneck}."
    tried = _different(pool, np.ones(len(pool), dtype=bool))
    if chosen.plan.inference.kv_dtype != chosen.asked.inference.kv_dtype:
        limits = [*limits, f"The cache is in {chosen.job.kv_dtype}, as the weights are in no more bits."]
    if not pool.fits[best]:
        return [*limits, f"None of {tried} deployments fits; the nearest is shown."]
    if not allowed[best]:
        return [*limits, f"None of {tried} deployments meets the limits; this one misses them least.", waits]
    return [*limits, f"{_different(pool, allowed)} of {tried} deployments fit{met}.", waits]


def _tied(pool: Pool, order: Ints, allowed: np.ndarray, goal: Goal) -> Iterator[str]:
    """What does a little more of what is asked than the first, which counts as equal."""
    value = {"throughput": pool.per_device, "cost": -pool.usd_per_million, "latency": -pool.e2e_s}[goal]
    best = int(order[0])
    others = np.flatnonzero(allowed & (pool.deployment != pool.deployment[best]) & (value > value[best]))
    if allowed[best] and len(others):
        other = int(others[np.argmax(value[others])])
        yield f"Tied with {summary(pool, other)}."


def _fullest_first(pool: Pool, order: Ints, allowed: np.ndarray) -> Ints:
    """The order with the most that a deployment does within the limits before its other loads, though less load may be
    as good for the goal: what is asked is how much it takes."""
    kind, rate = pool.deployment, np.where(allowed, pool.per_device, 0.0)
    most = np.zeros(int(kind.max()) + 1)
    np.maximum.at(most, kind, rate)
    emptier = (allowed & (rate < most[kind]))[order]
    # What is allowed stands first.
    count = int(allowed.sum())
    return np.concatenate([order[:count][~emptier[:count]], order[:count][emptier[:count]], order[count:]])


def _different(pool: Pool, chosen: np.ndarray) -> int:
    """Deployments among the chosen entries."""
    return int(np.count_nonzero(np.bincount(pool.deployment[chosen])))


def _thinned(places: Ints) -> Ints:
    """As many of a front as are shown, both ends among them."""
    kept = np.linspace(0, len(places) - 1, min(len(places), _SHOWN_FRONT)).round().astype(np.intp)
    return places[kept]


def _alternatives(pool: Pool, order: Ints, count: int) -> list[int]:
    """The best of each other kind of deployment: accelerator, engine, format and layout."""
    fitting = order[pool.fits[order]]
    firsts = np.sort(np.unique(pool.deployment[fitting], return_index=True)[1])
    return [int(fitting[place]) for place in firsts[1 : count + 1]]


def _by_accelerator(pool: Pool, order: Ints, slo: Slo) -> list[ServingChoice]:
    ids = np.array([job.machine.accelerator.id for job in pool.jobs])[pool.option[order]]
    firsts = np.sort(np.unique(ids, return_index=True)[1])
    return [choice(pool, int(order[place]), slo) for place in firsts]


def _rejected(pool: Pool, order: Ints, goal: Goal, slo: Slo) -> Iterator[ServingRejected]:
    """For each field the best deployment with each other value, the rest being free, and why it lost."""
    best = int(order[0])
    names = {
        "accelerator": np.array([job.machine.accelerator.id for job in pool.jobs])[pool.option],
        "engine": np.array([job.engine.name for job in pool.jobs])[pool.option],
        "weight_dtype": np.array([job.inference.weight_dtype for job in pool.jobs])[pool.option],
    } | {name: pool.column(name).astype(np.int64) for name in ("tp", "pp", "ep", "dp")}
    load = pool.column("concurrency")
    of_option = np.flatnonzero(pool.option == pool.option[best])
    seen = {best}
    for column in names.values():
        ordered = column[order]
        values, firsts = np.unique(ordered, return_index=True)
        for value, place in zip(values, firsts, strict=True):
            index = int(order[place])
            if value != column[best] and index not in seen:
                seen.add(index)
                yield ServingRejected(choice=choice(pool, index, slo), rule=_lost(pool, best, index, goal, slo))
    # The same deployment with half and twice as many clients.
    same = of_option[np.all([names[name][of_option] == names[name][best] for name in ("tp", "pp", "ep", "dp")], axis=0)]
    for wanted in (same[load[same] < load[best]], same[load[same] > load[best]]):
        if len(wanted):
            index = int(wanted[np.argmin(np.abs(load[wanted] - load[best]))])
            yield ServingRejected(choice=choice(pool, index, slo), rule=_lost(pool, best, index, goal, slo))


def _lost(pool: Pool, best: int, index: int, goal: Goal, slo: Slo) -> str:
    """Why a deployment comes after the best."""
    if not pool.fits[index]:
        estimates, entry = pool.of(index)
        need, have = gib(float(estimates.memory.total[entry])), gib(estimates.memory.capacity)
        return f"does not fit: {need} per device of {have} usable"
    missed = pool.missed(slo)
    if missed[index] > 1.0 and missed[index] > missed[best]:
        return _misses(pool, index, slo)
    tokens = float(pool.per_device[index] / pool.per_device[best])
    latency = float(pool.e2e_s[index] / pool.e2e_s[best])
    money = float(pool.usd_per_million[index] / pool.usd_per_million[best])
    slower = f"a request takes {_more(latency)}"
    fewer = f"{percent(1.0 - tokens)} fewer tokens/s per device"
    match goal:
        case "latency" if latency > 1.0:
            return slower
        case "cost" if money > 1.0:
            return f"tokens cost {_more(money)}"
        case "throughput" if tokens < 1.0:
            return fewer
    if latency > 1.0 and goal != "latency":
        return f"no better for the goal, and {slower}"
    return f"no better for the goal, and {fewer}" if tokens < 1.0 else "equal; the simpler deployment wins"


def _more(ratio: float) -> str:
    return f"{percent(ratio - 1.0)} more" if ratio < 3.0 else f"{ratio:.1f} times as much"


def _misses(pool: Pool, index: int, slo: Slo) -> str:
    tail = slo.statistic == "p99"
    first = float((pool.ttft_p99_s if tail else pool.ttft_s)[index])
    between = float((pool.tpot_p99_s if tail else pool.tpot_s)[index])
    if pool.saturated[index]:
        return f"cannot serve the load: at most {rate(float(pool.requests_per_s[index]))} requests/s"
    if first / slo.ttft_s > between / slo.tpot_s:
        return f"misses the limit: {seconds(first)} to the first token, limit {seconds(slo.ttft_s)}"
    return f"misses the limit: {seconds(between)} per token, limit {seconds(slo.tpot_s)}"
