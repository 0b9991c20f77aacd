"""Clients that wait for their answers and ask again: a closed network of two stations, one that reads prompts, one
after the other, and one in which all generate at once. It has a solution in closed form (Schweitzer 1979; Reiser and
Lavenberg 1980, mean value analysis). Arrays have shape (n,), times are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from estimator.plan.layouts import Floats
from estimator.plan.serving.deployments import Deployments
from estimator.plan.serving.job import ServingJob
from estimator.serving.cycle import (
    DEVIATIONS,
    FULL,
    ONE_IN,
    Cycle,
    Steady,
    cycle_of,
    generated_tokens,
    late_wait,
    looked_steps,
)


def closed(job: ServingJob, these: Deployments, most: Floats) -> Steady:
    """Clients that wait for their answers and ask again at once, the first ones together."""
    asking = np.minimum(these.concurrency, these.requests)
    lanes = np.clip(np.floor(asking), 1.0, these.lanes)
    clients, sent = np.maximum(1.0, asking / lanes), np.maximum(1.0, these.requests / lanes)
    held = np.minimum(clients, most)
    # Others that run when a request comes: their step is waited for.
    met = np.minimum(1.0, held - 1.0)
    generated = generated_tokens(these)
    cycle, inside, herd = _circulating(job, these, held, held, met)
    running = np.minimum(cycle.running[0], _generating(these, cycle, inside, held))
    cycle, inside, herd = _circulating(job, these, running, held, met)
    running = np.minimum(cycle.running[0], _generating(these, cycle, inside, held))
    step, quiet, decode = cycle.step[0], cycle.quiet[0], generated * cycle.step[0]
    # Of the requests that come together each waits for those before it, and those for all behind them.
    first = 0.5 * (held - cycle.together[0]).clip(0.0) * cycle.burst[0] + cycle.together[0] * cycle.burst[0]
    together = _share_together(these, held * lanes)
    rate = held / (inside + decode)
    at_once = these.concurrency >= these.requests
    outside = _placeless(clients, most) / rate * np.where(at_once, 0.5, 1.0)
    behind = inside + herd.wait
    more = np.maximum(0.0, first - behind) * together
    request = job.request_s(met)
    ttft = behind + outside + more + request
    late = _late_first(job, these, cycle, herd, held, rate, together)
    # Who waits until all of a herd are read does not wait for them again while it generates.
    bunched = np.maximum(together, herd.share)
    quieter = -0.5 * bunched * _met_by_all(job, these, cycle, held) * (step - quiet)
    tpot = step + quieter
    answered = _answered(these, cycle, (clients, request), held / (inside + decode + request), rate)
    ends = _ends(job, these, running, held, step)
    total = 1.0 / (1.0 / answered + ends / sent)
    return Steady(
        running=running,
        tpot_s=tpot,
        ttft_s=ttft,
        ttft_p99_s=np.maximum(late + _LATEST * np.where(at_once, outside, 0.5 * outside), ttft),
        tpot_p99_s=_slow_tokens(these, cycle, tpot),
        e2e_s=ttft + generated * tpot,
        requests_per_s=total * lanes,
        reading_share=cycle.share[0],
        saturated=np.zeros(len(these), dtype=bool),
        generating=cycle.generating.part(0),
        reading=cycle.reading.part(0),
        sent=held,
        ttft={
            "reading": cycle.read[0],
            "queue": behind - cycle.read[0],
            "place": outside,
            "together": more,
            "request": request,
        },
        tpot={"step": step, "quieter": quieter},
        cycle={
            "first_token": inside,
            "generating": decode,
            "request": np.where(np.isfinite(clients), request, 0.0),
            "ends": ends / sent * held,
        },
    )


# Part of all requests below which those that came together do not show in the slowest of a hundred.
_RARE = 0.01

# The 99th percentile of waits that grow evenly from none, over their mean.
_LATEST = 2.0 * (1.0 - 1.0 / ONE_IN)


def _met_by_all(job: ServingJob, these: Deployments, cycle: Cycle, held: Floats) -> Floats:
    """Part of the steps in which a herd is read that an answer can last through: where it is shorter, most of its steps
    read prompts, however long that goes on. Where prompts stop generation, it lasts through all."""
    if not job.mixes:
        return np.ones(len(these))
    steps = generated_tokens(these) / np.maximum(1.0, job.tokens_per_step)
    return np.minimum(1.0, steps * cycle.together[0] / held)


def _slow_tokens(these: Deployments, cycle: Cycle, tpot: Floats) -> Floats:
    """Time per token of the slowest answer in a hundred: those that more prompts of others interrupt than is usual.

    These come one by one (Poisson), and no step of an answer can be longer than one that reads.
    """
    tokens, share = generated_tokens(these), np.minimum(cycle.share[0], 1.0)
    stall = (cycle.step[0] - cycle.quiet[0]) / np.maximum(cycle.share[0], 1e-9)
    more = DEVIATIONS * np.maximum(stall, 0.0) * np.sqrt(share / tokens)
    return tpot + np.minimum(more, np.maximum(0.0, cycle.quiet[0] + stall - tpot))


def _placeless(clients: Floats, most: Floats) -> Floats:
    """Requests that find no place and wait for one: each for all others that do, or for half of them where they all
    came at once and no more come. Of requests without an end no wait can be said."""
    return np.where(np.isfinite(clients), np.maximum(0.0, clients - most), 0.0)


def _answered(
    these: Deployments, cycle: Cycle, asking: tuple[Floats, Floats], asked: Floats, endless: Floats
) -> Floats:
    """Requests per second of a lane: as clients ask again (so many, seconds of a request's way), or as it can where
    there is no end of them. Where prompts are only read, as many as there are fill every step."""
    clients, request = asking
    reads = np.minimum(1.0 / cycle.burst[0], clients / (cycle.read[0] + request))
    return np.where(these.output_len > 1.0, np.where(np.isfinite(clients), asked, endless), reads)


def _late_first(
    job: ServingJob, these: Deployments, cycle: Cycle, herd: _Herd, held: Floats, rate: Floats, together: Floats
) -> Floats:
    """Seconds to the first token that one request in a hundred exceeds once it has a place: behind a queue with its
    tail, behind all of a herd, or behind those that came first."""
    service, met = cycle.service[0], np.minimum(1.0, held - 1.0)
    request = job.request_s(met)
    alone = cycle.read[0] + looked_steps(job, these, met) * cycle.step[0] + request
    used = np.minimum(FULL, rate * service)
    queue = np.minimum(late_wait(used, service) * job.factors.clumped, (held - 1.0) * service)
    late = alone + np.maximum(queue, _LATEST * np.maximum(herd.wait, 0.0))
    return np.where(together > _RARE, np.maximum(late, held * cycle.burst[0] + request), late)


@dataclass(frozen=True)
class _Herd:
    """Requests that keep together because their answers end nearly at once. `share` is 1 where all do so and prompts
    stop generation, and 0 where none does; `wait` are the seconds that they wait for each other, which cost no one else
    any time. Shape (n,)."""

    share: Floats
    wait: Floats


def _circulating(
    job: ServingJob, these: Deployments, running: Floats, held: Floats, met: Floats
) -> tuple[Cycle, Floats, _Herd]:
    """The cycle of a lane in which `running` of its `held` requests generate, seconds from a request to its first token
    while requests come one by one, and how far they do not.

    Prompts of one length wait half as long for each other as at random (M/D/1). Where prompts stop generation, those
    that started together go on together: they end within the spread of their answers (uniform, so sqrt 12 standard
    deviations wide), and all wait until the last is read.
    """
    cycle = cycle_of(job, these, np.maximum(running, 1.0)[None, :], held[None, :], (held - 1.0) / held)
    step, service, burst = cycle.step[0], cycle.service[0], cycle.burst[0]
    away = generated_tokens(these) * step
    queued = _closed_wait(held, away, service) - service
    # What a station that is never empty makes wait, however requests come.
    full = np.maximum(0.0, (held - 1.0) * service - away)
    looked = looked_steps(job, these, met) * step
    alone = full + 0.5 * (queued - full) * job.factors.clumped + cycle.read[0] + looked
    none = np.zeros(len(these))
    if job.mixes or job.inference.output_spread is None:
        return cycle, alone, _Herd(none, none)
    width = _UNIFORM_WIDTH * job.output_spread * away
    share = held * burst / np.maximum(held * burst + width, np.finfo(np.float64).tiny)
    wait = 0.5 * (_closed_wait(held, width, burst) - burst)
    apart = cycle.read[0] + looked + (1.0 - share) * (alone - cycle.read[0] - looked)
    return cycle, apart, _Herd(share, share * wait)


# Width of a uniform distribution over its standard deviation (definition).
_UNIFORM_WIDTH = 12.0**0.5


def _generating(these: Deployments, cycle: Cycle, inside: Floats, held: Floats) -> Floats:
    """Sequences that generate, of `held` that do so or wait for their first token (Little's law)."""
    decode = generated_tokens(these) * cycle.step[0]
    return held * decode / (decode + inside)


def _share_together(these: Deployments, held: Floats) -> Floats:
    """Part of the requests that come when all others do: the `held` first ones of a run."""
    together = np.minimum(these.concurrency, held) / these.requests
    return np.where(np.isfinite(these.requests), np.minimum(1.0, together), 0.0)


# The longest of thousands of answers is so many standard deviations beyond the mean.
_LONGEST = 3.5

# Part of the sequences at which a step is looked at once more, to tell what does not shrink with them.
_FEW = 0.125


def _ends(job: ServingJob, these: Deployments, running: Floats, held: Floats, step: Floats) -> Floats:
    """Seconds that a run takes longer because lanes run empty at its end, the longer the more the answers differ.

    What the last answers have left, (1 + spread^2) / 2 of a mean one each, is work as any. Above that counts the part
    of a step that does not shrink with its sequences, for as long as the longest answer lasts beyond that mean.
    """
    spread = job.output_spread
    if spread == 0.0:
        return np.zeros(len(these))
    few = np.maximum(1.0, _FEW * running)
    less = cycle_of(job, these, few[None, :], held[None, :]).quiet[0]
    share = few / np.maximum(running, 1e-9)
    fixed = np.clip((less - share * step) / np.maximum(1.0 - share, 1e-9), 0.0, less)
    fixed = np.where(share < 1.0, fixed, step)
    beyond = np.maximum(0.0, 1.0 + _LONGEST * spread - 0.5 * (1.0 + spread**2))
    return fixed * beyond * generated_tokens(these)


def _closed_wait(clients: Floats, away: Floats, service: Floats) -> Floats:
    """Seconds at a station that serves one at a time for `service` seconds; `clients` come back after `away`."""
    slack = away - service * clients
    return 0.5 * (-slack + np.sqrt(slack * slack + 4.0 * service * away))
