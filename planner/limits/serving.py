"""find_limit for serving: the longest request, most requests at once, largest model or fewest devices."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from estimator.errors import PlanError
from estimator.plan.layouts import Floats
from estimator.plan.schema import Inference, Plan
from estimator.plan.serving.job import ServingJob
from estimator.search.layouts import divisors
from estimator.serving.arrivals import Loads
from estimator.serving.estimates import loads_of
from estimator.serving.memory import ServingMemory, serving_memory
from estimator.serving.space import Deployments, deployments
from knowledge.figures import gib, seconds
from knowledge.jobs.serving import serving_job
from knowledge.machines.catalogue import no_accelerator
from knowledge.machines.counted import find_devices
from planner.evidence import evidence_of
from planner.limits.cards import SCOPE, cards, smallest
from planner.limits.models import ModelCandidates
from planner.limits.probing import nearest_probes
from planner.result import Assumption
from planner.results import Limit, LimitProbe, NextValue
from planner.serving.planned import Served, choice, memory_of, plan_serving
from planner.serving.pool import Slo, slo_of
from planner.serving.sizing import most_clients, serves
from planner.serving.warnings import warnings_of

# As reasons say them.
_LATENCIES = {"ttft": "time to first token", "tpot": "time per output token", "e2e": "whole request"}
_ORDER = [*_LATENCIES, "throughput", "KV cache", ""]
_LONGEST = 100_000_000
# Values tried in each call: memory alone is told of many as soon as of few, latencies are not.
_POINTS, _TIMED_POINTS = 33, 7
_MOST_DEVICES = 65_536


@dataclass(frozen=True)
class _Furthest:
    """The last value that fits (None: none does), the nearest that does not, what limits it and why."""

    plan: Callable[[Any], Plan]
    value: int | str | None
    first: int | str
    beyond: int | str | None
    limited_by: str
    why: str
    probes: list[LimitProbe] = field(default_factory=list)
    assumptions: list[Assumption] = field(default_factory=list)
    seen: dict[Any, Served] = field(default_factory=dict)
    alike: list[str] = field(default_factory=list)

    def served(self, value: Any) -> Served:
        return self.seen.get(value) or plan_serving(self.plan(value))


def limit_of(goal: str, plan: Plan, candidates: ModelCandidates | None = None) -> Limit:
    """The most that still fits of a serving plan: of all layouts that agree with it. Raises PlanError."""
    started = time.perf_counter()
    match goal:
        case "input_len" | "context" | "seq_len":
            furthest = _longest(plan, goal == "input_len")
        case "concurrency":
            furthest = _most_at_once(plan)
        case "model":
            assert candidates
            furthest = _largest_model(plan, candidates)
        case "devices":
            furthest = _fewest_devices(plan)
        case "accelerator":
            furthest = _smallest_card(plan)
        case _:
            valid = ["context", "input_len", "concurrency", "model", "devices", "accelerator"]
            raise PlanError("goal", f"{goal} is of training, but the plan is for serving", valid)
    at = furthest.served(furthest.first if furthest.value is None else furthest.value)
    field_of = {"model": "model", "devices": "cluster.count", "concurrency": "workload.concurrency",
                "accelerator": "cluster.accelerator"}  # fmt: skip
    solved = field_of.get(goal, "workload.input_len")
    return Limit(
        goal=goal,
        value=furthest.value,
        plan=at.complete_plan,
        assumptions=[
            *furthest.assumptions, *(item for item in at.assumptions if item.field != solved or furthest.value is None)
        ],
        parameters=at.job.architecture.parameters,
        memory=memory_of(at),
        chosen=choice(at.pool, at.index, at.slo),
        limited_by=furthest.limited_by,
        why=furthest.why,
        next_value=None if furthest.beyond is None else _next(furthest, furthest.beyond),
        tried=len(furthest.probes),
        probes=nearest_probes(furthest.probes, furthest.value, goal),
        alike=furthest.alike,
        seconds=time.perf_counter() - started,
        warnings=warnings_of(at),
        evidence=evidence_of(at.job),
    )  # fmt: skip


@dataclass
class _Timed:
    """Which deployments (n,) keep the limits with so many clients at all lengths tried so far, and what each of the
    others failed by: whatever is too slow for less is too slow for more."""

    slo: Slo
    clients: int
    fast: np.ndarray
    reasons: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.reasons = np.full(len(self.fast), "", dtype=object)

    def able(self, job: ServingJob, candidates: Deployments, held: np.ndarray) -> np.ndarray:
        """Of those that are `held` (k, n), for ascending lengths, which keep the limits."""
        asked = np.flatnonzero(held & self.fast)
        able, why = np.zeros(held.size, dtype=bool), np.full(held.size, "", dtype=object)
        if len(asked):
            able[asked], why[asked] = serves(job, candidates.take(asked), self.slo, self.clients)
        able, why = able.reshape(held.shape), why.reshape(held.shape)
        for row, reasons in zip(able, why, strict=True):
            failed = ~row & (reasons != "") & (self.reasons == "")
            self.reasons[failed] = reasons[failed]
        passed = np.logical_and.accumulate(able.any(axis=1))
        if passed[0]:
            self.fast = able[np.flatnonzero(passed)[-1]]
        return able


def _longest(plan: Plan, prompt: bool) -> _Furthest:
    """The longest prompt, or request of prompt and output, by halving what is left between fits and does not.

    Where the plan counts its clients, all of their requests have to fit at once.
    """
    workload = plan.inference
    output, clients = float(workload.output_len), workload.concurrency or 1
    least = 1 if prompt else int(output) + 1
    job = serving_job(_with_prompt(plan, 1))
    context = job.architecture.context
    taken = 0 if not prompt else int(output)
    most = min(_LONGEST, context - taken) if context else _LONGEST
    probes: dict[int, LimitProbe] = {}
    slow: dict[int, str] = {}
    slo = slo_of(plan.inference)
    timed = _Timed(slo, clients, np.ones(len(deployments(job)), dtype=bool))

    def fits(values: Floats) -> np.ndarray:
        lengths = values if prompt else values - output
        candidates = deployments(job, [{"input_len": float(length)} for length in lengths])
        memory = serving_memory(job, candidates)
        able = (memory.fits & (memory.max_concurrency >= clients)).reshape(len(values), -1)
        if slo.limits_any:
            held, able = able, timed.able(job, candidates, able)
            for place in np.flatnonzero(held.any(axis=1) & ~able.any(axis=1)):
                # What has room is too slow, or runs fewer at once; a limit of latency is what can be changed.
                slow[int(values[place])] = min(timed.reasons[held[place]], key=_ORDER.index)
        least_bytes = memory.total.reshape(able.shape).min(axis=1).tolist()
        fitting = np.asarray(able.any(axis=1))
        for value, ok, size in zip(values.tolist(), fitting.tolist(), least_bytes, strict=True):
            probes[int(value)] = LimitProbe(value=int(value), fits=ok, per_device_bytes=size, why=None)
        return fitting

    def plan_at(value: Any) -> Plan:
        return _with_prompt(plan, value if prompt else value - int(output))

    value = _last(fits, least, max(least, most), _TIMED_POINTS if slo.limits_any else _POINTS)
    unit = "tokens of prompt" if prompt else "tokens of prompt and output"
    each = f"{clients} requests at once" if clients > 1 else "one request"
    shown = list(probes.values())
    if value is None:
        by, what = _kept_by(slow.get(least, ""), job.engine.name, plan.inference)
        short = "is fast enough" if by.endswith("_slo_ms") else "runs at once" if by == "max_batch" else "fits"
        return _Furthest(plan_at, None, least, least, by, f"not even the shortest of {each} {short}", shown)
    if too_slow := next((reason for length, reason in sorted(slow.items()) if length > value), None):
        by, what = _kept_by(too_slow, job.engine.name, plan.inference)
        return _Furthest(plan_at, value, least, value + 1, by, f"with more than {value:,} {unit} {what}", shown)
    if value >= most:
        why = f"the model reads no more than {context:,} tokens, and {each} of them fit"
        return _Furthest(plan_at, value, least, None, "model context" if context else "range", why, shown)
    why = f"with more than {value:,} {unit} the cache of {each} does not fit beside the weights"
    return _Furthest(plan_at, value, least, value + 1, "kv_cache", why, shown)


def _kept_by(reason: str, engine: str, wanted: Inference) -> tuple[str, str]:
    """(What a limit is named by, what happens beyond it) of what keeps requests from running within the limits."""
    if reason in _LATENCIES:
        return f"{reason}_slo_ms", _exceeded(reason, wanted)
    if reason == "throughput":
        return "max_batch", f"some wait for others to end: {engine} runs no more in a step"
    return "kv_cache", "the caches of all of them do not fit beside the weights at once"


def _exceeded(reason: str, wanted: Inference) -> str:
    """'time per output token exceeds its limit of 50.0 ms'."""
    most_ms = getattr(wanted, f"{reason}_slo_ms", None)
    return f"{_LATENCIES[reason]} exceeds its limit{f' of {seconds(most_ms / 1e3)}' if most_ms else ''}"


def _with_prompt(plan: Plan, value: int) -> Plan:
    """The plan with a prompt of so many tokens; a context that was wanted gives way to it."""
    return plan.patch({"workload.input_len": max(1, value), "workload.max_context": None})


def _last(fits: Callable[[Floats], np.ndarray], low: int, high: int, points: int) -> int | None:
    """The last whole number in [low, high] for which the monotone `fits` holds, several tried in each call."""
    good: int | None = None
    while True:
        step = np.linspace(low, high, points) if high - low < 1000 else np.geomspace(low, high, points)
        values = np.unique(np.round(step))
        able = fits(values)
        if not able[0]:
            return good
        last = int(np.flatnonzero(np.logical_and.accumulate(able))[-1])
        good = int(values[last])
        if last == len(values) - 1 or int(values[last + 1]) == good + 1:
            return good
        low, high = good, int(values[last + 1]) - 1
        if low == high:
            return good


def _most_at_once(plan: Plan) -> _Furthest:
    """The most requests in flight that all have room, and that meet the limits of latency where there are any."""
    open_plan = plan.patch({"workload.request_rate": None, "workload.concurrency": 1})
    job = serving_job(open_plan)
    candidates, slo = deployments(job), slo_of(open_plan.inference)
    memory = serving_memory(job, candidates)
    room = np.where(memory.fits, memory.max_concurrency, 0.0)
    engine = np.floor(candidates.max_batch) * candidates.lanes
    limit, reasons = most_clients(job, candidates, slo)
    slow = limit if slo.limits_any else np.full(len(candidates), np.inf)
    most = np.minimum(np.minimum(room, engine), slow)
    best = int(np.argmax(most))
    value = int(min(most[best], 10_000_000))

    def plan_at(wanted: Any) -> Plan:
        return open_plan.patch({"workload.concurrency": wanted})

    rows = zip(most, memory.total, strict=True)
    probes = [LimitProbe(value=int(min(n, 1e7)), fits=n >= 1.0, per_device_bytes=float(b), why=None) for n, b in rows]
    if value < 1:
        by = reasons[best] if room[best] >= 1.0 and reasons[best] in ("ttft", "tpot") else "kv_cache"
        return _Furthest(
            plan_at, None, 1, 1, by, "not even one request fits" if by == "kv_cache" else "one is too slow"
        )
    if reasons[best] in ("ttft", "tpot") and slow[best] <= min(room[best], engine[best]):
        by = f"{reasons[best]}_slo_ms"
        why = f"with one more the {_exceeded(str(reasons[best]), open_plan.inference)}"
    elif engine[best] < room[best]:
        by, why = (
            "max_batch",
            f"{job.engine.name} runs no more than {int(candidates.max_batch[best])} requests in a step",
        )
    else:
        by, why = "kv_cache", "the KV cache of one more request does not fit beside the weights"
    # The layout that has room for them is part of the answer.
    row = candidates.row(best)

    def placed(wanted: Any) -> Plan:
        return plan_at(wanted).patch({"layout": row})

    return _Furthest(placed, value, 1, value + 1, by, why, probes)


def _largest_model(plan: Plan, candidates: ModelCandidates) -> _Furthest:
    rows, scope = candidates.models, candidates.assumption
    probes: list[LimitProbe] = []
    best = None
    for place, row in enumerate(rows):
        probes.append(_probe(row.id, plan.patch({"model": row.id})))
        if probes[-1].fits:
            best = place
            break

    def plan_at(value: Any) -> Plan:
        return plan.patch({"model": value})

    smallest = rows[-1].id
    if best is None:
        why = "the smallest of those considered does not fit"
        return _Furthest(plan_at, None, smallest, smallest, "weights", why, probes, [scope])
    value = rows[best].id
    larger = next((probe for probe in reversed(probes[:-1]) if probe.why is None), None)
    if larger is None:
        why = f"{value} is the largest of the {len(rows)} models considered, and it fits"
        return _Furthest(plan_at, value, smallest, None, "catalogue", why, probes, [scope])
    need = gib(larger.per_device_bytes or 0.0)
    why = f"{larger.value} would take {need} per device even in the layout that needs least"
    return _Furthest(plan_at, value, smallest, larger.value, "weights", why, probes, [scope])


def _fewest_devices(plan: Plan) -> _Furthest:
    """Parts of a node, then powers of two of whole nodes, until the plan fits and meets its limits of latency."""
    name = plan.cluster.accelerator
    if name is None:
        raise no_accelerator()
    node = plan.cluster.per_node or find_devices(name).match.value.per_node
    node = max(node, 1)
    counts = [*divisors(node), *(node * 2**power for power in range(1, 17) if node * 2**power <= _MOST_DEVICES)]

    def plan_at(value: Any) -> Plan:
        return plan.patch({"cluster.count": value})

    rooms = _Rooms(plan_at, plan.inference.concurrency or 1)
    probes, slow = rooms.fewest(counts, whole=counts.index(node))
    last = probes[-1]
    before = probes[-2] if len(probes) > 1 else None
    if not last.fits:
        by = "latency" if slow else "weights"
        why = f"no number of these devices up to {counts[-1]:,} is enough"
        return _Furthest(plan_at, None, 1, None, by, why, probes)
    value, clients = int(last.value), plan.inference.concurrency or 1

    seen = rooms.seen | {value: rooms.at(value)}
    if before is None:
        why = "it fits on a single device"
        return _Furthest(plan_at, value, 1, None, "range", why, probes, seen=seen)
    by, why = "latency", f"on {before.value} devices it fits, but the latency limits are missed"
    if before.why is not None:
        by, why = "layout", before.why
    elif before.per_device_bytes and not rooms.usual(before.value).fits:
        need = gib(before.per_device_bytes)
        by, why = "weights", f"on {before.value} devices even the layout that needs least takes {need} per device"
    elif not _held(plan_at(before.value))[2].any():
        by = "kv_cache"
        why = f"on {before.value} devices the cache of {clients:,} requests at once does not fit beside the weights"
    return _Furthest(plan_at, value, 1, before.value, by, why, probes, seen=seen)


def _smallest_card(plan: Plan) -> _Furthest:
    """The card with the least memory of which as many as the plan counts (one, unless it says) hold it, and keep its
    limits of latency."""
    count, limited = plan.cluster.count or 1, slo_of(plan.inference).limits_any
    probes: list[LimitProbe] = []
    late: set[str] = set()

    def plan_at(value: Any) -> Plan:
        return plan.patch({"cluster.accelerator": value, "cluster.count": count})

    def fits(id: str) -> bool:
        probe = _probe(id, plan_at(id))
        if limited and probe.fits and plan_serving(plan_at(id)).meets_slo is False:
            late.add(id)
        probes.append(probe.model_copy(update={"fits": probe.fits and id not in late}))
        return probes[-1].fits

    least = smallest(fits)
    below = least.below and least.below.id
    by = "range" if below is None else "latency" if below in late else "weights"
    value = least.card and least.card.id
    why = least.why if value else "no card is large enough"
    return _Furthest(plan_at, value, cards()[-1].id, below, by, why, probes, [SCOPE], alike=least.alike)


def _held(plan: Plan) -> tuple[Deployments, ServingMemory, np.ndarray]:
    """(Layouts, their memory, which of them have room for all requests of the plan's clients at once)."""
    job = serving_job(plan)
    candidates = deployments(job)
    memory = serving_memory(job, candidates)
    return candidates, memory, memory.fits & (memory.max_concurrency >= (plan.inference.concurrency or 1))


@dataclass
class _Rooms:
    """Plans with numbers of devices, each looked at once."""

    plan_at: Callable[[Any], Plan]
    clients: int
    seen: dict[Any, Served] = field(default_factory=dict)
    places: dict[tuple[float, ...], int] = field(default_factory=dict)
    known: Loads | None = None

    def usual(self, count: Any) -> Served:
        if count not in self.seen:
            self.seen[count] = plan_serving(self.plan_at(count), known=self._loads)
        return self.seen[count]

    def _loads(self, job: ServingJob, these: Deployments) -> Loads | None:
        """Of lanes that were looked at with more devices: they are the same however many there are."""
        if job.inference.request_rate is None:
            return None
        rows = list(zip(*(getattr(these, name).tolist() for name in ("tp", "pp", "ep", "dp")), strict=True))
        if self.known is None or not all(row in self.places for row in rows):
            self.known, self.places = loads_of(job, these), {row: place for place, row in enumerate(rows)}
        return self.known.take(np.array([self.places[row] for row in rows]))

    def at(self, count: Any) -> Served:
        """The plan as it is where the layout that is taken for it has room for all clients, else in the roomiest."""
        usual = self.usual(count)
        if usual.fits and memory_of(usual).max_concurrency >= self.clients:
            return usual
        plan = self.plan_at(count)
        candidates, memory, _ = _held(plan)
        roomiest = candidates.row(int(np.argmax(np.where(memory.fits, memory.max_concurrency, 0.0))))
        return plan_serving(plan.patch({"layout": roomiest}))

    def late(self, count: int) -> bool:
        """Whether its limits of latency are missed."""
        return self.at(count).meets_slo is False

    def fewest(self, counts: list[int], whole: int) -> tuple[list[LimitProbe], bool]:
        """What was tried, up to the first of `counts` that has room and keeps the limits or to the last of them; and
        whether that is too slow. From place `whole` on each is twice the one before."""
        probes: list[LimitProbe] = []
        late = False
        for place, count in enumerate(counts):
            probe = _probe(count, self.plan_at(count))
            late = self.late(count) if probe.fits else late
            probes.append(probe.model_copy(update={"fits": probe.fits and not late}))
            if probe.fits and late and place >= whole and not self.at(count).job.engine.splits_layers:
                more, late = self._in_time(counts[place:])
                return [*probes, *more], late
            if probes[-1].fits:
                break
        return probes, late

    def _in_time(self, counts: list[int]) -> tuple[list[LimitProbe], bool]:
        """The same behind the first of counts that each are twice the one before, where that is too slow: twice the
        replicas share the load, so what keeps the limits keeps them on twice as many devices, and what the most
        devices miss all do."""
        low, high = 0, len(counts) - 1
        late = self.late(counts[high])
        while high - low > 1 and not late:
            middle = (low + high) // 2
            low, high = (middle, high) if self.late(counts[middle]) else (low, middle)
        probes = [_probe(count, self.plan_at(count)) for count in counts[1 : high + 1]]
        last = len(probes) - 1
        return [probe.model_copy(update={"fits": at == last and not late}) for at, probe in enumerate(probes)], late


def _probe(value: int | str, plan: Plan) -> LimitProbe:
    """Whether any layout fits with all requests of the plan's clients at once, and bytes per device of the one that
    needs least; or why no layout is valid."""
    try:
        _, memory, holds = _held(plan)
    except PlanError as error:
        return LimitProbe(value=value, fits=False, per_device_bytes=None, why=" ".join(str(error).split()))
    return LimitProbe(value=value, fits=bool(holds.any()), per_device_bytes=float(memory.total.min()), why=None)


def _next(furthest: _Furthest, value: int | str) -> NextValue:
    """The nearest value that does not fit, with the memory of the layout that is nearest to fitting."""
    row = NextValue(value=value, per_device_bytes=None, high_bytes=None, components={}, stage=None, why=None)
    try:
        memory = memory_of(furthest.served(value))
    except PlanError as error:
        row.why = " ".join(str(error).split())
        return row
    row.per_device_bytes = row.high_bytes = memory.per_device_bytes
    row.components = memory.components
    return row
