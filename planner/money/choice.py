"""Of all ways to pay for a run the one that is asked for, and what it comes to part by part."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field

from estimator.money.ownership import HOURS_PER_YEAR
from knowledge.figures import percent, shown, usd, whole
from knowledge.prices.age import dated, old_words
from planner.asked.money import CostTerms
from planner.clock import today
from planner.money.offers import LOOK_UP, PriceKind, apart, cheapest, of_strangers, usd_of
from planner.money.results import CostPart, OwnedCost
from planner.result import Assumption, ProviderCost

LONG_TERM_H = 3.0 * HOURS_PER_YEAR
# What a kind of price is called, and what it leaves out.
_CALLED = {
    "on_demand": "on-demand",
    "spot": "spot",
    "flex_start": "flex-start",
    "reserved": "reserved",
    "reserved_3y": "three years reserved",
    "community": "community or marketplace",
}
_OUT = "data transfer out of the cloud"
_MORE_OUT = "data transfer out of the cloud but for the trained weights"
_RENTED = (
    _OUT, "runs that go wrong and are repeated", "people, taxes and support contracts",
)  # fmt: skip
_BEYOND = "hours of the reservation beyond the run"
_LEFT_OUT: dict[PriceKind, tuple[str, ...]] = {
    "on_demand": _RENTED,
    "spot": (*_RENTED, "waiting for spot capacity", "changes of the spot price during the run"),
    "flex_start": (*_RENTED, "waiting until capacity is free"),
    "reserved": (*_RENTED, _BEYOND),
    "reserved_3y": (*_RENTED, _BEYOND),
    "community": (*_RENTED, "machines that their owners take back"),
    "own": ("whatever your price does not cover", *_RENTED[:2]),
    "owned": (
        "interest on the capital", "power of devices that stand idle",
        "storage and software licences", "runs that go wrong and are repeated",
    ),
}  # fmt: skip


def called(kind: PriceKind) -> str:
    return _CALLED.get(kind, kind)


@dataclass(frozen=True)
class Chosen:
    """`usd_per_hour` is None where there is no such price; hours are those of the run with its interruptions."""

    kind: PriceKind
    usd_per_hour: float | None
    hours: float
    low_hours: float
    high_hours: float
    row: ProviderCost | None = None
    price_date: str | None = None
    parts: list[CostPart] = field(default_factory=list)
    assumptions: list[Assumption] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def usd(self) -> float | None:
        return self._times(self.hours)

    @property
    def low_usd(self) -> float | None:
        return self._times(self.low_hours)

    @property
    def high_usd(self) -> float | None:
        return self._times(self.high_hours)

    def _times(self, hours: float) -> float | None:
        return None if self.usd_per_hour is None else self.usd_per_hour * hours


@dataclass(frozen=True)
class Hours:
    """By the clock with their interval; `work` of them are work, the rest is failures of machines."""

    clock: float
    low: float
    high: float
    work: float

    @property
    def ends(self) -> tuple[float, float, float]:
        return (self.clock, self.low, self.high)

    def on_spot(self, clock: float) -> Hours:
        """The same work in other hours by the clock."""
        longer = clock / self.clock if self.clock else 1.0
        return Hours(clock, self.low * longer, self.high * longer, self.work)


def choose(
    kind: PriceKind,
    terms: CostTerms,
    listed: tuple[list[ProviderCost], OwnedCost | None],
    hours: Hours,
    devices: int,
    named: bool,
) -> Chosen:
    """`listed` are the offers and the same devices bought; `named` says that the plan names a provider."""
    rows, owned = listed
    if kind == "own" and terms.usd_per_device_hour is not None:
        rate = terms.usd_per_device_hour * devices
        reserved = " reserved" if terms.price in ("reserved", "reserved_3y") else ""
        what = f"{devices}{reserved} devices at your {terms.usd_per_device_hour:g} USD an hour"
        return Chosen(kind, rate, *hours.ends, parts=_rented(rate, hours, what, None))
    if kind == "owned":
        return _owned(owned, hours)
    best = cheapest(rows, kind)
    if best is None:
        return Chosen(kind, None, *hours.ends, warnings=[_none(kind, rows)])
    rate = _rate(best, kind)
    every = None
    if kind == "spot" and best.spot_hours:
        hours, every = hours.on_spot(best.spot_hours), best.spot_checkpoint_minutes
    price_date = _dates(best).get(kind, best.price_date)
    term = f", {best.reserved_term}" if kind == "reserved" and best.reserved_term else ""
    why = f"the cheapest {_CALLED[kind]} offer in the price book ({dated(price_date, today())}{term})"
    chosen = Assumption(
        field="instance" if named else "goal.provider", value=f"{best.provider} {best.instance}", why=why
    )
    parts = _rented(rate, hours, f"{best.instances} x {best.instance}", every)
    warnings = [*doubts_of(best, price_date, devices, kind, hours.clock), *_stated(best, rows, kind)]
    return Chosen(
        kind, rate, *hours.ends, row=best, price_date=price_date, parts=parts, assumptions=[chosen], warnings=warnings
    )


def _stated(best: ProviderCost, rows: list[ProviderCost], kind: PriceKind) -> list[str]:
    """What the cheapest that states so large a cluster asks, where the chosen one states none."""
    if not best.size_open:
        return []
    row = cheapest([row for row in rows if row.joined and not row.size_open], kind)
    paid = None if row is None else usd_of(row, kind)
    if row is None or paid is None or row.most_devices is None:
        return []
    return [f"{row.provider} states clusters of up to {whole(row.most_devices)}, where it would be {usd(paid)}"]


def _rented(rate: float, hours: Hours, what: str, every_minutes: float | None) -> list[CostPart]:
    """USD of the work, and of what interruptions add."""
    more_h = hours.clock - hours.work
    parts = [CostPart(part="devices", usd=rate * hours.work, what=what)]
    if more_h > 0.0:
        saved = f", a checkpoint every {every_minutes:.3g} minutes" if every_minutes else ""
        lost = f"lost work, restarts and checkpoints: {shown('hours', more_h)} more{saved}"
        parts.append(CostPart(part="interruptions", usd=rate * more_h, what=lost))
    return parts


def not_included(chosen: Chosen, parts: Collection[str] = ()) -> list[str]:
    """What the figures leave out; `parts` of the bill are beside the devices."""
    missing = [] if "checkpoint_storage" in parts else ["storage of checkpoints, data and weights"]
    missing += [_MORE_OUT if what == _OUT and "data_transfer" in parts else what for what in _LEFT_OUT[chosen.kind]]
    return missing


def _owned(owned: OwnedCost | None, hours: Hours) -> Chosen:
    if owned is None:
        missing = "what these devices cost to buy is not known, or their power: give capex_usd_per_device"
        return Chosen("owned", None, *hours.ends, warnings=[missing])
    what = {
        "hardware": f"{usd(owned.capex_usd)} over {owned.years:g} years at {percent(owned.utilisation)} use",
        "power": "electricity at the meter, cooling included",
        "colocation": f"room for {owned.kw:,.1f} kW, without electricity",
        "maintenance": "spare parts and support",
        "staff": "people who run it",
    }
    parts = [CostPart(part=name, usd=usd, what=what[name]) for name, usd in owned.parts.items()]
    warnings = [f"no price of {owned.machine} is known: {owned.source.partition(': ')[0]}"] if owned.by_kin else []
    return Chosen(
        "owned", owned.usd_per_hour, *hours.ends, parts=parts, assumptions=list(owned.assumptions), warnings=warnings
    )


def _rate(row: ProviderCost, kind: PriceKind) -> float:
    rates = {
        "spot": row.spot_usd_per_hour, "flex_start": row.flex_start_usd_per_hour,
        "reserved": row.reserved_usd_per_hour, "reserved_3y": row.reserved_3y_usd_per_hour,
    }  # fmt: skip
    return rates.get(kind, row.usd_per_hour) or 0.0


def _dates(row: ProviderCost) -> dict[str, str | None]:
    return {
        "spot": row.spot_price_date, "flex_start": row.flex_start_price_date, "reserved": row.reserved_price_date,
        "reserved_3y": row.reserved_3y_price_date,
    }  # fmt: skip


def _none(kind: PriceKind, rows: list[ProviderCost]) -> str:
    if kind == "spot" and any(row.spot_usd_per_hour is not None for row in rows):
        return "on spot instances that are interrupted so often the run would not end: save more often, or rent others"
    tail = "; reserved_discount gives yours" if kind == "reserved" else ""
    return f"the price book has no price of these devices for this choice ({_CALLED[kind]}){tail}"


def whole_term_usd(row: ProviderCost, kind: PriceKind, hours: float) -> float | None:
    """What the shortest term of an offer comes to that a run of so many hours does not fill; None of other prices."""
    if kind == "reserved":
        return row.reserved_whole_usd
    if kind != "reserved_3y" or row.reserved_3y_usd_per_hour is None or hours >= LONG_TERM_H:
        return None
    return row.reserved_3y_usd_per_hour * LONG_TERM_H


def doubts_of(
    row: ProviderCost, price_date: str | None, devices: int, kind: PriceKind = "on_demand", hours: float = math.inf
) -> list[str]:
    """What to beware of in the chosen price, what would keep the run from being done there first."""
    doubts = apart(row, devices)
    if of_strangers(row.seller):
        doubts.append(
            f"{row.provider} {row.instance} is a {row.seller} price: other people's machines, which come and go; "
            "clouds are not compared with it"
        )
    if whole := whole_term_usd(row, kind, hours):
        term = shown("hours", whole / _rate(row, kind))
        doubts.append(f"{row.provider} reserves for {term} at least, {usd(whole)} in all whether it is used or not")
    if row.in_region is False:
        doubts.append(f"no price is known in the region asked for: that of {row.provider} is of {row.region}")
    if old := old_words(price_date, today()):
        doubts.append(f"the price of {row.provider} {row.instance} {old}: {LOOK_UP}")
    return doubts
