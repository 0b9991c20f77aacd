"""What an owned device costs per hour of use: its price spread over its life, and what it takes to run it."""

from __future__ import annotations

from dataclasses import dataclass

# 365 days (definition).
HOURS_PER_YEAR = 8760.0
MONTHS_PER_YEAR = 12.0


@dataclass(frozen=True)
class Ownership:
    """Of one device. `capex_usd` is the accelerator alone and the two shares what comes on top of it (hosts on it, the
    network on both); `resale_share` of the accelerator's price comes back after its `years`; `kw` is the device with
    its part of host and network, before the building's `pue`."""

    capex_usd: float
    host_capex_share: float
    network_capex_share: float
    resale_share: float
    years: float
    utilisation: float
    kw: float
    pue: float
    usd_per_kwh: float
    colocation_usd_per_kw_month: float
    maintenance_share: float
    staff_usd_per_year: float

    @property
    def capex_whole_usd(self) -> float:
        return self.capex_usd * (1.0 + self.host_capex_share) * (1.0 + self.network_capex_share)

    @property
    def hours_used_per_year(self) -> float:
        return HOURS_PER_YEAR * self.utilisation

    @property
    def yearly_usd(self) -> dict[str, float]:
        """What is paid every year by part, whether the device works or not."""
        return {
            "hardware": (self.capex_whole_usd - self.capex_usd * self.resale_share) / self.years,
            "colocation": self.kw * self.colocation_usd_per_kw_month * MONTHS_PER_YEAR,
            "maintenance": self.capex_whole_usd * self.maintenance_share,
            "staff": self.staff_usd_per_year,
        }

    @property
    def power_usd_per_hour(self) -> float:
        """Of an hour of use, at the meter, so that cooling is in it and nowhere else."""
        return self.kw * self.pue * self.usd_per_kwh

    @property
    def hourly_usd(self) -> dict[str, float]:
        """USD per hour of use by part."""
        hourly = {name: usd / self.hours_used_per_year for name, usd in self.yearly_usd.items()}
        return hourly | {"power": self.power_usd_per_hour}


def break_even_hours(yearly_usd: float, hourly_usd: float, other_hourly_usd: float) -> float | None:
    """Hours of use a year from which paying `yearly_usd` and `hourly_usd` for each of them costs less than
    `other_hourly_usd` alone; None where no year has as many."""
    if hourly_usd >= other_hourly_usd:
        return None
    hours = yearly_usd / (other_hourly_usd - hourly_usd)
    return hours if hours <= HOURS_PER_YEAR else None
