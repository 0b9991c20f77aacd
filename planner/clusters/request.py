"""What recommend_cluster and auto_configure are asked: the plan without its cluster, filters and limits."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from estimator.errors import PlanError, nearest
from estimator.machine.hardware import Accelerator, Price
from estimator.plan.schema import Inference, Plan, Training, merge
from estimator.units import GIB
from knowledge.machines.catalogue import accelerators, find_accelerator
from knowledge.prices.book import prices, providers
from planner.asked.clusters import Where
from planner.clusters.results import ClusterRejected, Why
from planner.money.owned import metered_kw
from planner.money.purchase import OWNED, purchase
from planner.named import counted
from planner.result import Assumption
from planner.training.length import with_data

# A run that is done by the next morning, or by the end of a working day, is not worth more money where nobody hurries.
UNHURRIED_H = 8.0
# What belongs to the cluster that a plan names, and is chosen anew with another one.
_SECTIONS = ("cluster", "layout")
_SETTLED = ("framework", "micro_batch")


@dataclass(frozen=True)
class Asked:
    """The plan whose cluster is open, the devices to try, how many, and the limits (None: none)."""

    plan: Plan
    devices: list[Accelerator]
    rejected: list[ClusterRejected]
    assumptions: list[Assumption]
    providers: tuple[str, ...] | None
    named: bool
    count: int | None
    max_devices: int | None
    max_nodes: int | None
    max_usd_per_hour: float | None
    max_kw: float | None
    known: dict[str, Any] = field(default_factory=dict)
    """What screening found, by the plan without its limits."""

    @property
    def buys(self) -> bool:
        """Whether machines are bought: the budget is what they may cost."""
        return self.providers == (OWNED,)

    @property
    def max_usd(self) -> float | None:
        return self.plan.goal.budget_usd

    @property
    def unhurried_h(self) -> float:
        """Hours up to which runs are balanced alike; 0 for what has no end."""
        workload = self.plan.workload
        return UNHURRIED_H if isinstance(workload, Training) and self.ends else 0.0

    @property
    def ends(self) -> bool:
        """Whether the length of a training run is known."""
        workload = self.plan.workload
        if not isinstance(workload, Training):
            return False
        return any(each is not None for each in (workload.dataset_tokens, workload.dataset_samples, workload.steps))

    @property
    def busy_share(self) -> float | None:
        """The part of all hours that bought machines work; None where nothing goes on for good."""
        workload = self.plan.workload
        goes_on = isinstance(workload, Inference) and workload.requests is None
        return self.plan.goal.free_share if goes_on else None

    @property
    def deadline_h(self) -> float | None:
        return self.plan.goal.free_h

    @property
    def limit_names(self) -> list[str]:
        """Of the limits that the plan sets to the whole."""
        limits = {"deadline": self.deadline_h, "budget": self.max_usd}
        return [name for name, limit in limits.items() if limit is not None]

    def most(self, per_node: int, device: Accelerator) -> int | None:
        """Most devices of a kind in nodes of `per_node`."""
        limits = [self.max_devices, None if self.max_nodes is None else self.max_nodes * per_node]
        kw = None if self.max_kw is None else metered_kw(device)
        limits.append(None if self.max_kw is None or kw is None else int(self.max_kw / kw))
        if self.buys and self.max_usd is not None and (sold := purchase(device)):
            limits.append(max(sold.unit, int(self.max_usd / sold.device_usd)))
        return min((limit for limit in limits if limit is not None), default=None)

    def kw(self, device: Accelerator, count: int) -> float | None:
        """Of so many of them, where power is limited."""
        each = None if self.max_kw is None else metered_kw(device)
        return None if each is None else each * count

    def estimates(self, accelerator: str) -> bool:
        """Whether it is estimated: those without a price only where they, or their vendor, were named."""
        return self.named or self.rents(accelerator)

    def rents(self, accelerator: str) -> bool:
        """Whether somebody (of the providers) rents it out at a known price, or sells it where it is to be bought."""
        offered = self.offered(accelerator)
        return any((price.capex_usd if self.buys else price.usd_per_hour) is not None for price in offered)

    def offered(self, accelerator: str) -> list[Price]:
        """Rentable rows of the price book (of the providers), with a price or without; those for sale where machines
        are bought."""
        return self._listed.get(accelerator, [])

    @cached_property
    def _listed(self) -> dict[str, list[Price]]:
        """By the accelerator."""
        rows: dict[str, list[Price]] = defaultdict(list)
        for price in prices():
            if (price.provider == OWNED) == self.buys and (self.providers is None or price.provider in self.providers):
                rows[price.accelerator].append(price)
        return dict(rows)


def asked(request: Where, keep: bool = False) -> Asked:
    """What the request asks. The cluster in its `plan` is what is asked for, and left out; with `keep` it is what there
    is, as one that is named flat. Raises PlanError for a name that is not known, or a plan that is not valid."""
    plan, assumptions = _plan(request, keep)
    plan, read = counted(plan)
    assumptions += read
    accelerator, count = plan.cluster.accelerator, plan.cluster.count
    plan = plan.patch({"cluster.accelerator": None, "cluster.count": None})
    names = request.accelerators or ([accelerator] if accelerator else None)
    wanted = request.providers or ([plan.goal.provider] if plan.goal.provider else None)
    field = "providers" if request.providers else "goal.provider"
    chosen = None if wanted is None else tuple(_known(name, providers(), field) for name in wanted)
    if chosen and OWNED in chosen and len(chosen) > 1:
        raise PlanError(field, "has owned beside others: machines are bought or rented in one search", [OWNED])
    if request.max_usd is not None:
        plan = plan.patch({"goal.budget_usd": request.max_usd})
    if isinstance(plan.workload, Training) and (plan.goal.budget_usd or plan.goal.deadline_h):
        plan, tokens = with_data(plan)
        assumptions += tokens
    ask = Asked(
        plan=plan,
        devices=[],
        rejected=[],
        assumptions=assumptions,
        providers=chosen,
        named=bool(names or request.vendors),
        count=count,
        max_devices=request.max_devices,
        max_nodes=request.max_nodes,
        max_usd_per_hour=request.max_usd_per_hour,
        max_kw=request.max_kw,
    )
    ask.devices.extend(_devices(request, ask, names))
    return ask


def _plan(request: Where, keep: bool) -> tuple[Plan, list[Assumption]]:
    """The plan, without the cluster that stands in `plan` and what belongs to it unless `keep`; what is named flat
    stays."""
    whole = request.to_plan()  # in any case: what is left out must be valid too
    if keep:
        return whole, []
    data = merge({}, request.plan or {})
    assumptions = []
    for section in _SECTIONS:
        if data.pop(section, None):
            why = "the one in the plan is left out: it is what is asked for; name fields flat to keep them"
            assumptions.append(Assumption(field=section, value=None, why=why))
    workload = data.get("workload")
    if assumptions and isinstance(workload, dict):
        data["workload"] = {name: value for name, value in workload.items() if name not in _SETTLED}
    return request.model_copy(update={"plan": data}).to_plan(), assumptions


def _known(name: str, choices: Sequence[str], field: str) -> str:
    """The choice that a name means in any case. Raises PlanError."""
    by_folded = {choice.casefold(): choice for choice in choices}
    match = by_folded.get(name.strip().casefold())
    if match is None:
        raise PlanError(field, f"{name[:60]!r} is not known", nearest(name[:60], choices, limit=len(choices)))
    return match


def _devices(request: Where, ask: Asked, names: Sequence[str] | None) -> Iterator[Accelerator]:
    """The accelerators that the filters leave; what they take out goes to the rejected."""
    every = accelerators()
    named = None if names is None else {_accelerator(name) for name in names}
    vendors = sorted({device.vendor for device in every})
    makers = None if request.vendors is None else {_known(name, vendors, "vendors") for name in request.vendors}
    least = 0.0 if request.least_memory_gib is None else request.least_memory_gib * GIB
    rules: list[tuple[Why, str, Callable[[Accelerator], bool]]] = [
        (
            "filtered",
            "not among the accelerators asked for",
            lambda device_there: named is None or device_there.id in named,
        ),
        ("filtered", "of another vendor", lambda device_there: makers is None or device_there.vendor in makers),
        (
            "filtered",
            f"less than {least / GIB:g} GiB of memory",
            lambda device_there: device_there.memory_bytes >= least,
        ),
        (
            "filtered",
            f"draws more than {request.max_kw or 0.0:g} kW, or its power is not known",
            lambda device_there: request.max_kw is None or _within_kw(device_there, ask.count or 1, request.max_kw),
        ),
        (
            "not_offered",
            "no price is known to buy it"
            if ask.buys
            else f"not rented out by {', '.join(ask.providers or ())} in the price book",
            lambda device_there: (
                ask.providers is None
                or (ask.rents(device_there.id) if ask.buys else bool(ask.offered(device_there.id)))
            ),
        ),
        (
            "not_tried",
            "a CPU: name it in accelerators to have it tried",
            lambda device_there: device_there.family != "CPU" or bool(named),
        ),
        (
            "not_tried",
            "announced, with figures from before release: name it in accelerators to have it tried",
            lambda device_there: not device_there.announced or bool(named),
        ),
    ]
    taken: dict[str, ClusterRejected] = {}
    for device in every:
        failed: tuple[Why, str] | None = next(
            ((reason, why) for reason, why, holds in rules if not holds(device)), None
        )
        if failed is None:
            yield device
            continue
        row = taken.setdefault(failed[1], ClusterRejected(accelerators=[], reason=failed[0], why=failed[1]))
        row.accelerators.append(device.id)
    ask.rejected.extend(taken.values())


def _within_kw(device: Accelerator, count: int, most_kw: float) -> bool:
    kw = metered_kw(device)
    return kw is not None and count * kw <= most_kw


def _accelerator(name: str) -> str:
    try:
        return find_accelerator(name).value.id
    except PlanError as error:
        raise PlanError("accelerators", error.problem, error.valid) from None


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
