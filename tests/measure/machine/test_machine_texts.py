"""What drivers and the system say of a machine is read as it is meant, and nothing that they do not say is made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import driver_texts as texts
import pytest
from hypothesis import given
from hypothesis import strategies as st

from measure.machine import amd, apple, nvidia
from measure.machine.devices import MIB
from measure.machine.host import host
from measure.machine.programs import Ask, printed
from measure.machine.torch_here import torch_here


def answering(answers: Mapping[str, str]) -> Ask:
    """Answers a command by what stands in it."""

    def ask(command: Sequence[str]) -> str | None:
        line = " ".join(command)
        return next((text for part, text in answers.items() if part in line), None)

    return ask


def test_nvidia_smi_s_table_is_read_with_its_units() -> None:
    first, second = nvidia.queried(texts.QUERY)
    assert first.name == "NVIDIA H100 80GB HBM3"
    assert first.memory_bytes == 81559 * MIB
    assert (first.power_limit_w, first.power_w) == (700.0, 71.27)
    assert (first.clock_hz, first.clock_limit_hz) == (345e6, 1980e6)
    assert (first.pcie_generation, first.pcie_lanes, first.pcie_lanes_now) == (5, 16, 16)
    assert not first.split
    assert second.split
    assert second.utilisation == pytest.approx(0.98)
    assert second.pcie_lanes_now == 8


def test_what_a_card_does_not_say_is_none() -> None:
    (card,) = nvidia.queried(texts.OLD_CARD)
    assert card.power_limit_w is None
    assert card.power_w is None
    assert card.temperature_c == 40
    assert not card.split


def test_the_table_without_units_says_the_same() -> None:
    plain = texts.QUERY.replace(" MiB", "").replace(" MHz", "").replace(" W", "").replace(" %", "")
    assert nvidia.queried(plain) == nvidia.queried(texts.QUERY)


def test_links_are_those_between_devices() -> None:
    assert nvidia.joined(texts.TOPOLOGY) == {(0, 1): "NV18", (0, 2): "NV18", (1, 2): "SYS"}


def test_the_long_form_stands_in_where_a_driver_refuses_the_query() -> None:
    devices = nvidia.devices(answering({"-q -x": texts.XML}))
    assert devices is not None
    (card,) = devices.devices
    assert devices.runtime == "CUDA 12.8"
    assert (card.name, card.memory_bytes, card.power_limit_w) == ("NVIDIA L40S", 46068 * MIB, 350.0)
    assert (card.power_w, card.clock_limit_hz, card.pcie_lanes) == (34.51, 2520e6, 16)


def test_a_document_that_grows_by_entities_is_not_read() -> None:
    bomb = '<!DOCTYPE a [<!ENTITY b "x">]><nvidia_smi_log><gpu><product_name>&b;</product_name></gpu></nvidia_smi_log>'
    assert nvidia.described(bomb) == ((), None)


def test_amd_smi_and_rocm_smi_say_the_same_things() -> None:
    both = amd.devices(answering({"static": texts.AMD_STATIC, "metric": texts.AMD_METRIC}))
    assert both is not None
    (card,) = both.devices
    assert (card.name, card.memory_bytes, card.power_limit_w) == ("AMD Instinct MI300X", 196592 * MIB, 750)
    assert (card.temperature_c, card.utilisation, card.clock_limit_hz) == (41, 0.5, 2100e6)
    older = amd.devices(answering({"showtopotype": texts.ROCM_TOPOLOGY, "rocm-smi": texts.ROCM}))
    assert older is not None
    assert [device.name for device in older.devices] == ["AMD Instinct MI210"] * 2
    assert older.devices[0].power_limit_w == 300
    assert older.devices[0].driver == "6.7.0"
    assert older.links == {(0, 1): "XGMI"}


def test_bare_lists_of_amd_smi_are_read_too() -> None:
    bare = texts.AMD_STATIC.strip().removeprefix('{"gpu_data": ').removesuffix("}")
    assert amd.described(bare) == amd.described(texts.AMD_STATIC)


def test_a_mac_has_its_chip_and_all_of_its_memory() -> None:
    devices = apple.devices(answering({"SPDisplays": texts.MAC, "hw.memsize": "103079215104\n"}))
    assert devices is not None
    assert devices.devices[0].name == "Apple M2 Max"
    assert devices.devices[0].memory_bytes == 96 * 2**30


def machine_of(root: Path, cpu_max: str = "max 100000", memory_max: str = "max") -> Path:
    files = {
        "proc/cpuinfo": texts.CPUINFO, "proc/meminfo": texts.MEMINFO, "sys/fs/cgroup/cpu.max": cpu_max,
        "sys/fs/cgroup/memory.max": memory_max, "sys/class/infiniband/mlx5_0/ports/1/rate": "400 Gb/sec (4X NDR)",
        "sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE",
        "sys/class/infiniband/mlx5_0/ports/1/link_layer": "InfiniBand",
        "sys/bus/pci/devices/0000:1b:00.0/vendor": "0x10de", "sys/bus/pci/devices/0000:1b:00.0/class": "0x030200",
        "sys/bus/pci/devices/0000:1c:00.0/vendor": "0x10de", "sys/bus/pci/devices/0000:1c:00.0/class": "0x068000",
        "sys/class/hwmon/hwmon0/name": "k10temp", "sys/class/hwmon/hwmon0/temp1_input": "54250",
    }  # fmt: skip
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_the_host_is_read_from_the_system(tmp_path: Path) -> None:
    told = host(machine_of(tmp_path), answering({}), tmp_path)
    assert told.processor == "AMD EPYC 7763 64-Core Processor"
    assert (told.sockets, told.cores) == (2, 4)
    assert told.memory_bytes == 527889384 * 1024
    assert told.features == ("avx2",)
    assert told.temperature_c == 54.25
    assert told.unclaimed == {"NVIDIA": 1}
    (port,) = told.ports
    assert (port.kind, port.bytes_per_s) == ("InfiniBand", 50e9)
    assert not told.contained


def test_a_container_has_what_its_group_allows(tmp_path: Path) -> None:
    told = host(machine_of(tmp_path, "50000 100000", str(8 * 2**30)), answering({}), tmp_path)
    assert told.threads == 0.5
    assert told.memory_bytes == 8 * 2**30
    assert told.contained


@pytest.mark.parametrize(
    "reader",
    [nvidia.queried, nvidia.described, nvidia.joined, amd.described, amd.queried, amd.joined,
     lambda text: apple.described(text, None)],
)  # fmt: skip
@pytest.mark.parametrize(
    "text",
    [texts.QUERY, texts.OLD_CARD, texts.TOPOLOGY, texts.XML, texts.AMD_STATIC, texts.ROCM, texts.MAC, "", "[]", "{}",
     "null", "No devices were found\n", "NVIDIA-SMI has failed because it couldn't communicate", '{"gpu_data": [3]}',
     '{"card0": 3, "system": 4}', "[" * 5000],
)  # fmt: skip
def test_no_reader_falls_over_what_it_does_not_know(reader, text: str) -> None:
    for end in range(0, len(text) + 1, max(1, len(text) // 40)):
        reader(text[:end])


@given(st.text(max_size=300))
def test_nor_over_any_text(text: str) -> None:
    for reader in (nvidia.queried, nvidia.described, nvidia.joined, amd.described, amd.queried, amd.joined):
        reader(text)


def test_programs_that_hang_or_are_not_there_say_nothing() -> None:
    assert printed(("no-such-program-here",)) is None
    assert printed(("sleep", "30"), patience_s=0.2) is None
    assert printed(("false",)) is None


def test_torch_is_asked_in_a_process_of_its_own() -> None:
    said = '{"version": "2.9.0+rocm7", "kind": "cuda", "devices": [["AMD Instinct MI300X", 206141652992]], '
    said += '"backends": ["nccl", "gloo"], "cuda": null, "hip": "7.0"}'
    torch = torch_here("python", lambda command: f"a warning\n{said}\n")
    assert torch is not None
    assert torch.runtime == "ROCm 7.0"
    assert torch.devices[0].vendor == "AMD"
    assert torch_here("python", lambda command: None) is None
    assert torch_here("python", lambda command: "Traceback") is None
