"""What the price book has for a run's devices."""

from __future__ import annotations

from estimator.cost import bill
from estimator.hardware import Price
from knowledge.prices import prices
from tools.planning import Planned
from tools.results import ProviderCost


def offer(price: Price, devices: int, hours: float) -> ProviderCost:
    """One price as a row of a result."""
    paid = bill(price, devices, hours)
    return ProviderCost(
        provider=price.provider,
        instance=price.instance,
        instances=paid.instances,
        usd_per_hour=paid.usd_per_hour,
        usd=paid.usd,
        spot_usd=paid.spot_usd,
        price_date=price.price_date,
        note=price.notes,
        source=price.source,
    )


def offers(found: Planned, hours: float) -> list[ProviderCost]:
    """Instances (of the plan's provider) that can hold the run's nodes, cheapest first; those without a price last."""
    machine = found.job.machine
    needed = min(machine.per_node, machine.count)
    rows = []
    for price in prices(machine.accelerator.id, found.job.plan.goal.provider):
        per_unit = price.count == 1 and "(per " in price.instance
        if price.provider == "owned" or (price.count < needed and not per_unit):
            continue
        rows.append(offer(price, machine.count, hours))
    return sorted(rows, key=lambda row: (row.usd is None, row.usd or 0.0, row.provider))


def cheapest(rows: list[ProviderCost]) -> ProviderCost | None:
    """The cheapest on-demand offer; None where no offer has a price."""
    return next((row for row in rows if row.usd is not None), None)
