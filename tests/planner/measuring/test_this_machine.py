"""Which of the catalogue's devices a machine has, and what would disturb a measurement there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from measure.machine.devices import MIB, Device, DeviceGroup
from measure.machine.host import Host, Port
from measure.machine.inventory import Inventory
from pages.rendering import markdown
from pages.results.of_results import blocks_of
from planner.measuring.here import description_of, known_as

HOST = Host(
    system="Linux 6.8", processor="AMD EPYC 9654 96-Core Processor", sockets=2, cores=192, threads=384.0,
    features=("avx2", "avx512f"), memory_bytes=1.5e12, free_memory_bytes=1.4e12, disk_bytes=1e12, free_disk_bytes=5e11,
    load=1.0, temperature_c=None, ports=tuple(Port(f"mlx5_{n}:1", "InfiniBand", 50e9) for n in range(8)), unclaimed={},
    contained=False,
)  # fmt: skip
H100 = Device(
    "NVIDIA H100 80GB HBM3", "NVIDIA", memory_bytes=81559 * MIB, memory_used_bytes=4 * MIB, driver="570.86",
    power_limit_w=700.0, pcie_generation=5, pcie_lanes=16, pcie_lanes_now=16,
)  # fmt: skip


def machine(*devices: Device, host: Host = HOST) -> Inventory:
    links = {(a, b): "NV18" for b in range(len(devices)) for a in range(b)}
    groups = (DeviceGroup(devices, links, "CUDA 12.8", "nvidia-smi"),) if devices else ()
    return Inventory(groups, host, None)


@pytest.mark.parametrize(
    ("name", "mib", "id"),
    [
        ("NVIDIA H100 80GB HBM3", 81559, "h100-sxm"),
        ("NVIDIA H100 PCIe", 81559, "h100-pcie"),
        ("NVIDIA A100-SXM4-40GB", 40960, "a100-sxm-40gb"),
        ("NVIDIA GeForce RTX 4090", 24564, "rtx-4090"),
        ("NVIDIA GeForce RTX 4090", 49140, "rtx-4090-48gb"),
        ("NVIDIA B300 SXM6 AC", 275040, "b300-sxm"),
        ("AMD Instinct MI300X VF", 196592, "mi300x"),
        ("AMD Instinct MI250X / MI250", 65520, "mi250x-gcd"),
        ("Tesla T4", 15360, "t4"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 16376, "rtx-4090-laptop"),
        ("Quadro RTX 8000", 49152, "quadro-rtx-8000"),
        # Another chip of a like name, a part of one, and one that is not there.
        ("NVIDIA GeForce RTX 4050 Laptop GPU", 6141, "rtx-4050-laptop"),
        ("NVIDIA GeForce RTX 2050 Laptop GPU", 4096, None),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 9984, None),
        ("Quadro P6000", 24576, None),
    ],
)
def test_a_device_is_what_its_name_and_its_memory_agree_on(name: str, mib: int, id: str | None) -> None:
    match = known_as(Device(name, "", memory_bytes=mib * MIB))
    assert (match.id if match else None) == id


def test_a_node_is_told_as_a_cluster_of_plans() -> None:
    told = description_of(machine(*[H100] * 8))
    assert told.plan_cluster == {"accelerator": "h100-sxm", "count": 8}
    assert told.links == {"NV18": 28}
    assert told.interconnect == "ib-400x8"
    assert told.warnings == []
    page = markdown.render(blocks_of(told))
    assert "8 x NVIDIA H100 80GB HBM3" in page
    assert "h100-sxm" in page


def test_what_disturbs_a_measurement_is_said() -> None:
    odd = replace(H100, power_limit_w=400.0, memory_used_bytes=20000 * MIB, split=True, pcie_lanes_now=8)
    host = replace(HOST, unclaimed={"NVIDIA": 2, "AMD": 1})
    text = "\n".join(description_of(machine(odd, host=host)).warnings)
    for part in ("400 W of 700 W", "25% of its memory", "MIG", "8 of 16 PCIe", "1 NVIDIA device on", "1 AMD device on"):
        assert part in text


def test_devices_of_two_kinds_are_not_one_cluster() -> None:
    other = replace(H100, name="NVIDIA L4", memory_bytes=23034 * MIB, power_limit_w=72.0)
    told = description_of(machine(H100, H100, other))
    assert told.plan_cluster == {"accelerator": "h100-sxm", "count": 2}
    assert any("differ" in text for text in told.warnings)


def test_without_an_accelerator_the_processor_is_the_device() -> None:
    told = description_of(machine())
    assert told.plan_cluster == {"accelerator": "cpu-epyc-9654", "count": 2}
    unknown = description_of(machine(host=replace(HOST, processor="AMD EPYC")))
    assert unknown.plan_cluster == {}
    assert "AMD EPYC" in markdown.render(blocks_of(unknown))
