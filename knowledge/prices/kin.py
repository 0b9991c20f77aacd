"""What a device without a price of its own would cost: the range of the prices of devices like it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from statistics import median

from estimator.machine.hardware import Accelerator
from knowledge.machines.catalogue import accelerators, find_accelerator
from knowledge.own.files import Stamp, stamp
from knowledge.prices.book import hourly_by_device, prices

# Within these factors of matmul rate, memory and its bandwidth, and so many years, a device is of the kind; the wider
# only where the narrower has fewer than _FEWEST. An assumption: prices follow all four.
_LIKE = ((1.5, 2), (2.0, 3), (2.5, 5), (4.0, 6), (6.0, 6))
_FEWEST = 2
# Machines that are bought, and not rented out by the hour.
_BOUGHT = ("SoC", "module")
_PROCESSORS = "CPU"


@dataclass(frozen=True)
class PriceRange:
    """USD per device-hour on demand, from the cheapest to the dearest of `kin`: an assumption, no offer."""

    low_usd_per_hour: float
    high_usd_per_hour: float
    kin: tuple[str, ...]


@dataclass(frozen=True)
class PurchaseRange:
    """USD of a whole machine with one device, from the cheapest to the dearest of `kin`: an assumption, no offer."""

    low_usd: float
    high_usd: float
    kin: tuple[str, ...]


def kin_price(device: Accelerator) -> PriceRange | None:
    """The range for a device without a price of its own; None where it has one, is not rented out, or has no kin."""
    costs = None if device.form_factor in _BOUGHT else _rented(device.id, (stamp("prices"), stamp("hardware")))
    return PriceRange(*costs) if costs else None


def alone_price(device: Accelerator) -> PriceRange | None:
    """The range of the offers of the device itself, for numbers of it that nobody rents out together; None where there
    is none."""
    usd = hourly_by_device().get(device.id)
    return PriceRange(usd[0], usd[-1], (device.id,)) if usd else None


def kin_purchase(device: Accelerator) -> PurchaseRange | None:
    """The same of a machine that is bought as a whole; None of others."""
    costs = _range(device, _bought()) if device.form_factor in _BOUGHT else None
    return PurchaseRange(*costs) if costs else None


def _range(device: Accelerator, usd: Mapping[str, float]) -> tuple[float, float, tuple[str, ...]] | None:
    if device.id in usd:
        return None
    for factor, years in _LIKE:
        kin = [other.id for other in accelerators() if other.id in usd and _is_like(device, other, factor, years)]
        if len(kin) >= _FEWEST:
            likes = [usd[id] for id in kin]
            return min(likes), max(likes), tuple(kin)
    return None


def _is_like(device: Accelerator, other: Accelerator, factor: float, years: int) -> bool:
    if device.year is None or other.year is None or abs(device.year - other.year) > years:
        return False
    pairs = (
        (_rate(device), _rate(other)),
        (device.memory_bytes, other.memory_bytes),
        (device.memory_bandwidth, other.memory_bandwidth),
    )
    if _form(device) != _form(other):
        return False
    return all(ours > 0 and theirs > 0 and 1 / factor <= ours / theirs <= factor for ours, theirs in pairs)


def _form(device: Accelerator) -> str:
    """What stands beside others only of its own form: processors, and each kind of machine that is bought whole."""
    return device.form_factor if device.form_factor in _BOUGHT else _PROCESSORS if _is_processor(device) else ""


def _is_processor(device: Accelerator) -> bool:
    return device.family == _PROCESSORS


def _rate(device: Accelerator) -> float:
    """What price follows: of processors the vector rate, as their matrix units are a small part of them."""
    if _is_processor(device):
        return device.vector_flops
    return device.peak_flops.get("bf16") or device.peak_flops.get("fp16") or 0.0


@lru_cache(maxsize=1024)
def _rented(id: str, stamps: tuple[Stamp, ...]) -> tuple[float, float, tuple[str, ...]] | None:
    """What kin of a device is rented out for while the user's own prices and hardware stay as they are."""
    return _range(find_accelerator(id).value, _hourly(stamps))


@lru_cache(maxsize=2)
def _hourly(_: tuple[Stamp, ...]) -> dict[str, float]:
    """The median of the on-demand prices of each device in the book, a device."""
    return {id: median(usd) for id, usd in hourly_by_device().items()}


def _bought() -> dict[str, float]:
    """The median of what one of each device costs as a whole machine."""
    return _machines((stamp("prices"), stamp("hardware")))


@lru_cache(maxsize=2)
def _machines(_: tuple[Stamp, ...]) -> dict[str, float]:
    sold = {device.id for device in accelerators() if device.form_factor in _BOUGHT}
    costs: dict[str, list[float]] = {}
    for price in prices():
        if price.capex_usd and price.capex_of == "machine" and price.accelerator in sold:
            costs.setdefault(price.accelerator, []).append(price.capex_usd / price.count)
    return {id: median(usd) for id, usd in costs.items()}
