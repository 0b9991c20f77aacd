"""What watches devices beside a run: the CSV of nvidia-smi --query-gpu and of rocm-smi --showmeminfo vram --csv, and
what rocm-smi prints without --csv.

A row is one device at one moment. Fields are those of `nvidia-smi --help-query-gpu`, with their unit in the head or,
without a head, behind the number.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from estimator.units import GIB
from knowledge.own.mappings import csv_rows
from measure.history.run import MeasuredRun, StepSeries
from measure.logs.facts import HeaderFacts, accelerator
from measure.logs.quantities import MIB

_MOST_ROWS = 500_000
_QUANTITIES = {
    "memory.used": ("memory_bytes", MIB), "power.draw": ("watts", 1.0), "power.draw.average": ("watts", 1.0),
    "power.draw.instant": ("watts", 1.0), "utilization.gpu": ("percent", 1.0), "temperature.gpu": ("celsius", 1.0),
    "vram total used memory (b)": ("memory_bytes", 1.0), "gpu use (%)": ("percent", 1.0),
    "average graphics package power (w)": ("watts", 1.0), "temperature (sensor junction) (c)": ("celsius", 1.0),
    "current socket graphics package power (w)": ("watts", 1.0),
}  # fmt: skip
_DEVICES = ("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "serial", "gpu_serial", "device")
_NAMES = ("name", "gpu_name", "card series")
_UNIT = re.compile(r"\s*\[[^\]]*\]\s*$")
_NUMBER = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:MiB|W|%|MHz|C)?\s*$")
# Without a head: 0, 71234 MiB.
_BARE = re.compile(r"\s*\d+,\s*\d+ MiB\s*$")
# As rocm-smi prints where no CSV is asked for: GPU[0] : VRAM Total Used Memory (B): 162890137600.
OF_A_CARD = re.compile(r"GPU\[(\d+)\]\s*: *([^:\n]+?): *([^\n]*)$", re.MULTILINE)
_FIRST = 4_096


def is_sampled(start: str) -> bool:
    """Whether a text begins as one of these does."""
    line = next((line for line in start[:_FIRST].splitlines() if line.strip()), "")
    of_cards = any(name.lower() in _QUANTITIES for _, name, _ in OF_A_CARD.findall(start[:_FIRST]))
    return of_cards or bool(_BARE.match(line)) or any(name in _QUANTITIES for name in _head(line))


def run_in(text: str, name: str) -> MeasuredRun | None:
    """The highest memory of any device, and what else was watched; None where nothing was."""
    facts, peaks = HeaderFacts(), list[float]()
    watched: dict[str, list[float]] = defaultdict(list)
    devices, moment = set[str](), set[str]()
    for row in _rows(text):
        device = next((row[column] for column in _DEVICES if column in row), "0")
        if not peaks or device in moment:
            # A moment is a row of each device: with one that it has already the next begins.
            peaks.append(0.0)
            moment = set()
        moment.add(device)
        devices.add(device)
        for column in _NAMES:
            accelerator(facts, row.get(column, ""))
        for column, (quantity, unit) in _QUANTITIES.items():
            if number := _NUMBER.match(row.get(column, "")):
                value = float(number[1]) * unit
                watched[quantity].append(value)
                if quantity == "memory_bytes":
                    peaks[-1] = max(peaks[-1], value)
    if not watched["memory_bytes"]:
        return None
    facts.put("cluster.count", len(devices))
    return MeasuredRun(
        source=f"device samples {name}"[:400],
        plan=facts.plan,
        figures={"peak_bytes": max(watched["memory_bytes"])},
        peak_kind="nvidia-smi",
        findings=list(_told(watched, len(peaks))),
        series=StepSeries(step=list(range(1, len(peaks) + 1)), memory_bytes=list(peaks)).thinned(),
    )


def _head(line: str) -> list[str]:
    try:
        cells = next(csv_rows([line], skipinitialspace=True), [])
    except ValueError:
        return []
    return [_UNIT.sub("", cell).strip().lower() for cell in cells]


def _rows(text: str) -> Iterator[Mapping[str, str]]:
    if cards := OF_A_CARD.findall(text):
        yield from _of_cards(cards[:_MOST_ROWS])
        return
    lines = [line for line in text.replace("\0", "").splitlines()[:_MOST_ROWS] if line.strip()]
    bare = bool(lines) and bool(_BARE.match(lines[0]))
    head = ["index", "memory.used"] if bare else _head(lines[0]) if lines else []
    try:
        for cells in csv_rows(lines if bare else lines[1:], skipinitialspace=True):
            if len(cells) == len(head):
                yield dict(zip(head, (cell.strip() for cell in cells), strict=True))
    except ValueError:
        return


def _of_cards(cells: Sequence[tuple[str, str, str]]) -> Iterator[Mapping[str, str]]:
    """A row of each card, from one that says something again on a new one."""
    rows: dict[str, dict[str, str]] = {}
    for device, name, value in cells:
        if name.lower() in rows.get(device, {}):
            yield from rows.values()
            rows = {}
        rows.setdefault(device, {"device": device})[name.lower()] = value.strip()
    yield from rows.values()


def _told(watched: Mapping[str, Sequence[float]], moments: int) -> Iterator[str]:
    memory = watched["memory_bytes"]
    mean, most = sum(memory) / len(memory) / GIB, max(memory) / GIB
    held = f"a device held {mean:.1f} GiB in the mean, {most:.1f} at the most"
    yield f"{moments:,} moment{'s' * (moments > 1)}: {held}"
    for quantity, what, unit in (("percent", "busy", " %"), ("watts", "power of a device", " W"),
                                 ("celsius", "temperature", " °C")):  # fmt: skip
        if values := watched.get(quantity):
            yield f"{what}: {sum(values) / len(values):.0f}{unit} in the mean, {max(values):.0f} at the most"
