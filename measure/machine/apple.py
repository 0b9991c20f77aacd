"""Apple's chips: `system_profiler SPDisplaysDataType -json`, and the memory that they share with the processor."""

from __future__ import annotations

import json
from collections.abc import Mapping

from measure.machine.devices import Device, DeviceGroup, number
from measure.machine.programs import Ask, printed


def devices(ask: Ask = printed) -> DeviceGroup | None:
    """The chip of a Mac; None on another machine."""
    text = ask(("system_profiler", "SPDisplaysDataType", "-json"))
    memory = number(ask(("sysctl", "-n", "hw.memsize"))) if text else None
    return DeviceGroup(chips, told_by="system_profiler") if text and (chips := described(text, memory)) else None


def described(text: str, memory_bytes: float | None) -> tuple[Device, ...]:
    try:
        rows = json.loads(text).get("SPDisplaysDataType")
    except (ValueError, AttributeError, RecursionError):
        return ()
    names = [row.get("sppci_model") for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
    chips = (name for name in names if isinstance(name, str) and name.startswith("Apple "))
    return tuple(Device(name=name, vendor="Apple", memory_bytes=memory_bytes) for name in chips)
