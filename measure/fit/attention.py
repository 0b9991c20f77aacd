"""Fits what attention and scan kernels reach, per accelerator family and kernel, on kernel timings.

Eight numbers a kernel (`estimator.kernels.attention.AttentionKernel`), by damped Gauss-Newton on the log of estimated
over measured time with Huber weights (so that medians decide), every source weighted by the square root of its rows,
and a prior on each number where the timings do not say. Deterministic; needs only numpy.
"""

from __future__ import annotations

import csv
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimator.kernels.attention import MOST
from knowledge.data_files import FOLDER
from knowledge.machines.catalogue import find_accelerator

Floats = NDArray[np.float64]
TIMINGS = FOLDER.parent / "measurements" / "attention.csv"
FACTORS = FOLDER.parent / "attention_factors.yaml"

# Number: (middle of its prior, how far the prior lets its logarithm go). `backward` is the ratio to `forward`.
NUMBERS = {
    "forward": (0.75, 0.25),
    "backward": (0.85, 0.25),
    "half_dim": (40.0, 0.5),
    "half_dim_backward": (40.0, 0.5),
    "half_keys": (200.0, 0.5),
    "half_keys_backward": (300.0, 0.5),
    "half_window": (400.0, 0.7),
    "half_rows": (8000.0, 0.35),
}
_HUBER = 0.08
_NOISE = 0.08
_STEPS = 25
# A launch and its gaps, part of every timing: forward one kernel, backward three.
_LAUNCH_S = 5e-6
# Shorter calls are launches more than kernels.
_SHORTEST_S = 25e-6
_SCANS = {"gated_delta": "linear_attention", "ssd_scan": "mamba2"}
# Families without timings of their own: the kernel that stands in for theirs. Fractions of the peak carry over better
# than rates: matrix units, exponentials and on-chip memory of one design year scale together.
BORROWED = {
    ("Volta", "flash2"): ("Ampere", "flash2"),
    ("Turing", "flash2"): ("Ampere", "flash2"),
    ("TPU", "splash"): ("Hopper", "flash3"),
    ("Trainium", "nki"): ("Ampere", "flash2"),
    ("Gaudi", "fused_sdpa"): ("Ampere", "flash2"),
    ("CDNA2", "aiter"): ("CDNA3", "aiter"),
    ("CDNA5", "aiter"): ("CDNA4", "aiter"),
    ("Rubin", "cudnn"): ("Blackwell Ultra", "cudnn"),
    ("Blackwell Ultra", "flash4"): ("Blackwell Ultra", "cudnn"),
    ("Apple Silicon", "metal"): ("Ampere", "flash2"),
    ("default", "flash2"): ("Ampere", "flash2"),
}


@dataclass(frozen=True)
class AttentionTimings:
    """The timings of one kernel on one family: arrays of shape (n,), seconds, FLOP, FLOP/s and counts."""

    seconds: Floats
    backward: Floats
    forward: Floats
    peak: Floats
    width: Floats
    keys: Floats
    windowed: NDArray[np.bool_]
    rows: Floats
    flop: Floats
    backward_flop: Floats
    weight: Floats
    sources: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.seconds)


def timings(path: Path = TIMINGS) -> tuple[dict[tuple[str, str], list[dict[str, str]]], dict[str, str]]:
    """The rows of the measurement file by (family, kernel), and the sources that its remarks name by their key."""
    lines = path.read_text(encoding="utf-8").splitlines()
    remarks = [line[2:].partition(": ") for line in lines if line.startswith("# s") and ": " in line]
    by_kernel: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
        family = find_accelerator(row["accelerator"]).value.family
        by_kernel[family, row["kernel"]].append(row)
    return dict(by_kernel), {key: text for key, _, text in remarks}


def keys_of(row: Mapping[str, str]) -> float:
    """Keys that a query of the timed call sees on average."""
    seq, causal = float(row["seq"]), row["causal"] == "1"
    window = float(row["window"]) if row["window"] else seq
    return window * (1.0 - window / (2.0 * seq)) if causal else min(seq, window)


def rate_of(kernel: str) -> str:
    """The precision whose peak a kernel's parts are of."""
    return "fp8" if kernel.endswith("_fp8") else "bf16"


def gathered(rows: Sequence[Mapping[str, str]]) -> AttentionTimings:
    rows = [row for row in rows if float(row["time_us"]) * 1e-6 >= _SHORTEST_S]
    count = Counter(row["source"] for row in rows)
    column = lambda make: np.array([make(row) for row in rows], dtype=np.float64)  # noqa: E731
    queries = column(lambda row: float(row["seq"]) * float(row["batch"]) * float(row["heads"]))
    q, v = column(lambda row: float(row["head_dim"])), column(lambda row: float(row["v_head_dim"]))
    keys = column(keys_of)
    return AttentionTimings(
        seconds=column(lambda row: float(row["time_us"]) * 1e-6),
        forward=column(lambda row: float("fwd" in row["direction"])),
        backward=column(lambda row: float("bwd" in row["direction"])),
        peak=column(lambda row: find_accelerator(row["accelerator"]).value.peak_flops[rate_of(row["kernel"])]),
        width=0.5 * (q + v),
        keys=keys,
        windowed=np.array([bool(row["window"]) for row in rows], dtype=np.bool_),
        rows=queries,
        flop=2.0 * (q + v) * queries * keys,
        backward_flop=2.0 * (3.0 * q + 2.0 * v) * queries * keys,
        weight=column(lambda row: 1.0 / math.sqrt(count[row["source"]])),
        sources=tuple(sorted(count)),
    )


def estimated(data: AttentionTimings, numbers: Mapping[str, float]) -> Floats:
    """Seconds of each timed call, launches included."""
    n = numbers
    filled = data.peak * data.rows / (data.rows + n["half_rows"])
    half = np.where(data.windowed, n["half_window"], n["half_keys"])
    half_backward = np.where(data.windowed, n["half_window"], n["half_keys_backward"])
    forward = np.minimum(MOST, n["forward"] * data.width / (data.width + n["half_dim"]))
    forward = forward * data.keys / (data.keys + half)
    backward = n["forward"] * n["backward"] * data.width / (data.width + n["half_dim_backward"])
    backward = np.minimum(MOST, backward) * data.keys / (data.keys + half_backward)
    return data.forward * (data.flop / (filled * forward) + _LAUNCH_S) + data.backward * (
        data.backward_flop / (filled * backward) + 3.0 * _LAUNCH_S
    )


def fitted(data: AttentionTimings) -> dict[str, float]:
    """The numbers that make `estimated` right for the median timing."""
    names = list(NUMBERS)
    prior = np.log([NUMBERS[name][0] for name in names])
    sigma = np.array([NUMBERS[name][1] for name in names])
    weight = data.weight / data.weight.mean()

    def misses(point: Floats) -> Floats:
        return np.log(estimated(data, dict(zip(names, np.exp(point), strict=True))) / data.seconds)

    point = prior.copy()
    for _ in range(_STEPS):
        now = misses(point)
        jacobian = np.stack([(misses(point + step) - now) / 1e-4 for step in np.eye(len(names)) * 1e-4], axis=1)
        scale = weight * np.minimum(1.0, _HUBER / np.maximum(1e-9, np.abs(now))) / _NOISE**2
        normal = jacobian.T @ (jacobian * scale[:, None]) + np.diag(1.0 / sigma**2)
        gradient = jacobian.T @ (scale * now) + (point - prior) / sigma**2
        point = point - np.clip(np.linalg.solve(normal, gradient), -0.5, 0.5)
    numbers = dict(zip(names, np.exp(point).tolist(), strict=True))
    if not data.backward.any():
        # Backward was not timed: the shape of forward, at the usual ratio, with longer ramps (five matmuls' tiles).
        ratio = NUMBERS["half_keys_backward"][0] / NUMBERS["half_keys"][0]
        numbers |= {"half_dim_backward": numbers["half_dim"], "half_keys_backward": ratio * numbers["half_keys"]}
    return numbers


def errors(data: AttentionTimings, numbers: Mapping[str, float]) -> Floats:
    """How far each estimate is off, as a fraction of the measured time."""
    return np.abs(estimated(data, numbers) / data.seconds - 1.0)


def fit() -> dict[str, dict[str, dict[str, Any]]]:
    """{'kernels': {family: {kernel: numbers}}, 'scans': {mixer: numbers}}, each with points, median error, source."""
    rows, sources = timings()
    kernels: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for (family, kernel), timing_rows in sorted(rows.items()):
        if kernel in _SCANS:
            continue
        data = gathered(timing_rows)
        numbers = fitted(data)
        numbers["backward"] = numbers["forward"] * numbers["backward"]
        kernels[family][kernel] = {name: float(f"{value:.3g}") for name, value in numbers.items()} | {
            "points": len(data),
            "error": round(float(np.median(errors(data, relative(numbers)))), 3),
            "borrowed": False,
            "rate": rate_of(kernel),
            "source": "; ".join(sorted({sources[key].split(" ")[0] for key in data.sources})),
        }
    for (family, kernel), (owner, original) in BORROWED.items():
        lent = kernels[owner][original]
        kernels[family][kernel] = lent | {"points": 0, "borrowed": True, "source": f"{owner} {original}"}
    return {"kernels": {family: dict(fits) for family, fits in sorted(kernels.items())}, "scans": _scans(rows)}


def relative(numbers: Mapping[str, float]) -> dict[str, float]:
    """The numbers as `estimated` takes them: `backward` as a ratio to `forward`."""
    return dict(numbers) | {"backward": numbers["backward"] / numbers["forward"]}


# What a scan moves forward per inner element and unit of state width, in 16-bit elements, by its algorithm.
# Gated delta rule (chunk 64; fla chunk_gated_delta_rule): a state of key width x value width a chunk, written and read
# by two kernels. SSD (chunk 256; mamba_chunk_scan_combined): states in fp32, written, passed on and read again.
_PER_STATE = {"gated_delta": 4.0 / 64.0, "ssd_scan": 2.0 * 4.0 / 256.0}
# Share of the memory bandwidth that streaming kernels reach; what is counted in passes is after it.
_STREAMING = 0.8
_KERNELS = {"linear_attention": (9.0, 16.0), "mamba2": (6.0, 12.0), "mamba1": (1.0, 2.0)}
# Of the time of SSD's five kernels, the chunk scan's part (passes over its inputs: 4 of 8 at a state width of 128).
_CHUNK_SCAN_PART = 0.5


def _scans(rows: Mapping[tuple[str, str], Sequence[Mapping[str, str]]]) -> dict[str, dict[str, Any]]:
    """Passes of each scan: the median over timings of what is left when state traffic is taken off."""
    ratio, scans = 1.0, {}
    for kernel, mixer in _SCANS.items():
        mine = [row for (_, name), group in rows.items() if name == kernel for row in group]
        forward = [row for row in mine if row["direction"] == "fwd"]
        passes = np.array(
            [_passes(row) * (1.0 if kernel == "gated_delta" else 1.0 / _CHUNK_SCAN_PART) for row in forward]
        )
        width = np.array([float(row["head_dim"]) for row in forward])
        base = float(np.median(passes - _PER_STATE[kernel] * width))
        scans[mixer] = {"passes": round(base, 1), "passes_per_state": _PER_STATE[kernel], "points": len(forward)}
        scans[mixer]["error"] = round(float(np.median(np.abs((base + _PER_STATE[kernel] * width) / passes - 1.0))), 3)
        if kernel == "gated_delta":
            ratio = _backward_ratio(mine)
    # Mamba's selective scan computes state by state in registers: five passes over its inputs and output, and about a
    # third of one more for each exponential (Gu and Dao 2023, section 3.3.2, recomputes states in backward).
    scans["mamba1"] = {"passes": 5.0, "passes_per_state": 0.35, "points": 0, "error": 0.5}
    for mixer, (kernels, kernels_backward) in _KERNELS.items():
        scans[mixer] |= {"backward": round(ratio, 2), "kernels": kernels, "kernels_backward": kernels_backward}
        scans[mixer]["borrowed"] = mixer != "linear_attention"
    sources = {
        "linear_attention": "fla README; aiconfigurator",
        "mamba2": "tilelang benchmark/mamba2 (chunk scan); backward: fla",
    }
    for mixer, numbers in scans.items():
        numbers["source"] = sources.get(mixer, "counted from the algorithm; backward: fla")
    return scans


def _passes(row: Mapping[str, str]) -> float:
    """16-bit elements per inner element that the timed scan could have moved at streaming bandwidth."""
    elements = math.prod(float(row[name]) for name in ("seq", "batch", "heads", "v_head_dim"))
    bandwidth = find_accelerator(row["accelerator"]).value.memory_bandwidth * _STREAMING
    return float(row["time_us"]) * 1e-6 * bandwidth / (2.0 * elements)


def _backward_ratio(rows: Sequence[Mapping[str, str]]) -> float:
    """Backward over forward, of the largest calls that were timed both ways (small ones are launches)."""
    times = {
        (row["accelerator"], row["seq"], row["batch"], row["heads"], row["head_dim"], row["direction"]): float(
            row["time_us"]
        )
        for row in rows
    }
    both = [(times[(*key[:-1], "fwd")], time) for key, time in times.items() if key[-1] == "fwd+bwd"]
    largest = sorted(both)[-4:]
    return float(np.median([total / forward - 1.0 for forward, total in largest]))


HEADER = """\
# What attention and scan kernels reach, by accelerator family; `choice` says which kernel an attention setting means
# for a framework (or its kin) on a family. `borrowed`: another family's timings stand in. Written, but for `choice`, by
# `python -m measure.fit.attention` from measurements/attention.csv. Meanings: AttentionKernel and ScanKernel of
# estimator/kernels/attention.py.
"""


def main() -> None:
    import yaml

    kept = yaml.safe_load(FACTORS.read_text(encoding="utf-8"))["choice"]
    body = yaml.safe_dump({"choice": kept} | fit(), sort_keys=False, width=120, default_flow_style=None)
    partial = FACTORS.with_suffix(".partial")
    partial.write_text(HEADER + body, encoding="utf-8")
    partial.replace(FACTORS)
    print(f"wrote {FACTORS.name}")


if __name__ == "__main__":
    main()
