"""What a lane of continuous batching does with so many sequences: the steps that generate and those that read prompts.

Sequences that generate take part in every step; prompts are read in pieces beside them, or in steps of their own
(Yu et al. 2022, Orca, section 4; Agrawal et al. 2024, Sarathi-Serve, section 4). Times are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from estimator.plan.layouts import Floats
from estimator.plan.serving.deployments import Deployments
from estimator.plan.serving.job import ServingJob
from estimator.serving.drafting import drafting_seconds
from estimator.serving.passes import PassTime, pass_time

# Sequences of a slot that generate, at the least, where prompts take nearly all of a step (guard).
_LEAST_GENERATING = 1e-3

# The slowest request of so many is what limits of latency are about (the 99th percentile).
ONE_IN = 100.0


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
class Cycle:
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


def generated_tokens(these: Deployments) -> Floats:
    """Tokens of an answer that take a step each: the first one comes with the prompt."""
    return np.maximum(1.0, these.output_len - 1.0)


def cycle_of(job: ServingJob, these: Deployments, running: Floats, held: Floats, others: Floats | float = 1.0) -> Cycle:
    """`running` and `held` have shape (k, n): sequences that generate, and those that are in a lane at most. `others`
    is the part of the prompts that are another sequence's. A pipeline has one slot of sequences for each stage, as far
    as there are any."""
    slots = np.clip(running, 1.0, these.pp)
    each = running / slots
    made = np.maximum(1.0, job.tokens_per_step)
    context = job.mean_context(these.input_len, these.output_len)
    read = these.read_len
    # Prompt tokens that arrive while each sequence generates one token.
    due = others * each * made * read / generated_tokens(these)
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
    # A drafting layer reads prompts, too.
    drafts, layers = 0.0 if job.drafter is None else job.checked_tokens - 1.0, job.architecture.layers
    drafting = drafting_seconds(job, these, each, context)
    quiet = generating.total + drafting
    with_prompt = reading.total * (1.0 + min(drafts, 1.0) / layers) + drafting
    stalls = with_prompt - quiet if job.mixes else with_prompt
    return Cycle(
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


# The least and most part of the steps that a lane reads in, and does not (guard).
_RARELY = 1e-9


def _reading_steps(job: ServingJob, these: Deployments, share: Floats) -> tuple[Floats, Floats]:
    """(Part of the steps in which any lane reads a prompt, part of the lanes that do so in these) where each lane reads
    in `share` of its own.

    Lanes that share experts step together, so that one with a prompt makes all others wait, unless prompts are held
    back until all lanes have one.
    """
    if not job.mixes or job.balances_lanes:
        return share, np.ones_like(share)
    # Of prompts that no other sequence's step meets there is one lane's all the same.
    share = np.clip(share, _RARELY, 1.0 - _RARELY)
    met = -np.expm1(these.dp * np.log1p(-share))
    return met, share / met


# Standard deviations that one in a hundred exceeds (normal distribution).
DEVIATIONS = 2.326


def looked_steps(job: ServingJob, these: Deployments, met: Floats) -> Floats:
    """Steps that pass until a request is looked at, where others run with the chance `met`."""
    return 0.5 * met * job.inference.admission_steps + _balanced_steps(job, these)


def _balanced_steps(job: ServingJob, these: Deployments) -> Floats:
    """Steps that a prompt waits for others, so that all lanes that share experts read at once."""
    return np.where(these.dp > 1.0, job.engine.balance_steps * job.balances_lanes, 0.0)


# Part of its time that a station can be busy before the queue has no end.
FULL = 0.95


def late_wait(used: Floats, service: Floats) -> Floats:
    """Seconds in that queue that one in a hundred exceeds (exponential tail of the same mean)."""
    return np.maximum(0.0, np.log(ONE_IN * np.maximum(used, 1e-9))) * service / (2.0 * (1.0 - used))
