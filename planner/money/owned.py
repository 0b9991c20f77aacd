"""What the devices of a plan cost their owner: figures of the price book and sourced defaults, arguments first."""

from __future__ import annotations

from collections.abc import Sequence

from estimator.machine.hardware import Accelerator, Machine, Price
from estimator.money.cost import device_kw
from estimator.money.ownership import Ownership
from knowledge.prices.book import prices
from knowledge.prices.energy import Fact, Place, energy_assumptions
from knowledge.prices.ownership import ownership_assumptions, resale_share, whole_machines
from planner.money.results import OwnedCost
from planner.money.terms import CostTerms
from planner.result import Assumption

_YOURS = "as given"


def owned_cost(machine: Machine, terms: CostTerms, place: Place, hours: Sequence[float]) -> OwnedCost | None:
    """For (hours, low, high) of a run; None where the price of the devices is not known, or their power."""
    facts = ownership_assumptions()
    rows = prices(machine.accelerator.id, "owned")
    bought, kw = _bought(machine, terms, rows), owned_kw(machine.accelerator)
    if bought is None or kw is None:
        return None
    price, name, source, price_of = bought
    assumptions: list[Assumption] = []

    def value(field: str, stated: float | None, fact: Fact) -> float:
        if stated is None:
            assumptions.append(Assumption(field=field, value=fact.value, why=fact.source))
        return fact.value if stated is None else stated

    host = network = 0.0
    if price_of != "everything":
        assumptions.append(
            Assumption(field="capex_usd_per_device", value=price, why=f"{source}; of the {price_of} alone")
        )
        network = value("network_capex_share", None, facts["network_capex_share"])
    if price_of == "accelerators":
        host = value("host_capex_share", None, facts["host_capex_share"])
    staff = facts["staff_usd_per_person_year"].value / facts["devices_per_person"].value
    why = f"{facts['staff_usd_per_person_year'].source}; a person for {facts['devices_per_person'].value:.0f} devices: "
    years = value("years", terms.years, facts["years"])
    owned = Ownership(
        capex_usd=price,
        host_capex_share=host,
        network_capex_share=network,
        resale_share=value("resale_share", terms.resale_share, resale_share(years)),
        years=years,
        utilisation=value("utilisation", terms.utilisation, facts["utilisation"]),
        kw=kw,
        pue=value("pue", terms.pue, energy_assumptions()["pue"]),
        usd_per_kwh=value("usd_per_kwh", terms.usd_per_kwh, place.usd_per_kwh),
        colocation_usd_per_kw_month=value(
            "colocation_usd_per_kw_month", terms.colocation_usd_per_kw_month, facts["colocation_usd_per_kw_month"]
        ),
        maintenance_share=value("maintenance_share", terms.maintenance_share, facts["maintenance_share"]),
        staff_usd_per_year=value(
            "staff_usd_per_device_year",
            terms.staff_usd_per_device_year,
            Fact(staff, why + facts["devices_per_person"].source),
        ),
    )
    return _result(owned, machine.count, name, source, assumptions, hours)


def _result(
    owned: Ownership, count: int, name: str, source: str, assumptions: list[Assumption], hours: Sequence[float]
) -> OwnedCost:
    hourly = {part: usd * count for part, usd in owned.hourly_usd.items()}
    total, yearly = sum(hourly.values()), sum(owned.yearly_usd.values()) * count
    run, low, high = hours
    return OwnedCost(
        machine=name,
        capex_usd=owned.capex_whole_usd * count,
        years=owned.years,
        utilisation=owned.utilisation,
        kw=owned.kw * count,
        usd_per_device_hour=total / count,
        usd_per_hour=total,
        usd=total * run,
        low_usd=total * low,
        high_usd=total * high,
        usd_per_year=total * owned.hours_used_per_year,
        fixed_usd_per_year=yearly,
        power_usd_per_hour=owned.power_usd_per_hour * count,
        parts={part: usd * run for part, usd in hourly.items()},
        source=source,
        assumptions=assumptions,
    )


def owned_kw(accelerator: Accelerator) -> float | None:
    """Power of one device with its part of hosts and network: of a machine in the price book, else of the device at its
    limit with the usual share for the rest. None where neither is known."""
    for row in prices(accelerator.id, "owned"):
        if row.power_kw:
            return row.power_kw / row.count
    return device_kw(accelerator, energy_assumptions()["host_share"].value)


def metered_kw(accelerator: Accelerator) -> float | None:
    """The same at the meter, with the building's share: what a limit of power holds."""
    kw = owned_kw(accelerator)
    return None if kw is None else kw * energy_assumptions()["pue"].value


def _bought(machine: Machine, terms: CostTerms, rows: list[Price]) -> tuple[float, str, str, str] | None:
    """(USD per device, machine, source, what that is the price of), as given or from the price book."""
    if terms.capex_usd_per_device is not None:
        return terms.capex_usd_per_device, machine.accelerator.name, _YOURS, "everything"
    for row in rows:
        if row.capex_usd:
            price_of = "machines" if row.instance in whole_machines() else "accelerators"
            return row.capex_usd / row.count, row.instance, row.notes or row.source, price_of
    return None
