"""How a training run would cost less or be done sooner, and what more money would buy: each way an estimate of its own,
what gives up least first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from estimator.errors import PlanError
from knowledge.figures import count, percent, usd
from knowledge.machines.catalogue import accelerators
from planner.change import OPEN_LAYOUT
from planner.money.choice import Chosen, called, whole_term_usd
from planner.money.offers import PriceKind, cheapest, in_order, offers, usd_of
from planner.money.results import Saving
from planner.result import ProviderCost
from planner.training.neighbours import family_sizes, neighbour, other_frameworks
from planner.training.planned import Planned
from planner.training.programs import has_program
from planner.training.run import FailureTerms, clock_hours, step_hours

# Less than this is within what is known of the speed.
_LEAST = 0.03
_KINDS: dict[PriceKind, str] = {
    "spot": "instances are taken away; the hours are with that",
    "flex_start": "a queue before it starts",
    "reserved": "rented for the whole term",
    "reserved_3y": "rented for three years",
    "community": "other people's machines, which come and go",
}
_TIMES_DEVICES = (2, 4, 8)
_OTHER_DEVICES = 3
# Plans within the budget that are looked for where the run is not.
_WITHIN = 3


@dataclass(frozen=True)
class _Way:
    """`elsewhere` says that the devices are others, or another number of them, and cost what they are offered for."""

    way: str
    what: str
    gives_up: str
    changes: dict[str, Any]
    elsewhere: bool = False


@dataclass(frozen=True)
class PaidRun:
    """A run as it was planned and is paid for: `rows` are the offers, `failures` what the bill takes of them."""

    planned: Planned
    rows: list[ProviderCost]
    chosen: Chosen
    failures: FailureTerms

    @property
    def budget(self) -> float | None:
        return self.planned.job.plan.goal.budget_usd


def savings(run: PaidRun) -> list[Saving]:
    """Ways to pay less than what was chosen for the run. Empty where no price is known."""
    cost = run.chosen.usd
    if not cost or not run.chosen.usd_per_hour:
        return []
    less = [*_less_exact(run.planned), *_other_models(run.planned, larger=False)]
    tried = [*_each(run, _frameworks(run.planned)), *_other_prices(run), *_each(run, less)]
    best = _best(tried, lambda saving: saving.usd, cost * (1.0 - _LEAST))
    if run.budget is not None and cost > run.budget:
        best |= _with_fewer_tokens(run, cost, run.budget, best.values())
    return _held(run, best)


def _with_fewer_tokens(run: PaidRun, cost: float, budget: float, tried: Iterable[Saving]) -> dict[str, Saving]:
    """As many tokens as the budget pays for, alone and with what is not enough alone: what keeps most of the data
    first, until so many plans are within the budget as are told."""
    tried = list(tried)
    dear = sorted((each for each in tried if each.patch and each.usd > budget), key=lambda each: each.usd)
    plans = {"data": _affordable(run, budget, cost)} | {
        f"{each.way} and data": _affordable(run, budget, each.usd, each) for each in dear
    }
    enough = _WITHIN - sum(each.usd <= budget for each in tried)
    kept = [(key, each) for key, each in plans.items() if each is not None]
    return dict(kept[: max(1, enough)])


def speedups(run: PaidRun) -> list[Saving]:
    """Ways to be done sooner; those with other devices cost what these are offered for."""
    if not run.chosen.usd_per_hour:
        return []
    ways = [
        *_frameworks(run.planned), *_settings(run.planned), *_more_devices(run.planned), *_devices(run.planned),
        *_less_exact(run.planned), *_other_models(run.planned, larger=False),
    ]  # fmt: skip
    tried, deadline_h = list(_each(run, ways)), run.planned.job.plan.goal.free_h
    best = _best(tried, lambda saving: saving.hours, run.chosen.hours * (1.0 - _LEAST))
    if deadline_h is not None and run.chosen.hours > deadline_h:
        # Where it is late, of each way the cheapest that is in time: 128 devices where 512 would be sooner.
        in_time = [saving for saving in tried if saving.hours <= deadline_h and saving.way in best]
        best |= _best(in_time, lambda saving: saving.usd, math.inf)
        if not any(saving.way != "model" for saving in in_time):
            # Neither alone is soon enough: another framework on more devices.
            both = (saving for saving in _each(run, _framework_and_devices(run.planned)) if saving.hours <= deadline_h)
            best |= _best(both, lambda saving: saving.usd, math.inf)
    for saving in best.values():
        more = saving.usd - (run.chosen.usd or 0.0)
        if not saving.gives_up:
            saving.gives_up = f"{usd(more)} more" if more > 0 else "nothing that is known"
    return _held(run, best)


def bought(run: PaidRun, more_usd: float) -> list[Saving]:
    """What so much more money would buy, each alone: an earlier end, more data, a larger model."""
    cost = run.chosen.usd
    if not cost or not run.chosen.usd_per_hour:
        return []
    most = cost + more_usd

    def within(rows: Iterable[Saving]) -> list[Saving]:
        return [saving for saving in rows if saving.usd <= most]

    sooner = within(_each(run, [*_more_devices(run.planned), *_devices(run.planned)]))
    best = _best(sooner, lambda saving: saving.hours, run.chosen.hours * (1.0 - _LEAST))
    larger = within(_each(run, _other_models(run.planned, larger=True)))
    # The largest that the money pays for: ways come by size.
    best |= {saving.way: saving for saving in larger}
    if more := _affordable(run, most, cost):
        best["data"] = more
    for saving in best.values():
        saving.gives_up = _spent(saving.usd - cost)
    return _held(run, best)


def _spent(more: float) -> str:
    return f"{usd(more)} more" if more >= 0.0 else f"nothing: it costs {usd(-more)} less"


def _best(rows: Iterable[Saving], of: Callable[[Saving], float], below: float) -> dict[str, Saving]:
    """The least of each way, where it is below that."""
    best: dict[str, Saving] = {}
    for saving in rows:
        if of(saving) < min(below, of(best[saving.way]) if saving.way in best else math.inf):
            best[saving.way] = saving
    return best


def _held(run: PaidRun, best: dict[str, Saving]) -> list[Saving]:
    deadline_h = run.planned.job.plan.goal.free_h
    for saving in best.values():
        saving.within_budget = None if run.budget is None else saving.usd <= run.budget
        saving.within_deadline = None if deadline_h is None else saving.hours <= deadline_h
    return list(best.values())


def _each(run: PaidRun, ways: Iterable[_Way]) -> Iterator[Saving]:
    yield from filter(None, (_tried(run, way) for way in ways))


def _other_prices(run: PaidRun) -> Iterator[Saving]:
    """The cheapest offer of each other kind of price."""
    for kind, gives_up in _KINDS.items():
        row = cheapest(in_order(run.rows, kind), kind)
        cost = None if row is None else usd_of(row, kind)
        if kind == run.chosen.kind or row is None or cost is None or row.joined is False:
            continue
        if (whole_term_usd(row, kind, run.chosen.hours) or 0.0) > (run.chosen.usd or 0.0):
            continue  # What is left of the term is paid for too.
        hours = row.spot_hours if kind == "spot" and row.spot_hours else run.chosen.hours
        what = f"{called(kind)} {row.instance} of {row.provider}"
        if kind == "reserved" and row.reserved_term:
            gives_up = f"{gives_up}, {row.reserved_term}"
        yield Saving(way=kind, what=what, gives_up=gives_up, patch={}, usd=cost, hours=hours)


def _frameworks(planned: Planned) -> Iterator[_Way]:
    for name in (name for name in other_frameworks(planned.job) if has_program(planned.plan, name)):
        yield _Way("framework", name, "another framework", {"workload.framework": name, **OPEN_LAYOUT})


def _framework_and_devices(planned: Planned) -> Iterator[_Way]:
    for name in _frameworks(planned):
        for more in _more_devices(planned):
            changes = more.changes | name.changes
            yield _Way("devices", f"{more.what} with {name.what}", name.gives_up, changes, elsewhere=True)


def _settings(planned: Planned) -> Iterator[_Way]:
    training = planned.job.training
    if not training.compile:
        yield _Way("compile", "torch.compile", "minutes at the start", {"workload.compile": True, **OPEN_LAYOUT})
    if training.attention == "flash" and planned.job.machine.accelerator.family == "Hopper":
        changes = {"workload.attention": "flash3", **OPEN_LAYOUT}
        yield _Way("attention", "FlashAttention 3", "another kernel to install", changes)


def _more_devices(planned: Planned) -> Iterator[_Way]:
    machine = planned.job.machine
    for times in _TIMES_DEVICES:
        count = machine.count * times
        changes = {"cluster.count": count, **OPEN_LAYOUT}
        yield _Way("devices", f"{count} x {machine.accelerator.id}", "", changes, elsewhere=True)


def _devices(planned: Planned) -> Iterator[_Way]:
    """As many of the next faster ones of the same maker."""
    machine = planned.job.machine
    here = machine.accelerator
    rate = here.peak_flops.get("bf16") or 0.0
    faster = [
        device
        for device in accelerators()
        if device.vendor == here.vendor and not device.announced and device.form_factor != "PCIe"
        and (device.peak_flops.get("bf16") or 0.0, device.memory_bandwidth) > (rate, here.memory_bandwidth)
        and device.per_node == here.per_node
    ]  # fmt: skip
    faster.sort(key=lambda device: (device.peak_flops.get("bf16") or 0.0, device.memory_bandwidth))
    for device in faster[:_OTHER_DEVICES]:
        changes = {"cluster.accelerator": device.id, "cluster.interconnect": "auto", **OPEN_LAYOUT}
        yield _Way("device", f"{machine.count} x {device.id}", "", changes, elsewhere=True)


def _less_exact(planned: Planned) -> Iterator[_Way]:
    training = planned.job.training
    if training.precision == "bf16" and "fp8" in planned.job.machine.accelerator.peak_flops:
        yield _Way("precision", "fp8", "exact matmuls: watch the loss", {"workload.precision": "fp8", **OPEN_LAYOUT})
    if training.method == "full" and training.stage != "pretrain":
        yield _Way("method", "LoRA", "what adapters cannot learn", {"workload.method": "lora", **OPEN_LAYOUT})


def _other_models(planned: Planned, *, larger: bool) -> Iterator[_Way]:
    for id in family_sizes(planned.job.architecture.id, larger=larger):
        yield _Way("model", id, "a smaller model", {"model": id, **OPEN_LAYOUT})


def _tried(run: PaidRun, way: _Way) -> Saving | None:
    """None where that cannot be, does not fit, or has no price."""
    other = neighbour(run.planned, way.changes)
    if other is None or not other.fits:
        return None
    try:
        hours = clock_hours(other.job, step_hours(other)[0], run.failures)
    except PlanError:
        return None
    rate = _rate(run, other) if way.elsewhere else run.chosen.usd_per_hour
    if rate is None:
        return None
    patch = {name: value for name, value in way.changes.items() if value is not None}
    return Saving(way=way.way, what=way.what, gives_up=way.gives_up, patch=patch, usd=rate * hours, hours=hours)


def _rate(run: PaidRun, other: Planned) -> float | None:
    """USD an hour of other devices, or another number of them, at the same kind of price."""
    here, there = run.planned.job.machine, other.job.machine
    kind = run.chosen.kind
    if kind in ("own", "owned"):
        same = here.accelerator.id == there.accelerator.id
        return (run.chosen.usd_per_hour or 0.0) * there.count / here.count if same else None
    # Of spot the interruptions grow with the machines, which only a bill of its own knows: on demand is told.
    kind = "on_demand" if kind == "spot" else kind
    row = cheapest(in_order(offers(other, 1.0), kind), kind)
    return None if row is None or row.joined is False else usd_of(row, kind)


def _affordable(run: PaidRun, most: float, cost: float, beside: Saving | None = None) -> Saving | None:
    """As many tokens as that pays for, where all of them, with what else changes, come to `cost`."""
    fewer, tokens = _tokens(run, most / cost, beside), run.planned.job.training.dataset_tokens
    if fewer and tokens and fewer.usd > most:
        # A longer run has more failures, and a shorter one a last step that is not full.
        fewer = _tokens(run, fewer.patch["workload.dataset_tokens"] / tokens * most / fewer.usd, beside)
    return fewer if fewer and fewer.usd <= most else None


def _tokens(run: PaidRun, share: float, beside: Saving | None = None) -> Saving | None:
    """As many tokens, to two digits, as so much of the money pays for, `beside` what else changes."""
    tokens = run.planned.job.training.dataset_tokens
    if run.planned.job.run is None or tokens is None:
        return None
    digit = 10.0 ** (math.floor(math.log10(tokens * share)) - 1)
    other = math.floor(tokens * share / digit) * digit
    gives_up = f"{percent(1.0 - other / tokens)} of the data"
    way = _Way("data", f"{count(other)} tokens", gives_up, {"workload.dataset_tokens": other})
    if beside is not None:
        what, gives_up = f"{beside.what}, {way.what}", f"{beside.gives_up}; {gives_up}"
        way = _Way(
            "model" if beside.way == "model" else "data", what, gives_up, OPEN_LAYOUT | beside.patch | way.changes
        )
    return _tried(run, way)
