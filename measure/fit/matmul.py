"""Fits the matmul surfaces to measured kernels: `python -m measure.fit.matmul` writes knowledge/matmul_surfaces.yaml.

Damped Gauss-Newton on the log of estimated over measured time with Huber weights; every accelerator, software and
region of rows counts alike. What a timing holds besides the sustained kernel is fitted beside the surface and left out:
the higher clock of a device that rests between short runs, and the cast of the activations that engines time along.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import knowledge
from estimator.machine.matmul import KINDS, OPERAND_BYTES, Floats, Kind, MatmulRates, MatmulSurface, matmul_seconds
from knowledge.machines.catalogue import accelerators
from measure.fit.matmul_timings import MatmulTimings, best_rates, ceilings, families, peak_of, timed, timings, usable

FILE = Path(knowledge.__file__).parent / "matmul_surfaces.yaml"
_HEADER = """\
# Matmul surfaces, written by `python -m measure.fit.matmul` from knowledge/measurements/matmul.csv. Meanings of the
# numbers: estimator/machine/matmul.py. `accelerators` names the surfaces of each device; all others take `default`.
# `points` are the timings behind a surface and `shapes` their distinct (n, k); `errors` are the medians of |estimated /
# measured
# - 1| in percent at up to 16 rows, at 17 to 512 and at more. `borrowed` says what a surface without timings is made of.
# Surfaces are those of families, and of single devices whose best rate is known and not their family's. `library` are
# those of devices on which the library that training calls was timed beside engines' own kernels.
"""
# A kernel of fewer FLOP ends before the clocks of a cool device have come down.
_SHORT_FLOP = 1e12
_FEW_ROWS, _MANY_ROWS = 16, 512
_HUBER = 0.1
# What the prior weighs against the timings: they scatter by 8 %, and about ten in a row err alike.
_PRIOR = 10 * 0.08**2
_STEPS = 40
# Sources that time kernels inside running layers or after 10,000 of them, so on a warm device, and without casts.
_IN_LAYERS = ("vidur", "azure")
# Kinds whose timings hold the cast of 16-bit activations.
_CAST_KINDS: tuple[Kind, ...] = ("fp8", "fp8_block", "nvfp4")


@dataclass(frozen=True)
class Free:
    """A fitted number: where it starts, its bounds, and how far (as a logarithm) the prior lets it go from there."""

    start: float
    low: float
    high: float
    sigma: float


_SURFACE = {
    "height": Free(0.75, 0.1, 1.0, 1.0),
    "memory": Free(0.82, 0.3, 1.0, 0.1),
    "wave_outputs": Free(3e5, 1e3, 5e6, 1.5),
    "half_k": Free(60.0, 1.0, 1000.0, 1.5),
    "unhidden": Free(0.2, 0.01, 0.6, 0.5),
    "launch_s": Free(3.5e-6, 5e-7, 1e-5, 0.3),
}
_COOL = Free(1.05, 1.0, 1.25, 0.1)
# Bytes that a cast moves per activation: 2 read and 1 written where the scale is known, 5 where it is looked for first.
_CAST_BYTES = Free(3.0, 1.0, 8.0, 0.5)
# Seconds of the kernels that an engine runs around a product that is not in 16 bits.
_ENGINE_S = Free(3e-6, 1e-7, 3e-5, 1.5)
# A surface needs at least this many timings.
_FEWEST = 20


def measured_seconds(points: MatmulTimings, kind: Kind, values: Mapping[str, float]) -> Floats:
    """What the timings should show: the surface, a cool device where the kernel is short, and the cast."""
    alone = ~np.isin(points.source, _IN_LAYERS)
    numbers = {name: values[name] for name in _SURFACE}
    cool = np.where(alone & (points.flop < _SHORT_FLOP), values["cool"], 1.0)
    surface = MatmulSurface(**(numbers | {"height": numbers["height"] * cool}))
    rates = MatmulRates(surface, points.peak, points.bandwidth, OPERAND_BYTES[kind])
    product = matmul_seconds(rates, points.m, points.n, points.k)
    for software in np.unique(points.software[alone]):
        if (around := f"engine_s {software}") in values:
            cast = values.get("cast_bytes", 0.0) * points.m * points.k / (points.bandwidth * surface.memory)
            product = product + np.where(alone & (points.software == software), values[around] + cast, 0.0)
    return product


def fitted(
    points: MatmulTimings, kind: Kind, kin: Mapping[str, float] | None = None, ceiling: float = 1.0
) -> dict[str, float]:
    """The surface's numbers and those of the measurement ('cool', 'cast_bytes', 'engine_s SOFTWARE').

    `kin` are the numbers of the device's 16-bit kernels for all other kinds: they start the fit and its prior, and
    their launch is kept, as it cannot be told from what an engine runs around a kernel. `height` stays below
    `ceiling`: timings with a cast in them do not bound it.
    """
    free = dict(_SURFACE) | {"cool": _COOL}
    fixed: dict[str, float] = {}
    if kin is not None:
        free = {
            name: replace(number, start=kin.get(name, number.start))
            for name, number in free.items()
            if name != "launch_s"
        }
        fixed["launch_s"] = kin["launch_s"]
        free |= {f"engine_s {software}": _ENGINE_S for software in np.unique(points.software)}
    if kind in _CAST_KINDS:
        free["cast_bytes"] = _CAST_BYTES
    free["height"] = replace(free["height"], start=min(free["height"].start, ceiling), high=ceiling)
    names = list(free)
    measured = np.log(points.seconds)

    def residuals(point: Floats) -> Floats:
        return np.log(measured_seconds(points, kind, fixed | dict(zip(names, np.exp(point), strict=True)))) - measured

    start, low, high = (np.log([getattr(free[name], part) for name in names]) for part in ("start", "low", "high"))
    trust = _PRIOR / np.array([free[name].sigma for name in names]) ** 2
    logs = _least(residuals, start, low, high, trust, _weights(points))
    return fixed | {name: float(value) for name, value in zip(names, np.exp(logs), strict=True)}


def _least(
    residuals: Callable[[Floats], Floats], start: Floats, low: Floats, high: Floats, trust: Floats, weights: Floats
) -> Floats:
    """Levenberg-Marquardt within bounds for weighted Huber losses and a prior at `start`; deterministic."""

    def loss(point: Floats, error: Floats) -> float:
        size = np.abs(error)
        huber = np.where(size < _HUBER, 0.5 * error * error, _HUBER * (size - 0.5 * _HUBER))
        return float(weights @ huber + 0.5 * trust @ (point - start) ** 2)

    point, damping = start, 0.01
    error = residuals(point)
    for _ in range(_STEPS):
        moves = 1e-4 * np.eye(len(point))
        jacobian = np.stack([(residuals(point + move) - error) / 1e-4 for move in moves], axis=1)
        scale = weights * np.minimum(1.0, _HUBER / np.maximum(1e-9, np.abs(error)))
        normal = jacobian.T @ (jacobian * scale[:, None]) + np.diag(trust)
        gradient = jacobian.T @ (scale * error) + trust * (point - start)
        for _ in range(8):
            damped = normal + np.diag(damping * np.diag(normal))
            tried = np.clip(point - np.linalg.solve(damped, gradient), low, high)
            if loss(tried, after := residuals(tried)) <= loss(point, error):
                point, error, damping = tried, after, damping / 3.0
                break
            damping *= 4.0
    return point


def _weights(points: MatmulTimings) -> Floats:
    """Every accelerator, software, source and region of rows alike by the root of its points."""
    region = points.m > _MANY_ROWS
    keys = [*zip(points.accelerator, points.software, points.source, region, strict=True)]
    count = {key: keys.count(key) for key in set(keys)}
    weights = np.array([1.0 / np.sqrt(count[key]) for key in keys])
    return weights / weights.mean()


def errors(points: MatmulTimings, kind: Kind, values: Mapping[str, float]) -> dict[str, float]:
    """Medians of |estimated / measured - 1| in percent by region of rows; regions without timings are left out."""
    miss = 100.0 * np.abs(measured_seconds(points, kind, values) / points.seconds - 1.0)
    regions = {
        "few_rows": points.m <= _FEW_ROWS,
        "some_rows": (points.m > _FEW_ROWS) & (points.m <= _MANY_ROWS),
        "many_rows": points.m > _MANY_ROWS,
    }
    return {name: round(float(np.median(miss[inside])), 1) for name, inside in regions.items() if inside.any()}


def fit() -> dict[str, dict[str, dict[str, Any]]]:
    """By family or single device and kind of operand: the surface's `numbers`, its `points`, `shapes`, `errors`, and
    `source` or `borrowed`. The family 'default' stands for all that are not there."""
    surfaces: dict[str, dict[str, dict[str, Any]]] = {}
    lasting = 1.0
    for kind in KINDS:
        everything = timings(kind)
        names = np.array([families()[name] for name in everything.accelerator])
        best = ceilings(kind)
        for family in map(str, np.unique(names)):
            points = usable(everything.take(names == family), kind, best.get(family, 1.0))
            if len(points) < _FEWEST:
                continue
            kin = None if kind == "bf16" else surfaces[family]["bf16"]["numbers"]
            ceiling = min(best[family] * lasting, 1.0) if family in best else 1.0
            values = fitted(points, kind, kin, ceiling)
            surfaces.setdefault(family, {})[kind] = _row(points, kind, values)
        if kind == "bf16":
            lasting = _lasting(surfaces)
    _borrow(surfaces, lasting)
    _single_out(surfaces, lasting)
    lend(surfaces, timed() | set(best_rates(timings("bf16"))))
    return surfaces


def _lasting(surfaces: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> float:
    """What a warm device sustains of the best rate found on it: the median of the families whose 16-bit kernels, which
    need no casts, were both timed and searched."""
    best = ceilings("bf16")
    pairs = [(surfaces[name]["bf16"]["numbers"]["height"], best[name]) for name in best if name in surfaces]
    return float(np.median([height / rate for height, rate in pairs if rate <= 1.0]))


def _row(points: MatmulTimings, kind: Kind, values: Mapping[str, float]) -> dict[str, Any]:
    """What is kept of a fit: its numbers, and the timings that they come from."""
    return {
        "numbers": {name: _rounded(values[name]) for name in _SURFACE},
        "points": len(points),
        "shapes": len(set(zip(points.n, points.k, strict=True))),
        "errors": errors(points, kind, values),
        "source": _sources(points),
    }


def _sources(points: MatmulTimings) -> str:
    sources = {f"{name} {where}" for name, where in zip(points.accelerator, points.source, strict=True)}
    return ", ".join(sorted(sources))


def _borrow(surfaces: dict[str, dict[str, dict[str, Any]]], lasting: float) -> None:
    """Fills in what no timings say: 16-bit surfaces are medians of the measured ones, and all other kinds differ from
    the family's own 16-bit surface as they do elsewhere. Heights follow the best rate found on the device, if any."""
    measured = {family: {kind: row["numbers"] for kind, row in kinds.items()} for family, kinds in surfaces.items()}
    best = {kind: ceilings(kind) for kind in KINDS}
    usual = _medians(kinds["bf16"] for kinds in measured.values())
    shift = {
        kind: _medians(
            {name: kinds[kind][name] / kinds["bf16"][name] for name in _SURFACE}
            for kinds in measured.values()
            if kind in kinds
        )
        for kind in KINDS
    }
    for family in [*sorted({*surfaces, *best["bf16"]}), "default"]:
        kinds = surfaces.setdefault(family, {})
        for kind in KINDS:
            if kind in kinds or not has(family, kind):
                continue
            base = kinds["bf16"]["numbers"] if "bf16" in kinds else usual
            numbers = {name: min(base[name] * shift[kind][name], _SURFACE[name].high) for name in _SURFACE}
            why = "the median of the measured families" if kind == "bf16" else "the family's bf16, changed as elsewhere"
            if family in best[kind]:
                numbers["height"] = min(lasting * best[kind][family], 1.0)
                why += "; height from the best rate found on the device"
            rounded = {name: _rounded(value) for name, value in numbers.items()}
            kinds[kind] = {"numbers": rounded, "points": 0, "shapes": 0, "borrowed": why}
        surfaces[family] = {kind: kinds[kind] for kind in KINDS if kind in kinds}


def _single_out(surfaces: dict[str, dict[str, dict[str, Any]]], lasting: float) -> None:
    """Adds surfaces of single devices that were searched but not timed, where their best rate is not their family's.

    Devices of one family differ in what power and software let them sustain, so in `height`: other kinds than those
    searched follow the 16-bit one.
    """
    best = {kind: best_rates(timings(kind)) for kind in KINDS}
    family_best = {kind: ceilings(kind) for kind in KINDS}
    for name in sorted(set().union(*best.values()) - timed()):
        family = families()[name]
        if all(
            rates.get(name, family_best[kind].get(family)) == family_best[kind].get(family)
            for kind, rates in best.items()
        ):
            continue
        kinds = surfaces[family]
        share = 1.0
        if name in best["bf16"]:
            share = min(lasting * best["bf16"][name], 1.0) / kinds["bf16"]["numbers"]["height"]
        device = next(entry for entry in accelerators() if entry.id == name)
        surfaces[name] = {}
        for kind in KINDS:
            if kind not in kinds or peak_of(device, kind) <= 0.0:
                continue
            searched = name in best[kind]
            height = lasting * best[kind][name] if searched else kinds[kind]["numbers"]["height"] * share
            why = f"{family}; height from the best rate found on the device" + ("" if searched else ", in 16 bits")
            numbers = dict(kinds[kind]["numbers"]) | {"height": _rounded(min(height, 1.0))}
            surfaces[name][kind] = {"numbers": numbers, "points": 0, "shapes": 0, "borrowed": why}


# A part with the same units and a lower power limit sustains a power of it: MI300X and MI325X, whose searches differ by
# their limits of 750 and 1000 W alone, give 0.56; MI350X and MI355X (1000 and 1400 W), training Llama-3.1-8B in fp8 for
# MLPerf v5.1 at 25,509 and 31,424 tokens/s a device, 0.62.
_POWER = 0.6
# Clocks of parts with the same units differ by less (H100 SXM and NVL: 1.18), units by twice (GeForce and RTX PRO).
_CLOCKS = 1.5


def lend(surfaces: dict[str, dict[str, dict[str, Any]]], known: Collection[str]) -> None:
    """Adds surfaces of devices that have the cores of one that is `known`, timed or searched, but not its power.

    What is printed as their peak is of another clock at times: what they sustain follows from the device with no less
    power, the nearest of these, and is no more of their own peak than of its. A peak that is far off is of other units.
    """
    measured = [entry for entry in accelerators() if entry.id in known and entry.tdp_w and entry.cores]
    for device in accelerators():
        watts = device.tdp_w or np.inf
        twins = [
            twin
            for twin in measured
            if (twin.family, twin.cores) == (device.family, device.cores)
            and (twin.tdp_w or 0.0) >= watts
            and peak_of(twin, "bf16") < _CLOCKS * peak_of(device, "bf16")
        ]
        if device.id in surfaces or device.id in known or not twins:
            continue
        twin = min(twins, key=lambda twin: twin.tdp_w or 0.0)
        most, lent = twin.tdp_w or 0.0, surfaces[surface_name(twin.id, surfaces)]
        scale = (watts / most) ** _POWER
        if watts >= most or scale * peak_of(twin, "bf16") >= peak_of(device, "bf16"):
            continue
        why = f"{twin.id}; height by the power limit, {watts:g} of {most:g} W"
        for kind in KINDS:
            if kind in lent and peak_of(device, kind) > 0.0:
                share = scale * peak_of(twin, kind) / peak_of(device, kind)
                height = _rounded(lent[kind]["numbers"]["height"] * share)
                numbers = lent[kind]["numbers"] | {"height": height}
                row = {"numbers": numbers, "points": 0, "shapes": 0, "borrowed": why}
                surfaces.setdefault(device.id, {})[kind] = row


def library(surfaces: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> dict[str, dict[str, dict[str, Any]]]:
    """By device and kind of operand, the surface of the library that training calls: that of engines' kernels in
    `surfaces`, moved as far as its timings go, and of devices with the same cores and less power."""
    fits: dict[str, dict[str, dict[str, Any]]] = {}
    for kind in KINDS:
        everything = timings(kind, library=True)
        for device in map(str, np.unique(everything.accelerator)):
            points = everything.take(everything.accelerator == device)
            values = fitted(points, kind, surfaces[surface_name(device, surfaces)][kind]["numbers"])
            fits.setdefault(device, {})[kind] = _row(points, kind, values)
    lend(fits, list(fits))
    return fits


def surface_name(accelerator: str, surfaces: Mapping[str, Any]) -> str:
    """Whose surfaces an accelerator takes: its own, its family's or those of all."""
    return next(name for name in (accelerator, families()[accelerator], "default") if name in surfaces)


def _medians(rows: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The median of every number of the surfaces."""
    rows = list(rows)
    return {name: float(np.median([row[name] for row in rows])) for name in _SURFACE}


def has(family: str, kind: Kind) -> bool:
    """Whether some device of the family has a rate for the kind; 'default' has them all."""
    return family == "default" or any(
        peak_of(device, kind) > 0.0 for device in accelerators() if families().get(device.id) == family
    )


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def document(fits: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """The contents of the surfaces' file."""
    names = {id: surface_name(id, fits) for id in families()}
    return {
        "accelerators": {id: name for id, name in names.items() if name != "default"},
        "cores": _timed_cores(fits),
        "surfaces": _flat(fits),
        "library": _flat(library(fits)),
    }


def _timed_cores(fits: Mapping[str, Any]) -> dict[str, int]:
    """By surface, the cores of the devices that its family was timed on."""
    cores: dict[str, list[int]] = {}
    for device in accelerators():
        if device.id in timed() and device.cores:
            cores.setdefault(families()[device.id], []).append(device.cores)
    kin = {name: families().get(name, name) for name in fits}
    return {name: round(float(np.median(cores[kin[name]]))) for name in fits if kin[name] in cores}


def _flat(fits: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> dict[str, dict[str, dict[str, Any]]]:
    return {
        name: {
            kind: dict(row["numbers"]) | {k: v for k, v in row.items() if k != "numbers"} for kind, row in rows.items()
        }
        for name, rows in fits.items()
    }


def main() -> int:
    import yaml

    surfaces = fit()
    text = _HEADER + yaml.safe_dump(document(surfaces), sort_keys=False, width=120, default_flow_style=None)
    partial = FILE.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(FILE)
    print(f"{sum(len(kinds) for kinds in surfaces.values())} surfaces; wrote {FILE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
