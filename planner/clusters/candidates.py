"""Clusters before they are estimated exactly: what each would cost and take, and who rents it out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from estimator.machine.hardware import Accelerator, Price
from estimator.money.cost import bill
from estimator.money.ownership import break_even_hours
from estimator.plan.schema import Plan
from knowledge import figures
from knowledge.machines.catalogue import find_accelerator, machine
from knowledge.prices.age import is_stale, old_words
from knowledge.prices.cluster_sizes import by_device
from knowledge.prices.kin import kin_price
from launchers.render import able_targets, is_written
from planner.asked.clusters import Sort
from planner.asked.money import CostTerms
from planner.clock import today
from planner.clusters.request import Asked
from planner.clusters.results import ClusterOption, OtherOffer, Why
from planner.estimates import PlanEstimate
from planner.money.offers import LOOK_UP, joins, of_strangers
from planner.money.owned import owned_cost
from planner.money.purchase import purchase
from planner.money.results import OwnedCost
from planner.money.terms import place_of
from planner.serving.prices import offered
from planner.training.planned import Planned


@dataclass(frozen=True)
class Refusal:
    """Why an accelerator is no option. `least` is what it would need or come to: devices where it does not fit, hours
    where it takes too long, USD where it costs too much; None where that is not known. `look` finds it where that takes
    a search of its own."""

    accelerator: str
    reason: Why
    why: str
    least_known: float | None = None
    look: Callable[[], float | None] | None = None

    @cached_property
    def least(self) -> float | None:
        return self.look() if self.look else self.least_known


Refused = list[Refusal]

MISFIT = "does not fit on any number tried"
# How far a screened candidate may be beyond a limit and still be estimated exactly.
_SLACK = 1.1
OVER_HOURLY = "costs more an hour wherever it fits"
NO_HOURLY = "no price is known, so that it cannot be held to an hourly limit"


@dataclass(frozen=True)
class Hourly:
    """A row of the price book for so many devices: USD an hour, and where they are bought what that costs, and with all
    that it takes to run them for their years of use."""

    price: Price
    usd: float
    capex_usd: float | None = None
    years_usd: float | None = None

    def money(self, hours: float) -> float:
        """What is ranked by: USD of the run, or of machines that are bought of all their years."""
        return self.usd * hours if self.years_usd is None else self.years_usd

    @property
    def place(self) -> tuple[bool, float, bool]:
        """Machines of strangers come after all others, an old price after a newer one that is the same."""
        return of_strangers(self.price.seller), self.usd, is_stale(self.price.price_date, today())


Place = tuple[str, int, int | None, frozenset[str] | None]
# Without a price, without measured runs, what is asked by, money, time.
Rank = tuple[bool, bool, float, float, float]


@dataclass(frozen=True)
class Shape:
    """So many devices in nodes of a size; `per_node` is None where it is the usual one. `sellers` are the providers
    that have nodes of that size only (None: any)."""

    accelerator: Accelerator
    count: int
    per_node: int | None = None
    sellers: frozenset[str] | None = None

    @property
    def node(self) -> int:
        return min(self.per_node or self.accelerator.per_node, self.count)

    @property
    def place(self) -> Place:
        """What a table is kept by."""
        return self.accelerator.id, self.count, self.per_node, self.sellers

    @property
    def changes(self) -> dict[str, Any]:
        """The cluster as a Plan patch."""
        patch: dict[str, Any] = {"cluster.accelerator": self.accelerator.id, "cluster.count": self.count}
        return patch | ({"cluster.per_node": self.per_node} if self.per_node else {})


@dataclass(frozen=True)
class Candidate:
    """`hours` of the run (None: not known), `money` and `time` to rank by: USD, or USD per million tokens, and hours,
    seconds per token, or seconds per request; money is inf where no price is known. `changes` is the Plan patch;
    `measured` says whether runs on the device were, and `settled` that nothing but these changes fits."""

    shape: Shape
    changes: Mapping[str, Any]
    best: Hourly | None
    hours: float | None
    money: float
    time: float
    measured: bool
    settled: bool = False

    def late(self, ask: Asked) -> bool:
        return ask.deadline_h is not None and self.hours is not None and self.hours > ask.deadline_h

    def dear(self, ask: Asked) -> bool:
        usd = self._usd
        return ask.max_usd is not None and usd is not None and usd > ask.max_usd

    def likely(self, ask: Asked) -> bool:
        """Whether it may keep to the limits once it is estimated exactly, with any layout."""
        return missed(ask, self._usd or 0.0, self.hours) <= _SLACK

    def missed(self, ask: Asked) -> float:
        return missed(ask, self._usd, self.hours)

    def rank(self, sort: Sort, unhurried_h: float) -> Rank:
        return rank(sort, self.money, self.time, unhurried_h, self.measured)

    @property
    def _usd(self) -> float | None:
        return None if self.best is None or self.hours is None else spent(self.best, self.best.usd * self.hours)


@dataclass(frozen=True)
class Beyond:
    """The least that a cluster costs and takes which breaks a limit, and by what factor at the least."""

    money: float
    time: float
    missed: float
    measured: bool


@dataclass(frozen=True)
class Screened:
    """What fits, what is left out and why (looked for where it is asked), how many sizes (of serving: kinds of replica)
    were estimated, and what was not for a limit."""

    candidates: list[Candidate]
    refused: Callable[[], Iterable[Refusal]]
    tried: int
    beyond: list[Beyond] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    """What was assumed of limits that nobody named, as sentences."""


@dataclass(frozen=True)
class ClusterChoice:
    """An option with the estimate behind it."""

    option: ClusterOption
    estimate: PlanEstimate
    candidate: Candidate

    @cached_property
    def launched_by(self) -> list[str]:
        """The launch targets that write the plan with all that was chosen."""
        return able_targets(self._settled)

    @cached_property
    def is_launched(self) -> bool:
        """Whether there is any: the first that does ends the search."""
        return is_written(self._settled)

    @property
    def _settled(self) -> Plan:
        return self.estimate.settled_plan if isinstance(self.estimate, Planned) else self.estimate.plan

    @property
    def within(self) -> bool:
        # What has no price keeps to no budget.
        unknown = self.option.fits_budget is None and self.estimate.plan.goal.budget_usd is not None
        return self.option.fits_deadline is not False and self.option.fits_budget is not False and not unknown


def spent(best: Hourly, usd: float) -> float:
    """What a budget pays for: the machines where they are bought, else the run."""
    return usd if best.capex_usd is None else best.capex_usd


def missed(ask: Asked, usd: float | None, hours: float | None) -> float:
    """By what factor the limits are missed; 0 without limits, inf where there is a budget and no price is known."""
    late = hours / ask.deadline_h if ask.deadline_h and hours is not None else 0.0
    dear = 0.0 if not ask.max_usd else math.inf if usd is None else usd / ask.max_usd
    return max(late, dear)


def rank(sort: Sort, money: float, time: float, unhurried: float, measured: bool) -> Rank:
    """What has a price first, of that what was measured, since the speed of what never was may be far off, then by the
    order that is asked. The geometric mean that balances cost and time puts them in the order of their product; times
    below `unhurried` count alike in it."""
    if not math.isfinite(money):
        return True, not measured, time, money, time
    balanced = money * max(time, unhurried)
    return False, not measured, {"cost": money, "time": time, "balanced": balanced}[sort], money, time


def unpriced(accelerator: str) -> Refusal:
    why = "no price is known: name it in accelerators to have it estimated without one"
    return Refusal(accelerator, "no_price", f"{why}{kin_words(accelerator)}")


def kin_words(accelerator: str) -> str:
    """'; similar devices cost $2.29 to $12.00 an hour each' of a device without a price, where they have one."""
    kin = kin_price(find_accelerator(accelerator).value)
    ends = [] if kin is None else dict.fromkeys(map(figures.usd, (kin.low_usd_per_hour, kin.high_usd_per_hour)))
    return f"; similar devices cost {' to '.join(ends)} an hour each" if ends else ""


def unpriced_words(ask: Asked, shape: Shape, together: int) -> str:
    """Why so many devices, `together` of which share a node, have no price: nobody has one, or those who rent them out
    do so by machines that nothing joins."""
    device = shape.accelerator.id
    listed = [] if shape.count <= together else [
        price.provider for price in offered(device, None, together)
        if _is_of(ask, price) and price.usd_per_hour and joins(price, shape.count, nodes=2) is False
    ]  # fmt: skip
    if not listed:
        return f"no price of {device} is known{kin_words(device)}"
    names = " and ".join(dict.fromkeys(listed))
    return f"no price of {shape.count} x {device} as one cluster is known: nothing joins the machines of {names}"


def node_sizes(ask: Asked, device: Accelerator) -> Iterator[tuple[int | None, frozenset[str] | None]]:
    """(Devices of a node, who has such) of the usual node, and of smaller ones where a provider has no larger."""
    per_node = ask.plan.cluster.per_node
    if per_node is not None:
        yield per_node, None
        return
    if ask.buys:
        sold = purchase(device)
        yield (sold.per_node(device) if sold else None), None
        return
    yield None, None
    largest: dict[str, int] = {}
    by_unit = set()
    for price in ask.offered(device.id):
        if by_device(price):
            by_unit.add(price.provider)
        elif price.usd_per_hour is not None:
            largest[price.provider] = max(price.count, largest.get(price.provider, 0))
    small = {name: size for name, size in largest.items() if 1 < size < device.per_node and name not in by_unit}
    for size in sorted(set(small.values())):
        yield size, frozenset(name for name, widths in small.items() if widths == size)


def hourly_rows(ask: Asked, shape: Shape, together: int, joined: bool) -> list[Hourly]:
    """The cheapest row of each provider for the shape, `together` devices of which share a node, cheapest first.

    Where nodes are `joined` by a network, offers that cannot be are left out, and those of clouds that state none where
    others state theirs. Of machines to buy there is one.
    """
    if ask.buys:
        return [*filter(None, [bought(ask, shape)])]
    best: dict[str, Hourly] = {}
    for price in _joined(ask, shape, together) if joined else offered(shape.accelerator.id, None, together):
        if not _is_of(ask, price) or (shape.sellers is not None and price.provider not in shape.sellers):
            continue
        usd = bill(price, shape.count, 1.0).usd_per_hour
        if usd is not None:
            row = Hourly(price, usd)
            best[price.provider] = min(best.get(price.provider, row), row, key=lambda row: row.place)
    return sorted(best.values(), key=lambda row: (*row.place, row.price.provider))


def _joined(ask: Asked, shape: Shape, together: int) -> Iterator[Price]:
    """Offers whose nodes work as one, as far as it is stated; rows of one's own, which have no seller, are known to."""
    able = [(price, joins(price, shape.count, nodes=2)) for price in offered(shape.accelerator.id, None, together)]
    stated = any(joined and price.usd_per_hour for price, joined in able if _is_of(ask, price))
    yield from (price for price, joined in able if joined or (joined is None and not (stated and price.seller)))


def _is_of(ask: Asked, price: Price) -> bool:
    return ask.providers is None or price.provider in ask.providers


def bought(ask: Asked, shape: Shape) -> Hourly | None:
    """The devices bought, by the hour of use; None where their price or power is not known, or they are sold otherwise
    than in such numbers. Cards for games, which are sold with no machine and no network, are joined over nodes only
    where they are named."""
    sold, owned = purchase(shape.accelerator), owned_machines(ask, shape)
    if sold is None or owned is None or shape.count % sold.unit:
        return None
    nodes = -(-shape.count // shape.node)
    apart = joins(sold.price, shape.count, nodes) is False if sold.whole else shape.accelerator.personal and nodes > 1
    if apart and (sold.whole or not ask.named):
        return None
    price = replace(sold.price, usd_per_hour=owned.usd_per_device_hour * sold.price.count)
    return Hourly(price, owned.usd_per_hour, owned.capex_usd, owned.usd_per_year * owned.years)


@dataclass(frozen=True)
class Beside:
    """Other offers of the devices of an option; and where they are bought what that costs, with all their years, and
    from how many hours of use a year it costs less than renting."""

    offers: list[OtherOffer]
    capex_usd: float | None = None
    years_usd: float | None = None
    pays_from_h: float | None = None

    def spent(self, usd: float | None) -> float | None:
        """What a budget pays for."""
        return usd if self.capex_usd is None else self.capex_usd


def beside(ask: Asked, candidate: Candidate, together: int, joined: bool) -> Beside:
    """For an option `together` devices of which share a node."""
    shape = candidate.shape
    rows = hourly_rows(replace(ask, providers=None) if ask.buys else ask, shape, together, joined)
    owned = owned_machines(ask, shape) if ask.buys else None
    if owned is None:
        return Beside(others(rows[1:]))
    pays = break_even_hours(owned.fixed_usd_per_year, owned.power_usd_per_hour, rows[0].usd) if rows else None
    return Beside(others(rows), owned.capex_usd, owned.usd_per_year * owned.years, pays)


def owned_machines(ask: Asked, shape: Shape) -> OwnedCost | None:
    """By the hour of use."""
    cluster, _ = machine(shape.accelerator, shape.count, shape.per_node)
    terms = CostTerms.model_validate({"utilisation": ask.busy_share})
    return owned_cost(cluster, terms, place_of(terms), (1.0, 1.0, 1.0))


def others(rows: list[Hourly]) -> list[OtherOffer]:
    return [
        OtherOffer(
            provider=row.price.provider, instance=row.price.instance, usd_per_hour=row.usd,
            price_date=row.price.price_date,
        )
        for row in rows[:3]
    ]  # fmt: skip


def notes_of(price: Price | None, together: int, count: int, joined: bool) -> list[str]:
    """What to ask the provider before renting `count` devices, `together` of which share a node."""
    if price is None:
        return [
            "the price book has no price of so many in one cluster" if joined else "the price book has no price of it"
        ]
    notes = []
    if not price.price_date:
        notes.append("the price has no date: it may be higher today")
    elif old := old_words(price.price_date, today()):
        notes.append(f"the price {old}: {LOOK_UP}")
    if of_strangers(price.seller):
        notes.append(f"a {price.seller} price: other people's machines, which come and go")
    if by_device(price) and together > 1:
        asked = f"all {count} in one node" if together == count else f"{count} in nodes of {together}"
        notes.append(f"rented per device: ask for {asked}")
    if joined and price.network_bandwidth_per_node is None:
        notes.append("the network between nodes is not stated: the usual one of such nodes is taken")
    if price.notes:
        notes.append(price.notes)
    return notes


def network_of(ask: Asked, price: Price | None, shape: Shape, usual: float) -> dict[str, Any]:
    """The instance's own network as a Plan patch, where it is known and not the usual one (bytes/s of a node)."""
    plan = ask.plan
    fixed = plan.cluster.interconnect != "auto" or plan.overrides.network_gb_per_s is not None
    if price is None or price.network_bandwidth_per_node is None or shape.count <= shape.node or fixed:
        return {}
    bandwidth = price.network_bandwidth_per_node * shape.node / price.count
    return {} if math.isclose(bandwidth, usual, rel_tol=0.01) else {"overrides.network_gb_per_s": bandwidth / 1e9}
