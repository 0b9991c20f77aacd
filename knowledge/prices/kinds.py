"""The prices of one machine: on demand, spot, flex-start, reserved for a term, and to buy it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from estimator.machine.hardware import Price

ON_DEMAND, SPOT, FLEX_START = "on demand", "spot", "flex-start"
RESERVED, LONG, PURCHASE = "reserved", "reserved 3 years", "purchase"


@dataclass(frozen=True)
class Listed:
    """`usd` an hour, or to buy the machine; `day` is None of an undated price."""

    kind: str
    usd: float
    day: str | None
    source: str


def listed(price: Price) -> Iterator[Listed]:
    """Each kind of price that a machine has, with its own day and source."""
    day = price.price_date
    spot_day = day if price.spot_price_date is None else price.spot_price_date
    for kind, usd, kind_day in (
        (ON_DEMAND, price.usd_per_hour, day),
        (SPOT, price.spot_usd_per_hour, spot_day),
        (FLEX_START, price.flex_usd_per_hour, price.flex_price_date),
        (RESERVED, price.reserved_usd_per_hour, price.reserved_price_date),
        (LONG, price.long_usd_per_hour, price.long_price_date),
        (PURCHASE, price.capex_usd, day),
    ):
        if usd is not None:
            yield Listed(kind, usd, kind_day or None, price.sources.get(kind, price.source))
