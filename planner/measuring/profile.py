"""What was measured of a machine as an accelerator of one's own, `my-…`, that plans name like those of the catalogue.

A row holds peaks, and estimates take a fitted part of each. So a peak here is the one of which estimates of the same
products, copies and collectives come out as they were measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from estimator.kernels.collectives import all_reduce, connect
from estimator.kernels.offloading import LINK_SHARE
from estimator.machine.hardware import Accelerator
from estimator.machine.matmul import OPERAND_BYTES, Kind, MatmulRates, matmul_limits
from estimator.units import GIB
from knowledge.fitted.training import calibration, surfaces
from knowledge.machines.catalogue import machine as machine_of
from knowledge.machines.networks import network_factors
from knowledge.own.rows import HardwareRow
from planner.measuring.here import MachineDescription, own_id
from planner.records.catalogue import HardwareToAdd, add_hardware

Products = Sequence[tuple[tuple[int, int, int], float]]
# A type that was multiplied: the row's field, and what its surface is called.
_FIELDS: Mapping[str, tuple[str, Kind]] = {
    "bf16": ("bf16_tflops", "bf16"), "fp16": ("fp16_tflops", "bf16"), "fp32": ("fp32_tflops", "bf16"),
    "tf32": ("tf32_tflops", "bf16"), "fp8": ("fp8_tflops", "fp8"), "int8": ("int8_tops", "int8"),
}  # fmt: skip
# Products that are large in each direction say what the peak is; of these the largest.
_LEAST_SIDE, _LARGEST = 512, 3
_TERA, _GIGA = 1e12, 1e9


@dataclass(frozen=True)
class MeasuredFigures:
    """`products` by type: ((rows, columns, depth), seconds). `all_reduce` is (bytes, seconds, devices)."""

    products: Mapping[str, Products]
    copy_bytes_per_s: float | None
    host_bytes_per_s: float | None
    all_reduce: tuple[float, float, int] | None
    memory_bytes: float | None
    on_cpu: bool


@dataclass(frozen=True)
class Profile:
    row: HardwareRow
    why: tuple[str, ...]


def profile_of(
    machine: MachineDescription, known: Accelerator | None, name: str, figures: MeasuredFigures
) -> Profile | None:
    """The row of one's own for a machine; `known` is the catalogue's device that it has. None where too little was
    measured to plan with."""
    rates = list(_fields(known, figures))
    if not any(field.endswith("_tflops") for field, _, _ in rates) or figures.copy_bytes_per_s is None:
        return None
    row: dict[str, Any] = {"id": own_id(known.id if known else name), "name": f"{name}, measured"}
    if known:
        row["like"] = known.id
    else:
        row |= {"vendor": _vendor(machine, name), "scaleup_domain": 1, "topology": "none"}
        row["per_node"] = 1 if figures.on_cpu else max(1, len(machine.devices))
        row |= {"family": "CPU"} if figures.on_cpu else {}
    memory = machine.host.memory_bytes if figures.on_cpu else None if known else figures.memory_bytes
    row |= {"memory_gib": float(f"{memory / GIB:.4g}")} if memory else {}
    row |= {field: float(f"{value:.4g}") for field, value, _ in rates}
    row["notes"] = f"measured on {datetime.now(UTC).date().isoformat()} by shardwise measure hardware"
    if not (known or memory):
        return None
    return Profile(HardwareRow.model_validate(row), tuple(f"{field}: {why}" for field, _, why in rates))


def kept(profile: Profile) -> Path:
    """Writes the row to the user's own, in place of an earlier measurement of the same device."""
    data = profile.row.model_dump(exclude_none=True, exclude_unset=True)
    added = add_hardware(HardwareToAdd.model_validate({**data, "overwrite": True}))
    return Path(added.folder) / added.files[0].path


def _vendor(machine: MachineDescription, name: str) -> str:
    words = (machine.host.processor or name).split()
    return words[0] if words else "unknown"


def _fields(known: Accelerator | None, figures: MeasuredFigures) -> Iterator[tuple[str, float, str]]:
    """(Field of the row, its value, how it was found)."""
    for kind, products in figures.products.items():
        field, surface = _FIELDS[kind]
        # An accelerator's own vector rate is no matrix rate.
        if kind == "fp32" and known and not figures.on_cpu:
            continue
        if (peak := peak_of(products, known, surface)) is not None:
            yield field, peak / _TERA, f"of which {kind} products take the time that they took"
    if figures.copy_bytes_per_s:
        family = known.family if known else "CPU" if figures.on_cpu else ""
        share = calibration(family, "", known).device.memory
        value = figures.copy_bytes_per_s / share / _GIGA
        yield "memory_bandwidth_gb_per_s", value, f"copies moved {share:.0%} of it, as on devices that were fitted"
    if figures.host_bytes_per_s:
        value = figures.host_bytes_per_s / LINK_SHARE / _GIGA
        yield "host_gb_per_s", value, f"copies moved {LINK_SHARE:.0%} of it"
    if figures.all_reduce and known and known.scaleup_bandwidth:
        value = _scaleup(known, *figures.all_reduce) / _GIGA
        yield "scaleup_gb_per_s", value, "of which the largest all-reduce takes the time that it took"


def peak_of(products: Products, known: Accelerator | None, kind: Kind) -> float | None:
    """FLOP/s of which the estimator has the arithmetic of the largest products take what was measured: their seconds at
    a peak of 1 over those measured, without the launch."""
    wide = [row for row in products if min(row[0]) >= _LEAST_SIDE]
    if not wide:
        return None
    wide = sorted(wide, key=lambda row: float(np.prod(row[0], dtype=float)))[-_LARGEST:]
    every = surfaces(known.timed_as if known else "")
    surface = every.get(kind, every["bf16"])
    rates = MatmulRates(surface, 1.0, float("inf"), OPERAND_BYTES[kind])
    peaks = []
    for (m, n, k), seconds in wide:
        arithmetic, _ = matmul_limits(rates, np.array([float(m)]), float(n), float(k), 1.0)
        # A launch that is longer than the product took is no part of it.
        peaks.append(float(arithmetic[0]) / max(seconds - float(surface.launch_s), 0.5 * seconds))
    return median(peaks)


def _scaleup(known: Accelerator, total_bytes: float, seconds: float, devices: int) -> float:
    """Bytes/s of a device's links of which the estimator's all-reduce takes what was measured."""
    built, _ = machine_of(known, devices, devices)
    factors = calibration(known.family, "", known).device
    group = connect(built, network_factors(known), np.array([devices]), np.array([1]), factors.scaleup)
    predicted = float(all_reduce(group, np.array([total_bytes]))[0])
    return known.scaleup_bandwidth * predicted / seconds
