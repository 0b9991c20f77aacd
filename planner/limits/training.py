"""find_limit: the longest context, largest micro-batch, largest model or fewest devices with which a plan fits."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from pydantic import Field

from estimator.errors import PlanError, nearest
from estimator.plan.schema import Inference, Plan
from estimator.search.layouts import divisors
from estimator.units import GIB
from knowledge.jobs.training import job_of
from knowledge.models.catalogue import ModelFacts, architecture, find_architecture, models
from planner.evidence import evidence_of
from planner.limits.probing import Trials, Tried, Value, last_that_fits, narrowed
from planner.limits.serving import serving_limit
from planner.requests import EitherRequest
from planner.results import Assumption, Limit, LimitProbe, NextValue
from planner.training.planned import Planned, choice, complete, memory_of, planned, warnings_of

Goal = Literal["seq_len", "micro_batch", "model", "devices"]
_SERVING_GOALS = ("context", "input_len", "concurrency")

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
_SHOWN_PROBES = 24


class LimitRequest(EitherRequest):
    goal: Literal["seq_len", "micro_batch", "model", "devices", "context", "input_len", "concurrency"] = Field(
        description="What to push to its limit: seq_len, micro_batch, model (largest) or devices (least); of serving "
        "also context (longest request), input_len (longest prompt) or concurrency (most requests at once)."
    )
    family: str | None = Field(
        None, description="For goal model: a family such as llama or qwen2.5, or any; else that of the plan's model."
    )

    def asks_serving(self) -> bool:
        return self.goal in _SERVING_GOALS


@dataclass(frozen=True)
class _Found:
    """The last value that fits (None: not even `first` does), the nearest that does not, and what is said besides.

    `bound` is (what limits, why) where something other than the memory of `beyond` decides.
    """

    trials: Trials
    value: Value | None
    first: Value
    beyond: Value | None
    bound: tuple[str, str] | None = None
    assumptions: list[Assumption] = field(default_factory=list)


def find_limit(request: LimitRequest) -> Limit:
    """Find how far a plan can go."""
    started = time.perf_counter()
    if request.family is not None and request.goal != "model":
        raise PlanError("family", f"goes with goal model alone, not with {request.goal}", ["goal=model"])
    plan, named = _plan_of(request)
    if isinstance(plan.workload, Inference):
        candidates = _candidates(plan, request.family, named) if request.goal == "model" else None
        return serving_limit(request.goal, plan, candidates)
    match request.goal:
        case "seq_len":
            found = _longest(plan)
        case "micro_batch":
            found = _largest_batch(plan)
        case "model":
            found = _largest_model(plan, request.family, named)
        case "devices":
            found = _fewest_devices(plan)
        case goal:
            raise PlanError("goal", f"{goal} is of serving, but the plan is for training", get_args(Goal))
    return _limit(request.goal, found, started)


def _plan_of(request: LimitRequest) -> tuple[Plan, bool]:
    """The plan, and whether it names a model: the search for the largest one needs none."""
    given = {**(request.plan or {}), **request.model_dump(include={"model"}, exclude_none=True)}
    named = bool(given.get("model"))
    if request.goal == "model" and not named:
        request = request.model_copy(update={"model": "any"})
    return request.to_plan(), named


def _longest(plan: Plan) -> _Found:
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
        return _Found(trials, None, tokens(0), tokens(0))
    if last == marks[-1]:
        bound = ("range", f"{tokens(last):,} tokens, the longest sequence that a plan may have, still fit")
        return _Found(trials, tokens(last), tokens(0), None, bound)
    return _Found(trials, tokens(last), tokens(0), tokens(last + 1))


def _largest_batch(plan: Plan) -> _Found:
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
        return _Found(trials, end, 1, None, ("range", f"{end:,} sequences, the most that a plan may have, still fit"))
    return _Found(trials, None, 1, 1) if last is None else _Found(trials, last + 1, 1, last + 2)


def _largest_part(trials: Trials, batch: int) -> _Found:
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
        return _Found(trials, None, 1, beyond or 1)
    if beyond is not None:
        return _Found(trials, best, 1, beyond)
    why = f"no more than {best:,} sequences at a time can be dealt from the global batch of {batch:,}, and they fit"
    refused = next((part for part in parts if part > best), None)
    if refused is not None and (said := trials.tried[refused].why):
        why += f" ({refused:,}: {said})"
    return _Found(trials, best, 1, refused, ("global_batch", why))


def _largest_model(plan: Plan, family: str | None, named: bool) -> _Found:
    """By parameters, over the text models of the catalogue; those that only papers describe, for pretraining alone."""
    rows, said = _candidates(plan, family, named)
    trials = Trials(lambda value: plan.patch({"model": value}), narrowed(plan))
    best: int | None = None
    for place, row in enumerate(rows):
        if trials.fits(row.id):
            best = place
            break
    smallest = rows[-1].id
    if best is None:
        return _Found(trials, None, smallest, smallest, assumptions=[said])
    beyond = _nearest_larger(trials, rows, best)
    while beyond is not None and trials.confirmed(rows[beyond].id):
        best = beyond
        beyond = _nearest_larger(trials, rows, best)
    value = rows[best].id
    if beyond is None:
        why = f"{value} is the largest of the {len(rows)} models considered, and it fits"
        return _Found(trials, value, smallest, None, ("catalogue", why), [said])
    return _Found(trials, value, smallest, rows[beyond].id, assumptions=[said])


def _nearest_larger(trials: Trials, rows: list[ModelFacts], best: int) -> int | None:
    """The next larger model that is too large for the memory; one that the layout does not suit where there is none."""
    larger = range(best - 1, -1, -1)
    too_large = (place for place in larger if trials.tried[rows[place].id].too_large)
    return next(too_large, best - 1 if best else None)


def _candidates(plan: Plan, family: str | None, named: bool) -> tuple[list[ModelFacts], Assumption]:
    """Models by parameters, the largest first, and which they are in words. Raises PlanError for an unknown family."""
    wanted = family.strip().lower() if family else None
    rows = models()
    if wanted and wanted != "any":
        rows = [row for row in rows if row.family.lower().startswith(wanted)]
        if not rows:
            known = nearest(wanted, dict.fromkeys(row.family for row in models()))
            raise PlanError("family", f"no model of the catalogue is of a family {family!r}", [*known, "any"])
        scope, why = wanted, f"the {len(rows)} models of the family"
    elif own := _own_family(plan) if named and not wanted else None:
        rows = [row for row in rows if row.family == own]
        scope, why = own, f"the family of the plan's model, {len(rows)} models; family=any takes all"
    else:
        rows = [row for row in rows if not architecture(row.id).multimodal]
        if isinstance(plan.workload, Inference) or plan.training.stage != "pretrain":
            rows = [row for row in rows if row.license != "paper-only"]
        scope, why = "any", f"the {len(rows)} text models of the catalogue; name a family to look at fewer"
    rows = sorted(rows, key=lambda row: -architecture(row.id).parameters)
    return rows, Assumption(field="family", value=scope, why=why)


def _own_family(plan: Plan) -> str | None:
    """The family of the plan's model; None for one that is not of the catalogue."""
    return find_architecture(plan.model)[0].family or None


def _fewest_devices(plan: Plan) -> _Found:
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
        return _Found(trials, None, beyond or 1, beyond)
    if beyond is None:
        return _Found(trials, best, 1, None, ("range", "it fits on a single device, and there is nothing below one"))
    return _Found(trials, best, 1, beyond)


def _fewest_nodes(trials: Trials, node: int) -> int | None:
    """The fewest whole nodes beyond one, as a number of devices."""
    high = 2
    while not trials.fits(high * node):
        high *= 2
        if high * node > _MOST_DEVICES:
            return None
    low = high // 2
    while high - low > _SCANNED_NODES:
        middle = (low + high) // 2
        low, high = (low, middle) if trials.fits(middle * node) else (middle, high)
    # An odd number of nodes may be one that the batch or the layers cannot be dealt to, so no size is skipped.
    return next((nodes * node for nodes in range(low + 1, high + 1) if trials.confirmed(nodes * node)), None)


_UNITS = {"seq_len": " tokens", "micro_batch": " sequences per micro-batch", "model": "", "devices": " devices"}


def _limit(goal: Goal, found: _Found, started: float) -> Limit:
    value = found.value
    at = planned(found.trials.plan_at(found.first if value is None else value), past_errors=True)
    beyond = None if found.beyond is None else found.trials.tried[found.beyond]
    limited_by, why = found.bound or _decides(goal, beyond or Tried(found.first, at, None))
    return Limit(
        goal=goal,
        value=value,
        plan=complete(at),
        assumptions=[*found.assumptions, *_others(goal, at, value)],
        parameters=at.job.architecture.parameters,
        memory=memory_of(at),
        chosen=choice(at.estimates, at.index),
        limited_by=limited_by,
        why=why,
        next_value=None if beyond is None else _next(beyond),
        tried=len(found.trials.tried),
        probes=_probes(goal, found),
        seconds=time.perf_counter() - started,
        warnings=warnings_of(at),
        evidence=evidence_of(at),
    )


def _others(goal: Goal, at: Planned, value: Value | None) -> list[Assumption]:
    """The plan's assumptions without the one about the value that was asked for."""
    own = {"seq_len": "workload.seq_len", "micro_batch": "workload.micro_batch", "model": "model",
           "devices": "cluster.count"}[goal]  # fmt: skip
    return [item for item in at.assumptions if item.field != own or value is None]


def _decides(goal: Goal, beyond: Tried) -> tuple[str, str]:
    """(memory component, or the field that refuses, why) for the nearest value that does not fit."""
    name = f"{beyond.value:,}{_UNITS[goal]}" if isinstance(beyond.value, int) else str(beyond.value)
    if goal == "devices" and beyond.value == 1:
        name = "1 device"
    if beyond.found is None:
        said = beyond.why or "no layout is valid"
        return said.partition(":")[0], f"with {name} there is no valid layout: {said}"
    memory = memory_of(beyond.found)
    part, size = memory.decided_by, memory.components[memory.decided_by]
    stage = f" on pipeline stage {memory.fullest_stage}" if len(memory.stages) > 1 else ""
    layouts = beyond.found.estimates.layouts
    high, have = memory.high_bytes / GIB, memory.capacity_bytes / GIB
    # Just beyond the limit both figures would look the same with one digit.
    digits = 1 if high - have > 0.1 else 3
    why = (
        f"with {name} even the layout that needs least memory ({beyond.found.job.framework.name}, "
        f"{layouts.summary(beyond.found.index)}) takes up to {high:.{digits}f} GiB per device of "
        f"{have:.{digits}f} GiB usable; the largest part{stage} is {part.replace('_', ' ')}, "
        f"{size / GIB:.1f} GiB"
    )
    return part, why


def _next(beyond: Tried) -> NextValue:
    memory = memory_of(beyond.found) if beyond.found else None
    return NextValue(
        value=beyond.value,
        per_device_bytes=memory.per_device_bytes if memory else None,
        high_bytes=memory.high_bytes if memory else None,
        components=memory.components if memory else {},
        stage=memory.fullest_stage if memory else None,
        why=beyond.why,
    )


def _probes(goal: Goal, found: _Found) -> list[LimitProbe]:
    """The values tried nearest to the limit, in order."""
    tried = found.trials.tried
    if goal == "model":
        ordered = sorted(tried, key=lambda id: architecture(str(id)).parameters)
    else:
        ordered = sorted(tried, key=lambda value: int(value))
    at = ordered.index(found.first if found.value is None else found.value)
    start = max(0, min(at - _SHOWN_PROBES // 2, len(ordered) - _SHOWN_PROBES))
    shown: list[Mapping[str, Any]] = [
        {"value": value, "fits": tried[value].fits, "per_device_bytes": tried[value].bytes, "why": tried[value].why}
        for value in ordered[start : start + _SHOWN_PROBES]
    ]
    return [LimitProbe(**row) for row in shown]
