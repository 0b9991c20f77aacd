"""What nvidia-smi says: `--query-gpu … --format=csv`, `topo -m`, and `-q -x` where a driver does not know a field.

Formats: the manual of nvidia-smi (NVIDIA driver 470 to 580); a figure that a device has not is [N/A] or
[Not Supported].
"""

from __future__ import annotations

import csv
import io
import re
import xml.etree.ElementTree as ElementTree

from measure.machine.devices import MIB, Device, DeviceGroup, number, times, whole
from measure.machine.programs import Ask, printed

_FIELDS = (
    "index", "name", "memory.total", "memory.used", "driver_version", "power.limit", "power.draw", "clocks.sm",
    "clocks.max.sm", "temperature.gpu", "utilization.gpu", "pcie.link.gen.max", "pcie.link.width.max",
    "pcie.link.width.current", "mig.mode.current",
)  # fmt: skip
_QUERY = ("nvidia-smi", f"--query-gpu={','.join(_FIELDS)}", "--format=csv")
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_MOST_LETTERS = 4_000_000
_MHZ = 1e6


def devices(ask: Ask = printed) -> DeviceGroup | None:
    """The machine's NVIDIA devices; None where nvidia-smi knows of none."""
    every = ask(("nvidia-smi", "-q", "-x"))
    told = queried(text) if (text := ask(_QUERY)) else ()
    details, cuda = described(every) if every else ((), None)
    if not (told or details):
        return None
    links = joined(text) if (text := ask(("nvidia-smi", "topo", "-m"))) else {}
    return DeviceGroup(told or details, links, f"CUDA {cuda}" if cuda else None, "nvidia-smi")


def queried(text: str) -> tuple[Device, ...]:
    """The devices of `--query-gpu --format=csv`, in any order of columns, with or without units."""
    rows = csv.reader(io.StringIO(text), skipinitialspace=True)
    head = [name.partition("[")[0].strip() for name in next(rows, [])]
    if "name" not in head:
        return ()
    devices = []
    for cells in rows:
        if len(cells) != len(head):
            continue
        row = {name: None if cell.startswith("[") else cell.strip() for name, cell in zip(head, cells, strict=True)}
        if not row["name"]:
            continue
        devices.append(
            Device(
                name=row["name"],
                vendor="NVIDIA",
                memory_bytes=times(number(row.get("memory.total")), MIB),
                memory_used_bytes=times(number(row.get("memory.used")), MIB),
                driver=row.get("driver_version"),
                power_limit_w=number(row.get("power.limit")),
                power_w=number(row.get("power.draw")),
                clock_hz=times(number(row.get("clocks.current.sm") or row.get("clocks.sm")), _MHZ),
                clock_limit_hz=times(number(row.get("clocks.max.sm")), _MHZ),
                temperature_c=number(row.get("temperature.gpu")),
                utilisation=times(number(row.get("utilization.gpu")), 0.01),
                pcie_generation=whole(row.get("pcie.link.gen.max")),
                pcie_lanes=whole(row.get("pcie.link.width.max")),
                pcie_lanes_now=whole(row.get("pcie.link.width.current")),
                split=row.get("mig.mode.current") == "Enabled",
            )
        )
    return tuple(devices)


def described(text: str) -> tuple[tuple[Device, ...], str | None]:
    """(The devices of `-q -x`, the version of CUDA that the driver knows)."""
    # A document that defines entities is no answer of nvidia-smi, and could be made to grow without end.
    if "<!ENTITY" in text or len(text) > _MOST_LETTERS:
        return (), None
    try:
        log = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return (), None
    driver = log.findtext("driver_version")
    return tuple(_described(gpu, driver) for gpu in log.iter("gpu") if gpu.findtext("product_name")), log.findtext(
        "cuda_version"
    )


def _described(gpu: ElementTree.Element, driver: str | None) -> Device:
    def figure(*paths: str) -> float | None:
        return next((value for path in paths if (value := number(gpu.findtext(path))) is not None), None)

    return Device(
        name=(gpu.findtext("product_name") or "").strip(),
        vendor="NVIDIA",
        memory_bytes=times(figure("fb_memory_usage/total"), MIB),
        memory_used_bytes=times(figure("fb_memory_usage/used"), MIB),
        driver=driver,
        # Drivers before 535 say power_readings/power_limit.
        power_limit_w=figure("gpu_power_readings/current_power_limit", "power_readings/power_limit"),
        power_w=figure(
            "gpu_power_readings/instant_power_draw", "gpu_power_readings/power_draw", "power_readings/power_draw"
        ),
        clock_hz=times(figure("clocks/sm_clock"), _MHZ),
        clock_limit_hz=times(figure("max_clocks/sm_clock"), _MHZ),
        temperature_c=figure("temperature/gpu_temp"),
        utilisation=times(figure("utilization/gpu_util"), 0.01),
        pcie_generation=whole(figure("pci/pci_gpu_link_info/pcie_gen/max_link_gen")),
        pcie_lanes=whole(figure("pci/pci_gpu_link_info/link_widths/max_link_width")),
        pcie_lanes_now=whole(figure("pci/pci_gpu_link_info/link_widths/current_link_width")),
        split=gpu.findtext("mig_mode/current_mig") == "Enabled",
    )


def joined(text: str) -> dict[tuple[int, int], str]:
    """The pairs of devices of `topo -m` and what joins each: NV18, PIX, PXB, PHB, NODE or SYS."""
    lines = _COLOUR.sub("", text).splitlines()
    head: list[str] = []
    links: dict[tuple[int, int], str] = {}
    for line in lines:
        cells = [cell.strip() for cell in line.split("\t")] if "\t" in line else re.split(r"\s{2,}|\s(?=GPU\d)", line)
        if not head:
            if any(re.fullmatch(r"GPU\d+", cell) for cell in cells):
                head = cells if cells[0] == "" else ["", *cells]
            continue
        if not (row := re.fullmatch(r"GPU(\d+)", cells[0].strip())):
            continue
        for name, cell in zip(head[1:], cells[1:], strict=False):
            column = re.fullmatch(r"GPU(\d+)", name)
            if column and re.fullmatch(r"NV\d+|PIX|PXB|PHB|NODE|SYS", cell):
                first, second = sorted((int(row[1]), int(column[1])))
                links[first, second] = cell
    return links
