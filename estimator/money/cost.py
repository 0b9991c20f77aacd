"""What a run costs: hours times devices times price, spot instances with their interruptions, energy, stored data."""

from __future__ import annotations

import math
from dataclasses import dataclass

from estimator.machine.hardware import Accelerator, Machine, Price
from estimator.units import BYTES_PER_GB, W_PER_KW

# As clouds bill a month (AWS pricing calculator): a twelfth of 365 days.
HOURS_PER_MONTH = 730.0
# Beyond this exponent an interval between checkpoints is never got through.
_HOPELESS = 50.0


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


def device_kw(accelerator: Accelerator, host_share: float) -> float | None:
    """Power of one device at its limit with its part of hosts and network; None if unknown."""
    watts = accelerator.tdp_w
    return None if watts is None else watts * (1.0 + host_share) / W_PER_KW


def energy_kwh(machine: Machine, hours: float, host_share: float, pue: float) -> float | None:
    """Device power at its limit, `host_share` more for hosts and network, times the building's PUE; None if unknown."""
    kw = device_kw(machine.accelerator, host_share)
    return None if kw is None else machine.count * kw * pue * hours


def hourly_interruptions(monthly_share: float) -> float:
    """Interruptions per hour of one instance, of which `monthly_share` are taken away within a month."""
    return -math.log1p(-monthly_share) / HOURS_PER_MONTH


def checkpoint_interval_h(save_h: float, hours_between: float, run_h: float) -> float:
    """Hours of work between two checkpoints that lose least (Young 1974: sqrt(2 x save time x time between failures)),
    at most the whole run."""
    return min(run_h, math.sqrt(2.0 * save_h * hours_between))


def interrupted_hours(
    run_h: float, per_hour: float, restart_h: float, save_h: float, interval_h: float | None
) -> float | None:
    """Expected hours of a run of `run_h` hours of work that is interrupted `per_hour` times an hour at random, goes on
    from its last checkpoint after `restart_h`, and saves for `save_h` every `interval_h` hours (Young's if None).

    Daly 2006 (Future Generation Computer Systems 22), the complete model of the run time with exponential failures:
    M exp(R/M) (exp((t + d)/M) - 1) T/t. The last interval needs no checkpoint to be safe, so a run shorter than the
    interval saves none. None where an interval is hardly ever got through.
    """
    if run_h == 0.0:
        return 0.0
    between = math.inf if per_hour == 0.0 else 1.0 / per_hour
    interval = checkpoint_interval_h(save_h, between, run_h) if interval_h is None else min(interval_h, run_h)
    if interval == 0.0:  # Saving takes no time, so work is saved all the time and only restarts cost any.
        return run_h * math.exp(restart_h * per_hour)
    segment = interval + (save_h if interval < run_h else 0.0)
    if math.isinf(between):
        return run_h * (segment / interval)
    if (segment + restart_h) * per_hour > _HOPELESS:
        return None
    return between * math.exp(restart_h * per_hour) * math.expm1(segment * per_hour) * run_h / interval


def paid_by_credits(usd: float, hours: float, credits_usd: float, left_h: float | None) -> float:
    """USD of a bill that comes evenly over `hours` which credits pay that end `left_h` hours after it begins (None:
    never)."""
    before = usd if left_h is None or left_h >= hours else usd * max(0.0, left_h) / hours
    return min(before, credits_usd)


def storage_usd(size_bytes: float, usd_per_gb_month: float, hours: float) -> float:
    """Of data kept for `hours`; a GB is 1e9 bytes, as object storage is sold."""
    return size_bytes / BYTES_PER_GB * usd_per_gb_month * hours / HOURS_PER_MONTH
