"""describe_machine: what this machine is, and which of the catalogue's devices it has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from pydantic import Field

from estimator.errors import PlanError
from estimator.machine.hardware import Accelerator
from knowledge.machines.catalogue import accelerators, find_accelerator, own_accelerators
from knowledge.machines.networks import network
from launchers.launch.names import slug
from measure.machine.devices import Device
from measure.machine.host import Host, Port
from measure.machine.inventory import Inventory, inventory
from planner.asked.facts import MachineQuestion
from planner.result import Result

# How far the memory that a driver shows may be from what the catalogue says of the device of that name.
_MEMORY_ALIKE = 0.08
_TAKEN_SHARE = 0.05
_POWER_ALIKE = 0.97
# What makers write into a processor's name that no catalogue has.
_LONGEST_ID = 64
_NOISE = re.compile(r"\((?:R|TM|tm|r)\)|\bCPU\b|@.*|\b\d+-Core\b|\bProcessor\b", re.IGNORECASE)


class MachineDevice(Result):
    name: str = Field(description="As its driver calls it.")
    accelerator: str | None = Field(description="The catalogue's id; null where none is certain.")
    memory_bytes: float | None
    memory_used_bytes: float | None
    power_limit_w: float | None
    power_w: float | None
    clock_hz: float | None
    clock_limit_hz: float | None
    temperature_c: float | None
    busy: float | None = Field(description="Share of the last moment in which it computed.")
    pcie: str | None = Field(description="Generation and lanes of its slot, 5 x16.")


class MachinePort(Result):
    name: str
    kind: str
    bytes_per_s: float = Field(description="One way.")


class MachineHost(Result):
    system: str
    processor: str | None
    sockets: int | None
    cores: int | None = Field(description="Physical ones.")
    threads: float = Field(description="What a process may use at once.")
    features: list[str] = Field(description="Instructions that matrix products use.")
    memory_bytes: float | None
    free_memory_bytes: float | None
    disk_bytes: float | None = Field(description="Of the disk that holds the working folder.")
    free_disk_bytes: float | None
    load: float | None = Field(description="Processes that ran or waited, over the last minute.")
    temperature_c: float | None
    contained: bool = Field(description="Whether a container's limits are meant, less than the machine has.")


class MachineDescription(Result):
    devices: list[MachineDevice]
    accelerator: str | None = Field(description="The catalogue's id of its devices, or of its processor.")
    count: int = Field(description="Devices that a plan for this machine has.")
    plan_cluster: dict[str, Any] = Field(description="As a plan's cluster; empty where no device of it is known.")
    driver: str | None
    runtime: str | None = Field(description="CUDA or ROCm.")
    links: dict[str, int] = Field(description="What joins pairs of devices, and how many pairs.")
    ports: list[MachinePort]
    interconnect: str | None = Field(description="As a plan names the network of such ports.")
    torch: str | None = Field(description="Its version; null where it is not installed for this Python.")
    torch_device: str | None = Field(description="cuda (also of ROCm), mps or cpu.")
    torch_backends: list[str]
    host: MachineHost
    told_by: list[str] = Field(description="The programs that said so.")
    warnings: list[str]


def describe_machine(request: MachineQuestion) -> MachineDescription:
    """Describe this machine."""
    return description_of(inventory(request.torch))


def here() -> tuple[str, int]:
    """(The id of this machine's devices, their number): the user's own row where they were measured, else the
    catalogue's. Raises PlanError where none is known."""
    for with_torch in (False, True):
        name, count = _planned(_machine(with_torch))
        if name:
            return name, count
    raise PlanError(
        "cluster.accelerator",
        "no device of this machine is in the catalogue; shardwise measure hardware measures it and adds it",
        ["h100-sxm", "shardwise measure hardware", "shardwise hardware add"],
    )


@cache
def _machine(with_torch: bool) -> Inventory:
    return inventory(with_torch)


def own_id(name: str) -> str:
    """What a device that was measured is called among the user's own: my-h100-sxm."""
    return f"my-{slug(name)}"[:_LONGEST_ID].rstrip("-._").lower()


def _kind(machine: Inventory) -> tuple[str | None, int]:
    """(The catalogue's id of most of a machine's devices, or else of its processor; how many of these it has)."""
    kinds = Counter(device.id for row in machine.devices if (device := known_as(row)))
    if kinds:
        return kinds.most_common(1)[0]
    if not machine.devices and (processor := processor_as(machine.host)):
        return processor.id, max(machine.host.sockets or 1, 1)
    return None, len(machine.devices)


def _planned(machine: Inventory) -> tuple[str | None, int]:
    """The same as plans name it: the row that `measure hardware` wrote, where there is one."""
    kind, count = _kind(machine)
    named = machine.devices[0].name if machine.devices else machine.host.processor
    own = own_id(kind or named or "")
    if own not in own_accelerators():
        return kind, count
    # A processor was measured with all its sockets together.
    return own, count if machine.devices else 1


def description_of(machine: Inventory) -> MachineDescription:
    """An inventory as the planner and people read it."""
    known = [known_as(device) for device in machine.devices]
    kinds = Counter(device.id for device in known if device)
    kind, count = _kind(machine)
    planned, places = _planned(machine)
    first = machine.accelerators[0] if machine.accelerators else None
    torch = machine.torch
    interconnect = _interconnect(machine.host.ports)
    return MachineDescription(
        devices=[_device(device, match) for device, match in zip(machine.devices, known, strict=True)],
        accelerator=kind,
        count=count,
        plan_cluster={"accelerator": planned, "count": places} if planned else {},
        driver=next((device.driver for device in machine.devices if device.driver), None),
        runtime=(first and first.runtime) or (torch and torch.runtime),
        links=dict(Counter(machine.links.values())),
        ports=[
            MachinePort(name=port.name, kind=port.kind, bytes_per_s=port.bytes_per_s) for port in machine.host.ports
        ],
        interconnect=interconnect,
        torch=torch and torch.version,
        torch_device=torch and torch.kind,
        torch_backends=list(torch.backends) if torch else [],
        host=_host(machine.host),
        told_by=[group.told_by for group in machine.accelerators] + ["the operating system"] + ["torch"] * bool(torch),
        warnings=[*_warnings(machine, known, planned != kind), *_of_kinds(kinds)],
    )


def known_as(device: Device) -> Accelerator | None:
    """The catalogue's device that a driver's name and its memory mean; None where they do not agree on one."""
    words = device.name.split()
    for last in range(len(words), 0, -1):
        name = " ".join(words[:last])
        for spelled in (name, f"{name} {round((device.memory_bytes or 0) / 2**30)}GB"):
            try:
                match = find_accelerator(spelled).value
            except PlanError:
                continue
            # A name without what was cut off needs the memory to say that it is the same device.
            if device.memory_bytes is None and last == len(words):
                return match
            kin = [row for row in accelerators() if row.id.startswith(f"{match.id}-")]
            sizes = [row for row in (match, *kin) if device.memory_bytes and _alike(device.memory_bytes, row)]
            if sizes:
                return sizes[0]
    return None


def _alike(memory_bytes: float, accelerator: Accelerator) -> bool:
    sizes = (accelerator.memory_bytes, accelerator.usable_bytes)
    return any(abs(memory_bytes / size - 1.0) <= _MEMORY_ALIKE for size in sizes)


def processor_as(host: Host) -> Accelerator | None:
    """The catalogue's processor that the host has; virtual machines often name none."""
    name = " ".join(_NOISE.sub(" ", host.processor or "").split())
    try:
        match = find_accelerator(name).value if name else None
    except PlanError:
        return None
    return match if match and match.id.startswith("cpu-") else None


def _interconnect(ports: Sequence[Port]) -> str | None:
    """The network of the fastest ports under the name that plans have for it."""
    if not ports:
        return None
    rate = max(port.bytes_per_s for port in ports)
    fastest = [port for port in ports if port.bytes_per_s == rate]
    gbits = round(rate * 8 / 1e9)
    kinds = {"InfiniBand": "ib", "Ethernet": "ethernet"}
    kind = "roce" if fastest[0].kind == "Ethernet" and ":" in fastest[0].name else kinds.get(fastest[0].kind, "")
    name = f"{kind}-{gbits}x{len(fastest)}"
    try:
        return network(name, name)[0].name if kind and gbits else None
    except PlanError:
        return None


def _device(device: Device, match: Accelerator | None) -> MachineDevice:
    lanes = device.pcie_lanes and f"x{device.pcie_lanes}"
    generation = device.pcie_generation and f"{device.pcie_generation}"
    same = ("memory_bytes", "memory_used_bytes", "power_limit_w", "power_w", "clock_hz", "clock_limit_hz",
            "temperature_c")  # fmt: skip
    return MachineDevice(
        name=device.name,
        accelerator=match and match.id,
        busy=device.utilisation,
        pcie=" ".join(part for part in (generation, lanes) if part) or None,
        **{name: getattr(device, name) for name in same},
    )


def _host(host: Host) -> MachineHost:
    same = ("system", "processor", "sockets", "cores", "threads", "memory_bytes", "free_memory_bytes", "disk_bytes",
            "free_disk_bytes", "load", "temperature_c", "contained")  # fmt: skip
    return MachineHost(
        features=list(host.features),
        **{name: getattr(host, name) for name in same},
    )


def _warnings(machine: Inventory, known: Sequence[Accelerator | None], measured: bool) -> Iterator[str]:
    """What would make a measurement here other than one of the catalogue's device."""
    for index, (device, match) in enumerate(zip(machine.devices, known, strict=True)):
        if match is None and not measured:
            yield f"device {index}: {device.name} is not in the catalogue; shardwise measure hardware puts it there"
        if device.split:
            yield f"device {index}: it is divided (MIG), and a program sees one part of it"
        taken = (device.memory_used_bytes or 0.0) / device.memory_bytes if device.memory_bytes else 0.0
        if taken > _TAKEN_SHARE:
            yield f"device {index}: {taken:.0%} of its memory is taken already"
        if match and match.tdp_w and device.power_limit_w and device.power_limit_w < _POWER_ALIKE * match.tdp_w:
            yield f"device {index}: its power is limited to {device.power_limit_w:g} W of {match.tdp_w:g} W"
        if device.pcie_lanes and device.pcie_lanes_now and device.pcie_lanes_now < device.pcie_lanes:
            yield f"device {index}: its slot has {device.pcie_lanes_now} of {device.pcie_lanes} PCIe lanes"
    spoken = Counter(device.vendor for device in machine.devices)
    for vendor, count in machine.host.unclaimed.items():
        if count > spoken[vendor]:
            left = count - spoken[vendor]
            yield f"{left} {vendor} device{'s' * (left > 1)} on the bus that no driver speaks for"


def _of_kinds(kinds: Counter[str]) -> list[str]:
    if len(kinds) < 2:
        return []
    return [f"devices differ: {', '.join(f'{count} {name}' for name, count in kinds.items())}; plans are for one kind"]
