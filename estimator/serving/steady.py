"""What continuous batching comes to: running sequences, time per token and to the first one, requests per second.

Sequences that generate take part in every step; prompts are read in pieces beside them, or in steps of their own
(Yu et al. 2022, Orca, section 4; Agrawal et al. 2024, Sarathi-Serve, section 4). A client waits for its answer and asks
again, so that requests go round between two stations: one that reads prompts, one after the other, and one in which all
generate at once. The closed network has a solution in closed form (Schweitzer 1979; Reiser and Lavenberg 1980, mean
value analysis). Requests that arrive at random wait as at one server with fixed service (M/D/1, Kleinrock 1975,
section 5.7). Arrays have shape (n,), times are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from estimator.plan.layouts import Floats, Ints
from estimator.plan.serving.deployments import Deployments
from estimator.plan.serving.job import ServingJob
from estimator.serving.passes import PassTime, pass_time
from estimator.units import MS_PER_S

# Loads of a lane at which a request rate is solved for, from one sequence to the most.
_POINTS = 16
# Sequences of a slot that generate, at the least, where prompts take nearly all of a step (guard).
_LEAST_GENERATING = 1e-3
# The slowest request of so many is what limits of latency are about (the 99th percentile).
_ONE_IN = 100.0


@dataclass(frozen=True)
class Steady:
    """What a lane comes to, arrays of shape (n,), rates over all lanes. `running` sequences generate at once;
    `reading_share` is how many steps that read prompts there are for each one that generates. `generating` and
    `reading` are those two kinds of pass. `saturated` is true where a request rate is more than can be served. `ttft`,
    `tpot` and `cycle` are the parts that time to first token, time per token, and the seconds between two answers to
    one of `sent` requests in a lane add up to (the last where clients wait for their answers)."""

    running: Floats
    tpot_s: Floats
    ttft_s: Floats
    ttft_p99_s: Floats
    tpot_p99_s: Floats
    e2e_s: Floats
    requests_per_s: Floats
    reading_share: Floats
    saturated: np.ndarray
    generating: PassTime
    reading: PassTime
    sent: Floats
    ttft: dict[str, Floats] = field(default_factory=dict)
    tpot: dict[str, Floats] = field(default_factory=dict)
    cycle: dict[str, Floats] = field(default_factory=dict)


@dataclass(frozen=True)
class _Cycle:
    """One lane with `running` sequences; arrays of shape (k, n).

    `step` is the mean time between two tokens of a sequence, `quiet` the same while no prompt is read. Of a prompt:
    `read` seconds for itself where it is read alone beside what runs, `service` what it keeps the next one waiting,
    `burst` the same where as many wait as fill a step, `together` of them. `share` is the part of the steps in which
    prompts are read.
    """

    running: Floats
    step: Floats
    quiet: Floats
    read: Floats
    service: Floats
    burst: Floats
    together: Floats
    share: Floats
    generating: PassTime
    reading: PassTime


@dataclass(frozen=True)
class Loads:
    """A lane of each deployment that runs `most` sequences at once (shape (n,)) under several loads, whatever the rate
    of requests and the number of replicas: sequences `grid`, requests per second `rates`, and of `_Cycle` what limits
    of latency are held to; arrays of shape (k, n)."""

    most: Floats
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
    return _under(job, these, most, finite ** (np.arange(_POINTS)[:, None] / (_POINTS - 1.0)))


def _under(job: ServingJob, these: Deployments, most: Floats, grid: Floats) -> Loads:
    served = _cycle(job, these, grid, grid, -np.expm1(-grid))
    # What a lane can do under a load, it can under any larger one.
    rates = np.maximum.accumulate(served.running / (_generated(these) * served.step), axis=0)
    return Loads(most, grid, rates, served.running, served.step, served.service, served.read)


def steady(job: ServingJob, these: Deployments, most: Floats, known: Loads | None = None) -> Steady:
    """The steady state of each deployment; a lane runs `most` sequences at once. `known` are the loads of these very
    deployments, where they are at hand."""
    if job.in_step:
        return _in_step(job, these, most)
    if not (these.request_rate == 0.0).any():
        same = known is not None and np.array_equal(known.most, most)
        return _open(job, these, known if known and same else loads(job, these, most))
    return _closed(job, these, most)


def _in_step(job: ServingJob, these: Deployments, most: Floats) -> Steady:
    """A batch that is read at once and then generates in step; the next one follows when all have ended."""
    cycle = _cycle(job, these, most[None, :], most[None, :])
    tpot = cycle.quiet[0]
    ttft = most * cycle.burst[0] + job.request_s
    decode = _generated(these) * tpot
    lanes = np.clip(np.floor(these.concurrency), 1.0, these.lanes)
    return Steady(
        running=most,
        tpot_s=tpot,
        ttft_s=ttft,
        ttft_p99_s=ttft,
        tpot_p99_s=tpot,
        e2e_s=ttft + decode,
        requests_per_s=most / (ttft + decode) * lanes,
        reading_share=np.zeros(len(these)),
        saturated=np.zeros(len(these), dtype=bool),
        generating=cycle.generating.part(0),
        reading=cycle.reading.part(0),
        sent=most,
        ttft={"reading": most * cycle.burst[0], "request": job.request_s + np.zeros(len(these))},
        tpot={"step": tpot},
        cycle={"first_token": ttft, "generating": decode},
    )


def _generated(these: Deployments) -> Floats:
    """Tokens of an answer that take a step each: the first one comes with the prompt."""
    return np.maximum(1.0, these.output_len - 1.0)


def _cycle(job: ServingJob, these: Deployments, running: Floats, held: Floats, others: Floats | float = 1.0) -> _Cycle:
    """`running` and `held` have shape (k, n): sequences that generate, and those that are in a lane at most. `others`
    is the part of the prompts that are another sequence's. A pipeline has one slot of sequences for each stage, as far
    as there are any."""
    slots = np.clip(running, 1.0, these.pp)
    each = running / slots
    made = np.maximum(1.0, job.tokens_per_step)
    context = job.mean_context(these.input_len, these.output_len)
    read = these.read_len
    # Prompt tokens that arrive while each sequence generates one token.
    due = others * each * made * read / _generated(these)
    if job.mixes:
        budget = np.maximum(1.0, these.max_tokens - each)
        each = np.where(due > budget, np.maximum(_LEAST_GENERATING, each * budget / np.maximum(due, 1e-9)), each)
        due = np.minimum(due, budget)
        piece = np.maximum(due, np.minimum(read, budget))
        beside = others * each
    else:
        budget = these.max_tokens + np.zeros_like(each)
        # As many prompts as come while all generate one token are read in one step.
        piece = np.minimum(budget, np.maximum(read, due))
        beside = np.zeros_like(each)
    full = np.minimum(budget, np.maximum(read, held / slots * read))
    passes = pass_time(
        job,
        these,
        np.concatenate([each, beside, 0.5 * beside]),
        np.concatenate([np.zeros_like(each), piece, full]),
        context,
    )
    count = len(each)
    generating, reading, crowded = (passes.part(slice(at * count, (at + 1) * count)) for at in range(3))
    # A draft is one layer for each of its tokens (multi-token prediction: DeepSeek-V3, section 2.2; EAGLE).
    drafting = generating.total * (job.checked_tokens - 1.0) / job.architecture.layers
    quiet, with_prompt = generating.total + drafting, reading.total + drafting
    stalls = with_prompt - quiet if job.mixes else with_prompt
    share = np.minimum(1.0, due / piece) if job.mixes else due / piece
    return _Cycle(
        running=each * slots,
        step=(quiet + share * stalls) / made,
        quiet=quiet / made,
        # The rest of a prompt that is a little longer than its pieces is read with others.
        read=np.maximum(1.0, read / piece) * with_prompt,
        service=with_prompt * read / piece / slots,
        burst=crowded.total * read / full / slots,
        together=np.maximum(1.0, full / read),
        share=share,
        generating=generating,
        reading=reading,
    )


def _closed(job: ServingJob, these: Deployments, most: Floats) -> Steady:
    """Clients that wait for their answers and ask again at once, the first ones together."""
    asking = np.minimum(these.concurrency, these.requests)
    lanes = np.clip(np.floor(asking), 1.0, these.lanes)
    clients, sent = np.maximum(1.0, asking / lanes), np.maximum(1.0, these.requests / lanes)
    held = np.minimum(clients, most)
    # Others that run when a request comes: their step is waited for.
    met = np.minimum(1.0, held - 1.0)
    generated = _generated(these)
    cycle, inside = _circulating(job, these, held, held, met)
    running = np.minimum(cycle.running[0], _generating(these, cycle, inside, held))
    cycle, inside = _circulating(job, these, running, held, met)
    running = np.minimum(cycle.running[0], _generating(these, cycle, inside, held))
    step, quiet, decode = cycle.step[0], cycle.quiet[0], generated * cycle.step[0]
    # Of the requests that come together each waits for those before it, and those for all behind them.
    first = 0.5 * (held - cycle.together[0]).clip(0.0) * cycle.burst[0] + cycle.together[0] * cycle.burst[0]
    first = np.maximum(first, inside)
    together = _share_together(job, these, held * lanes)
    rate = held / (inside + decode)
    # Requests that find no place wait for one: each for all others that do, or for half of them where they all came at
    # once and no more come. Of requests without an end no wait can be said.
    waiting = np.where(np.isfinite(clients), np.maximum(0.0, clients - most), 0.0)
    outside = waiting / rate * np.where(these.concurrency >= these.requests, 0.5, 1.0)
    ttft = inside + outside + (first - inside) * together + job.request_s
    tpot = step - 0.5 * together * (step - quiet)
    total = np.where(np.isfinite(clients), held / (inside + decode + job.request_s), rate)
    # Where prompts are only read, as many as there are fill every step.
    reads = np.minimum(1.0 / cycle.burst[0], clients / (cycle.read[0] + job.request_s))
    total = np.where(these.output_len > 1.0, total, reads)
    ends = _ends(job, these, running, held, step)
    total = 1.0 / (1.0 / total + ends / sent)
    return Steady(
        running=running,
        tpot_s=tpot,
        ttft_s=ttft,
        ttft_p99_s=np.maximum(_TTFT_P99 * ttft, 2.0 * first * (together > _RARE)),
        tpot_p99_s=_TPOT_P99_CLOSED * tpot,
        e2e_s=ttft + generated * tpot,
        requests_per_s=total * lanes,
        reading_share=cycle.share[0],
        saturated=np.zeros(len(these), dtype=bool),
        generating=cycle.generating.part(0),
        reading=cycle.reading.part(0),
        sent=held,
        ttft={
            "reading": cycle.read[0],
            "queue": inside - cycle.read[0],
            "place": outside,
            "together": (first - inside) * together,
            "request": job.request_s + np.zeros(len(these)),
        },
        tpot={"step": step, "quieter": -0.5 * together * (step - quiet)},
        cycle={
            "first_token": inside,
            "generating": decode,
            "request": np.where(np.isfinite(clients), job.request_s, 0.0),
            "ends": ends / sent * held,
        },
    )


# Time to the first token of the slowest in a hundred requests over the mean, where requests that come together are too
# few to be among them: an assumption. It is 1 where no wait differs from another, ln 100 = 4.6 where all of it is a
# wait with an exponential tail. No runs are known that print both figures for such a load: in nine of ten of GLM-5,
# MiniMax-M2.5 and Qwen3.5 the 99th percentile is 1.3 to 7.6 times the median, but a tenth of their requests come
# together (113 runs; SemiAnalysisAI, InferenceX, experimental/token_position_decode_slo, 2026).
_TTFT_P99 = 1.5
# Part of all requests below which those that came together do not show in the slowest of a hundred.
_RARE = 0.01
# Time per token of the slowest in a hundred requests over the mean, where clients wait for answers: an assumption. It
# is 1.0 to 1.2 in 44 runs of vLLM on processors (BudEcosystem, simulator, research/cpu_calibration_data, 2026), more
# in those that are named above (1.3 to 2.8 of the median in half of them, with speculative decoding).
_TPOT_P99_CLOSED = 1.15


def _circulating(
    job: ServingJob, these: Deployments, running: Floats, held: Floats, met: Floats
) -> tuple[_Cycle, Floats]:
    """The cycle of a lane in which `running` of its `held` requests generate, and seconds from a request to its first
    token while requests come one by one."""
    cycle = _cycle(job, these, np.maximum(running, 1.0)[None, :], held[None, :], (held - 1.0) / held)
    step, service = cycle.step[0], cycle.service[0]
    away = _generated(these) * step
    queued = _closed_wait(held, away, service) - service
    # What a station that is never empty makes wait, however requests come.
    full = np.maximum(0.0, (held - 1.0) * service - away)
    looked = (0.5 * met * job.inference.admission_steps + _balanced_steps(job, these)) * step
    return cycle, full + (queued - full) * job.factors.clumped + cycle.read[0] + looked


def _balanced_steps(job: ServingJob, these: Deployments) -> Floats:
    """Steps that a prompt waits for others, so that all lanes that share experts read at once."""
    return np.where(these.dp > 1.0, job.engine.balance_steps, 0.0)


def _generating(these: Deployments, cycle: _Cycle, inside: Floats, held: Floats) -> Floats:
    """Sequences that generate, of `held` that do so or wait for their first token (Little's law)."""
    decode = _generated(these) * cycle.step[0]
    return held * decode / (decode + inside)


def _share_together(job: ServingJob, these: Deployments, held: Floats) -> Floats:
    """Part of the requests that come when all others do: the `held` first ones of a run, or all in lock step."""
    if job.lock_step:
        return np.ones(len(these))
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
    less = _cycle(job, these, few[None, :], held[None, :]).quiet[0]
    share = few / np.maximum(running, 1e-9)
    fixed = np.clip((less - share * step) / np.maximum(1.0 - share, 1e-9), 0.0, less)
    fixed = np.where(share < 1.0, fixed, step)
    beyond = np.maximum(0.0, 1.0 + _LONGEST * spread - 0.5 * (1.0 + spread**2))
    return fixed * beyond * _generated(these)


def _closed_wait(clients: Floats, away: Floats, service: Floats) -> Floats:
    """Seconds at a station that serves one at a time for `service` seconds; `clients` come back after `away`."""
    slack = away - service * clients
    return 0.5 * (-slack + np.sqrt(slack * slack + 4.0 * service * away))


def _highest_rate(job: ServingJob, these: Deployments, known: Loads) -> Floats:
    """The highest rate of a lane that meets the limits of latency of the plan."""
    grid, every = known.grid, np.arange(len(these))
    best = _within_limits(job, these, known)
    # Between the last load that meets them and the next one, as many loads again.
    low, high = grid[best, every], grid[np.minimum(best + 1, _POINTS - 1), every]
    finer = _under(job, these, known.most, low * (high / low) ** (np.arange(_POINTS)[:, None] / (_POINTS - 1.0)))
    return finer.rates[_within_limits(job, these, finer), every]


def _open(job: ServingJob, these: Deployments, known: Loads) -> Steady:
    """Requests at random with the rate of each deployment; where that is nan, with the highest that meets the limits of
    latency of the plan."""
    generated = _generated(these)
    grid, rates = known.grid, known.rates
    top = rates[-1]
    rate = these.request_rate / these.lanes
    if np.isnan(rate).any():
        rate = np.where(np.isnan(rate), _highest_rate(job, these, known), rate)
    # A rate within the spread of what is estimated may well be served.
    saturated = rate > top * (1.0 + job.factors.throughput_spread)
    wanted = np.minimum(rate, top)
    running = np.array([np.interp(wanted[i], rates[:, i], grid[:, i]) for i in range(len(these))])
    # Below one sequence at a time each request is alone.
    running = np.where(wanted < rates[0], wanted * generated * known.step[0], running)
    at_least = np.maximum(running, 1.0)[None, :]
    # A request meets others with the chance that there are any (Poisson arrivals see time averages).
    met = -np.expm1(-running)
    cycle = _cycle(job, these, at_least, at_least, met)
    step, service = cycle.step[0], cycle.service[0]
    used = np.minimum(_FULL, wanted * service)
    waits = _queue(used, service) * job.factors.clumped
    # Behind a rate that cannot be served the queue grows all through the run.
    backlog = np.zeros(len(these))
    if saturated.any():
        sent = np.where(np.isfinite(these.requests), these.requests, _UNENDING) / these.lanes
        backlog = np.where(saturated, 0.5 * sent * (1.0 / top - 1.0 / rate), 0.0)
    looked = 0.5 * met * job.inference.admission_steps + _balanced_steps(job, these)
    alone = cycle.read[0] + looked * step + job.request_s
    ttft = waits + alone + backlog
    return Steady(
        running=running,
        tpot_s=step,
        ttft_s=ttft,
        ttft_p99_s=np.maximum(ttft, _late(used, service) + alone + 2.0 * backlog),
        tpot_p99_s=_TPOT_P99 * step,
        e2e_s=ttft + generated * step,
        requests_per_s=wanted * these.lanes,
        reading_share=cycle.share[0],
        saturated=saturated,
        generating=cycle.generating.part(0),
        reading=cycle.reading.part(0),
        sent=running,
        ttft={
            "reading": alone - job.request_s,
            "queue": waits,
            "request": job.request_s + np.zeros(len(these)),
            "backlog": backlog,
        },
        tpot={"step": step},
    )


# Sequences of a lane whose cache does not grow.
_ENDLESS = 4096.0
# Requests behind which a rate that cannot be served is looked at, where the run has no end.
_UNENDING = 10_000.0
# Part of its time that a station can be busy before the queue has no end.
_FULL = 0.95
# Time per token of the slowest in a hundred requests over the mean, as requests come at random: an assumption. It is
# 1.13 and 1.73 in two runs of vLLM with 300 conversations of ShareGPT at nominally ten a second, the latter beyond what
# could be served (casys-kaist, LLMServingSim, bench/examples, 2026).
_TPOT_P99 = 1.3


def _queue(used: Floats, service: Floats) -> Floats:
    """Mean seconds in the queue of a server that is busy for `used` of its time (Pollaczek and Khinchine)."""
    return used * service / (2.0 * (1.0 - used))


def _late(used: Floats, service: Floats) -> Floats:
    """Seconds in that queue that one in a hundred exceeds (exponential tail of the same mean)."""
    return np.maximum(0.0, np.log(_ONE_IN * np.maximum(used, 1e-9))) * service / (2.0 * (1.0 - used))


def _within_limits(job: ServingJob, these: Deployments, known: Loads) -> Ints:
    """Which of the loads, ascending, is the last at which no more than one in a hundred requests misses the plan's
    limits; the first one where none is. Shape (n,)."""
    first, each = job.inference.ttft_slo_ms, job.inference.tpot_slo_ms
    used = np.minimum(_FULL, known.rates * known.service)
    met = np.ones(known.rates.shape, dtype=bool)
    if each is not None:
        met &= _TPOT_P99 * known.step <= each / MS_PER_S
    if first is not None:
        looked = 0.5 * -np.expm1(-known.running) * job.inference.admission_steps + _balanced_steps(job, these)
        looked = looked * known.step
        met &= _late(used, known.service) + known.read + looked + job.request_s <= first / MS_PER_S
    # Only below the first point that misses them.
    return np.maximum(0, np.logical_and.accumulate(met, axis=0).sum(axis=0) - 1)
