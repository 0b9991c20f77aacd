"""The user's own prices as rows of the price book."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from estimator.errors import PlanError
from estimator.machine.hardware import Price
from estimator.units import GIB
from knowledge.machines.catalogue import find_accelerator, own_accelerators
from knowledge.own.files import Stamp, stamp
from knowledge.own.rows import HardwareRow, LeftOut, Own, PriceRow, read_rows

OWN_PROVIDER = "yours"
"""Provider of the prices that stand in a hardware file."""


def with_own_prices(shipped: Sequence[Price]) -> Sequence[Price]:
    """The price book with the user's rows after its own, or in place of them where they say so."""
    stamps = stamp("prices"), stamp("hardware")
    if not any(stamps):
        return shipped
    prices, replaced, _ = _joined(*stamps, tuple(_key(price) for price in shipped))
    machines = {(price.provider, price.instance): price for price in shipped}
    own = [_as_known(price, machines.get((price.provider, price.instance))) for price in prices]
    return [*(price for price in shipped if _key(price) not in replaced), *own]


def _as_known(price: Price, shipped: Price | None) -> Price:
    """With what the price book knows of such an instance besides its price."""
    if shipped is None or shipped.accelerator != price.accelerator:
        return price
    return replace(
        price,
        network=shipped.network,
        network_bandwidth_per_node=shipped.network_bandwidth_per_node,
        max_devices=shipped.max_devices,
        vcpus=shipped.vcpus,
        ram_bytes=price.ram_bytes or shipped.ram_bytes,
        extra=shipped.extra,
        seller=shipped.seller,
    )


def prices_left_out(shipped: Sequence[Price]) -> list[LeftOut]:
    """The user's rows that cannot be used, which depends on those of the price book."""
    return _joined(stamp("prices"), stamp("hardware"), tuple(_key(price) for price in shipped))[2]


@lru_cache(maxsize=2)
def _joined(_prices: Stamp, _hardware: Stamp, shipped: tuple[str, ...]) -> tuple[list[Price], set[str], list[LeftOut]]:
    rows, left_out = read_rows("prices", PriceRow)
    prices = [_of_device(id, each) for id, each in own_accelerators().items() if each.row.usd_per_hour is not None]
    replaced: set[str] = set()
    for each in rows:
        try:
            prices.append(own_price(each, shipped))
            replaced |= {each.row.key} if each.row.replaces else set()
        except PlanError as error:
            names = (each.row.accelerator, each.path.stem)
            left_out.append(LeftOut(each.path, tuple(name.casefold() for name in names), error))
    return prices, replaced, left_out


def checked_price(entry: Own[PriceRow], shipped: Sequence[Price]) -> Price:
    """As `own_price`, for the price book itself."""
    return own_price(entry, tuple(_key(price) for price in shipped))


def own_price(entry: Own[PriceRow], shipped: Sequence[str]) -> Price:
    """The price that a row of the user's is. Raises PlanError, also where it clashes with the keys in `shipped`."""
    row, place = entry.row, f"{entry.path}: "
    if row.key in shipped and not row.replaces:
        problem = f"{row.provider} {row.instance} is in the price book; say replaces: true to put yours in its place"
        raise PlanError(f"{place}instance", problem)
    if row.replaces and row.key not in shipped:
        problem = f"the price book has no {row.provider} {row.instance} in region {row.region or 'none'} to replace"
        raise PlanError(f"{place}replaces", problem)
    kinds = ("usd_per_hour", "spot_usd_per_hour", "reserved_usd_per_hour", "reserved_3y_usd_per_hour")
    if all(getattr(row, kind) is None for kind in kinds):
        raise PlanError(f"{place}usd_per_hour", "a price is required", [*kinds])
    day = row.price_date.isoformat() if row.price_date else None
    try:
        device = find_accelerator(row.accelerator).value
    except PlanError as error:
        raise PlanError(f"{place}accelerator", error.problem, error.valid) from None
    return Price(
        provider=row.provider,
        instance=row.instance,
        accelerator=device.id,
        count=row.count,
        usd_per_hour=row.usd_per_hour,
        spot_usd_per_hour=row.spot_usd_per_hour,
        price_date=day,
        region=row.region,
        reserved_usd_per_hour=row.reserved_usd_per_hour,
        reserved_term=None if row.reserved_usd_per_hour is None else "1 year",
        reserved_price_date=day,
        long_usd_per_hour=row.reserved_3y_usd_per_hour,
        long_price_date=day,
        ram_bytes=None if row.ram_gib is None else row.ram_gib * GIB,
        source=entry.source,
        notes=row.notes or "",
    )


def _of_device(id: str, entry: Own[HardwareRow]) -> Price:
    """The price in a hardware file: of one device, as many as are needed."""
    row = entry.row
    return Price(
        provider=OWN_PROVIDER,
        instance=f"{id} (per device)",
        accelerator=id,
        count=1,
        usd_per_hour=row.usd_per_hour,
        spot_usd_per_hour=None,
        price_date=row.price_date.isoformat() if row.price_date else None,
        source=entry.source,
    )


def _key(price: Price) -> str:
    return "/".join((price.provider, price.instance, price.region or "")).casefold()
