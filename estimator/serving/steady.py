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
    share = np.minimum(1.0, due / piece) if job.mixes else due / piece
    reading_steps, lanes = _reading_steps(job, these, share)
    passes = pass_time(
        job,
        these,
        np.concatenate([each, beside, 0.5 * beside]),
        np.concatenate([np.zeros_like(each), piece, full]),
        context,
        np.concatenate([np.ones_like(each), lanes, np.ones_like(each)]),
    )
    count = len(each)
    generating, reading, crowded = (passes.part(slice(at * count, (at + 1) * count)) for at in range(3))
    # A draft is one layer for each of its tokens (multi-token prediction: DeepSeek-V3, section 2.2; EAGLE).
    drafting = generating.total * (job.checked_tokens - 1.0) / job.architecture.layers
    quiet, with_prompt = generating.total + drafting, reading.total + drafting
    stalls = with_prompt - quiet if job.mixes else with_prompt
    return _Cycle(
        running=each * slots,
        step=(quiet + reading_steps * stalls) / made,
        quiet=quiet / made,
        # The rest of a prompt that is a little longer than its pieces is read with others.
        read=np.maximum(1.0, read / piece) * with_prompt,
        service=with_prompt * read / piece / slots,
        burst=crowded.total * read / full / slots,
        together=np.maximum(1.0, full / read),
        share=reading_steps,
        generating=generating,
        reading=reading,
    )


def _reading_steps(job: ServingJob, these: Deployments, share: Floats) -> tuple[Floats, Floats]:
    """(Part of the steps in which any lane reads a prompt, part of the lanes that do so in these) where each lane reads
    in `share` of its own.

    Lanes that share experts step together, so that one with a prompt makes all others wait, unless prompts are held
    back until all lanes have one.
    """
    if not job.mixes or job.balances_lanes:
        return share, np.ones_like(share)
    met = -np.expm1(these.dp * np.log1p(-np.minimum(share, 1.0 - 1e-9)))
    return met, share / np.maximum(met, 1e-9)


def _closed(job: ServingJob, these: Deployments, most: Floats) -> Steady:
    """Clients that wait for their answers and ask again at once, the first ones together."""
    asking = np.minimum(these.concurrency, these.requests)
    lanes = np.clip(np.floor(asking), 1.0, these.lanes)
    clients, sent = np.maximum(1.0, asking / lanes), np.maximum(1.0, these.requests / lanes)
    held = np.minimum(clients, most)
    # Others that run when a request comes: their step is waited for.
    met = np.minimum(1.0, held - 1.0)
    generated = _generated(these)
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
    ttft = behind + outside + more + job.request_s
    late = _late_first(job, these, cycle, herd, held, rate, together)
    # Who waits until all of a herd are read does not wait for them again while it generates.
    bunched = np.maximum(together, herd.share)
    quieter = -0.5 * bunched * _met_by_all(job, these, cycle, held) * (step - quiet)
    tpot = step + quieter
    answered = _answered(job, these, cycle, clients, held / (inside + decode + job.request_s), rate)
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
            "request": job.request_s + np.zeros(len(these)),
        },
        tpot={"step": step, "quieter": quieter},
        cycle={
            "first_token": inside,
            "generating": decode,
            "request": np.where(np.isfinite(clients), job.request_s, 0.0),
            "ends": ends / sent * held,
        },
    )


# Part of all requests below which those that came together do not show in the slowest of a hundred.
_RARE = 0.01
# The 99th percentile of waits that grow evenly from none, over their mean.
_LATEST = 2.0 * (1.0 - 1.0 / _ONE_IN)
# Standard deviations that one in a hundred exceeds (normal distribution).
_DEVIATIONS = 2.326


def _met_by_all(job: ServingJob, these: Deployments, cycle: _Cycle, held: Floats) -> Floats:
    """Part of the steps in which a herd is read that an answer can last through: where it is shorter, most of its steps
    read prompts, however long that goes on. Where prompts stop generation, it lasts through all."""
    if not job.mixes:
        return np.ones(len(these))
    steps = _generated(these) / np.maximum(1.0, job.tokens_per_step)
    return np.minimum(1.0, steps * cycle.together[0] / held)


def _slow_tokens(these: Deployments, cycle: _Cycle, tpot: Floats) -> Floats:
    """Time per token of the slowest answer in a hundred: those that more prompts of others interrupt than is usual.

    These come one by one (Poisson), and no step of an answer can be longer than one that reads.
    """
    tokens, share = _generated(these), np.minimum(cycle.share[0], 1.0)
    stall = (cycle.step[0] - cycle.quiet[0]) / np.maximum(cycle.share[0], 1e-9)
    more = _DEVIATIONS * np.maximum(stall, 0.0) * np.sqrt(share / tokens)
    return tpot + np.minimum(more, np.maximum(0.0, cycle.quiet[0] + stall - tpot))


def _placeless(clients: Floats, most: Floats) -> Floats:
    """Requests that find no place and wait for one: each for all others that do, or for half of them where they all
    came at once and no more come. Of requests without an end no wait can be said."""
    return np.where(np.isfinite(clients), np.maximum(0.0, clients - most), 0.0)


def _answered(
    job: ServingJob, these: Deployments, cycle: _Cycle, clients: Floats, asked: Floats, endless: Floats
) -> Floats:
    """Requests per second of a lane: as `clients` ask again, or as it can where there is no end of them. Where prompts
    are only read, as many as there are fill every step."""
    reads = np.minimum(1.0 / cycle.burst[0], clients / (cycle.read[0] + job.request_s))
    return np.where(these.output_len > 1.0, np.where(np.isfinite(clients), asked, endless), reads)


def _late_first(
    job: ServingJob, these: Deployments, cycle: _Cycle, herd: _Herd, held: Floats, rate: Floats, together: Floats
) -> Floats:
    """Seconds to the first token that one request in a hundred exceeds once it has a place: behind a queue with its
    tail, behind all of a herd, or behind those that came first."""
    service, met = cycle.service[0], np.minimum(1.0, held - 1.0)
    alone = cycle.read[0] + _looked_steps(job, these, met) * cycle.step[0] + job.request_s
    used = np.minimum(_FULL, rate * service)
    queue = np.minimum(_late(used, service) * job.factors.clumped, (held - 1.0) * service)
    late = alone + np.maximum(queue, _LATEST * np.maximum(herd.wait, 0.0))
    return np.where(together > _RARE, np.maximum(late, held * cycle.burst[0] + job.request_s), late)


@dataclass(frozen=True)
class _Herd:
    """Requests that keep together because their answers end nearly at once. `share` is 1 where all do so and prompts
    stop generation, and 0 where none does; `wait` are the seconds that they wait for each other, which cost no one else
    any time. Shape (n,)."""

    share: Floats
    wait: Floats


def _circulating(
    job: ServingJob, these: Deployments, running: Floats, held: Floats, met: Floats
) -> tuple[_Cycle, Floats, _Herd]:
    """The cycle of a lane in which `running` of its `held` requests generate, seconds from a request to its first token
    while requests come one by one, and how far they do not.

    Prompts of one length wait half as long for each other as at random (M/D/1). Where prompts stop generation, those
    that started together go on together: they end within the spread of their answers (uniform, so sqrt 12 standard
    deviations wide), and all wait until the last is read.
    """
    cycle = _cycle(job, these, np.maximum(running, 1.0)[None, :], held[None, :], (held - 1.0) / held)
    step, service, burst = cycle.step[0], cycle.service[0], cycle.burst[0]
    away = _generated(these) * step
    queued = _closed_wait(held, away, service) - service
    # What a station that is never empty makes wait, however requests come.
    full = np.maximum(0.0, (held - 1.0) * service - away)
    looked = _looked_steps(job, these, met) * step
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


def _looked_steps(job: ServingJob, these: Deployments, met: Floats) -> Floats:
    """Steps that pass until a request is looked at, where others run with the chance `met`."""
    return 0.5 * met * job.inference.admission_steps + _balanced_steps(job, these)


def _balanced_steps(job: ServingJob, these: Deployments) -> Floats:
    """Steps that a prompt waits for others, so that all lanes that share experts read at once."""
    return np.where(these.dp > 1.0, job.engine.balance_steps * job.balances_lanes, 0.0)


def _generating(these: Deployments, cycle: _Cycle, inside: Floats, held: Floats) -> Floats:
    """Sequences that generate, of `held` that do so or wait for their first token (Little's law)."""
    decode = _generated(these) * cycle.step[0]
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
    best = _within_limits(job, these, known, known)
    # Between the last load that meets them and the next one, as many loads again.
    low, high = grid[best, every], grid[np.minimum(best + 1, _POINTS - 1), every]
    finer = _under(job, these, known.most, low * (high / low) ** (np.arange(_POINTS)[:, None] / (_POINTS - 1.0)))
    return finer.rates[_within_limits(job, these, finer, known), every]


def _open(job: ServingJob, these: Deployments, known: Loads) -> Steady:
    """Requests at random with the rate of each deployment; where that is nan, with the highest that meets the limits of
    latency of the plan."""
    generated = _generated(these)
    rates = known.rates
    top = rates[-1]
    rate = these.request_rate / these.lanes
    if np.isnan(rate).any():
        rate = np.where(np.isnan(rate), _highest_rate(job, these, known), rate)
    # A rate within the spread of what is estimated may well be served.
    saturated = rate > top * (1.0 + job.factors.throughput_spread)
    wanted = np.minimum(rate, top)
    # Below one sequence at a time each request is alone.
    running = np.where(wanted < rates[0], wanted * generated * known.step[0], _filled(these, known, rate))
    # A request meets others with the chance that there are any (Poisson arrivals see time averages).
    met = -np.expm1(-running)
    # As many as run while any does.
    at_least = np.maximum(1.0, running / np.maximum(met, np.finfo(np.float64).tiny))[None, :]
    cycle = _cycle(job, these, at_least, at_least, met)
    # Prompts that come while a step runs are read in the next one together, beside what generates.
    step, service = cycle.step[0], cycle.burst[0] if job.mixes else cycle.service[0]
    used = np.minimum(_FULL, wanted * service)
    waits = _queue(used, service) * job.factors.clumped
    turns, last = _turns(these, known.most)
    # Behind a rate that cannot be served each turn of as many as run at once starts later than it came.
    later = np.maximum(0.0, cycle.read[0] + generated * step - known.most / rate)
    later = np.where((rate > top) & (saturated | np.isfinite(these.requests)), later, 0.0)
    backlog = turns * later
    alone = cycle.read[0] + _looked_steps(job, these, met) * step + job.request_s
    ttft = waits + alone + backlog
    return Steady(
        running=running,
        tpot_s=step,
        ttft_s=ttft,
        ttft_p99_s=np.maximum(ttft, _late(used, service) + alone + last * later),
        tpot_p99_s=np.maximum(step, _crowded_step(known, at_least)[0]),
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
# Part of its time that a station can be busy before the queue has no end.
_FULL = 0.95


def _crowd(running: Floats) -> Floats:
    """Sequences that run at once for one in a hundred requests, where they come at random (Poisson)."""
    return running + _DEVIATIONS * np.sqrt(running)


def _turns(these: Deployments, most: Floats) -> tuple[Floats, Floats]:
    """Turns of `most` requests before that of a request of the run, in the mean and for the last in a hundred."""
    sent = np.where(np.isfinite(these.requests), these.requests, _UNENDING) / these.lanes
    turns = sent / most
    whole = np.floor(turns)
    mean = (0.5 * whole * (whole - 1.0) + whole * (turns - whole)) / turns
    return mean, np.floor((1.0 - 1.0 / _ONE_IN) * turns)


def _queue(used: Floats, service: Floats) -> Floats:
    """Mean seconds in the queue of a server that is busy for `used` of its time (Pollaczek and Khinchine)."""
    return used * service / (2.0 * (1.0 - used))


def _late(used: Floats, service: Floats) -> Floats:
    """Seconds in that queue that one in a hundred exceeds (exponential tail of the same mean)."""
    return np.maximum(0.0, np.log(_ONE_IN * np.maximum(used, 1e-9))) * service / (2.0 * (1.0 - used))


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
    used = np.minimum(_FULL, known.rates * known.service)
    met = np.ones(known.rates.shape, dtype=bool)
    if each is not None:
        met &= _crowded_step(usual, known.grid) <= each / MS_PER_S
    if first is not None:
        looked = _looked_steps(job, these, -np.expm1(-known.running)) * known.step
        met &= _late(used, known.service) + known.read + looked + job.request_s <= first / MS_PER_S
    # Only below the first point that misses them.
    return np.maximum(0, np.logical_and.accumulate(met, axis=0).sum(axis=0) - 1)
