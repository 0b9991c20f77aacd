"""What the devices of a plan cost their owner: figures of the price book and sourced defaults, arguments first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from estimator.machine.hardware import Accelerator, Machine
from estimator.money.cost import device_kw
from estimator.money.ownership import Ownership
from knowledge.figures import usd
from knowledge.prices.book import prices
from knowledge.prices.energy import Fact, Place, energy_assumptions
from knowledge.prices.kin import kin_purchase
from knowledge.prices.ownership import ownership_assumptions, resale_share, years_kept
from planner.asked.money import CostTerms
from planner.money.purchase import OWNED, purchase
from planner.money.results import CostPart, OwnedCost
from planner.result import Assumption

_YOURS = "as given"


@dataclass(frozen=True)
class _Bought:
    """USD per device, the machine, where that is from, what it is the price of, and whether a network comes on top."""

    usd: float
    name: str
    source: str
    of: str
    joined: bool = False
    by_kin: bool = False


def owned_cost(machine: Machine, terms: CostTerms, place: Place, hours: Sequence[float]) -> OwnedCost | None:
    """For (hours, low, high) of a run; None where the price of the devices is not known, or their power."""
    facts = ownership_assumptions()
    bought, kw = _bought(machine, terms), owned_kw(machine.accelerator)
    if bought is None or kw is None:
        return None
    assumptions: list[Assumption] = []

    def value(field: str, stated: float | None, fact: Fact) -> float:
        if stated is None:
            assumptions.append(Assumption(field=field, value=fact.value, why=fact.source))
        return fact.value if stated is None else stated

    host = network = 0.0
    if bought.of != "everything":
        assumptions.append(
            Assumption(field="capex_usd_per_device", value=bought.usd, why=f"{bought.source}; of the {bought.of} alone")
        )
        network = value("network_capex_share", None, facts["network_capex_share"]) if bought.joined else 0.0
    if bought.of == "accelerators":
        host = value("host_capex_share", None, facts["host_capex_share"])
    room, staff = _upkeep(machine, kw)
    years = value("years", terms.years, years_kept())
    owned = Ownership(
        capex_usd=bought.usd,
        host_capex_share=host,
        network_capex_share=network,
        resale_share=value("resale_share", terms.resale_share, resale_share(years)),
        years=years,
        utilisation=value("utilisation", terms.utilisation, facts["utilisation"]),
        kw=kw,
        pue=value("pue", terms.pue, energy_assumptions()["pue"]),
        usd_per_kwh=value("usd_per_kwh", terms.usd_per_kwh, place.usd_per_kwh),
        colocation_usd_per_kw_month=value("colocation_usd_per_kw_month", terms.colocation_usd_per_kw_month, room),
        maintenance_share=value("maintenance_share", terms.maintenance_share, facts["maintenance_share"]),
        staff_usd_per_year=value("staff_usd_per_device_year", terms.staff_usd_per_device_year, staff),
    )
    return _result(owned, machine.count, bought, assumptions, hours)


def _as_kin(device: Accelerator) -> _Bought | None:
    """A machine that nobody is known to sell, at the middle of what machines like it cost; None without such."""
    kin = kin_purchase(device)
    if kin is None:
        return None
    ends = [*dict.fromkeys(map(usd, (kin.low_usd, kin.high_usd)))]
    source = f"similar machines cost {' to '.join(ends)} to buy (an assumption, no offer): {', '.join(kin.kin)}"
    return _Bought(math.sqrt(kin.low_usd * kin.high_usd), device.name, source, "machines", by_kin=True)


def _upkeep(machine: Machine, kw: float) -> tuple[Fact, Fact]:
    """(Room per kW and month, people per device and year); nothing of both where an ordinary circuit carries them."""
    facts = ownership_assumptions()
    socket, person, devices = facts["socket_kw"], facts["staff_usd_per_person_year"], facts["devices_per_person"]
    bought = purchase(machine.accelerator)
    at_once = machine.count if bought is None else max(machine.count, bought.unit)
    if at_once * kw <= socket.value:
        none = Fact(0.0, f"they stand on a desk: up to {socket.value:g} kW, {socket.source}")
        return none, none
    why = f"{person.source}; a person for {devices.value:.0f} devices: {devices.source}"
    return facts["colocation_usd_per_kw_month"], Fact(person.value / devices.value, why)


def _result(
    owned: Ownership, count: int, bought: _Bought, assumptions: list[Assumption], hours: Sequence[float]
) -> OwnedCost:
    hourly = {part: usd * count for part, usd in owned.hourly_usd.items()}
    total, yearly = sum(hourly.values()), sum(owned.yearly_usd.values()) * count
    run, low, high = hours
    return OwnedCost(
        machine=bought.name,
        by_kin=bought.by_kin,
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
        hourly_parts=[CostPart(part=part, usd=usd, what="an hour of use") for part, usd in hourly.items()],
        source=bought.source,
        assumptions=assumptions,
    )


def owned_kw(accelerator: Accelerator) -> float | None:
    """Power of one device with its part of hosts and network: of a machine in the price book, else of the device at its
    limit with the usual share for the rest. None where neither is known."""
    for row in prices(accelerator.id, OWNED):
        if row.power_kw:
            return row.power_kw / row.count
    return device_kw(accelerator, energy_assumptions()["host_share"].value)


def metered_kw(accelerator: Accelerator) -> float | None:
    """The same at the meter, with the building's share: what a limit of power holds."""
    kw = owned_kw(accelerator)
    return None if kw is None else kw * energy_assumptions()["pue"].value


def _bought(machine: Machine, terms: CostTerms) -> _Bought | None:
    """As given, or from the price book."""
    if terms.capex_usd_per_device is not None:
        return _Bought(terms.capex_usd_per_device, machine.accelerator.name, _YOURS, "everything")
    sold = purchase(machine.accelerator)
    if sold is None:
        return _as_kin(machine.accelerator)
    price, of = sold.price, "machines" if sold.whole else "accelerators"
    source = "; ".join(filter(None, (price.notes, price.source)))
    return _Bought(sold.device_usd, price.instance, source, of, sold.joined(machine.count, machine.per_node))
