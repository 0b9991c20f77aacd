"""Processor, memory, disk and network of a machine, as Linux's /proc and /sys and the system's own programs say.

A container shows the whole machine's memory and processors in /proc; what it may use is in its control group.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from measure.machine.devices import number, whole
from measure.machine.programs import Ask, printed

ROOT = Path("/")
_KIB = 1024.0
_VENDORS = {"0x10de": "NVIDIA", "0x1002": "AMD"}
# PCI classes of display controllers, 3D controllers and processing accelerators.
_CLASSES = ("0x0300", "0x0302", "0x0380", "0x1200")
_GBIT_BYTES, _MBIT_BYTES = 1e9 / 8.0, 1e6 / 8.0
_MATRIX_FLAGS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "bf16", "sve")


@dataclass(frozen=True)
class Port:
    """A network port that is up: bytes/s one way."""

    name: str
    kind: str
    bytes_per_s: float


@dataclass(frozen=True)
class Host:
    """None is what nobody says. `cores` are physical, `threads` what this process may run at once."""

    system: str
    processor: str | None
    sockets: int | None
    cores: int | None
    threads: float
    features: tuple[str, ...]
    memory_bytes: float | None
    free_memory_bytes: float | None
    disk_bytes: float | None
    free_disk_bytes: float | None
    load: float | None
    temperature_c: float | None
    ports: tuple[Port, ...]
    unclaimed: Mapping[str, int]
    """Accelerators on the bus by vendor, whether or not a driver speaks for them."""
    contained: bool
    """Whether memory or processors are those of a control group, less than the machine's."""


def host(root: Path = ROOT, ask: Ask = printed, folder: Path | None = None) -> Host:
    """What this machine is, beside its accelerators; `folder` is where its disk is asked about."""
    cpus = _cpuinfo(_text(root / "proc/cpuinfo"))
    memory = _meminfo(_text(root / "proc/meminfo"))
    total, free = memory.get("MemTotal"), memory.get("MemAvailable")
    total = total or number(ask(("sysctl", "-n", "hw.memsize")))
    threads, memory_limit = _limits(root)
    allowed = float(_allowed())
    contained = (threads is not None and threads < allowed) or bool(memory_limit and total and memory_limit < total)
    if memory_limit and total and memory_limit < total:
        used = number(_text(root / "sys/fs/cgroup/memory.current"))
        total, free = memory_limit, min(free or memory_limit, memory_limit - (used or 0.0))
    disk = _disk(folder or Path.cwd())
    return Host(
        system=f"{platform.system()} {platform.release()}",
        processor=cpus.name or ask(("sysctl", "-n", "machdep.cpu.brand_string")) or platform.processor() or None,
        sockets=cpus.sockets,
        cores=cpus.cores or whole(ask(("sysctl", "-n", "hw.physicalcpu"))),
        threads=min(threads or allowed, allowed),
        features=cpus.features,
        memory_bytes=total,
        free_memory_bytes=free,
        disk_bytes=disk[0],
        free_disk_bytes=disk[1],
        load=_load(),
        temperature_c=_temperature(root),
        ports=tuple(_ports(root)),
        unclaimed=_on_the_bus(root),
        contained=contained,
    )


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(errors="replace")
    return ""


@dataclass(frozen=True)
class _Processors:
    name: str | None
    sockets: int | None
    cores: int | None
    features: tuple[str, ...]


def _cpuinfo(text: str) -> _Processors:
    """Of /proc/cpuinfo: x86 says sockets and cores, Arm neither."""
    entries = [
        {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in block.splitlines())}
        for block in text.split("\n\n")
        if block.strip()
    ]
    if not entries:
        return _Processors(None, None, None, ())
    first = entries[0]
    pairs = {(row.get("physical id"), row.get("core id")) for row in entries if row.get("core id")}
    flags = (first.get("flags") or first.get("Features") or "").split()
    return _Processors(
        name=first.get("model name") or first.get("Model") or first.get("cpu model"),
        sockets=len({row.get("physical id") for row in entries if row.get("physical id")}) or None,
        cores=len(pairs) or None,
        features=tuple(flag for flag in _MATRIX_FLAGS if flag in flags),
    )


def _meminfo(text: str) -> dict[str, float]:
    rows = (line.partition(":") for line in text.splitlines())
    return {key: value * _KIB for key, _, rest in rows if (value := number(rest)) is not None}


def _limits(root: Path) -> tuple[float | None, float | None]:
    """(Processors, bytes) that the control group allows, of its version 2 or 1; None where there is no limit."""
    quota = _text(root / "sys/fs/cgroup/cpu.max").split()
    if not quota:
        quota = [
            _text(root / "sys/fs/cgroup/cpu/cpu.cfs_quota_us").strip(),
            _text(root / "sys/fs/cgroup/cpu/cpu.cfs_period_us").strip(),
        ]
    threads = None
    if len(quota) == 2 and all(re.fullmatch(r"\d+", part) for part in quota) and int(quota[1]):
        threads = int(quota[0]) / int(quota[1])
    limit = _text(root / "sys/fs/cgroup/memory.max") or _text(root / "sys/fs/cgroup/memory/memory.limit_in_bytes")
    return threads, number(limit)


def _allowed() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _disk(folder: Path) -> tuple[float | None, float | None]:
    with contextlib.suppress(OSError):
        usage = shutil.disk_usage(folder)
        return float(usage.total), float(usage.free)
    return None, None


def _load() -> float | None:
    with contextlib.suppress(OSError, AttributeError):
        return os.getloadavg()[0]
    return None


def _temperature(root: Path) -> float | None:
    """The hottest of the processor's sensors."""
    readings = [
        value / 1000.0
        for chip in sorted((root / "sys/class/hwmon").glob("hwmon*"))
        if _text(chip / "name").strip() in ("coretemp", "k10temp", "zenpower")
        for path in chip.glob("temp*_input")
        if (value := number(_text(path))) is not None
    ]
    return max(readings, default=None)


def _ports(root: Path) -> Iterator[Port]:
    """Ports that are up: of InfiniBand and RoCE ('400 Gb/sec (4X NDR)'), else of Ethernet (Mbit/s)."""
    fast = False
    for port in sorted((root / "sys/class/infiniband").glob("*/ports/*")):
        rate = number(_text(port / "rate"))
        if rate and "ACTIVE" in _text(port / "state"):
            fast = True
            kind = _text(port / "link_layer").strip() or "InfiniBand"
            yield Port(f"{port.parent.parent.name}:{port.name}", kind, rate * _GBIT_BYTES)
    if fast:
        return
    for card in sorted((root / "sys/class/net").glob("*")):
        speed = number(_text(card / "speed"))
        if speed and speed > 0 and _text(card / "operstate").strip() == "up" and (card / "device").exists():
            yield Port(card.name, "Ethernet", speed * _MBIT_BYTES)


def _on_the_bus(root: Path) -> dict[str, int]:
    counts: dict[str, int] = {}
    for device in (root / "sys/bus/pci/devices").glob("*"):
        vendor = _VENDORS.get(_text(device / "vendor").strip())
        if vendor and _text(device / "class").strip()[:6] in _CLASSES:
            counts[vendor] = counts.get(vendor, 0) + 1
    return counts
