"""What devices cost by themselves, without a run: their rent, their purchase and their electricity."""

from __future__ import annotations

from estimator.errors import PlanError
from estimator.machine.hardware import Accelerator
from estimator.money.ownership import HOURS_PER_YEAR
from knowledge.machines.catalogue import machine
from knowledge.prices.book import prices
from knowledge.prices.ownership import years_kept
from planner.asked.facts import HardwareQuestion
from planner.asked.money import CostTerms
from planner.asked.owning import OwningTerms
from planner.money.bill import energy_facts
from planner.money.break_even import owned_against
from planner.money.offers import OfferTerms, in_order, offer, rentable
from planner.money.owned import owned_cost, owned_kw
from planner.money.results import HardwareBill
from planner.money.terms import place_of
from planner.result import Assumption, ProviderCost

# Less is the price of an hour, of which nobody says for how long.
_HOUR_H = 1.0


def hardware_bill(device: Accelerator, count: int, asked: HardwareQuestion) -> HardwareBill:
    """Of `count` devices for all hours that are asked about, at full load; of a year's where it is only said how many
    of them there are. What is needed for a shorter time than machines are usually kept is sold after it. Raises
    PlanError for an unknown region, and for two statements of how much they are used."""
    stated = _hours_per_year(asked)
    per_year = HOURS_PER_YEAR if stated is None else stated
    hours = asked.hours or stated or _HOUR_H
    timed = asked.hours is not None and asked.hours > _HOUR_H
    years = asked.years or min(hours / per_year, years_kept().value)
    terms = CostTerms.model_validate({
        **asked.model_dump(include=set(OwningTerms.model_fields)),
        "region": asked.region,
        "utilisation": per_year / HOURS_PER_YEAR if timed or stated else None,
        "years": years if timed else asked.years,
    })  # fmt: skip
    place, facts = place_of(terms), energy_facts(terms)
    cluster, _ = machine(device.id, count)
    wanted = OfferTerms(place=place if terms.region else None, nodes=cluster.nodes)
    listed = rentable(prices(device.id), min(cluster.per_node, count))
    usd_per_kwh, kw = place.usd_per_kwh.value if terms.usd_per_kwh is None else terms.usd_per_kwh, owned_kw(device)
    metered = None if kw is None else kw * count * facts["pue"].value
    assumed = [] if asked.pue else [Assumption(field="pue", value=facts["pue"].value, why=facts["pue"].source)]
    if not any(row.power_kw for row in prices(device.id, "owned")):
        assumed.append(Assumption(field="host_share", value=facts["host_share"].value, why=facts["host_share"].source))
    if terms.usd_per_kwh is None:
        assumed.append(Assumption(field="usd_per_kwh", value=usd_per_kwh, why=place.usd_per_kwh.source))
    carbon = facts["kg_co2_per_kwh"]
    assumed.append(Assumption(field="kg_co2_per_kwh", value=carbon.value, why=carbon.source))
    offers = [offer(price, count, hours, wanted) for price in listed if price.usd_per_hour is not None]
    if per_year < HOURS_PER_YEAR:
        offers = [_of_whole_terms(row, hours / per_year) for row in offers]
    rented, owned = in_order(offers), owned_cost(cluster, terms, place, (hours, hours, hours))
    return HardwareBill(
        count=count,
        hours=hours,
        hours_per_year=per_year,
        kept_hours=years * HOURS_PER_YEAR if timed else None,
        rented=rented,
        owned=owned,
        break_even=owned_against(rented, owned),
        kw=metered,
        kwh=None if metered is None else metered * hours,
        co2_kg=None if metered is None else metered * hours * carbon.value,
        grid_place=place.name if terms.region else None,
        usd_per_kwh=usd_per_kwh,
        power_usd=None if metered is None else metered * hours * usd_per_kwh,
        assumptions=assumed,
    )


def _hours_per_year(asked: HardwareQuestion) -> float | None:
    """Of use, where it is said, in hours or as a part of them all. Raises PlanError where both are."""
    if asked.utilisation is None:
        return asked.hours_per_year
    if asked.hours_per_year is not None:
        problem = "says the same as hours_per_year: name one of them"
        raise PlanError("utilisation", problem, [f"{asked.hours_per_year / HOURS_PER_YEAR:.3g}"])
    return asked.utilisation * HOURS_PER_YEAR


def _of_whole_terms(row: ProviderCost, years: float) -> ProviderCost:
    """A term is paid for whether the machines work or not."""
    rates = {"reserved_usd": row.reserved_usd_per_hour, "reserved_3y_usd": row.reserved_3y_usd_per_hour}
    whole = {name: rate * HOURS_PER_YEAR * years for name, rate in rates.items() if rate is not None}
    return row.model_copy(update=whole)
