"""How many devices serve a load within limits of latency: for each deployment the most that one replica takes, then
replicas, devices and money."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from estimator.errors import PlanError
from estimator.plan.layouts import Floats, Ints
from estimator.plan.schema import Plan
from estimator.plan.serving.deployments import Deployments
from estimator.plan.serving.job import ServingJob
from estimator.serving.arrivals import Loads
from estimator.serving.estimates import ServingEstimates, estimate, loads_of, most_running
from estimator.serving.memory import serving_memory
from estimator.serving.space import concurrency, deployments, request_rate, requests
from knowledge.machines.catalogue import find_accelerator, no_accelerator
from planner.asked.serving import SizeServingRequest
from planner.evidence import evidence_of
from planner.named import counted
from planner.result import Assumption
from planner.serving.options import SearchLists, joined_devices, options
from planner.serving.patience import Assumed, patient, relaxed, told
from planner.serving.planned import Served, choice, chosen_of, goal_of, old_price, per_replica, settled
from planner.serving.pool import Pool, Slo, pool_of, slo_of
from planner.serving.prices import HOURS_PER_MONTH, cheapest_hour, hourly_column, offers_of
from planner.serving.results import ServingSize, SizedServing
from planner.serving.warnings import kinds_of, warnings_of

# The largest and the least share of the most that a replica takes, where what lies between is divided, and how often.
_MOST_SHARE, _LEAST_SHARE = 0.98, 0.02
_PARTS = np.array([0.25, 0.5, 0.75])
_DIVISIONS = 4
# What deployments that miss a limit fail by.
_FAILS_BY = {"workload.ttft_slo_ms": "ttft", "workload.tpot_slo_ms": "tpot"}
# Nodes that one replica may span where none fits on fewer.
_MOST_NODES = 16
# Devices of a replica at the most, where fewer hold it: experts over more of a rack gain little.
_MOST_JOINED = 16


@dataclass(frozen=True)
class Sized:
    """The deployments of one job: what one replica of each takes (requests/s, or requests in flight), what limits that,
    and the estimate of as many replicas as the whole load takes; arrays of shape (n,)."""

    job: ServingJob
    limit: Floats
    limited_by: list[str]
    replicas: Floats
    estimates: ServingEstimates
    able: np.ndarray


def size_serving(request: SizeServingRequest) -> SizedServing:
    """Size a serving cluster."""
    return sized(request, beyond=True)


def sized(request: SizeServingRequest, beyond: bool) -> SizedServing:
    """`beyond`: how many devices it takes is told exactly where it is more than there are."""
    started = time.perf_counter()
    plan, read = counted(request.to_plan())
    workload = plan.inference
    if workload.request_rate is None and workload.concurrency is None:
        raise PlanError("request_rate", "is required, or concurrency: the load to serve", ["request_rate=10"])
    most = plan.cluster.count
    plan, assumed, trials = _within_patience(plan, request, beyond)
    slo, rows = slo_of(plan.inference), trials.rows
    usd_per_device = request.usd_per_device_hour
    pool = pool_of([(row.job, row.estimates, _paid(row, usd_per_device)) for row in rows])
    order, able = _ordered(pool, rows, most, slo)
    best = int(order[0])
    chosen = settled(plan, pool, best, slo, usd_per_device, _changes(pool, best, request))
    sizes = [_size(pool, rows, int(index), slo, usd_per_device) for index in _kinds(pool, order, able, request.top)]
    job = chosen.job
    provider, together = plan.goal.provider, min(job.machine.per_node, per_replica(chosen.estimates, chosen.entry))
    devices = int(pool.devices[best])
    return SizedServing(
        plan=chosen.complete_plan,
        assumptions=[*read, *chosen_of(chosen, trials.assumptions, [*assumed, *_assumed(chosen, most)])],
        best=sizes[0] if able[best] else None,
        sizes=sizes if able[best] else [],
        by_accelerator=[_size(pool, rows, int(index), slo, usd_per_device) for index in _firsts(pool, order, able)],
        offers=offers_of(job.machine.accelerator.id, provider, together, devices) if able[best] else [],
        why=[*told(assumed), *_why(pool, rows, best, bool(able[best]), most)],
        candidates=len(pool),
        skipped=trials.skipped,
        seconds=time.perf_counter() - started,
        warnings=[*warnings_of(chosen), *old_price(chosen)],
        warning_kinds=kinds_of(chosen),
        evidence=evidence_of(job),
    )


@dataclass(frozen=True)
class _Trials:
    """The jobs that were sized, what was chosen in the user's place, and what cannot be, in words."""

    rows: list[Sized]
    assumptions: list[Assumption]
    skipped: list[str]


def _within_patience(plan: Plan, request: SizeServingRequest, beyond: bool) -> tuple[Plan, Assumed, _Trials]:
    """The plan with those limits that are assumed and that anything meets, and what was sized for it."""
    limited, assumed = patient(plan, goal_of(plan))
    trials = _tried(limited, request, beyond)
    for looser, left in relaxed(limited, assumed):
        if any(row.able.any() for row in trials.rows):
            break
        # What nothing fails by is not worth another look.
        let_go = {_FAILS_BY[field] for field, *_ in assumed if field not in {row[0] for row in left}}
        failing = {reason for row in trials.rows for reason in row.limited_by}
        limited, assumed = looser, left
        trials = _tried(limited, request, beyond) if let_go & failing else trials
    return limited, assumed, trials


def _tried(plan: Plan, request: SizeServingRequest, beyond: bool) -> _Trials:
    """Every accelerator, engine and format. Raises PlanError where none has a valid layout."""
    slo = slo_of(plan.inference)
    rows: list[Sized] = []
    skipped: dict[str, None] = {}
    assumptions: list[Assumption] = []
    refused: list[PlanError] = []
    most = plan.cluster.count
    for name in dict.fromkeys(request.accelerators or [plan.cluster.accelerator]):
        node = _node(plan, name)
        asked = plan.patch({"cluster.count": min(node, most or node)})
        offered = options(asked, SearchLists.of(request), [name] if name else None)
        assumptions = offered.assumptions or assumptions
        skipped |= dict.fromkeys(offered.skipped)
        for job in offered.jobs:
            try:
                rows.extend(_sized(job, (node, most), slo, beyond))
            except PlanError as error:
                refused.append(error)
    if not rows:
        raise refused[0]
    return _Trials(rows, assumptions, [*dict.fromkeys([*skipped, *map(str, refused)])])


def _node(plan: Plan, name: str | None) -> int:
    """Devices of one node. Raises PlanError for an accelerator that is not known, or none."""
    if name is None:
        raise no_accelerator()
    return plan.cluster.per_node or find_accelerator(name).value.per_node


def _sized(job: ServingJob, sizes: tuple[int, int | None], slo: Slo, beyond: bool) -> Iterator[Sized]:
    """All deployments of one job that fit, or the one that lacks the least memory. Of those that take more devices than
    there are even at their very best, only such are sized as may take fewer than the others do, where what is `beyond`
    is told. Raises PlanError where no layout is valid."""
    node, most = sizes
    job, single = _replicas(job, node, most)
    known = loads_of(job, single) if job.inference.request_rate is not None else None
    top = _top_rate(single, known) * _MOST_SHARE if known else _most_held(job, single)[0]
    each = single.tp * single.pp * single.dp
    fewest = each * _needed(job, top)
    likely = np.flatnonzero(fewest <= max(most or np.inf, fewest.min()))
    if most and fewest.min() > most and not beyond:
        likely = likely[:1]
        yield _sizes_of(job, single.take(likely), known and known.take(likely), (top[likely], ["throughput"]))
        return
    first = _limited(job, single.take(likely), known and known.take(likely), slo)
    yield first
    taken = np.min(np.where(first.able, each[likely] * first.replicas, np.inf))
    others = np.setdiff1d(np.flatnonzero(fewest < taken), likely)
    if beyond and len(others):
        yield _limited(job, single.take(others), known and known.take(others), slo)


def _limited(job: ServingJob, single: Deployments, known: Loads | None, slo: Slo) -> Sized:
    """As the limits of latency have it."""
    return _sizes_of(
        job, single, known, most_rate(job, single, slo, known) if known else most_clients(job, single, slo)
    )


def _sizes_of(job: ServingJob, single: Deployments, known: Loads | None, limits: tuple[Floats, list[str]]) -> Sized:
    """As many as the whole load takes where one replica takes so much of it."""
    limit, limited_by = limits
    replicas = _needed(job, np.where(limit > 0.0, limit, np.inf))
    estimates = estimate(job, deployed(single, replicas.astype(np.int64), job), known)
    return Sized(job, limit, limited_by, replicas, estimates, (limit > 0.0) & estimates.memory.fits)


def _needed(job: ServingJob, limit: Floats) -> Floats:
    """Replicas that the whole load takes where one takes `limit` of it."""
    rate, clients = job.inference.request_rate, job.inference.concurrency
    load = float(rate if rate is not None else clients or 1)
    return np.maximum(1.0, np.ceil(load / limit * (1.0 - 1e-9)))


def deployed(candidates: Deployments, replicas: Ints, job: ServingJob) -> Deployments:
    """So many replicas of each deployment under the whole load of the job."""
    load = {"concurrency": concurrency(job), "request_rate": request_rate(job), "requests": requests(job)}
    return replace(
        candidates, replicas=replicas, **{name: np.full(len(candidates), value) for name, value in load.items()}
    )


def _replicas(job: ServingJob, node: int, most: int | None) -> tuple[ServingJob, Deployments]:
    """Single replicas of every size up to a node, or up to several that the same switches join; on whole nodes where
    nothing fits on these."""
    joined = min(joined_devices(job.machine.accelerator), _MOST_JOINED, most or _MOST_JOINED)
    nodes = 2 ** (max(1, joined // node).bit_length() - 1)
    while True:
        count = min(node * nodes, most or node * nodes)
        wider = replace(job, machine=replace(job.machine, count=count, per_node=min(node, count)))
        every = deployments(wider, parts=True)
        single = replace(every, replicas=np.ones(len(every), dtype=np.int64))
        memory = serving_memory(wider, single)
        if memory.fits.any():
            return wider, single.take(memory.fits)
        if nodes >= _MOST_NODES or (most and count >= most):
            lacks = np.maximum(memory.total - memory.capacity, memory.components["kv_cache"] - memory.room)
            return wider, single.take(np.array([np.argmin(lacks)]))
        nodes *= 2


def most_rate(job: ServingJob, candidates: Deployments, slo: Slo, known: Loads) -> tuple[Floats, list[str]]:
    """The highest rate of one replica within the limits, and what stands against more; 0 where there is none. `known`
    are the loads of these deployments."""
    top = _top_rate(candidates, known)

    def meets(shares: Floats, which: Ints) -> tuple[np.ndarray, list[str]]:
        """Of shares (k, m) of the top of deployments `which`: which meet the limits up to there, and what the first
        that does not fails by."""
        index = np.tile(which, len(shares))
        load = replace(candidates.take(index), request_rate=(shares * top[which]).ravel())
        estimates = estimate(job, load, known.take(index))
        return _met(pool_of([(job, estimates, np.full(shares.size, np.nan))]), slo, len(shares))

    # Latency grows with the load, so what lies between a share that does and one that does not is divided ever finer.
    low, high = np.zeros(len(candidates)), np.full(len(candidates), _MOST_SHARE)
    reasons = [""] * len(candidates)
    for step in range(2 + _DIVISIONS):
        which = np.flatnonzero((high > low) & ((low > 0.0) | (step < 2)))
        if not len(which):
            break
        if step < 2:
            shares = np.full((1, len(which)), (_MOST_SHARE, _LEAST_SHARE)[step])
        else:
            shares = low[which] + (high - low)[which] * _PARTS[:, None]
        met, failing = meets(shares, which)
        high[which] = np.minimum(high[which], np.min(np.where(met, np.inf, shares), axis=0))
        low[which] = np.maximum(low[which], np.max(np.where(met, shares, 0.0), axis=0))
        for place, reason in zip(which, failing, strict=True):
            reasons[place] = reason or reasons[place]
    return low * top, [reason or "throughput" for reason in reasons]


def _top_rate(candidates: Deployments, known: Loads) -> Floats:
    """Requests/s of a replica that always runs as many as it can."""
    return known.rates[-1] * candidates.lanes


def most_clients(job: ServingJob, candidates: Deployments, slo: Slo) -> tuple[Floats, list[str]]:
    """The most requests in flight of one replica within the limits: no more than run at once."""
    most, usual = _most_held(job, candidates)
    points = int(np.ceil(np.log2(max(2.0, float(most.max()))))) + 1
    loads = np.minimum(2.0 ** np.arange(points)[:, None], most)
    met, failing = _under_load(job, candidates, slo, loads)
    limit, beyond = np.max(np.where(met, loads, 0.0), axis=0), np.min(np.where(met, np.inf, loads), axis=0)
    for _ in range(_DIVISIONS):
        which = np.flatnonzero((limit > 0.0) & np.isfinite(beyond) & (beyond > limit + 1.0))
        if not len(which):
            break
        between = np.round(limit[which] + (beyond - limit)[which] * _PARTS[:, None])
        met, _ = _under_load(job, candidates.take(which), slo, between)
        limit[which] = np.maximum(limit[which], np.max(np.where(met, between, 0.0), axis=0))
        beyond[which] = np.minimum(beyond[which], np.min(np.where(met, np.inf, between), axis=0))
    return limit, [reason or other for reason, other in zip(failing, usual, strict=True)]


def serves(job: ServingJob, candidates: Deployments, slo: Slo, clients: float) -> tuple[np.ndarray, list[str]]:
    """(Which keep the limits with so many requests in flight of one replica, what each fails by)."""
    most, usual = _most_held(job, candidates)
    met, failing = _under_load(job, candidates, slo, np.minimum(clients, most)[None])
    return met[0] & (most >= clients), [reason or other for reason, other in zip(failing, usual, strict=True)]


def _most_held(job: ServingJob, candidates: Deployments) -> tuple[Floats, list[str]]:
    """(The most requests that run at once, what keeps it from being more)."""
    lane = most_running(job, candidates, serving_memory(job, candidates))
    usual = ["KV cache" if short else "throughput" for short in lane < candidates.max_batch]
    return np.floor(np.minimum(1e7, lane * candidates.lanes)), usual


def _under_load(job: ServingJob, candidates: Deployments, slo: Slo, loads: Floats) -> tuple[np.ndarray, list[str]]:
    """Of loads (k, n), ascending: which meet the limits, and what the first fails by."""
    many = candidates.take(np.tile(np.arange(len(candidates)), len(loads)))
    # Of what holds no request at all the limits are those of one. A benchmark's requests are as many times its clients;
    # of what comes at a rate there are as many as there are.
    asked, counted = np.maximum(loads.ravel(), 1.0), np.isfinite(many.requests) & np.isfinite(many.concurrency)
    each = np.divide(many.requests, many.concurrency, out=np.ones(len(many)), where=counted)
    many = replace(many, concurrency=asked, requests=np.where(counted, each * asked, many.requests))
    return _met(pool_of([(job, estimate(job, many), np.full(loads.size, np.nan))]), slo, len(loads))


def _met(pool: Pool, slo: Slo, points: int) -> tuple[np.ndarray, list[str]]:
    """(Which of (k, n) loads meet the limits, as all lower ones do; what the first that does not fails by)."""
    shape = (points, len(pool) // points)
    met = np.logical_and.accumulate((pool.fits & (pool.missed(slo) <= 1.0)).reshape(shape), axis=0)
    tail = slo.statistic == "p99"
    first = ((pool.ttft_p99_s if tail else pool.ttft_s) / slo.ttft_s).reshape(shape)
    between = ((pool.tpot_p99_s if tail else pool.tpot_s) / slo.tpot_s).reshape(shape)
    fits = pool.fits.reshape(shape)
    reasons = []
    for column in range(shape[1]):
        fails = np.flatnonzero(~met[:, column])
        if not len(fails):
            reasons.append("")
            continue
        at = int(fails[0])
        slow = "ttft" if first[at, column] >= between[at, column] else "tpot"
        over = max(first[at, column], between[at, column]) > 1.0
        reasons.append("KV cache" if not fits[at, column] else slow if over else "throughput")
    return met, reasons


def _paid(row: Sized, usd_per_device: float | None) -> Floats:
    """USD per hour of all replicas; NaN where no price is known."""
    candidates = row.estimates.deployments
    per = candidates.tp * candidates.pp * candidates.dp
    return hourly_column(row.job.machine, row.job.plan.goal.provider, per, candidates.devices, usd_per_device)


def _ordered(pool: Pool, rows: list[Sized], most: int | None, slo: Slo) -> tuple[Ints, np.ndarray]:
    """By cost, then devices, then latency; what cannot serve the load last, the least too slow first."""
    able = np.concatenate([row.able for row in rows])
    enough = pool.devices <= (most or np.inf)
    money = np.nan_to_num(pool.usd_per_hour, nan=np.inf)
    missed = np.where(able, 0.0, np.minimum(pool.missed(slo), 1e12))
    return np.lexsort((pool.e2e_s, pool.devices, money, missed, ~enough, ~able, ~pool.fits)), able & enough


def _kinds(pool: Pool, order: Ints, able: np.ndarray, count: int) -> list[int]:
    """The best of each accelerator, engine, format and size of replica."""
    fine = order[able[order]]
    per = pool.devices / pool.column("replicas")
    kinds = np.stack([pool.option[fine], per[fine].astype(np.int64)])
    firsts = np.sort(np.unique(kinds, axis=1, return_index=True)[1])
    return [int(fine[place]) for place in firsts[:count]]


def _firsts(pool: Pool, order: Ints, able: np.ndarray) -> list[int]:
    """The best of each accelerator."""
    fine = order[able[order]]
    ids = np.array([job.machine.accelerator.id for job in pool.jobs])[pool.option[fine]]
    return [int(fine[place]) for place in np.sort(np.unique(ids, return_index=True)[1])]


def _size(pool: Pool, rows: list[Sized], index: int, slo: Slo, usd_per_device: float | None) -> ServingSize:
    job, entry = pool.job(index), int(pool.entry[index])
    row = rows[int(pool.option[index])]
    estimates = row.estimates
    together = min(job.machine.per_node, per_replica(estimates, entry))
    provider = job.plan.goal.provider
    offer = (
        cheapest_hour(job.machine.accelerator.id, provider, together, int(pool.devices[index]))
        if not usd_per_device
        else None
    )
    limit, load = float(row.limit[entry]), float(job.inference.request_rate or job.inference.concurrency or 0.0)
    figures = choice(pool, index, slo)
    usd = figures.usd_per_hour
    return ServingSize(
        **dict(figures),
        devices_per_replica=per_replica(estimates, entry),
        replica_limit=limit,
        limited_by=row.limited_by[entry],
        utilisation=load / (limit * float(row.replicas[entry])) if limit else 0.0,
        usd_per_month=None if usd is None else usd * HOURS_PER_MONTH * job.plan.goal.free_share,
        provider=offer[0].provider if offer else None,
        instance=offer[0].instance if offer else None,
    )


def _changes(pool: Pool, index: int, request: SizeServingRequest) -> dict[str, Any]:
    """What the best size has besides engine, format and layout."""
    changes: dict[str, Any] = {"cluster.count": int(pool.devices[index])}
    if request.accelerators:
        changes["cluster.accelerator"] = pool.job(index).machine.accelerator.id
    return changes


def _assumed(served: Served, most: int | None) -> list[tuple[str, Any, str]]:
    devices = int(served.pool.devices[served.index])
    why = f"the fewest that serve it, of at most {most}" if most else "the fewest of these that serve the load"
    return [] if devices == most else [("cluster.count", devices, why)]


def _why(pool: Pool, rows: list[Sized], best: int, able: bool, most: int | None) -> Iterator[str]:
    sized, entry = rows[int(pool.option[best])], int(pool.entry[best])
    able_kinds = sum(int(row.able.sum()) for row in rows)
    yield f"{len(pool)} kinds of replica were sized; {able_kinds} of them can serve within the limits."
    unit = "requests/s" if sized.job.inference.request_rate is not None else "requests in flight"
    if able:
        yield (
            f"One replica on {per_replica(sized.estimates, entry)} devices takes up to {float(sized.limit[entry]):.4g} "
            f"{unit}, held back by {sized.limited_by[entry]}, so {int(sized.replicas[entry])} are needed."
        )
    elif most and sized.able[entry]:
        yield f"It would take at least {int(pool.devices[best])} devices, more than the {most} there are."
    elif not pool.fits[best]:
        yield "The model fits in no replica that was tried."
    else:
        missed = sized.limited_by[entry]
        yield f"No deployment meets the limits even under the least load; the nearest fails by {missed}."
