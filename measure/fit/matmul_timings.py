"""Measured matmul kernels: timings to fit surfaces to, and the best rates that searches found, which bound them.

Rates in FLOP/s, sizes in bytes, times in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from estimator.machine.hardware import Accelerator
from estimator.machine.matmul import KINDS, OPERAND_BYTES, Floats, Kind
from estimator.plan.training.job import precision_peak
from knowledge.data_files import rows
from knowledge.machines.catalogue import accelerators

_TIMINGS = "../measurements/matmul.csv"
# Sources that print the best rate they found on a device.
_SEARCHES = ("mamf", "maf", "alcf", "nki", "tpu-recipes", "torch-test")
# What training calls (Transformer Engine, common/gemm/cublaslt_gemm.cu; torch, ATen/cuda/CUDABlas.cpp) where engines
# have kernels of their own.
_LIBRARY = "cublaslt"
# Timings that took over twice as long as the fastest software for the same product waited for the host, not the device.
_SLOWEST = 2.0


@dataclass(frozen=True)
class MatmulTimings:
    """Measured kernels as arrays of shape (n,): rows, columns, depth, seconds, the device's FLOP/s and bytes/s."""

    accelerator: np.ndarray
    software: np.ndarray
    source: np.ndarray
    m: Floats
    n: Floats
    k: Floats
    seconds: Floats
    peak: Floats
    bandwidth: Floats

    def __len__(self) -> int:
        return len(self.m)

    @property
    def flop(self) -> Floats:
        return 2.0 * self.m * self.n * self.k

    def take(self, kept: np.ndarray) -> MatmulTimings:
        return MatmulTimings(**{name: values[kept] for name, values in vars(self).items()})


def peak_of(accelerator: Accelerator, kind: Kind) -> float:
    """The rate in FLOP/s that efficiencies of `kind` are fractions of; 0 where the device has no such matrix rate."""
    peaks = accelerator.peak_flops
    if kind == "int8":
        return peaks.get("int8", 0.0)
    if kind == "nvfp4":
        return peaks.get("nvfp4") or peaks.get("mxfp4") or peaks.get("fp4", 0.0)
    if kind in ("fp8", "fp8_block"):
        return peaks.get("fp8", 0.0)
    return precision_peak(peaks, "bf16") or peaks.get("fp16", 0.0)


@cache
def families() -> dict[str, str]:
    """The name of each accelerator's surfaces: its family, with ' GDDR' where only some of a family have HBM.

    Chips with GDDR are others than their namesakes with HBM: smaller, with other clocks and caches.
    """
    stacked = {row["id"]: row["memory_type"].startswith("HBM") for row in rows("accelerators.csv")}
    # Of one's own devices no table says which memory they have, and nothing shipped is fitted for them.
    known = {device.id: device.family for device in accelerators() if device.id in stacked}
    with_hbm = {known[id] for id, is_stacked in stacked.items() if is_stacked}
    return {id: family if stacked[id] or family not in with_hbm else f"{family} GDDR" for id, family in known.items()}


@cache
def timings(kind: Kind, library: bool = False) -> MatmulTimings:
    """All measured kernels of a kind of operand; with `library` those that training calls where engines call others."""
    known = {device.id: device for device in accelerators()}
    of_kind = [row for row in rows(_TIMINGS) if row["dtype"] == kind and library == (row["software"] == _LIBRARY)]
    devices = [known[row["accelerator"]] for row in of_kind]

    def text(name: str) -> np.ndarray:
        return np.array([row[name] for row in of_kind], dtype=str)

    def number(name: str) -> Floats:
        return np.array([float(row[name]) for row in of_kind])

    return MatmulTimings(
        accelerator=text("accelerator"),
        software=text("software"),
        source=text("source"),
        m=number("m"),
        n=number("n"),
        k=number("k"),
        seconds=1e-6 * number("time_us"),
        peak=np.array([peak_of(device, kind) for device in devices]),
        bandwidth=np.array([device.memory_bandwidth for device in devices]),
    )


def fastest(points: MatmulTimings) -> MatmulTimings:
    """The best rates that searches over large shapes have found (as MAMF): bounds, not timings to fit."""
    return points.take(np.isin(points.source, _SEARCHES))


def best_rates(points: MatmulTimings) -> dict[str, float]:
    """By accelerator, the best rate that any search has found, as a share of peak: newer software finds more.

    Above 1 where a card runs at higher clocks than those its peak is quoted for.
    """
    best = fastest(points)
    highest: dict[str, float] = {}
    for name, rate in zip(map(str, best.accelerator), best.flop / best.seconds / best.peak, strict=True):
        highest[name] = max(float(rate), highest.get(name, 0.0))
    return highest


@cache
def timed() -> frozenset[str]:
    """The accelerators whose kernels were timed."""
    everything = (timings(kind) for kind in KINDS)
    return frozenset(
        str(name) for points in everything for name in points.accelerator[~np.isin(points.source, _SEARCHES)]
    )


def ceilings(kind: Kind) -> dict[str, float]:
    """By family, the best rate found on its devices as a share of peak: on those that were timed, where any of these
    was searched, as the fit is about them; else the median."""
    rates_of: dict[str, dict[bool, list[float]]] = {}
    for name, rate in best_rates(timings(kind)).items():
        rates_of.setdefault(families()[name], {True: [], False: []})[name in timed()].append(rate)
    return {family: float(np.median(rates[True] or rates[False])) for family, rates in rates_of.items()}


def usable(points: MatmulTimings, kind: Kind, kin_ceiling: float = 1.0) -> MatmulTimings:
    """The timings of kernels on the device: none that waited for the host, and none that were fed by the cache.

    A rate above the best that any search over shapes has found on the device (`kin_ceiling`, a fraction of the peak,
    where none was made on the device itself) is none that lasts: it is counted as that best.
    """
    best = best_rates(points)
    points = points.take(~np.isin(points.source, _SEARCHES))
    ceiling = np.array([best.get(name, kin_ceiling) for name in points.accelerator])
    shapes = list(zip(points.accelerator, points.m, points.n, points.k, strict=True))
    quickest: dict[tuple[Any, ...], float] = {}
    for shape, seconds in zip(shapes, points.seconds, strict=True):
        quickest[shape] = min(seconds, quickest.get(shape, np.inf))
    on_device = points.seconds < _SLOWEST * np.array([quickest[shape] for shape in shapes])
    weights = OPERAND_BYTES[kind][1] * points.n * points.k
    from_memory = weights < points.seconds * points.bandwidth
    seconds = np.maximum(points.seconds, points.flop / (points.peak * ceiling))
    return MatmulTimings(**(vars(points) | {"seconds": seconds})).take(on_device & from_memory)
