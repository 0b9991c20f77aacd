"""Fits what decode attention and routed experts reach, per accelerator family, on kernel timings:
`python -m measure.fit.decode` writes knowledge/decode_factors.yaml.

Damped Gauss-Newton on the log of estimated over measured time with Huber weights, so that medians decide, and a prior
on each number where the timings do not say. The errors written are those of a fourth of the rows that a fit on the
others has not seen. Deterministic; needs only numpy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import knowledge
from estimator.machine.decode import (
    CachedHeads,
    DecodeKernel,
    ExpertKernel,
    decode_attention_seconds,
    expert_seconds,
    routed,
)
from estimator.machine.hardware import Accelerator
from estimator.machine.matmul import OPERAND_BYTES, Floats, Kind, MatmulRates, MatmulSurface
from knowledge.data_files import rows as csv_rows
from knowledge.fitted.training import surfaces
from knowledge.machines.catalogue import accelerators
from measure.fit.matmul_timings import families, peak_of

FILE = Path(knowledge.__file__).parent / "decode_factors.yaml"
_HEADER = """\
# What decode attention and routed experts reach, written by `python -m measure.fit.decode` from
# measurements/decode_attention.csv and measurements/experts.csv. Meanings of the numbers: DecodeKernel and ExpertKernel
# of estimator/machine/decode.py. By accelerator family; `accelerators` names the entries of devices that are not as
# theirs. `points` are the timings behind an entry; `median` and `p90` what a fit without a fourth of them misses these
# by, as a fraction of the measured time. `borrowed` says what an entry without timings is made of. Entries named by a
# format and an engine are for that engine, whose kernel is unlike the others'.
"""
_HUBER = 0.1
# Timings scatter by about 10 %, and about ten in a row err alike.
_NOISE, _ALIKE = 0.1, 10.0
_STEPS = 30
_HELD_OUT = 4
# Rows of queries that one block of threads takes, as kernels are written.
_TILES = (8.0, 16.0, 32.0, 64.0, 128.0)
# An engine has an entry of its own where the family's is off by this much for the median of its timings.
_UNLIKE = 0.2
Numbers = dict[str, float]
# Number: (middle of its prior, how far the prior lets its logarithm go).
_ATTENTION = {
    "memory": (0.85, 0.1),
    "compute": (0.4, 1.0),
    "launch_s": (1e-5, 0.5),
    "ramp_s": (6e-6, 0.5),
    "block_s": (1e-8, 0.7),
    "key_s": (1.5e-10, 1.0),
}
_EXPERTS = {"memory": (0.9, 0.2), "height": (0.8, 0.5), "launch_s": (1.5e-5, 0.6), "passes": (1.5, 0.7)}
_AT_MOST = {"memory": 1.2}
# What operands outside the kinds of matmuls run as, and their bytes per element of activations and weights: four bits
# and a scale per 32 (MXFP4), with activations in MXFP8 or in 16 bits.
_MIXED: dict[str, tuple[Kind, tuple[float, float]]] = {
    "mxfp4": ("fp8_block", (1.03125, 0.53125)),
    "mxfp4_weights": ("int4_weights", (2.0, 0.53125)),
}
# Entries that no timings are behind take those of the nearest entry: formats of the cache, and operands of experts.
_NEAREST = {"fp8": ("bf16",), "bf16": ("fp8",)}
_NEAREST_OPERANDS = {
    "bf16": ("fp8",),
    "fp8": ("fp8_block", "bf16"),
    "fp8_block": ("fp8", "bf16"),
    "nvfp4": ("mxfp4", "fp8", "bf16"),
    "int8": ("fp8", "fp8_block", "bf16"),
    "int8_weights": ("bf16",),
    "int4_weights": ("mxfp4_weights", "bf16"),
    "mxfp4": ("nvfp4", "fp8_block", "bf16"),
    "mxfp4_weights": ("int4_weights", "bf16"),
}
# Families that are built like a timed one; all others take the middle of the timed ones.
_KIN = {
    "Ampere": "Ada",
    "Ampere GDDR": "Ada",
    "Turing": "Ampere",
    "Volta": "Ampere",
    "Rubin": "Blackwell Ultra",
}


@dataclass(frozen=True)
class DecodeTimings:
    """Timings of one entry: what they took, and what a choice of numbers says they take; arrays of shape (rows,)."""

    engines: np.ndarray
    measured_s: Floats
    estimated: Callable[[Mapping[str, float], np.ndarray], Floats]

    def __len__(self) -> int:
        return len(self.measured_s)

    @property
    def every(self) -> np.ndarray:
        return np.arange(len(self))

    def only(self, engines: Collection[str]) -> DecodeTimings:
        """The timings of some engines."""
        rows = self.every[np.isin(self.engines, sorted(engines))]
        return DecodeTimings(
            self.engines[rows], self.measured_s[rows], lambda numbers, some: self.estimated(numbers, rows[some])
        )

    def error(self, numbers: Mapping[str, float], rows: np.ndarray) -> Floats:
        """Log of estimated over measured for some rows."""
        return np.log(self.estimated(numbers, rows) / self.measured_s[rows])


@cache
def _devices() -> dict[str, Accelerator]:
    return {device.id: device for device in accelerators()}


def _column(rows: Sequence[Mapping[str, str]], name: str, empty: float = np.nan) -> Floats:
    return np.array([float(row[name]) if row[name] else empty for row in rows])


def attention_timings() -> dict[tuple[str, str, str], DecodeTimings]:
    """By family, kernel ('attention', 'mla') and format of the cache."""
    by_kernel: dict[tuple[str, str, str], list[dict[str, str]]] = defaultdict(list)
    for row in csv_rows("../measurements/decode_attention.csv"):
        by_kernel[families()[row["accelerator"]], row["kernel"], row["kv_dtype"]].append(row)
    return {key: _attention(rows, key[1], key[2]) for key, rows in sorted(by_kernel.items())}


def _attention(rows: Sequence[Mapping[str, str]], kernel: str, kv_dtype: str) -> DecodeTimings:
    devices = [_devices()[row["accelerator"]] for row in rows]
    columns = [
        np.array([device.memory_bandwidth for device in devices]),
        np.array([peak_of(device, "bf16") for device in devices]),
        *(_column(rows, name) for name in ("batch", "context", "heads", "kv_heads", "head_dim", "v_head_dim")),
        np.full(len(rows), 1.0 if kv_dtype == "fp8" else 2.0),
        _column(rows, "window", np.inf),
    ]

    def estimated(numbers: Mapping[str, float], some: np.ndarray) -> Floats:
        bandwidth, peak, batch, context, *heads = (column[some] for column in columns)
        cached = CachedHeads(*heads, latent=kernel == "mla")
        return decode_attention_seconds(DecodeKernel(**numbers), bandwidth, peak, batch, context, cached)

    return DecodeTimings(np.array([row["engine"] for row in rows]), 1e-6 * _column(rows, "time_us"), estimated)


def expert_timings() -> dict[tuple[str, str], DecodeTimings]:
    """By family and kind of operands."""
    by_kind: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for row in csv_rows("../measurements/experts.csv"):
        by_kind[families()[row["accelerator"]], row["kind"]].append(row)
    return {key: _experts(rows, key[1]) for key, rows in sorted(by_kind.items())}


def _experts(rows: Sequence[Mapping[str, str]], kind: str) -> DecodeTimings:
    like, operand_bytes = _operands(kind)
    devices = [_devices()[row["accelerator"]] for row in rows]
    peak = np.array([peak_of(device, like) for device in devices])
    bandwidth = np.array([device.memory_bandwidth for device in devices])
    names = [field.name for field in fields(MatmulSurface)]
    surface = {name: np.array([getattr(surfaces(device.id)[like], name) for device in devices]) for name in names}
    reach = [_reached(row) for row in rows]
    drawn, reached = (np.array([pair[part] for pair in reach]) for part in (0, 1))
    hidden, inter = _column(rows, "hidden"), _column(rows, "inter") / _column(rows, "etp")

    def estimated(numbers: Mapping[str, float], some: np.ndarray) -> Floats:
        surface_rows = MatmulSurface(**{name: values[some] for name, values in surface.items()})
        shape = (drawn[some], reached[some], hidden[some], inter[some])
        return expert_seconds(
            ExpertKernel(**numbers), MatmulRates(surface_rows, peak[some], bandwidth[some], operand_bytes), *shape
        )

    return DecodeTimings(np.array([row["engine"] for row in rows]), 1e-6 * _column(rows, "time_us"), estimated)


def _operands(kind: str) -> tuple[Kind, tuple[float, float]]:
    if kind in _MIXED:
        return _MIXED[kind]
    plain: Any = kind
    return plain, OPERAND_BYTES[plain]


def _reached(row: Mapping[str, str]) -> tuple[float, float]:
    """(Rows, experts) of the timed rank. A power law of exponent 1 over a range is a popularity that falls evenly in
    its logarithm by that range."""
    tokens, experts, top_k, ranks = (float(row[name]) for name in ("tokens", "experts", "top_k", "ep"))
    if not row["alpha"]:
        rows = tokens * top_k / ranks
        return rows, float(np.clip(rows, 1.0, experts / ranks))
    spread = 0.8 * tokens if tokens * top_k > experts else 2.0 / 0.01
    drawn, reached = routed(np.array([tokens]), experts, top_k, ranks, spread)
    return float(drawn[0]), float(reached[0])


def fitted(
    timings: DecodeTimings, priors: Mapping[str, tuple[float, float]], rows: np.ndarray, fixed: Numbers
) -> Numbers:
    """The numbers that make the estimate right for the median of some rows; `fixed` are kept."""
    names = list(priors)
    middle = np.log([priors[name][0] for name in names])
    trust = 1.0 / np.array([priors[name][1] for name in names]) ** 2
    most = np.log([_AT_MOST.get(name, np.inf) for name in names])

    def misses(point: Floats) -> Floats:
        return timings.error(dict(zip(names, np.exp(point), strict=True)) | fixed, rows)

    point = middle.copy()
    for _ in range(_STEPS):
        now = misses(point)
        jacobian = np.stack([(misses(point + step) - now) / 1e-4 for step in np.eye(len(names)) * 1e-4], axis=1)
        scale = np.minimum(1.0, _HUBER / np.maximum(1e-9, np.abs(now))) / (_ALIKE * _NOISE**2)
        normal = jacobian.T @ (jacobian * scale[:, None]) + np.diag(trust)
        gradient = jacobian.T @ (scale * now) + (point - middle) * trust
        point = np.minimum(most, point - np.clip(np.linalg.solve(normal, gradient), -0.3, 0.3))
    return dict(zip(names, np.exp(point).tolist(), strict=True)) | fixed


def fitted_attention(timings: DecodeTimings, rows: np.ndarray) -> Numbers:
    """As `fitted`, with the tile that fits best."""
    tried = [fitted(timings, _ATTENTION, rows, {"tile_rows": tile}) for tile in _TILES]
    return min(tried, key=lambda numbers: float(np.abs(timings.error(numbers, rows)).mean()))


def fitted_experts(timings: DecodeTimings, rows: np.ndarray) -> Numbers:
    return fitted(timings, _EXPERTS, rows, {})


def held_out_errors(timings: DecodeTimings, make: Callable[[DecodeTimings, np.ndarray], Numbers]) -> Floats:
    """|estimated / measured - 1| of every fourth row by a fit on the others."""
    held = timings.every % _HELD_OUT == _HELD_OUT - 1
    numbers = make(timings, timings.every[~held])
    return np.abs(np.expm1(timings.error(numbers, timings.every[held])))


def _entry(timings: DecodeTimings, make: Callable[[DecodeTimings, np.ndarray], Numbers]) -> dict[str, Any]:
    numbers = make(timings, timings.every)
    missed = held_out_errors(timings, make)
    return {name: float(f"{value:.3g}") for name, value in numbers.items()} | {
        "points": len(timings),
        "median": round(float(np.median(missed)), 3),
        "p90": round(float(np.quantile(missed, 0.9)), 3),
    }


def _unlike(timings: DecodeTimings) -> set[str]:
    """The engines for which a fit to the timings of all is wrong, fewer than half of them."""
    missed = np.expm1(timings.error(fitted_attention(timings, timings.every), timings.every))
    bias = {name: abs(float(np.median(missed[timings.engines == name]))) for name in set(timings.engines.tolist())}
    worst = sorted(bias, key=lambda name: (-bias[name], name))[: (len(bias) - 1) // 2]
    return {name for name in worst if bias[name] > _UNLIKE}


def fit() -> dict[str, Any]:
    """The contents of the factors' file."""
    kernels: dict[str, dict[str, dict[str, Any]]] = {"attention": {}, "mla": {}, "experts": {}}
    for (family, kernel, kv_dtype), timings in attention_timings().items():
        entries = kernels[kernel].setdefault(family, {})
        unlike = _unlike(timings)
        entries[kv_dtype] = _entry(timings.only(set(timings.engines) - unlike), fitted_attention)
        for engine in sorted(unlike):
            entries[f"{kv_dtype} {engine}"] = _entry(timings.only([engine]), fitted_attention)
    for (family, kind), timings in expert_timings().items():
        kernels["experts"].setdefault(family, {})[kind] = _entry(timings, fitted_experts)
    for name, entries in kernels.items():
        nearest = _NEAREST_OPERANDS if name == "experts" else _NEAREST
        kernels[name] = _lent(entries, list(nearest), nearest)
    known = families()
    surface_names = {device.id: known[device.id] for device in accelerators() if known[device.id] != device.family}
    return {"accelerators": {id: name for id, name in surface_names.items() if name in kernels["attention"]}} | kernels


def _lent(
    entries: dict[str, dict[str, Any]], formats: Sequence[str], nearest: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, Any]]:
    """All formats of all families: the middle of the timed families, that of kin, or the nearest format's."""
    middle = {
        kind: _middle([family[kind] for family in entries.values() if kind in family])
        for kind in formats
        if any(kind in family for family in entries.values())
    }
    full = dict(entries) | {"default": middle}
    for family, rows in full.items():
        for kind in formats:
            source = next((name for name in nearest[kind] if name in rows), None)
            if kind not in rows and source:
                rows[kind] = _loan(rows[source], f"{family} {source}" if family in entries else source)
    for family, kin in _KIN.items():
        if family not in full:
            full[family] = {kind: _loan(full[kin][kind], f"{kin} {kind}") for kind in formats}
    return {family: dict(sorted(rows.items())) for family, rows in sorted(full.items())}


def _middle(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The medians of the timed families; a tile is one of those that exist."""
    told = {"points", "median", "p90"}
    numbers = {name: float(np.median([row[name] for row in rows])) for name in rows[0] if name not in told}
    if "tile_rows" in numbers:
        numbers["tile_rows"] = min(_TILES, key=lambda tile: abs(np.log(tile / numbers["tile_rows"])))
    return {name: float(f"{value:.3g}") for name, value in numbers.items()} | {
        "points": 0,
        "borrowed": "the middle of the timed families",
    }


def _loan(row: Mapping[str, Any], lender: str) -> dict[str, Any]:
    kept = {name: value for name, value in row.items() if name not in ("points", "median", "p90", "borrowed")}
    return kept | {"points": 0, "borrowed": row.get("borrowed", lender)}


def written(fits: Mapping[str, Any]) -> str:
    """The text of the factors' file."""
    import yaml

    return _HEADER + yaml.safe_dump(dict(fits), sort_keys=False, width=120, default_flow_style=None)


def main() -> None:
    fits = fit()
    partial = FILE.with_suffix(".partial")
    partial.write_text(written(fits), encoding="utf-8")
    partial.replace(FILE)
    print(f"wrote {FILE.name}")
    for name in ("attention", "mla", "experts"):
        for family, rows in fits[name].items():
            for kind, row in rows.items():
                if row["points"]:
                    print(f"{name:10} {family:16} {kind:14} {row['points']:5} {row['median']:.1%} {row['p90']:.1%}")


if __name__ == "__main__":
    main()
