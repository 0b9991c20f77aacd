"""The price book: rentable instances and owned machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from estimator.errors import PlanError
from estimator.machine.hardware import Price
from estimator.units import GIB
from knowledge.data_files import number, rows
from knowledge.machines.catalogue import find_accelerator
from knowledge.own.prices import checked_price, prices_left_out, with_own_prices
from knowledge.own.rows import LeftOut, Own, PriceRow

# The longest term that is sold, of terms.csv.
_LONG = "3 years"


def prices(accelerator: str | None = None, provider: str | None = None) -> list[Price]:
    """The rows for an accelerator (any name of it) and a provider (any case); all where they are None.

    Rows without a price are included: `usd_per_hour` is None there. Raises PlanError for an unknown name.
    """
    book = with_own_prices(_book())
    if provider is not None:
        name = check_provider(provider).casefold()
        book = [price for price in book if price.provider.casefold() == name]
    if accelerator is not None:
        id = find_accelerator(accelerator).value.id
        book = [price for price in book if price.accelerator == id]
    return list(book)


def check_provider(name: str, field: str = "goal.provider") -> str:
    """The name of a provider as the price book has it, from any case of it. Raises PlanError for an unknown one."""
    known = providers()
    provider = next((other for other in known if other.casefold() == name.strip().casefold()), None)
    if provider is None:
        raise PlanError(field, f"there is no price book of {name!r}", known)
    return provider


def providers() -> list[str]:
    """Providers in the price book, by name."""
    return sorted({price.provider for price in with_own_prices(_book())}, key=str.casefold)


def hourly_by_device() -> dict[str, list[float]]:
    """What one device of each kind costs by the hour on demand, of every offer with a price, the cheapest first."""
    hourly: dict[str, list[float]] = {}
    for price in prices():
        if price.usd_per_hour is not None:
            hourly.setdefault(price.accelerator, []).append(price.usd_per_hour / price.count)
    return {id: sorted(usd) for id, usd in hourly.items()}


def left_out() -> list[LeftOut]:
    """The user's own prices that cannot be used."""
    return prices_left_out(_book())


def shipped() -> list[Price]:
    """The rows that come with Shardwise, without the user's own."""
    return list(_book())


def check_own_price(entry: Own[PriceRow]) -> Price:
    """The price that a row of the user's makes. Raises PlanError, also where it clashes with the price book's."""
    return checked_price(entry, _book())


@cache
def _book() -> list[Price]:
    terms = {
        (row["provider"], row["instance"], _LONG if row["term"] == _LONG else row["kind"]): row
        for row in rows("terms.csv")
    }
    return [_with_terms(_price(row), terms) for row in rows("instances.csv")]


def _with_terms(price: Price, terms: Mapping[tuple[str, str, str], dict[str, str]]) -> Price:
    """With the spot, flex-start and reserved prices that are listed apart, each with its own date."""
    spot = terms.get((price.provider, price.instance, "spot"))
    if long := terms.get((price.provider, price.instance, _LONG)):
        price = replace(price, long_usd_per_hour=float(long["usd_per_hour"]), long_price_date=long["price_date"])
    if spot and price.spot_usd_per_hour is None:
        price = replace(price, spot_usd_per_hour=float(spot["usd_per_hour"]), spot_price_date=spot["price_date"])
    if flex := terms.get((price.provider, price.instance, "flex-start")):
        price = replace(
            price,
            flex_usd_per_hour=float(flex["usd_per_hour"]),
            flex_price_date=flex["price_date"],
            flex_most_h=_hours(flex["most_days"]),
        )
    if reserved := terms.get((price.provider, price.instance, "reserved")):
        price = replace(
            price,
            reserved_usd_per_hour=float(reserved["usd_per_hour"]),
            reserved_term=reserved["term"],
            reserved_price_date=reserved["price_date"],
            reserved_most=int(reserved["most_instances"]) if reserved["most_instances"] else None,
            reserved_least_h=_hours(reserved["least_days"]),
            reserved_most_h=_hours(reserved["most_days"]),
        )
    return price


def _hours(days: str) -> float | None:
    return 24.0 * float(days) if days else None


def _price(row: dict[str, str]) -> Price:
    bandwidth = number(row["inter_node_gb_s_per_node"])
    ram = number(row["ram_gb"])
    vcpus = number(row["vcpus"])
    extra = {name: row[name] for name in ("intra_node_link", "local_nvme_tb") if row[name]}
    return Price(
        provider=row["provider"],
        instance=row["instance"],
        accelerator=row["accelerator"],
        count=int(row["count_per_node"]),
        usd_per_hour=number(row["on_demand_usd_hour"]),
        spot_usd_per_hour=number(row["spot_usd_hour"]),
        price_date=row["price_date"] or None,
        region=row["region"] or None,
        capex_usd=number(row["capex_usd"]),
        power_kw=number(row["power_kw"]),
        network=row["inter_node_network"],
        network_bandwidth_per_node=None if bandwidth is None else bandwidth * 1e9,
        max_devices=int(row["max_devices"]) if row["max_devices"] else None,
        vcpus=None if vcpus is None else int(vcpus),
        ram_bytes=None if ram is None else ram * GIB,
        source=row["source"],
        notes=row["notes"],
        seller=row["seller"],
        capex_of=row["capex_of"],
        extra=extra,
    )
