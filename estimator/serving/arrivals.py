"""Requests that come at a rate, whoever waits: they wait as at one server with fixed service (M/D/1, Kleinrock 1975,
section 5.7). Arrays have shape (n,), times are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from estimator.plan.layouts import Floats, Ints
from estimator.plan.serving.deployments import Deployments
from estimator.plan.serving.job import ServingJob
from estimator.serving.clients import closed
from estimator.serving.cycle import (
    DEVIATIONS,
    FULL,
    ONE_IN,
    Steady,
    cycle_of,
    generated_tokens,
    late_wait,
    looked_steps,
)
from estimator.units import MS_PER_S

# Loads of a lane at which a request rate is solved for, from one sequence to the most.
_POINTS = 16


@dataclass(frozen=True)
class Loads:
    """A lane of each deployment that runs `most` sequences at once and answers `capacity` requests per second where
    there is no end of them (shape (n,)), under several loads, whatever the rate of requests and the number of replicas:
    sequences `grid`, requests per second `rates`, and of `Cycle` what limits of latency are held to; arrays of shape
    (k, n)."""

    most: Floats
    capacity: Floats
    grid: Floats
    rates: Floats
    running: Floats
    step: Floats
    service: Floats
    read: Floats

    def take(self, index: Ints) -> Loads:
        """The deployments that `index` selects."""
        return Loads(*[getattr(self, part.name)[..., index] for part in fields(Loads)])


def loads(job: ServingJob, these: Deployments, most: Floats) -> Loads:
    """From one sequence to the most, in equal ratios."""
    finite = np.maximum(1.0, np.where(np.isfinite(most), most, _ENDLESS))
    ever = np.full(len(these), np.inf)
    endless = replace(these, concurrency=ever, requests=ever, replicas=np.ones(len(these)))
    capacity = closed(job, endless, finite).requests_per_s / endless.lanes
    return _under(job, these, (most, capacity), finite ** (np.arange(_POINTS)[:, None] / (_POINTS - 1.0)))


def _under(job: ServingJob, these: Deployments, most: tuple[Floats, Floats], grid: Floats) -> Loads:
    """Of lanes with `most` sequences at once and requests per second."""
    served = cycle_of(job, these, grid, grid, -np.expm1(-grid))
    # What a lane can do under a load, it can under any larger one.
    rates = np.maximum.accumulate(served.running / (generated_tokens(these) * served.step), axis=0)
    return Loads(*most, grid, np.minimum(rates, most[1]), served.running, served.step, served.service, served.read)


def _highest_rate(job: ServingJob, these: Deployments, known: Loads) -> tuple[Floats, Loads]:
    """The highest rate of a lane that meets the limits of latency of the plan, and the loads next to it."""
    grid, every = known.grid, np.arange(len(these))
    best = _within_limits(job, these, known, known)
    # Between the last load that meets them and the next one, as many loads again.
    low, high = grid[best, every], grid[np.minimum(best + 1, _POINTS - 1), every]
    between = low * (high / low) ** (np.arange(_POINTS)[:, None] / (_POINTS - 1.0))
    finer = _under(job, these, (known.most, known.capacity), between)
    return finer.rates[_within_limits(job, these, finer, known), every], finer


def open_loop(job: ServingJob, these: Deployments, known: Loads) -> Steady:
    """Requests at random with the rate of each deployment; where that is nan, with the highest that meets the limits of
    latency of the plan."""
    generated = generated_tokens(these)
    rates = known.rates
    top = rates[-1]
    rate = these.request_rate / these.lanes
    solved, near = np.isnan(rate), known
    if solved.any():
        highest, near = _highest_rate(job, these, known)
        rate = np.where(solved, highest, rate)
    filled = _filled(these, known, rate)
    if solved.any():
        filled = np.where(solved & ~np.isfinite(these.requests), _filled(these, near, rate), filled)
    # A rate within the spread of what is estimated may well be served.
    saturated = rate > top * (1.0 + job.factors.throughput_spread)
    wanted = np.minimum(rate, top)
    # Below one sequence at a time each request is alone.
    running = np.where(wanted < rates[0], wanted * generated * known.step[0], filled)
    # A request meets others with the chance that there are any (Poisson arrivals see time averages).
    met = -np.expm1(-running)
    # As many as run while any does.
    at_least = np.maximum(1.0, running / np.maximum(met, np.finfo(np.float64).tiny))[None, :]
    cycle = cycle_of(job, these, at_least, at_least, met)
    # Prompts that come while a step runs are read in the next one together, beside what generates.
    step, service = cycle.step[0], cycle.burst[0] if job.mixes else cycle.service[0]
    used = np.minimum(FULL, wanted * service)
    waits = _queue(used, service) * job.factors.clumped
    turns, last = _turns(these, known.most)
    # Behind a rate that cannot be served each turn of as many as run at once starts later than it came.
    later = np.maximum(0.0, cycle.read[0] + generated * step - known.most / rate)
    later = np.where((rate > top) & (saturated | np.isfinite(these.requests)), later, 0.0)
    backlog = turns * later
    request = job.request_s(met)
    alone = cycle.read[0] + looked_steps(job, these, met) * step + request
    ttft = waits + alone + backlog
    return Steady(
        running=running,
        tpot_s=step,
        ttft_s=ttft,
        ttft_p99_s=np.maximum(ttft, late_wait(used, service) + alone + last * later),
        tpot_p99_s=np.maximum(step, _crowded_step(known, at_least)[0]),
        e2e_s=ttft + generated * step,
        requests_per_s=wanted * these.lanes,
        reading_share=cycle.share[0],
        saturated=saturated,
        generating=cycle.generating.part(0),
        reading=cycle.reading.part(0),
        sent=running,
        ttft={
            "reading": alone - request,
            "queue": waits,
            "request": request,
            "backlog": backlog,
        },
        tpot={"step": step},
    )


def _filled(these: Deployments, known: Loads, rate: Floats) -> Floats:
    """Sequences of a lane that generate beside a request, where requests come at `rate`; shape (n,).

    In a run with an end a lane need not fill up to what the rate would come to: what runs grows while requests come,
    for no longer than an answer lasts, and falls after the last one has come. What is met is its mean over what runs.
    """
    lasts, whole = known.running / known.rates, _comes_for(these, rate)
    part = np.minimum(lasts / whole, 1.0)
    met = np.where(part < 1.0, 1.0 - part / 3.0, np.minimum(whole / lasts, 1.0) * (1.0 - whole / (3.0 * lasts)))
    # More run and each lasts longer, so that what is wanted falls while what can be answered rises.
    gaps = np.log(known.rates) - np.log(rate * met)
    places = np.arange(len(gaps), dtype=np.float64)
    ends = np.array([np.interp(0.0, gaps[:, i], places) for i in range(len(these))])
    return known.grid[0] * (known.grid[-1] / known.grid[0]) ** (ends / (len(gaps) - 1.0))


def _comes_for(these: Deployments, rate: Floats) -> Floats:
    """Seconds in which the requests of a run come to a lane at `rate`."""
    return np.where(np.isfinite(these.requests), these.requests / these.lanes / rate, np.inf)


# Sequences of a lane whose cache does not grow.
_ENDLESS = 4096.0

# Requests behind which a rate that cannot be served is looked at, where the run has no end.
_UNENDING = 10_000.0


def _crowd(running: Floats) -> Floats:
    """Sequences that run at once for one in a hundred requests, where they come at random (Poisson)."""
    return running + DEVIATIONS * np.sqrt(running)


def _turns(these: Deployments, most: Floats) -> tuple[Floats, Floats]:
    """Turns of `most` requests before that of a request of the run, in the mean and for the last in a hundred."""
    sent = np.where(np.isfinite(these.requests), these.requests, _UNENDING) / these.lanes
    turns = sent / most
    whole = np.floor(turns)
    # Of a run that is a part of a turn, however small, none is waited for.
    mean = (0.5 * whole * (whole - 1.0) + whole * (turns - whole)) / np.maximum(turns, 1.0)
    return mean, np.floor((1.0 - 1.0 / ONE_IN) * turns)


def _queue(used: Floats, service: Floats) -> Floats:
    """Mean seconds in the queue of a server that is busy for `used` of its time (Pollaczek and Khinchine)."""
    return used * service / (2.0 * (1.0 - used))


def _crowded_step(known: Loads, running: Floats) -> Floats:
    """Seconds of a step for one in a hundred requests where `running` run in the mean, shape (k, n): between the loads
    that are known, which stand in equal ratios."""
    count = len(known.grid)
    ratio = np.log(np.maximum(known.grid[-1] / known.grid[0], 1.0 + 1e-9)) / (count - 1.0)
    places = np.clip(np.log(_crowd(running) / known.grid[0]) / ratio, 0.0, count - 1.0 - 1e-9)
    low, columns = places.astype(np.intp), np.arange(known.grid.shape[1])
    part = places - low
    return (1.0 - part) * known.step[low, columns] + part * known.step[low + 1, columns]


def _within_limits(job: ServingJob, these: Deployments, known: Loads, usual: Loads) -> Ints:
    """Which of the loads `known`, ascending, is the last at which no more than one in a hundred requests misses the
    plan's limits; the first one where none is. Shape (n,). `usual` are the loads from one sequence to the most."""
    first, each = job.inference.ttft_slo_ms, job.inference.tpot_slo_ms
    used = np.minimum(FULL, known.rates * known.service)
    met = np.ones(known.rates.shape, dtype=bool)
    if each is not None:
        met &= _crowded_step(usual, known.grid) <= each / MS_PER_S
    if first is not None:
        others = -np.expm1(-known.running)
        looked = looked_steps(job, these, others) * known.step
        met &= late_wait(used, known.service) + known.read + looked + job.request_s(others) <= first / MS_PER_S
    # Only below the first point that misses them.
    return np.maximum(0, np.logical_and.accumulate(met, axis=0).sum(axis=0) - 1)
