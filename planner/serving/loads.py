"""Under which load each deployment does best where a question leaves that open: up to the limits of latency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from estimator.plan.layouts import Floats, Ints
from estimator.plan.serving.deployments import Deployments
from estimator.plan.serving.job import ServingJob
from estimator.serving.estimates import ServingEstimates, estimate, joined, most_running
from estimator.serving.memory import serving_memory
from planner.serving.pool import Slo, feasible, pool_of

_MOST_CLIENTS = 2.0**20
# Ratio of the loads that are tried; between two coarse ones the highest within the limits is found, to a part in
# _EXACTLY where it is no whole number of requests less.
_FINE, _COARSE = 2.0, 4.0
_EXACTLY = 1000.0
_ROUNDS = 6
# Where a load is guessed from those around it, others are tried at such parts of a distance that shrinks by a tenth.
_AROUND = np.array([-1.0, -0.4, -0.15, -0.04, 0.0, 0.04, 0.15, 0.4, 1.0])[:, None]
_DISTANCE, _NEARER = 0.1, 0.1
# By how much throughput may fall below that of a lower load, as where other kernels take over (guard).
_FALLS = 1.1


@dataclass
class _Bracket:
    """Of n deployments of a job: the highest load that meets the limits and the lowest that does not, by what factor
    both miss them, and the most output tokens/s per device between the two; 0 where nothing is between."""

    low: Floats
    high: Floats
    low_missed: Floats
    high_missed: Floats
    possible: Floats
    reached: float

    def wide(self, floor: float) -> Ints:
        """Those whose load is not known, and that may be better than `floor`."""
        apart = self.high - self.low > np.maximum(1.0, self.low / _EXACTLY)
        return np.flatnonzero(apart & (self.possible > max(floor, self.reached)))


def under_loads(rows: Sequence[tuple[ServingJob, Deployments]], slo: Slo) -> list[ServingEstimates]:
    """Each deployment for one client under loads of 1, 2, 4 … up to those that run at once, and these; where latency is
    limited in coarser steps, and those that may be the best of their accelerator, engine or format also at the highest
    load within the limits."""
    tried = [_coarsely(job, candidates, _COARSE if slo.limits_any else _FINE) for job, candidates in rows]
    estimates = [estimated for estimated, _ in tried]
    if not slo.limits_any:
        return estimates
    brackets = [
        _bracket(job, estimated, slo, which, len(candidates))
        for (job, candidates), (estimated, which) in zip(rows, tried, strict=True)
    ]
    best: dict[tuple[str, str], float] = {}
    for (job, _), bracket in zip(rows, brackets, strict=True):
        _keep_best(best, job, bracket.reached)
    for place in sorted(range(len(rows)), key=lambda at: -brackets[at].possible.max(initial=0.0)):
        job, candidates = rows[place]
        floor = min(best[kind] for kind in _kinds(job))
        estimates[place] = _refined(job, candidates, estimates[place], brackets[place], slo, floor)
        _keep_best(best, job, brackets[place].reached)
    return estimates


def _kinds(job: ServingJob) -> list[tuple[str, str]]:
    """What an answer tells the best of."""
    return [
        ("accelerator", job.machine.accelerator.id),
        ("engine", job.engine.name),
        ("format", job.inference.weight_dtype),
    ]


def _keep_best(best: dict[tuple[str, str], float], job: ServingJob, reached: float) -> None:
    for kind in _kinds(job):
        best[kind] = max(best.get(kind, 0.0), reached)


def _coarsely(job: ServingJob, candidates: Deployments, ratio: float) -> tuple[ServingEstimates, Ints]:
    """(Estimates under the powers of a ratio, which deployment each is of)."""
    memory = serving_memory(job, candidates)
    most = np.minimum(_MOST_CLIENTS, np.maximum(1.0, most_running(job, candidates, memory) * candidates.lanes))
    powers = ratio ** np.arange(np.ceil(np.log2(most.max()) / np.log2(ratio)) + 1.0)
    which, load = np.meshgrid(np.arange(len(candidates)), powers)
    which, load = which.ravel(), load.ravel()
    # The first power beyond what runs at once stands for that itself.
    wanted = load < ratio * most[which]
    which, load = which[wanted], np.minimum(load[wanted], np.floor(most[which[wanted]]))
    return estimate(job, _with_clients(job, candidates.take(which), load)), which


def _judged(job: ServingJob, estimates: ServingEstimates, slo: Slo) -> tuple[np.ndarray, Floats, Floats]:
    """(Which meet the limits, by what factor they miss them, output tokens/s per device)."""
    pool = pool_of([(job, estimates, np.full(len(estimates.deployments), np.nan))])
    return feasible(pool, slo), np.where(pool.fits, pool.missed(slo), np.inf), pool.per_device


def _bracket(job: ServingJob, estimates: ServingEstimates, slo: Slo, which: Ints, count: int) -> _Bracket:
    met, missed, rate = _judged(job, estimates, slo)
    load = estimates.deployments.concurrency
    low, high = np.zeros(count), np.full(count, np.inf)
    np.maximum.at(low, which[met], load[met])
    np.minimum.at(high, which[~met], load[~met])
    at_low, at_high = met & (load == low[which]), ~met & (load == high[which])
    low_missed, high_missed, slower, faster = (np.zeros(count) for _ in range(4))
    for column, chosen, values in (
        (low_missed, at_low, missed), (high_missed, at_high, missed), (slower, at_low, rate), (faster, at_high, rate),
    ):  # fmt: skip
        column[which[chosen]] = values[chosen]
    # Throughput cannot grow faster than the load, and hardly falls with it.
    grown = slower * high / np.maximum(low, 1.0)
    possible = np.minimum(grown, np.maximum(slower, faster) * _FALLS)
    open_ended = (low > 0.0) & np.isfinite(high) & (high > low)
    reached = float(rate[met].max(initial=0.0))
    return _Bracket(low, high, low_missed, high_missed, np.where(open_ended, possible, 0.0), reached)


def _refined(
    job: ServingJob, candidates: Deployments, estimates: ServingEstimates, bracket: _Bracket, slo: Slo, floor: float
) -> ServingEstimates:
    """The estimates with those at the highest load within the limits, which `bracket` closes in on."""
    distance = _DISTANCE
    for _ in range(_ROUNDS):
        wide = bracket.wide(floor)
        if not len(wide):
            break
        places, tried = _between(bracket, wide, distance)
        more = estimate(job, _with_clients(job, candidates.take(places), tried))
        met, missed, rate = _judged(job, more, slo)
        _close_in(bracket, places, tried, met, missed)
        bracket.reached = max(bracket.reached, float(rate[met].max(initial=0.0)))
        estimates = joined(estimates, more)
        distance *= _NEARER
    return estimates


def _between(bracket: _Bracket, wide: Ints, distance: float) -> tuple[Ints, Floats]:
    """(Deployments, loads to try of each): around where the limits would be met on a straight line, and half way."""
    low, high = bracket.low[wide], bracket.high[wide]
    before, beyond = bracket.low_missed[wide], bracket.high_missed[wide]
    part = np.where(np.isfinite(beyond), (1.0 - before) / np.maximum(beyond - before, 1e-9), 0.5)
    guess = low + (high - low) * np.clip(part, 0.0, 1.0)
    around = np.concatenate([guess * (1.0 + distance * _AROUND), 0.5 * (low + high)[None]])
    tried = np.clip(np.round(around), low + 1.0, high - 1.0)
    pairs = np.unique(np.stack([np.broadcast_to(wide, tried.shape).ravel(), tried.ravel()]), axis=1)
    return pairs[0].astype(np.intp), pairs[1]


def _close_in(bracket: _Bracket, places: Ints, tried: Floats, met: np.ndarray, missed: Floats) -> None:
    before, beyond = bracket.low.copy(), bracket.high.copy()
    np.minimum.at(bracket.high, places[~met], tried[~met])
    # What meets the limits only above a load that does not is none that can be counted on.
    met = met & (tried < bracket.high[places])
    np.maximum.at(bracket.low, places[met], tried[met])
    for ends, old, values in (
        (bracket.low, before, bracket.low_missed), (bracket.high, beyond, bracket.high_missed),
    ):  # fmt: skip
        moved = (tried == ends[places]) & (ends != old)[places]
        values[places[moved]] = missed[moved]


def _with_clients(job: ServingJob, chosen: Deployments, load: Floats) -> Deployments:
    """Deployments for one client, under other loads; a benchmark's requests are as many times its clients."""
    run = chosen.requests if job.inference.requests is not None else chosen.requests * load
    return replace(chosen, concurrency=load, requests=run)
