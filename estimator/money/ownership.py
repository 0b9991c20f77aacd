"""What an owned device costs per hour of use: its price spread over its life, and what it takes to run it."""

from __future__ import annotations

from dataclasses import dataclass

# 365 days (definition).
HOURS_PER_YEAR = 8760.0
MONTHS_PER_YEAR = 12.0


@dataclass(frozen=True)
class Ownership:
    """Of one device. `capex_usd` is the accelerator alone and the two shares what comes on top of it (hosts on it, the
    network on both); `kw` is the device with its part of host and network, before the building's `pue`."""

    capex_usd: float
    host_capex_share: float
    network_capex_share: float
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
    def hourly_usd(self) -> dict[str, float]:
        """USD per hour of use by part. Everything but power is paid whether the device works or not; power is that of
        the hours of use alone, at the meter, so that cooling is in it and nowhere else."""
        yearly = {
            "hardware": self.capex_whole_usd / self.years,
            "colocation": self.kw * self.colocation_usd_per_kw_month * MONTHS_PER_YEAR,
            "maintenance": self.capex_whole_usd * self.maintenance_share,
            "staff": self.staff_usd_per_year,
        }
        hourly = {name: usd / self.hours_used_per_year for name, usd in yearly.items()}
        return hourly | {"power": self.kw * self.pue * self.usd_per_kwh}
