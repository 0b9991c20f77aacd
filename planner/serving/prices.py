"""What serving costs: the cheapest offer for devices of a kind, and money per token."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from estimator.machine.hardware import Machine, Price
from estimator.money.cost import HOURS_PER_MONTH, bill
from estimator.plan.layouts import Floats
from knowledge.machines.catalogue import find_accelerator, machine
from knowledge.own.files import Stamp, stamp
from knowledge.prices.age import is_stale
from knowledge.prices.book import prices
from planner.asked.money import CostTerms
from planner.clock import today
from planner.money.offers import in_order, is_owned, of_strangers, offer, rentable
from planner.money.owned import owned_cost
from planner.money.purchase import purchase
from planner.money.terms import place_of
from planner.result import ProviderCost
from planner.serving.results import ServingCost

# More devices than any deployment has.
_MOST_TOGETHER = 2**40


def offered(accelerator: str, provider: str | None, together: int) -> tuple[Price, ...]:
    """Rentable instances (of a provider) that hold `together` devices or are rented by the device."""
    return _offered(accelerator, provider, together, (stamp("prices"), stamp("hardware")))


@lru_cache(maxsize=256)
def _offered(accelerator: str, provider: str | None, together: int, _: tuple[Stamp, ...]) -> tuple[Price, ...]:
    """The same while the user's own prices stay as they are."""
    return tuple(rentable(prices(accelerator, provider), together))


def cheapest_hour(accelerator: str, provider: str | None, together: int, devices: int) -> tuple[Price, float] | None:
    """The cheapest on-demand offer for `devices`, `together` of which share a node, and its USD per hour; machines of
    strangers only where no cloud has any.

    Whole instances are rented; where the provider is `owned`, an hour of what is bought. None where no offer has a
    price. Raises PlanError for an unknown provider.
    """
    if is_owned(provider):
        return _bought_hour(accelerator, devices)
    priced = [price for price in offered(accelerator, provider, together) if price.usd_per_hour is not None]
    paid = [(price, bill(price, devices, 1.0).usd_per_hour) for price in priced]
    priced_ones = ((price, usd) for price, usd in paid if usd is not None)
    return min(priced_ones, key=lambda row: (of_strangers(row[0].seller), row[1]), default=None)


def _bought_hour(accelerator: str, devices: int) -> tuple[Price, float] | None:
    """Of machines that are bought and serve all hours; None where their price or power is not known, or they are sold
    otherwise than in such numbers."""
    device = find_accelerator(accelerator).value
    sold, terms = purchase(device), CostTerms.model_validate({"utilisation": 1.0})
    if sold is None or devices % sold.unit:
        return None
    owned = owned_cost(machine(device, devices)[0], terms, place_of(terms), (1.0, 1.0, 1.0))
    return None if owned is None else (sold.price, owned.usd_per_hour)


def hourly_usd(
    accelerator: str, provider: str | None, together: int, devices: int, usd_per_device: float | None
) -> float | None:
    """USD per hour of `devices` at the user's `own` price per device, or at the cheapest offer."""
    if usd_per_device is not None:
        return usd_per_device * devices
    cheapest = cheapest_hour(accelerator, provider, together, devices)
    return cheapest[1] if cheapest else None


def hourly_column(
    machine: Machine, provider: str | None, replica: Floats, devices: Floats, usd_per_device: float | None
) -> Floats:
    """The same of arrays of devices, of which as many as a `replica` has share nodes; NaN where no price is known."""
    together = np.minimum(replica, machine.per_node)
    sizes, places = np.unique(together * _MOST_TOGETHER + devices, return_inverse=True)
    usd = []
    for size in sizes:
        joint, count = divmod(int(size), _MOST_TOGETHER)
        usd.append(hourly_usd(machine.accelerator.id, provider, joint, count, usd_per_device))
    return np.array([np.nan if value is None else value for value in usd])[places]


def offers_of(accelerator: str, provider: str | None, together: int, devices: int) -> list[ProviderCost]:
    """Every offer for an hour, cheapest first; those without a price last."""
    return in_order([offer(price, devices, 1.0) for price in offered(accelerator, provider, together)])


def cost_of(
    usd_per_hour: float, output_tokens_per_s: float, total_tokens_per_s: float, requests_per_s: float,
    price: Price | None, share: float = 1.0,
) -> ServingCost:  # fmt: skip
    """`price` is the offer behind it, None for the user's own; `share` the part of all hours that it serves."""

    def per_million(rate: float) -> float:
        return usd_per_hour / (rate * 3600.0 / 1e6)

    return ServingCost(
        usd_per_hour=usd_per_hour,
        usd_per_month=usd_per_hour * HOURS_PER_MONTH * share,
        usd_per_million_output_tokens=per_million(output_tokens_per_s),
        usd_per_million_tokens=per_million(total_tokens_per_s),
        usd_per_million_requests=per_million(requests_per_s),
        provider=price.provider if price else None,
        instance=price.instance if price else None,
        price_date=price.price_date if price else None,
        stale=is_stale(price.price_date, today()) if price else None,
    )
