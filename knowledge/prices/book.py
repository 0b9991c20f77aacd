"""The price book: rentable instances and owned machines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from estimator.errors import PlanError
from estimator.machine.hardware import Price
from estimator.units import GIB
from knowledge.data_files import number, rows
from knowledge.machines.catalogue import find_accelerator
from knowledge.own.prices import checked_price, prices_left_out, with_own_prices
from knowledge.own.rows import LeftOut, Own, PriceRow
from knowledge.prices import kinds

# The longest term that is sold, of prices.csv.
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


def providers_by_device() -> dict[str, set[str]]:
    """Who rents out each kind of device at a known price on demand."""
    providers: dict[str, set[str]] = {}
    for price in prices():
        if price.usd_per_hour is not None:
            providers.setdefault(price.accelerator, set()).add(price.provider)
    return providers


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
    listed = defaultdict[tuple[str, str], list[dict[str, str]]](list)
    for row in rows("prices.csv"):
        listed[row["provider"], row["instance"]].append(row)
    return [_price(row, listed[row["provider"], row["instance"]]) for row in rows("instances.csv")]


def _price(row: dict[str, str], listed: Sequence[dict[str, str]]) -> Price:
    """A machine with what it costs; its day and source are those of the first of its prices: on demand or to buy,
    where it has either."""
    bandwidth = number(row["inter_node_gb_s_per_node"])
    ram = number(row["ram_gb"])
    vcpus = number(row["vcpus"])
    first = listed[0] if listed else {"price_date": "", "source": row["source"]}
    price = Price(
        provider=row["provider"],
        instance=row["instance"],
        accelerator=row["accelerator"],
        count=int(row["count_per_node"]),
        usd_per_hour=None,
        spot_usd_per_hour=None,
        price_date=first["price_date"] or None,
        region=row["region"] or None,
        power_kw=number(row["power_kw"]),
        network=row["inter_node_network"],
        network_bandwidth_per_node=None if bandwidth is None else bandwidth * 1e9,
        max_devices=int(row["max_devices"]) if row["max_devices"] else None,
        vcpus=None if vcpus is None else int(vcpus),
        ram_bytes=None if ram is None else ram * GIB,
        source=first["source"],
        sources={_kind(paid): paid["source"] for paid in listed if paid["source"] != first["source"]},
        notes=row["notes"],
        seller=row["seller"],
        capex_of=row["capex_of"],
        extra={name: row[name] for name in ("intra_node_link", "local_nvme_tb") if row[name]},
    )
    return replace(price, **{name: value for paid in listed for name, value in _paid(paid).items()})


def _kind(row: dict[str, str]) -> str:
    return kinds.LONG if row["term"] == _LONG else row["kind"]


def _paid(row: dict[str, str]) -> dict[str, Any]:
    """One kind of price as fields of a Price."""
    usd, day = float(row["usd"]), row["price_date"]
    match _kind(row):
        case kinds.ON_DEMAND:
            return {"usd_per_hour": usd}
        case kinds.PURCHASE:
            return {"capex_usd": usd}
        case kinds.SPOT:
            return {"spot_usd_per_hour": usd, "spot_price_date": day}
        case kinds.FLEX_START:
            return {"flex_usd_per_hour": usd, "flex_price_date": day, "flex_most_h": _hours(row["most_days"])}
        case kinds.LONG:
            return {"long_usd_per_hour": usd, "long_price_date": day}
        case _:
            return {
                "reserved_usd_per_hour": usd,
                "reserved_term": row["term"],
                "reserved_price_date": day,
                "reserved_most": int(row["most_instances"]) if row["most_instances"] else None,
                "reserved_least_h": _hours(row["least_days"]),
                "reserved_most_h": _hours(row["most_days"]),
            }


def _hours(days: str) -> float | None:
    return 24.0 * float(days) if days else None
