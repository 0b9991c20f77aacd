"""What every vendor's program says of one device and of the links between two."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MIB = 2.0**20
"""Bytes of a mebibyte (IEC 80000-13), in which drivers count memory."""
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Device:
    """One accelerator as its driver describes it; None is what nobody says. SI units."""

    name: str
    vendor: str
    memory_bytes: float | None = None
    memory_used_bytes: float | None = None
    driver: str | None = None
    power_limit_w: float | None = None
    power_w: float | None = None
    clock_hz: float | None = None
    clock_limit_hz: float | None = None
    temperature_c: float | None = None
    utilisation: float | None = None
    pcie_generation: int | None = None
    """The most that the device and its slot can do."""
    pcie_lanes: int | None = None
    pcie_lanes_now: int | None = None
    split: bool = False
    """Whether it is divided into parts (MIG), of which a program sees one."""


@dataclass(frozen=True)
class DeviceGroup:
    """All accelerators of one vendor, with what joins each pair: {(0, 1): "NV18"}."""

    devices: tuple[Device, ...]
    links: dict[tuple[int, int], str] = field(default_factory=dict)
    runtime: str | None = None
    """CUDA or ROCm with its version, as the driver has it."""
    told_by: str = ""


def number(text: object) -> float | None:
    """The first number of '81559 MiB' or '[N/A]'; None where there is none."""
    match = _NUMBER.search(str(text)) if text is not None else None
    return float(match[0]) if match else None


def whole(text: object) -> int | None:
    value = number(text)
    return None if value is None else int(value)


def times(value: float | None, unit: float) -> float | None:
    return None if value is None else value * unit
