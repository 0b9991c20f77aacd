"""What a run costs: hours times devices times price, energy and carbon."""

from __future__ import annotations

import math
from dataclasses import dataclass

from estimator.hardware import Machine, Price


@dataclass(frozen=True)
class Bill:
    """One way to pay for the run: whole instances for `hours`. None where the provider names no price."""

    price: Price
    instances: int
    usd_per_hour: float | None
    usd: float | None
    spot_usd: float | None


def bill(price: Price, devices: int, hours: float) -> Bill:
    """Whole instances are rented, so a run of 4 devices on nodes of 8 pays for 8."""
    instances = math.ceil(devices / price.count)

    def times(rate: float | None) -> float | None:
        return None if rate is None else rate * instances * hours

    hourly = None if price.usd_per_hour is None else price.usd_per_hour * instances
    return Bill(price, instances, hourly, times(price.usd_per_hour), times(price.spot_usd_per_hour))


def energy_kwh(machine: Machine, hours: float, host_share: float, pue: float) -> float | None:
    """Device power at its limit, `host_share` more for hosts and network, times the building's PUE; None if unknown."""
    watts = machine.accelerator.tdp_w
    if watts is None:
        return None
    return machine.count * watts * (1.0 + host_share) * pue * hours / 1000.0
