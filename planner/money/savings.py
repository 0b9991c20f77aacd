"""How a training run would cost less: what gives up least comes first, each an estimate of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from estimator.errors import PlanError
from knowledge.figures import percent, whole
from knowledge.models.catalogue import facts_of, models
from planner.change import OPEN_LAYOUT
from planner.money.choice import Chosen, called
from planner.money.offers import PriceKind, cheapest, in_order, usd_of
from planner.money.results import Saving
from planner.result import ProviderCost
from planner.training.deciding import other_frameworks
from planner.training.planned import Planned, plan_training
from planner.training.run import FailureTerms, clock_hours, step_hours

# Less than this is within what is known of the speed.
_LEAST = 0.03
_SMALLER_MODELS = 2
# Of the parameters, at the most: less of a difference saves little.
_SMALLER = 0.8
_KINDS: dict[PriceKind, str] = {
    "spot": "instances are taken away; the hours are with that",
    "reserved": "rented for the whole term",
    "reserved_3y": "rented for three years",
    "community": "machines of others, that come and go",
}


@dataclass(frozen=True)
class _Way:
    way: str
    what: str
    gives_up: str
    changes: dict[str, Any]


def savings(planned: Planned, rows: list[ProviderCost], chosen: Chosen, failures: FailureTerms) -> list[Saving]:
    """Ways to pay less than what was chosen for the run; `rows` are the offers, `failures` what the bill takes of them.
    Empty where no price is known."""
    usd, rate, budget = chosen.usd, chosen.usd_per_hour, planned.job.plan.goal.budget_usd
    if not usd or not rate:
        return []
    ways = [*_frameworks(planned), *_less_exact(planned), *_smaller_models(planned)]
    tried = [*_other_prices(rows, chosen), *filter(None, (_tried(planned, way, rate, failures) for way in ways))]
    best: dict[str, Saving] = {}
    for saving in tried:
        if saving.usd < min(usd * (1.0 - _LEAST), best[saving.way].usd if saving.way in best else math.inf):
            best[saving.way] = saving
    if budget is not None and usd > budget and (fewer := _fewer_tokens(planned, rate, failures, budget / usd)):
        best["data"] = fewer
    for saving in best.values():
        saving.within_budget = None if budget is None else saving.usd <= budget
    return list(best.values())


def _other_prices(rows: list[ProviderCost], chosen: Chosen) -> Iterator[Saving]:
    """The cheapest offer of each other kind of price."""
    for kind, gives_up in _KINDS.items():
        row = cheapest(in_order(rows, kind), kind)
        usd = None if row is None else usd_of(row, kind)
        if kind == chosen.kind or row is None or usd is None or row.joined is False:
            continue
        hours = row.spot_hours if kind == "spot" and row.spot_hours else chosen.hours
        what = f"{called(kind)} {row.instance} of {row.provider}"
        yield Saving(way=kind, what=what, gives_up=gives_up, patch={}, usd=usd, hours=hours)


def _frameworks(planned: Planned) -> Iterator[_Way]:
    for name in other_frameworks(planned.job):
        yield _Way("framework", name, "another framework", {"workload.framework": name, **OPEN_LAYOUT})


def _less_exact(planned: Planned) -> Iterator[_Way]:
    training = planned.job.training
    if training.precision == "bf16" and "fp8" in planned.job.machine.accelerator.peak_flops:
        yield _Way("precision", "fp8", "exact matmuls: watch the loss", {"workload.precision": "fp8", **OPEN_LAYOUT})
    if training.method == "full" and training.stage != "pretrain":
        yield _Way("method", "LoRA", "what adapters cannot learn", {"workload.method": "lora", **OPEN_LAYOUT})


def _smaller_models(planned: Planned) -> Iterator[_Way]:
    """The next smaller ones of the family."""
    facts = facts_of(planned.job.architecture.id)
    if facts is None or not facts.parameters or not facts.family:
        return
    sizes = {row.id: row.parameters for row in models() if row.family == facts.family and row.parameters}
    smaller = sorted((size, id) for id, size in sizes.items() if size < _SMALLER * facts.parameters)
    for _, id in smaller[-_SMALLER_MODELS:]:
        yield _Way("model", id, "a smaller model", {"model": id, **OPEN_LAYOUT})


def _tried(planned: Planned, way: _Way, usd_per_hour: float, failures: FailureTerms) -> Saving | None:
    """On the same devices; None where that cannot be or does not fit."""
    try:
        other = plan_training(planned.job.plan.patch(way.changes), offload=False)
        hours = clock_hours(other.job, step_hours(other)[0], failures)
    except PlanError:
        return None
    if not other.fits:
        return None
    patch = {name: value for name, value in way.changes.items() if value is not None}
    return Saving(way=way.way, what=way.what, gives_up=way.gives_up, patch=patch, usd=usd_per_hour * hours, hours=hours)


def _fewer_tokens(planned: Planned, usd_per_hour: float, failures: FailureTerms, share: float) -> Saving | None:
    """As many tokens, to two digits, as the budget pays for."""
    run, training = planned.job.run, planned.job.training
    if run is None or training.dataset_tokens is None:
        return None
    tokens = training.dataset_tokens * share
    digit = 10.0 ** (math.floor(math.log10(tokens)) - 1)
    tokens = math.floor(tokens / digit) * digit
    gives_up = f"{percent(1.0 - tokens / training.dataset_tokens)} of the data"
    way = _Way("data", f"{whole(tokens)} tokens", gives_up, {"workload.dataset_tokens": tokens})
    return _tried(planned, way, usd_per_hour, failures)
