"""Pages of what was measured on a machine of one's own."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from knowledge.figures import NONE, gib, number, shown
from pages.blocks import Block, Figures, Headline, Note, Row
from pages.results.basis import notes
from pages.results.columns import Column, table

if TYPE_CHECKING:  # each has the module of its own tool behind it
    from planner.measuring.here import MachineDescription, MachineDevice, MachineHost

_GHZ = 1e9


def machine(result: MachineDescription) -> list[Block]:
    return [
        Headline(_what(result)),
        Figures(list(_software(result)), ""),
        *_devices(result),
        Figures(list(_host(result.host)), "Host"),
        *notes("Watch out", result.warnings),
        *(
            [Note("", [f"As a cluster in plans: {_cluster(result)}, or accelerator=here"])]
            if result.plan_cluster
            else []
        ),
        Note("", [f"Asked: {', '.join(result.told_by)}."], quiet=True),
    ]


def _what(result: MachineDescription) -> str:
    names = Counter(device.name for device in result.devices)
    if not names:
        name = result.host.processor or "a processor whose name nobody says"
        known = f" ({result.accelerator})" if result.accelerator else ""
        return f"This machine has no accelerator that a driver speaks for; its processor is {name}{known}."
    named = " and ".join(f"{count} x {name}" for name, count in names.items())
    known = f", {result.accelerator} in the catalogue" if result.accelerator else ""
    return f"This machine has {named}{known}."


def _cluster(result: MachineDescription) -> str:
    return f"{result.count} x {result.accelerator}"


def _software(result: MachineDescription) -> list[Row]:
    links = ", ".join(f"{name} ({pairs} pair{'s' * (pairs > 1)})" for name, pairs in result.links.items())
    ports = ", ".join(f"{port.name} {shown('interconnect_bytes_per_s', port.bytes_per_s)}" for port in result.ports)
    torch = f"{result.torch}, computes on {result.torch_device}" if result.torch else "not installed for this Python"
    rows: list[Row] = [
        ("driver", result.driver or NONE), ("runtime", result.runtime or NONE), ("links", links or NONE),
        ("network ports", ports or NONE), ("network in plans", result.interconnect or NONE), ("PyTorch", torch),
    ]  # fmt: skip
    return [row for row in rows if row[1] != NONE]


def _devices(result: MachineDescription) -> list[Block]:
    def clock(row: MachineDevice) -> str:
        return _of(row.clock_hz and row.clock_hz / _GHZ, row.clock_limit_hz and row.clock_limit_hz / _GHZ, "GHz")

    columns: list[Column] = [
        ("device", "name"), ("in the catalogue", lambda row: row.accelerator or NONE),
        ("memory", lambda row: gib(row.memory_bytes) if row.memory_bytes else NONE),
        ("taken", lambda row: gib(row.memory_used_bytes) if row.memory_used_bytes is not None else NONE),
        ("power", lambda row: _of(row.power_w, row.power_limit_w, "W")), ("clock", clock),
        ("temperature", lambda row: f"{row.temperature_c:g} °C" if row.temperature_c is not None else NONE),
        ("PCIe", lambda row: row.pcie or NONE),
    ]  # fmt: skip
    return list(table(result.devices, columns, "Devices"))


def _of(value: float | None, limit: float | None, unit: str) -> str:
    """'68.5 of 700 W'."""
    if limit is None:
        return NONE if value is None else f"{number(value)} {unit}"
    return f"{number(limit)} {unit}" if value is None else f"{number(value)} of {number(limit)} {unit}"


def _host(host: MachineHost) -> list[Row]:
    cores = f"{host.cores} cores" if host.cores else ""
    sockets = f"{host.sockets} socket{'s' * (host.sockets > 1)}" if host.sockets else ""
    threads = f"{number(host.threads)} may be used" + (" (a container's limit)" if host.contained else "")
    disk = (
        f"{gib(host.free_disk_bytes)} of {gib(host.disk_bytes)} free"
        if host.disk_bytes and host.free_disk_bytes
        else NONE
    )
    memory = gib(host.memory_bytes) if host.memory_bytes else NONE
    free = f", {gib(host.free_memory_bytes)} free" if host.free_memory_bytes is not None else ""
    rows: list[Row] = [
        ("processor", host.processor or NONE),
        ("processors", ", ".join(part for part in (sockets, cores, threads) if part)),
        ("matrix instructions", ", ".join(host.features) or NONE),
        ("memory", memory + free),
        ("disk", disk),
        ("load", number(host.load) if host.load is not None else NONE),
        ("temperature", f"{host.temperature_c:g} °C" if host.temperature_c is not None else NONE),
        ("system", host.system),
    ]
    return [row for row in rows if row[1] != NONE]
