"""Under which load each deployment does best where a question leaves that open: up to the limits of latency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from estimator.plan.layouts import Floats, Ints
from estimator.plan.serving.deployments import Deployments
from estimator.plan.serving.job import ServingJob
from estimator.serving.estimates import ServingEstimates, estimate, joined, most_running
from estimator.serving.memory import serving_memory
from planner.serving.pool import Slo, pool_of

_MOST_CLIENTS = 2.0**20
# Ratio of the loads that are tried; between two coarse ones the highest within the limits is found, to a part in
# _EXACTLY where it is no whole number of requests less.
_FINE, _COARSE = 2.0, 8.0
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
    both miss them, and output tokens/s per device at both; the most of any that meets them is `reached`."""

    low: Floats
    high: Floats
    low_missed: Floats
    high_missed: Floats
    low_rate: Floats
    high_rate: Floats
    reached: float = field(default=0.0, init=False)

    @property
    def possible(self) -> Floats:
        """The most output tokens/s per device between the two ends; 0 where nothing is between. Throughput cannot grow
        faster than the load, and hardly falls with it."""
        between = (self.low > 0.0) & np.isfinite(self.high) & (self.high > self.low)
        grown = self.low_rate * self.high / np.maximum(self.low, 1.0)
        most = np.minimum(grown, np.maximum(self.low_rate, self.high_rate) * _FALLS)
        return np.where(between, most, 0.0)

    def wide(self, floor: float) -> Ints:
        """Those whose load is not known, and that may be better than `floor`."""
        apart = self.high - self.low > np.maximum(1.0, self.low / _EXACTLY)
        return np.flatnonzero(apart & (self.possible > max(floor, self.reached)))

    def close_in(self, places: Ints, load: Floats, met: np.ndarray, missed: Floats, rate: Floats) -> None:
        """Moves the ends to what was tried of the deployments at `places`."""
        before, beyond = self.low.copy(), self.high.copy()
        np.minimum.at(self.high, places[~met], load[~met])
        # What meets the limits only above a load that does not is none that can be counted on.
        met = met & (load < self.high[places])
        np.maximum.at(self.low, places[met], load[met])
        self.reached = max(self.reached, float(rate[met].max(initial=0.0)))
        for ends, old, misses, rates in (
            (self.low, before, self.low_missed, self.low_rate), (self.high, beyond, self.high_missed, self.high_rate),
        ):  # fmt: skip
            moved = (load == ends[places]) & (ends != old)[places]
            misses[places[moved]], rates[places[moved]] = missed[moved], rate[moved]


def under_loads(rows: Sequence[tuple[ServingJob, Deployments]], slo: Slo) -> list[ServingEstimates]:
    """Each deployment for one client under loads of 1, 2, 4 … a lane up to those that run at once, and these; where
    latency is limited in coarser steps, and those that may be the best of their accelerator, engine or format also at
    the highest load within the limits."""
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
    """(Estimates under one request for each lane, and that times the powers of a ratio, which deployment each is of):
    fewer wait as long, and leave lanes idle."""
    memory = serving_memory(job, candidates)
    lanes = np.minimum(_MOST_CLIENTS, candidates.lanes)
    most = np.minimum(_MOST_CLIENTS, np.maximum(1.0, most_running(job, candidates, memory) * lanes))
    powers = ratio ** np.arange(np.ceil(np.log2((most / lanes).max()) / np.log2(ratio)) + 1.0)
    which, power = np.meshgrid(np.arange(len(candidates)), powers)
    which = which.ravel()
    load = power.ravel() * lanes[which]
    # The first power beyond what runs at once stands for that itself.
    wanted = load < ratio * most[which]
    which, load = which[wanted], np.minimum(load[wanted], np.floor(most[which[wanted]]))
    return estimate(job, _with_clients(job, candidates.take(which), load)), which


def _judged(job: ServingJob, estimates: ServingEstimates, slo: Slo) -> tuple[np.ndarray, Floats, Floats]:
    """(Which meet the limits, by what factor they miss them, output tokens/s per device)."""
    pool = pool_of([(job, estimates, np.full(len(estimates.deployments), np.nan))])
    missed = np.where(pool.fits, pool.missed(slo), np.inf)
    return missed <= 1.0, missed, pool.per_device


def _bracket(job: ServingJob, estimates: ServingEstimates, slo: Slo, which: Ints, count: int) -> _Bracket:
    bracket = _Bracket(np.zeros(count), np.full(count, np.inf), *(np.zeros(count) for _ in range(4)))
    bracket.close_in(which, estimates.deployments.concurrency, *_judged(job, estimates, slo))
    return bracket


def _refined(
    job: ServingJob, candidates: Deployments, estimates: ServingEstimates, bracket: _Bracket, slo: Slo, floor: float
) -> ServingEstimates:
    """The estimates with those at the highest load within the limits, which `bracket` closes in on."""
    distance, parts = _DISTANCE, [estimates]
    for _ in range(_ROUNDS):
        wide = bracket.wide(floor)
        if not len(wide):
            break
        places, tried = _between(bracket, wide, distance)
        more = estimate(job, _with_clients(job, candidates.take(places), tried))
        bracket.close_in(places, tried, *_judged(job, more, slo))
        parts.append(more)
        distance *= _NEARER
    return joined(parts)


def _between(bracket: _Bracket, wide: Ints, distance: float) -> tuple[Ints, Floats]:
    """(Deployments, loads to try of each): around where the limits would be met on a straight line, and half way."""
    low, high = bracket.low[wide], bracket.high[wide]
    before, beyond = bracket.low_missed[wide], bracket.high_missed[wide]
    part = np.where(np.isfinite(beyond), (1.0 - before) / np.maximum(beyond - before, 1e-9), 0.5)
    guess = low + (high - low) * np.clip(part, 0.0, 1.0)
    around = np.concatenate([guess * (1.0 + distance * _AROUND), 0.5 * (low + high)[None]])
    tried = np.clip(np.round(around), low + 1.0, high - 1.0)
    # One number for both: pairs are sorted far more slowly.
    beyond = 2.0 * _MOST_CLIENTS
    places, loads = np.divmod(np.unique(wide * beyond + tried), beyond)
    return places.astype(np.intp), loads


def _with_clients(job: ServingJob, chosen: Deployments, load: Floats) -> Deployments:
    """Deployments for one client, under other loads; a benchmark's requests are as many times its clients."""
    run = chosen.requests if job.inference.requests is not None else chosen.requests * load
    return replace(chosen, concurrency=load, requests=run)
