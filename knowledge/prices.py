"""The price book: rentable instances and owned machines."""

from __future__ import annotations

from functools import cache

from estimator.errors import PlanError
from estimator.hardware import Price
from knowledge.data_files import rows
from knowledge.hardware import GIB, find_accelerator


def prices(accelerator: str | None = None, provider: str | None = None) -> list[Price]:
    """The rows for an accelerator (any name of it) and a provider (any case); all where they are None.

    Rows without a price are included: `usd_per_hour` is None there. Raises PlanError for an unknown name.
    """
    book = _book()
    if provider is not None:
        wanted = provider.strip().casefold()
        known = providers()
        if wanted not in {name.casefold() for name in known}:
            raise PlanError("goal.provider", f"there is no price book of {provider!r}", known)
        book = [price for price in book if price.provider.casefold() == wanted]
    if accelerator is not None:
        id = find_accelerator(accelerator).value.id
        book = [price for price in book if price.accelerator == id]
    return list(book)


def providers() -> list[str]:
    """Providers in the price book, by name."""
    return sorted({price.provider for price in _book()}, key=str.casefold)


@cache
def _book() -> list[Price]:
    return [_price(row) for row in rows("instances.csv")]


def _price(row: dict[str, str]) -> Price:
    bandwidth = _number(row["inter_node_gb_s_per_node"])
    ram = _number(row["ram_gb"])
    vcpus = _number(row["vcpus"])
    extra = {name: row[name] for name in ("intra_node_link", "local_nvme_tb") if row[name]}
    return Price(
        provider=row["provider"],
        instance=row["instance"],
        accelerator=row["accelerator"],
        count=int(row["count_per_node"]),
        usd_per_hour=_number(row["on_demand_usd_hour"]),
        spot_usd_per_hour=_number(row["spot_usd_hour"]),
        price_date=row["price_date"] or None,
        region=row["region"] or None,
        capex_usd=_number(row["capex_usd"]),
        power_kw=_number(row["power_kw"]),
        network=row["inter_node_network"],
        network_bandwidth_per_node=None if bandwidth is None else bandwidth * 1e9,
        vcpus=None if vcpus is None else int(vcpus),
        ram_bytes=None if ram is None else ram * GIB,
        source=row["source"],
        notes=row["notes"],
        extra=extra,
    )


def _number(text: str) -> float | None:
    return float(text) if text else None
