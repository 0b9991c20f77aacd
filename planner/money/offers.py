"""What the price book has for a run's devices: on demand, spot with its interruptions, and reserved."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import date

from estimator.machine.hardware import Price
from estimator.money.cost import bill
from knowledge.figures import whole
from knowledge.prices.age import age_days, is_stale, old_words
from knowledge.prices.book import prices
from knowledge.prices.cluster_sizes import NODES_UNASKED, by_device, is_networked, largest_cluster
from knowledge.prices.energy import Place, is_within
from planner.asked.money import PriceKind
from planner.clock import today
from planner.money.purchase import OWNED
from planner.result import ProviderCost
from planner.training.planned import Planned

# What a row costs at each kind of price that providers have.
_USD = {
    "on_demand": "usd",
    "spot": "spot_usd_with_interruptions",
    "flex_start": "flex_start_usd",
    "reserved": "reserved_usd",
    "reserved_3y": "reserved_3y_usd",
    "community": "usd",
}
# Machines of private people and of many owners: they come and go, and no data centre vouches for them.
_STRANGERS = ("marketplace", "community")
# What to do about a price that is not of these days.
LOOK_UP = "look it up before you rely on it"


@dataclass(frozen=True)
class SpotRun:
    """A run on spot machines: its expected hours, and the hours of work between two checkpoints (None: none is saved
    for it)."""

    hours: float
    interval_h: float | None


@dataclass(frozen=True)
class OfferTerms:
    """What rows say beside the price book: `on_spot` is the run on a number of spot machines at a price (None where it
    would not end), of which one that is rented by the device has `per_node`; `place` is the region asked for; `nodes`
    work together."""

    on_spot: Callable[[Price, int], SpotRun | None] | None = None
    per_node: int = 1
    reserved_discount: float | None = None
    place: Place | None = None
    nodes: int = 1


_PLAIN = OfferTerms()


def offer(price: Price, devices: int, hours: float, terms: OfferTerms = _PLAIN) -> ProviderCost:
    """One price as a row of a result."""
    paid, largest = bill(price, devices, hours), largest_cluster(price)
    day = today()
    row = ProviderCost(
        provider=price.provider,
        instance=price.instance,
        instances=paid.instances,
        devices_per_instance=price.count,
        usd_per_hour=paid.usd_per_hour,
        usd=paid.usd,
        spot_usd=paid.spot_usd,
        price_date=price.price_date,
        note=price.notes,
        source=price.source,
        seller=price.seller,
        region=price.region,
        joined=joins(price, devices, terms.nodes),
        most_devices=largest.devices,
        most_known_by=largest.known_by,
        size_open=is_open(price, terms.nodes),
        in_region=is_within(price.region, terms.place) if terms.place and price.region else None,
        price_age_days=None if paid.usd is None else age_days(price.price_date, day),
        stale=None if paid.usd is None else is_stale(price.price_date, day),
    )
    if paid.usd_per_hour is not None:
        row.usd_per_device_hour = paid.usd_per_hour / (paid.instances * price.count)
    if price.spot_usd_per_hour is not None:
        row.spot_usd_per_device_hour = price.spot_usd_per_hour / price.count
        row.spot_usd_per_hour = price.spot_usd_per_hour * paid.instances
        row.spot_price_date = price.price_date if price.spot_price_date is None else price.spot_price_date or None
        row.spot_stale = is_stale(row.spot_price_date, day)
        machines = math.ceil(devices / terms.per_node) if by_device(price) else paid.instances
        if terms.on_spot and (run := terms.on_spot(price, machines)):
            row.spot_hours = run.hours
            row.spot_checkpoint_minutes = None if run.interval_h is None else 60.0 * run.interval_h
            row.spot_usd_with_interruptions = row.spot_usd_per_hour * run.hours
    row.flex_start_most_hours = price.flex_most_h
    if price.flex_usd_per_hour is not None and hours <= (price.flex_most_h or hours):
        row.flex_start_usd_per_hour = price.flex_usd_per_hour * row.instances
        row.flex_start_usd = row.flex_start_usd_per_hour * hours
        row.flex_start_price_date = price.flex_price_date or None
        row.flex_start_stale = is_stale(row.flex_start_price_date, day)
    _reserve(row, price, hours, terms, day)
    return row


def _reserve(row: ProviderCost, price: Price, hours: float, terms: OfferTerms, day: date) -> None:
    """Puts the reserved price into the row: by the user's own discount, else the published one."""
    if terms.reserved_discount is not None and row.usd_per_hour is not None:
        row.reserved_usd_per_hour = row.usd_per_hour * (1.0 - terms.reserved_discount)
        row.reserved_term, row.reserved_price_date = "at your discount on the on-demand price", price.price_date
    elif price.reserved_usd_per_hour is not None and _is_reserved_for(price, row.instances, hours):
        row.reserved_usd_per_hour = price.reserved_usd_per_hour * row.instances
        row.reserved_term, row.reserved_price_date = price.reserved_term, price.reserved_price_date or None
        if price.reserved_least_h is not None and price.reserved_least_h > hours:
            row.reserved_whole_usd = row.reserved_usd_per_hour * price.reserved_least_h
    if price.long_usd_per_hour is not None:
        row.reserved_3y_usd_per_hour = price.long_usd_per_hour * row.instances
        row.reserved_3y_usd = row.reserved_3y_usd_per_hour * hours
        row.reserved_3y_price_date = price.long_price_date or None
        row.reserved_3y_stale = is_stale(row.reserved_3y_price_date, day)
    if row.reserved_usd_per_hour is not None:
        row.reserved_usd = row.reserved_usd_per_hour * hours
        row.reserved_stale = is_stale(row.reserved_price_date, day)


def _is_reserved_for(price: Price, instances: int, hours: float) -> bool:
    """Whether so many are reserved together for so long, as far as that is stated."""
    return instances <= (price.reserved_most or instances) and hours <= (price.reserved_most_h or hours)


def offers(planned: Planned, hours: float, terms: OfferTerms = _PLAIN) -> list[ProviderCost]:
    """Instances (of the plan's provider) that can hold the run's nodes, cheapest first; those without a price last."""
    machine = planned.job.machine
    provider = renter(planned.job.plan.goal.provider)
    listed = rentable(prices(machine.accelerator.id, provider), min(machine.per_node, machine.count))
    terms = replace(terms, nodes=machine.nodes)
    return in_order([offer(price, machine.count, hours, terms) for price in listed])


def renter(provider: str | None) -> str | None:
    """Whose offers stand beside a plan: its provider's, anybody's where it has none or its machines are bought."""
    return None if is_owned(provider) else provider


def is_owned(provider: str | None) -> bool:
    return provider is not None and provider.strip().casefold() == OWNED


def rentable(listed: Iterable[Price], together: int) -> list[Price]:
    """Those that are for rent and hold `together` devices in a node, or are rented by the device; of one provider no
    undated prices where it has dated ones."""
    able = [price for price in listed if price.provider != OWNED and (price.count >= together or by_device(price))]
    dated = {price.provider for price in able if price.price_date and price.usd_per_hour is not None}
    return [price for price in able if price.price_date or price.provider not in dated]


def joins(price: Price, devices: int, nodes: int) -> bool | None:
    """Whether machines of an offer work as one on a run over `nodes`: not where single devices are rented from
    anywhere, nor where there are fewer; None where whole nodes are rented and no network between them is stated."""
    if nodes == 1:
        return True
    if price.max_devices is not None and devices > price.max_devices:
        return False
    if is_networked(price):
        return True
    return None if price.count > 1 else False


def is_open(price: Price, nodes: int) -> bool:
    """Whether it is not known that a provider has so many nodes in one cluster: it states no largest, and they are more
    than anybody sells without being asked. What rows of one's own hold is known."""
    return bool(price.seller) and price.max_devices is None and nodes > NODES_UNASKED


def open_words(providers: list[str], devices: int) -> str:
    """What is not known of offers whose size is open, the smallest of which has so many devices."""
    *most, last = providers
    state = f"{', '.join(most)} and {last} state" if most else f"{last} states"
    return f"{state} no largest cluster: ask whether {whole(devices)} devices on one network can be had"


def apart(row: ProviderCost, devices: int) -> list[str]:
    """Why the machines of an offer may not be one cluster of so many devices."""
    offered, doubts = f"{row.provider} {row.instance}", list[str]()
    if row.joined is False:
        doubts.append(f"{offered}: single machines or too few: nothing joins them to one cluster")
    elif row.joined is None:
        most = f", and {whole(row.most_devices)} devices are the most it says" if row.most_devices else ""
        doubts.append(f"{offered}: no network between its machines is stated{most}: ask before you rent")
    if row.size_open and row.joined is not False:
        doubts.append(open_words([row.provider], devices))
    return doubts


def old_prices(dates: Iterable[str | None]) -> list[str]:
    """What to beware of where the prices of these days are over 90 days old, or undated."""
    day = today()
    told = dict.fromkeys(words for price_date in dates if (words := old_words(price_date, day)))
    return [f"a price {words}: {LOOK_UP}" for words in told]


def of_strangers(seller: str) -> bool:
    """Whether machines of such a seller are its own: what they cost is no price of a cloud, and stands apart."""
    return seller in _STRANGERS


def in_order(rows: list[ProviderCost], kind: PriceKind = "on_demand") -> list[ProviderCost]:
    """Those with a price of this kind (on demand where providers have none of it) first: of them last what cannot work
    as one, then what is outside the region asked for, then machines of strangers, then what may not work as one; else
    by USD, of the same what is not old first."""
    listed: PriceKind = kind if kind in _USD else "on_demand"

    def key(row: ProviderCost) -> tuple[bool, bool, bool, bool, bool, float, bool, str]:
        usd, doubtful, strange = usd_of(row, listed), row.joined is None, of_strangers(row.seller)
        return (usd is None, row.joined is False, row.in_region is False, strange, doubtful, usd or 0.0,
                row.stale is not False, row.provider)  # fmt: skip

    return sorted(rows, key=key)


def usd_of(row: ProviderCost, kind: PriceKind = "on_demand") -> float | None:
    """What the row comes to at a provider's kind of price."""
    if kind == "community" and not of_strangers(row.seller):
        return None
    return getattr(row, _USD[kind]) if kind in _USD else None


def cheapest(rows: list[ProviderCost], kind: PriceKind = "on_demand") -> ProviderCost | None:
    """The first offer with a price of this kind, of rows in order; None where there is none."""
    return next((row for row in rows if usd_of(row, kind) is not None), None)
