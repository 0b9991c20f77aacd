"""A price of one's own: whose, of which machine, how much of it an hour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from agent.offline.form import Need, Reading
from agent.offline.language.assign import single
from agent.offline.language.devices import Devices
from agent.offline.language.measures import Amount
from agent.offline.language.mentions import Value
from agent.offline.language.own.given import chunks, name_behind, name_joined, name_unknown, span_of, take
from agent.offline.language.own.pricing import NEAR_DOLLARS
from agent.offline.language.own.rows import kept, verbatim
from agent.offline.language.rows import Row

if TYPE_CHECKING:
    from agent.offline.language.reading.page import Page

_HOUR_S, _CENT_USD = 3600.0, 0.01
# Whose a price is where nobody is named.
OWN = "own"


@dataclass(frozen=True)
class OwnPrice:
    """What was said of a price; prices are of the whole machine."""

    provider: str | None = None
    instance: str | None = None
    accelerator: str | None = None
    count: int | None = None
    usd_per_hour: float | None = None
    spot_usd_per_hour: float | None = None
    reserved_usd_per_hour: float | None = None
    price_date: str | None = None
    region: str | None = None


_TIERS = ("usd_per_hour", "spot_usd_per_hour", "reserved_usd_per_hour")


def price_row(page: Page, reading: Reading) -> dict[str, Any]:
    """The price as add_price takes it."""
    price = OwnPrice(**kept(page, "price"))
    device = next((each for each in page.devices if each.name.id), None)
    if device and price.accelerator not in (None, device.name.id):
        price = OwnPrice()
    price = _of_machine(page, price, device)
    provider = next((name.id for name in page.read.of("provider")), None) or name_unknown(page)
    price = replace(
        price,
        provider=name_behind(page, "provider") or price.provider or provider,
        instance=name_behind(page, "instance") or price.instance or name_joined(page),
        price_date=_iso_day(page) or price.price_date,
        region=next((name.id for name in page.read.of("place")), price.region),
    )
    price = replace(price, **_rates(page, price))
    price = replace(price, **verbatim(page, "price", OwnPrice))
    if price.provider is None and price != OwnPrice():
        price = replace(price, provider=OWN)
        page.assumed.append(f"no provider was named: {OWN!r} taken")
    inside = span_of(page, price.instance or "")
    take(page, [row for row in page.read.rows if row.start in inside])
    if price.instance is None and price.accelerator:
        price = replace(price, instance=f"{price.count} x {price.accelerator}")
    return {name: value for name, value in asdict(price).items() if value is not None}


def _of_machine(page: Page, price: OwnPrice, device: Devices | None) -> OwnPrice:
    """The price with the machine that it is of."""
    if device:
        counts = [*page.values("per_node"), *(number.values[0] for number in single(page.filled, "count"))]
        count = device.count or device.per_node or next(iter(counts), price.count or 1)
        price = replace(price, accelerator=str(device.name.id), count=int(count))
    for name in page.read.of("instance"):
        price = replace(price, accelerator=name.id, instance=name.text)
        if name.instance:
            price = replace(price, count=name.instance.count, provider=name.instance.provider)
    return price


def _rates(page: Page, price: OwnPrice) -> Mapping[str, float]:
    """What the whole machine costs an hour, by how it is had."""
    rows = [row for row in page.read.rows if _is_hourly(row.amounts[-1])]
    if not rows:
        return _again(page, price)
    take(page, rows)
    rates: dict[str, float] = {}
    for row in rows:
        amount = row.amounts[-1]
        if amount.unit(*NEAR_DOLLARS):
            words = page.read.said(row.start, row.end)
            page.needs.append(Need("usd_per_hour", f"prices are kept in US dollars: how many are {words}?"))
            continue
        usd = amount.value * next((unit.size for unit in amount.units if unit.name == "usd"), 1.0)
        usd = _with_cents(page, row) or usd
        usd *= _HOUR_S / next((unit.size for unit in amount.per if unit.name == "time"), _HOUR_S)
        each = any(unit.name == "devices" for unit in amount.per)
        tier = _tier(page, row)
        if not each or tier not in rates:
            rates[tier] = round(usd * ((price.count or 1) if each else 1), 6)
    return rates | _bare_tiers(page, rates)


def _again(page: Page, price: OwnPrice) -> Mapping[str, float]:
    """'Er sagt jetzt 60': the same price anew, in what it was said in."""
    bare = [row for row in _bare(page) if row.start not in page.read.named_tokens]
    if not (bare and price.usd_per_hour):
        return {}
    take(page, bare[-1:])
    value = bare[-1].amounts[-1].value
    return {"usd_per_hour": value * (_CENT_USD if value > 1 > price.usd_per_hour else 1)}


def _bare(page: Page) -> list[Row]:
    """Numbers without a unit."""
    return [row for row in page.read.rows if not (row.amounts[-1].units or row.amounts[-1].per)]


def _with_cents(page: Page, row: Row) -> float | None:
    """'22 dollar 40 per hour'"""
    before = next((other for other in page.read.rows if other.end == row.start), None)
    whole = before is not None and before.amounts[-1].unit("usd") and not row.amounts[-1].units
    if not (whole and before and row.amounts[-1].value < 1 / _CENT_USD):
        return None
    take(page, [before])
    return before.amounts[-1].value + row.amounts[-1].value * _CENT_USD


def _is_hourly(amount: Amount) -> bool:
    """Whether it is a price: money is of an hour where no time is said."""
    per = {unit.name for unit in amount.per}
    return bool(amount.unit("usd", *NEAR_DOLLARS)) or ("time" in per and not amount.units)


def _bare_tiers(page: Page, rates: Mapping[str, float]) -> dict[str, float]:
    """'19.20 $/h on demand, 14 reserved': a number of no unit beside how it is had."""
    ways = [value for value in page.read.values if value.field == "price"]
    behind, before = (
        {at(value): _argument(value) for value in ways} for at in (attrgetter("start"), attrgetter("end"))
    )
    tiers = [(row, behind.get(row.end) or before.get(row.start)) for row in _bare(page)]
    beside = [(row, tier) for row, tier in tiers if tier in _TIERS and tier not in rates]
    take(page, [row for row, _ in beside])
    return {name: row.amounts[-1].value for row, name in beside}


def _tier(page: Page, row: Row) -> str:
    """The argument that a price by the hour is of: how it is had stands right beside it."""
    ways = [value for value in page.read.values if value.field == "price"]
    beside = [value for value in ways if value.end == row.start] or [value for value in ways if value.start == row.end]
    name = _argument(beside[0]) if beside else ""
    return name if name in _TIERS else "usd_per_hour"


def _argument(way: Value) -> str:
    return "usd_per_hour" if way.value == "on_demand" else f"{way.value}_usd_per_hour"


def _iso_day(page: Page) -> str | None:
    """A day that is written as a price's: 2026-11-12."""
    days = (chunk for chunk in chunks(page.read.text) if len(chunk) == len("2026-11-12"))
    return next((day for day in days if day.replace("-", "").isdigit() and day[4] == day[7] == "-"), None)
