"""What amd-smi says (`static --json`, `metric --json`), and rocm-smi where a machine has only that.

Formats: ROCm 6 and 7; amd-smi's list stands bare or under gpu_data, its figures as numbers or {value, unit}.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from knowledge.own.mappings import json_value
from measure.machine.devices import MIB, Device, DeviceGroup, number, times, whole
from measure.machine.programs import Ask, printed

_ROCM = ("rocm-smi", "--showproductname", "--showmeminfo", "vram", "--showdriverversion", "--showmaxpower",
         "--showpower", "--showtemp", "--showuse", "--json")  # fmt: skip
_TOPOLOGY = ("rocm-smi", "--showtopotype", "--json")
_PAIR = re.compile(r"Link type between DRM devices (\d+) and (\d+)")
_POWER_NAMES = ("current socket graphics package power (w)", "average graphics package power (w)")
_MHZ = 1e6


def devices(ask: Ask = printed) -> DeviceGroup | None:
    """The machine's AMD devices; None where neither program knows of any."""
    static = ask(("amd-smi", "static", "--json"))
    told = described(static, ask(("amd-smi", "metric", "--json")) or "") if static else ()
    by = "amd-smi"
    if not told:
        told, by = queried(ask(_ROCM) or ""), "rocm-smi"
    if not told:
        return None
    return DeviceGroup(told, joined(ask(_TOPOLOGY) or ""), None, by)


def _data(text: str) -> Any:
    try:
        # rocm-smi prints warnings before its JSON.
        return json_value(text[min((place for mark in "[{" if (place := text.find(mark)) >= 0), default=0) :])
    except ValueError:
        return None


def _of(data: Any, *path: str) -> Any:
    """What stands below these keys; of {value, unit} the value."""
    for key in path:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data.get("value") if isinstance(data, Mapping) else data


def _gpus(text: str) -> list[Mapping[str, Any]]:
    data = _data(text)
    rows = data.get("gpu_data") if isinstance(data, Mapping) else data
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []


def described(static: str, metric: str = "") -> tuple[Device, ...]:
    """The devices of `amd-smi static --json`, with what `metric` says of them now."""
    now = {_of(row, "gpu"): row for row in _gpus(metric)}
    devices = []
    for row in _gpus(static):
        name = _of(row, "asic", "market_name") or _of(row, "board", "product_name")
        if not isinstance(name, str) or name == "N/A":
            continue
        beside = now.get(_of(row, "gpu"), {})
        used = number(_of(beside, "mem_usage", "used_vram"))
        total = number(_of(row, "vram", "size")) or number(_of(beside, "mem_usage", "total_vram"))
        devices.append(
            Device(
                name=name,
                vendor="AMD",
                memory_bytes=times(total, MIB),
                memory_used_bytes=times(used, MIB),
                driver=_of(row, "driver", "version") or _of(row, "driver", "driver_version"),
                power_limit_w=number(_of(row, "limit", "socket_power") or _of(row, "limit", "max_power")),
                power_w=number(_of(beside, "power", "socket_power")),
                clock_hz=times(number(_of(beside, "clock", "gfx_0", "clk")), _MHZ),
                clock_limit_hz=times(number(_of(beside, "clock", "gfx_0", "max_clk")), _MHZ),
                temperature_c=number(_of(beside, "temperature", "hotspot")),
                utilisation=times(number(_of(beside, "usage", "gfx_activity")), 0.01),
                pcie_lanes=whole(_of(row, "bus", "max_pcie_width")),
                pcie_lanes_now=whole(_of(beside, "pcie", "width")),
            )
        )
    return tuple(devices)


def queried(text: str) -> tuple[Device, ...]:
    """The devices of rocm-smi; the case of its keys differs between versions."""
    data = _data(text)
    if not isinstance(data, Mapping):
        return ()
    driver = next((str(value) for value in _lower(data.get("system")).values()), None)
    devices = []
    for card in sorted((key for key in data if re.fullmatch(r"card\d+", str(key))), key=lambda key: int(key[4:])):
        row = _lower(data[card])
        name = row.get("card series") or row.get("card model")
        if not isinstance(name, str):
            continue
        devices.append(
            Device(
                name=name,
                vendor="AMD",
                memory_bytes=number(row.get("vram total memory (b)")),
                memory_used_bytes=number(row.get("vram total used memory (b)")),
                driver=driver,
                power_limit_w=number(row.get("max graphics package power (w)")),
                power_w=number(
                    row.get("current socket graphics package power (w)")
                    or row.get("average graphics package power (w)")
                ),
                temperature_c=number(row.get("temperature (sensor junction) (c)")),
                utilisation=times(number(row.get("gpu use (%)")), 0.01),
            )
        )
    return tuple(devices)


def _lower(row: Any) -> dict[str, Any]:
    return {str(key).lower(): value for key, value in row.items()} if isinstance(row, Mapping) else {}


def joined(text: str) -> dict[tuple[int, int], str]:
    """What joins each pair of devices, of `rocm-smi --showtopotype --json`: XGMI or PCIE."""
    data = _data(text)
    rows = data.get("system") if isinstance(data, Mapping) else None
    pairs = (
        ((_PAIR.search(str(key)), value) for key, value in (rows or {}).items()) if isinstance(rows, Mapping) else ()
    )
    return {(int(pair[1]), int(pair[2])): str(value) for pair, value in pairs if pair}
