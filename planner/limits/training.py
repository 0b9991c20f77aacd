"""find_limit: the longest context, largest micro-batch, largest model or fewest devices with which a plan fits."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Literal, get_args

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from estimator.search.layouts import divisors
from knowledge.figures import gib
from knowledge.jobs.training import job_of
from knowledge.machines.catalogue import find_accelerator
from knowledge.models.known import ModelFacts
from planner.evidence import evidence_of
from planner.limits.cards import SCOPE, cards, smallest
from planner.limits.models import ModelCandidates
from planner.limits.probing import Trial, Trials, Value, last_that_fits, narrowed, nearest_probes, reach
from planner.results import Assumption, Limit, NextValue
from planner.training.memory import memory_of
from planner.training.planned import Planned, choice, warnings_of

Goal = Literal["seq_len", "micro_batch", "model", "devices", "accelerator"]

# The bounds of a Plan's seq_len and micro_batch, and a cluster larger than any that is known to train one model.
_LONGEST_TOKENS = 100_000_000
_MOST_SEQUENCES = 1_000_000
_MOST_BATCH = 100_000_000
_MOST_DEVICES = 65_536
# Sequences are cut to multiples of a kernel's tile while they are short, and of 1k tokens beyond 8k.
_FINE_TOKENS, _COARSE_TOKENS, _TURN_TOKENS = 128, 1024, 8192
# From here on all sizes of context parallelism are open, which open up step by step as sequences grow.
_OPEN_TOKENS = 2**19
# Whole nodes between two powers of two are all tried up to this many; of more, the nearest below the fewest found.
_SCANNED_NODES = 32


@dataclass(frozen=True)
class _Furthest:
    """The last value that fits (None: not even `first` does), the nearest that does not, and what is said besides.

    `bound` is (what limits, why) where something other than the memory of `beyond` decides.
    """

    trials: Trials
    value: Value | None
    first: Value
    beyond: Value | None
    bound: tuple[str, str] | None = None
    assumptions: list[Assumption] = field(default_factory=list)
    alike: list[str] = field(default_factory=list)


def limit_of(goal: str, plan: Plan, candidates: ModelCandidates | None = None) -> Limit:
    """The most that still fits of a training plan; `candidates` are those of the goal model. Raises PlanError."""
    started = time.perf_counter()
    match goal:
        case "seq_len":
            furthest = _longest(plan)
        case "micro_batch":
            furthest = _largest_batch(plan)
        case "model":
            assert candidates
            furthest = _largest_model(plan, candidates)
        case "devices":
            furthest = _fewest_devices(plan)
        case "accelerator":
            furthest = _smallest_card(plan)
        case _:
            raise PlanError("goal", f"{goal} is of serving, but the plan is for training", get_args(Goal))
    return _limit(goal, furthest, started)


def _longest(plan: Plan) -> _Furthest:
    """In steps of 128 tokens up to 8k and of 1,024 beyond, both in multiples of what a given cp asks for."""
    open_plan = plan.patch({"workload.seq_len": None})
    chunk = 2 * (plan.layout.cp or 1)
    fine, coarse = math.lcm(_FINE_TOKENS, chunk), math.lcm(_COARSE_TOKENS, chunk)
    turn = coarse * max(1, _TURN_TOKENS // coarse)
    short = turn // fine

    def tokens(index: int) -> int:
        return fine * (index + 1) if index < short else turn + coarse * (index + 1 - short)

    def index_below(size: int) -> int:
        return size // fine - 1 if size <= turn else short - 1 + (size - turn) // coarse

    trials = Trials(lambda value: open_plan.patch({"workload.seq_len": value}), narrowed(plan))
    powers = [2**power for power in range(7, 27) if 2**power >= fine]
    marks = sorted({index_below(size) for size in (*powers, _LONGEST_TOKENS)})
    start = sum(tokens(mark) < _OPEN_TOKENS for mark in marks)
    last = last_that_fits(trials, tokens, marks, start)
    if last is None:
        return _Furthest(trials, None, tokens(0), tokens(0))
    if last == marks[-1]:
        bound = ("range", f"{tokens(last):,} tokens, the longest sequence that a plan may have, still fit")
        return _Furthest(trials, tokens(last), tokens(0), None, bound)
    return _Furthest(trials, tokens(last), tokens(0), tokens(last + 1))


def _largest_batch(plan: Plan) -> _Furthest:
    """Any number of sequences where the global batch is open and grows along, else those that divide it."""
    open_plan = plan.patch({"workload.micro_batch": None})
    trials = Trials(
        lambda value: open_plan.patch({"workload.micro_batch": value}), narrowed(plan, "workload.micro_batch")
    )
    batch = plan.training.global_batch
    if batch is not None:
        return _largest_part(trials, batch)
    end = max(1, min(_MOST_SEQUENCES, _MOST_BATCH // (plan.layout.dp or plan.cluster.count or 1)))
    marks = [2**power - 1 for power in range(20) if 2**power < end] + [end - 1]
    last = last_that_fits(trials, lambda index: index + 1, marks, 1)
    if last == marks[-1]:
        return _Furthest(
            trials, end, 1, None, ("range", f"{end:,} sequences, the most that a plan may have, still fit")
        )
    return _Furthest(trials, None, 1, 1) if last is None else _Furthest(trials, last + 1, 1, last + 2)


def _largest_part(trials: Trials, batch: int) -> _Furthest:
    """The largest micro-batch that can be dealt from a given global batch."""
    parts = divisors(batch)
    over: list[int] = []
    for part in parts:
        # Two sizes beyond the memory: the next ones need more still.
        if len(over) < 2 and not trials.confirmed(part) and trials.tried[part].too_large:
            over.append(part)
    fitting = [part for part in parts if part in trials.tried and trials.fits(part)]
    best = max(fitting, default=None)
    beyond = next((part for part in over if best is None or part > best), None)
    if best is None:
        return _Furthest(trials, None, 1, beyond or 1)
    if beyond is not None:
        return _Furthest(trials, best, 1, beyond)
    why = f"no more than {best:,} sequences at a time can be dealt from the global batch of {batch:,}, and they fit"
    refused = next((part for part in parts if part > best), None)
    if refused is not None and (refusal := trials.tried[refused].why):
        why += f" ({refused:,}: {refusal})"
    return _Furthest(trials, best, 1, refused, ("global_batch", why))


def _largest_model(plan: Plan, candidates: ModelCandidates) -> _Furthest:
    """By parameters, over the candidates."""
    rows, scope = candidates.models, candidates.assumption
    trials = Trials(lambda value: plan.patch({"model": value}), narrowed(plan))
    best: int | None = None
    for place, row in enumerate(rows):
        if trials.fits(row.id):
            best = place
            break
    smallest = rows[-1].id
    if best is None:
        return _Furthest(trials, None, smallest, smallest, assumptions=[scope])
    trials.alone = rows[best].id
    # On the devices alone they are too large; how far host memory helps is found in large steps.
    larger = [place for place in range(best - 1, -1, -1) if trials.tried[rows[place].id].too_large]
    last = reach(lambda index: trials.confirmed(rows[larger[index]].id), -1, len(larger) - 1)
    if last >= 0:
        best = larger[last]
        # Of those that were stepped over nobody knows.
        for place in larger[:last]:
            if not trials.fits(rows[place].id):
                del trials.tried[rows[place].id]
    beyond = _nearest_larger(trials, rows, best)
    while beyond is not None and trials.confirmed(rows[beyond].id):
        best = beyond
        beyond = _nearest_larger(trials, rows, best)
    value = rows[best].id
    if beyond is None:
        why = f"{value} is the largest of the {len(rows)} models considered, and it fits"
        bound = ("deadline", f"{value} is the largest that is done by then; {candidates.late}")
        return _Furthest(trials, value, smallest, None, bound if candidates.late else ("catalogue", why), [scope])
    return _Furthest(trials, value, smallest, rows[beyond].id, assumptions=[scope])


def _nearest_larger(trials: Trials, rows: list[ModelFacts], best: int) -> int | None:
    """The next larger model that is too large for the memory; one that the layout does not suit where there is none."""
    larger = range(best - 1, -1, -1)
    too_large = (place for place in larger if trials.tried[rows[place].id].too_large)
    return next(too_large, best - 1 if best else None)


def _fewest_devices(plan: Plan) -> _Furthest:
    """Parts of a node, then whole nodes: all powers of two, then every number of nodes between the last two."""
    open_plan = plan.patch({"cluster.count": None})
    node = plan.cluster.per_node or job_of(open_plan).machine.accelerator.per_node
    trials = Trials(lambda value: open_plan.patch({"cluster.count": value}), narrowed(plan))
    best = next((size for size in divisors(node) if trials.confirmed(size)), None)
    if best is None:
        best = _fewest_nodes(trials, node)
    failed = sorted(size for size in trials.tried if isinstance(size, int) and not trials.fits(size))
    below = [size for size in failed if best is None or size < best]
    beyond = max((size for size in below if trials.tried[size].too_large), default=max(below, default=None))
    if best is None:
        return _Furthest(trials, None, beyond or 1, beyond)
    if beyond is None:
        return _Furthest(trials, best, 1, None, ("range", "it fits on a single device"))
    return _Furthest(trials, best, 1, beyond)


def _fewest_nodes(trials: Trials, node: int) -> int | None:
    """The fewest whole nodes beyond one, as a number of devices."""
    high = 2
    while not trials.confirmed(high * node):
        high *= 2
        if high * node > _MOST_DEVICES:
            return None
    low = high // 2
    while high - low > _SCANNED_NODES:
        middle = (low + high) // 2
        low, high = (low, middle) if trials.confirmed(middle * node) else (middle, high)
    # An odd number of nodes may be one that the batch or the layers cannot be dealt to, so no size is skipped.
    return next((nodes * node for nodes in range(low + 1, high + 1) if trials.confirmed(nodes * node)), None)


def _smallest_card(plan: Plan) -> _Furthest:
    """The card with the least memory of which as many as the plan counts (else one) hold it, without host memory unless
    the plan names that."""
    alone = {"cluster.count": plan.cluster.count or 1, "layout.offload": plan.layout.offload or "none"}
    trials = Trials(lambda value: plan.patch({"cluster.accelerator": value, **alone}), narrowed(plan))
    least = smallest(lambda id: trials.fits(id) or _holds_leaner(trials, id))
    # Each card has its own way; a verdict comes to that of the first again.
    trials.framework, trials.conceded = None, {}
    first = cards()[-1].id
    below = least.below and least.below.id
    if least.card is None:
        return _Furthest(trials, None, first, below, assumptions=[SCOPE])
    bound = None if below else ("range", least.why)
    return _Furthest(trials, least.card.id, first, below, bound, [SCOPE], least.alike)


# What takes more than this of a card holds on it in no way.
_LEANER = 1.5


def _holds_leaner(trials: Trials, id: str) -> bool:
    """Whether a card holds the plan in a leaner way, as with chunked loss."""
    alone = trials.tried[id]
    usable = find_accelerator(id).value.usable_bytes
    if alone.bytes is None or alone.bytes > _LEANER * usable:
        return False
    held = trials.confirmed(id)
    if not held:
        trials.tried[id] = alone
    return held


_UNITS = {
    "accelerator": "",
    "seq_len": " tokens",
    "micro_batch": " sequences per micro-batch",
    "model": "",
    "devices": " devices",
}


def _limit(goal: Goal, furthest: _Furthest, started: float) -> Limit:
    value = furthest.value
    at = furthest.trials.settled(furthest.first if value is None else value)
    probes = [trial.probe for trial in furthest.trials.tried.values()]
    beyond = None if furthest.beyond is None else furthest.trials.tried[furthest.beyond]
    nearest = beyond or Trial(furthest.first, at.fits, 0.0, None, lambda: at)
    hosted = at.job.plan.layout.offload != "none" and (bool(at.conceded) or at.has_host_memory)
    limited_by, why = furthest.bound or _decides(goal, nearest, hosted)
    return Limit(
        goal=goal,
        value=value,
        plan=at.complete_plan,
        assumptions=[*furthest.assumptions, *_others(goal, at, value)],
        parameters=at.job.architecture.parameters,
        memory=memory_of(at),
        chosen=choice(at.estimates, at.index),
        limited_by=limited_by,
        why=why,
        next_value=None if beyond is None else _next(beyond),
        on_devices=furthest.trials.alone,
        alike=furthest.alike,
        tried=len(furthest.trials.tried),
        probes=nearest_probes(probes, furthest.first if value is None else value, goal),
        seconds=time.perf_counter() - started,
        warnings=warnings_of(at),
        evidence=evidence_of(at.job),
    )


def _others(goal: Goal, at: Planned, value: Value | None) -> list[Assumption]:
    """The plan's assumptions without the one about the value that was asked for."""
    field = {"seq_len": "workload.seq_len", "micro_batch": "workload.micro_batch", "model": "model",
           "devices": "cluster.count", "accelerator": "cluster.accelerator"}[goal]  # fmt: skip
    return [item for item in at.assumptions if item.field != field or value is None]


def _decides(goal: Goal, beyond: Trial, hosted: bool) -> tuple[str, str]:
    """(memory component, or the field that refuses, why) for the nearest value that does not fit. `hosted` says that
    host memory was tried for it, and is no help: the devices alone are told."""
    name = f"{beyond.value:,}{_UNITS[goal]}" if isinstance(beyond.value, int) else str(beyond.value)
    if goal == "devices" and beyond.value == 1:
        name = "1 device"
    if beyond.planned is None:
        refusal = beyond.why or "no layout is valid"
        return refusal.partition(":")[0], f"with {name} there is no valid layout: {refusal}"
    memory = memory_of(beyond.planned)
    part, size = memory.decided_by, memory.components[memory.decided_by]
    stage = f" on pipeline stage {memory.fullest_stage}" if len(memory.stages) > 1 else ""
    layouts = beyond.planned.estimates.layouts
    high, have = gib(memory.high_bytes), gib(memory.capacity_bytes)
    # Just beyond the limit both look the same.
    over = f", {gib(memory.high_bytes - memory.capacity_bytes)} more than" if high == have else " of"
    why = (
        f"with {name} {'host memory is not enough; on the devices alone ' if hosted else ''}"
        f"even the leanest layout ({beyond.planned.job.framework.name}, "
        f"{layouts.summary(beyond.planned.index)}) takes up to {high} per device{over} "
        f"{have} usable, most of it{stage} {part.replace('_', ' ')} ({gib(size)})"
    )
    return part, why


def _next(beyond: Trial) -> NextValue:
    memory = memory_of(beyond.planned) if beyond.planned else None
    return NextValue(
        value=beyond.value,
        per_device_bytes=memory.per_device_bytes if memory else None,
        high_bytes=memory.high_bytes if memory else None,
        components=memory.components if memory else {},
        stage=memory.fullest_stage if memory else None,
        why=beyond.why,
    )
