"""Fits what collectives reach to measured timings, per kind of scale-up link and for networks between nodes:
`python -m measure.fit.network` writes knowledge/network_factors.yaml.

The mean absolute log error is made least, which is least where medians are right, by a pattern search over few factors;
every source is weighted by the square root of its rows. Links with few timings have only their bandwidth fitted and
take the rest from the middle of the others. The kernels of serving engines are fitted after the library's collectives:
vLLM's for every link, and where another engine has its own, by engine and link. Deterministic; needs only numpy.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import knowledge
from estimator.kernels.collectives import Group, all_gather, all_reduce, all_to_all, connect, one_shot_all_reduce, send
from estimator.machine.hardware import Machine
from estimator.plan.training.stages import Floats
from knowledge.machines.catalogue import machine
from knowledge.machines.networks import factors_of, libraries, link_kind

FOLDER = Path(knowledge.__file__).parent
FILE = FOLDER / "network_factors.yaml"
REGIONS = {"below 64 KiB": (0, 2**16), "64 KiB to 16 MiB": (2**16, 2**24 + 1), "above 16 MiB": (2**24 + 1, 2**60)}
_HEADER = """\
# What collectives reach, written by `python -m measure.fit.network` from measurements/collectives.csv. Meanings:
# estimator/kernels/collectives.py, NetworkFactors. `scaleup` by kind of link (data/networks.yaml says which stands for
# which); `default` is the middle of those with many timings. `kernels` by engine replace what `scaleup` says of kernels
# that read peers' memory (`direct`...), which are vLLM's. `latency_s` is one message between nodes, by kind of network.
# `rows` counts the timings behind an entry.
"""


def _one_shot(members: Group, size_bytes: Floats) -> Floats:
    return members.one_shot.seconds(size_bytes)


def _two_shot(members: Group, size_bytes: Floats) -> Floats:
    return members.two_shot.seconds(size_bytes)


def _in_switch(members: Group, size_bytes: Floats) -> Floats:
    return members.in_switch.seconds(size_bytes)


# The last four are engines' kernels; `engine_all_reduce` is whatever the engine takes.
COLLECTIVES: dict[str, Callable[[Group, Floats], Floats]] = {
    "all_gather": all_gather,
    "reduce_scatter": all_gather,
    "all_reduce": all_reduce,
    "all_to_all": all_to_all,
    "send_recv": send,
    "one_shot_all_reduce": _one_shot,
    "two_shot_all_reduce": _two_shot,
    "switch_all_reduce": _in_switch,
    "engine_all_reduce": one_shot_all_reduce,
}
Factors = dict[str, float]
# Where the search begins, and what stands in where no kind of link has timings of its own.
START: Factors = {
    "ring": 0.75, "switch": 0.65, "switch_wide": 1.0, "spread": 0.7, "pair": 0.8, "own": 0.3, "base_s": 6e-6,
    "switch_s": 2e-5, "step_s": 1e-6, "chunk_s": 2e-6,
}  # fmt: skip
START_KERNELS: Factors = {
    "direct": 0.6, "direct_s": 4e-6, "direct_peer_s": 1e-7, "direct_sync_s": 1e-6, "direct_switch": 0.5,
    "direct_switch_s": 1e-5,
}  # fmt: skip
START_OUT: Factors = {"out": 0.9, "out_chunk": 2.0}
# What few timings of a library of its own are let say: how it starts, and what it reaches inside and outside.
_OWN_INSIDE: Factors = {"ring": 0.6, "spread": 0.3, "base_s": 1e-4}
_OWN_OUTSIDE: Factors = {"out": 0.3}
_START_LATENCY_S = 2e-5
# Fractions end at 1; what is counted in seconds, and the chunks, need no bound.
_FRACTIONS = {"ring", "switch", "switch_wide", "spread", "pair", "own", "out", "direct", "direct_switch"}
# Whose kernels the row of a link describes: other engines took them over, or began with them.
USUAL_KERNEL = "vllm"
_TOLD_BY = {
    "spread": {"all_to_all"},
    "pair": {"send_recv"},
    "direct_sync_s": {"two_shot_all_reduce", "engine_all_reduce"},
    "direct_switch": {"switch_all_reduce"},
    "direct_switch_s": {"switch_all_reduce"},
}
# A kind of link with fewer timings has only `ring` fitted; a network with none of small messages keeps its latency.
_MANY_ROWS = 100
_SMALL_BYTES = 2**21
_STRIDES = (0.4, 0.15, 0.05, 0.02)


@dataclass(frozen=True)
class CollectiveTimings:
    """Timings on one kind of machine: arrays of shape (rows,), rows of one collective side by side (`parts`).

    `kernel` is the engine whose own kernels were timed, empty for the library's collectives.
    """

    kernel: str
    machine: Machine
    link: str
    network: str
    parts: tuple[tuple[str, slice], ...]
    sources: tuple[str, ...]
    devices: Floats
    size_bytes: Floats
    measured_s: Floats

    def estimated(self, fitted: Mapping[str, Any]) -> Floats:
        """Seconds of each by the estimator, with given contents of the factors' file."""
        latency = fitted["latency_s"].get(self.network, self.machine.network.latency_s)
        joined = replace(self.machine, network=replace(self.machine.network, latency_s=latency))
        factors, ones = factors_of(joined.accelerator, fitted, self.kernel), np.ones(1)
        return np.concatenate(
            [
                COLLECTIVES[name](connect(joined, factors, self.devices[rows], ones), self.size_bytes[rows])
                for name, rows in self.parts
            ]
        )

    def error(self, fitted: Mapping[str, Any]) -> Floats:
        """Log of estimated over measured."""
        return np.log(self.estimated(fitted) / self.measured_s)


@cache
def timings() -> tuple[CollectiveTimings, ...]:
    """Every timing of collectives.csv by machine: of one node, of one scale-up domain, or across nodes."""
    by_machine: dict[tuple[str, str, str, str], list[dict[str, str]]] = defaultdict(list)
    with (FOLDER / "measurements" / "collectives.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            nodes, devices = int(row["nodes"]), int(row["devices"])
            per_node = str(devices // nodes) if nodes > 1 else ""
            kernel = next((tag.partition(":")[2] for tag in row["tags"].split() if tag.startswith("kernel:")), "")
            by_machine[row["accelerator"], row["interconnect"], per_node, kernel].append(row)
    made: list[CollectiveTimings] = []
    for (accelerator, interconnect, per_node, kernel), rows in by_machine.items():
        rows.sort(key=lambda row: row["collective"])
        counts = Counter(row["collective"] for row in rows)
        ends = dict(zip(counts, np.cumsum(list(counts.values())).tolist(), strict=True))
        devices = np.array([float(row["devices"]) for row in rows])
        cluster, _ = machine(
            accelerator, int(devices.max()), int(per_node) if per_node else None, interconnect or "auto"
        )
        crosses = cluster.fast_domain < cluster.count
        made.append(
            CollectiveTimings(
                kernel=kernel,
                machine=cluster,
                link=link_kind(cluster.accelerator)[0],
                network=cluster.network.name.rpartition("-")[0] if crosses else "",
                parts=tuple((name, slice(ends[name] - count, ends[name])) for name, count in counts.items()),
                sources=tuple(row["source"] for row in rows),
                devices=devices,
                size_bytes=np.array([float(row["bytes"]) for row in rows]),
                measured_s=np.array([float(row["time_us"]) for row in rows]) * 1e-6,
            )
        )
    return tuple(made)


def fit() -> dict[str, Any]:
    """The contents of the factors' file: {"scaleup": {kind: factors}, "kernels": {engine: {kind: factors}}, "scaleout":
    factors, "latency_s": {...}}."""
    by_kind: dict[str, list[CollectiveTimings]] = defaultdict(list)
    kernels: dict[str, dict[str, list[CollectiveTimings]]] = defaultdict(lambda: defaultdict(list))
    for part in timings():
        if part.kernel:
            kernels[part.kernel][part.link].append(part)
        elif not part.network:
            by_kind[part.link].append(part)
    rows = {kind: sum(len(part.measured_s) for part in parts) for kind, parts in by_kind.items()}
    kinds = sorted(by_kind, key=lambda kind: (-rows[kind], kind))
    many = [kind for kind in kinds if rows[kind] >= _MANY_ROWS]
    usual = kernels.pop(USUAL_KERNEL)
    scaleup: dict[str, Factors] = {"default": START | START_KERNELS}
    fitted: dict[str, Any] = {"scaleup": scaleup, "kernels": {}, "scaleout": dict(START_OUT), "latency_s": {}}
    for kind in many:
        scaleup[kind] = _start(START, by_kind[kind])
        _descend(fitted, scaleup[kind], list(scaleup[kind]), by_kind[kind])
        start = _start(START_KERNELS, usual[kind])
        scaleup[kind] |= start
        _descend(fitted, scaleup[kind], list(start), usual[kind])
    for name in START | START_KERNELS:
        measured = [scaleup[kind][name] for kind in many if name in scaleup[kind]]
        if measured:
            scaleup["default"][name] = float(np.median(measured))
    for kind in kinds:
        if kind not in many:
            few = _OWN_INSIDE if kind in libraries() else {"ring": START["ring"]}
            scaleup[kind] = _start(few, by_kind[kind])
            _descend(fitted, scaleup[kind], list(scaleup[kind]), by_kind[kind])
    for engine, by_link in sorted(kernels.items()):
        fitted["kernels"][engine] = {}
        for kind, parts in sorted(by_link.items()):
            row = _start({name: scaleup[kind][name] for name in START_KERNELS if name in scaleup[kind]}, parts)
            fitted["kernels"][engine][kind] = row
            _descend(fitted, row, list(row), parts)
            row["rows"] = sum(len(part.measured_s) for part in parts)
    _fit_networks(fitted)
    for kind in kinds:
        scaleup[kind]["rows"] = rows[kind] + sum(len(part.measured_s) for part in usual.get(kind, ()))
    return fitted


def _start(factors: Factors, parts: Sequence[CollectiveTimings]) -> Factors:
    """The factors that timings say anything about: those of other collectives and machines do not."""
    return {name: value for name, value in factors.items() if _told(name, parts)}


def _told(name: str, parts: Sequence[CollectiveTimings]) -> bool:
    if name.startswith("switch"):
        parts = [part for part in parts if link_kind(part.machine.accelerator)[1]]
    if name == "switch_wide":
        parts = [part for part in parts if part.machine.nodes > 1]
    wanted = _TOLD_BY.get(name, {"one_shot_all_reduce", "engine_all_reduce"} if "direct" in name else {"all_reduce"})
    return any(collective in wanted for part in parts for collective, _ in part.parts)


def _fit_networks(fitted: dict[str, Any]) -> None:
    """One efficiency and one ramp for all networks, and a latency for those that were timed with small messages; an
    efficiency of its own for a library that is not NCCL."""
    parts = [part for part in timings() if part.network and part.link not in libraries()]
    timed = sorted({part.network for part in parts if part.size_bytes.min() <= _SMALL_BYTES})
    row, latencies = fitted["scaleout"], fitted["latency_s"]
    latencies.update(dict.fromkeys(timed, _START_LATENCY_S))
    for _ in range(2):
        for name in timed:
            _descend(fitted, latencies, [name], [part for part in parts if part.network == name])
        _descend(fitted, row, list(START_OUT), parts)
    row["rows"] = sum(len(part.measured_s) for part in parts)
    for kind in libraries():
        own = [part for part in timings() if part.network and part.link == kind]
        fitted["scaleup"][kind] |= _OWN_OUTSIDE
        _descend(fitted, fitted["scaleup"][kind], list(_OWN_OUTSIDE), own)


def _descend(fitted: dict[str, Any], row: Factors, names: Sequence[str], parts: Sequence[CollectiveTimings]) -> None:
    """Sets the named factors of `row`, a part of `fitted`, to what fits `parts` best.

    A pattern search on the logarithms: one factor at a time, with strides that shrink when none of them helps.
    """
    weights = _weights(parts)
    least = _loss(parts, weights, fitted)
    for stride in _STRIDES:
        better = True
        while better:
            better = False
            for name in names:
                before = row[name]
                for factor in (np.exp(stride), np.exp(-stride)):
                    moved = before * float(factor)
                    row[name] = min(1.0, moved) if name in _FRACTIONS else moved
                    loss = _loss(parts, weights, fitted)
                    if loss < least * (1.0 - 1e-4):
                        least, better = loss, True
                        break
                    row[name] = before


def _weights(parts: Sequence[CollectiveTimings]) -> list[Floats]:
    rows = Counter(source for part in parts for source in part.sources)
    weights = [np.array([rows[source] ** -0.5 for source in part.sources]) for part in parts]
    total = sum(float(weight.sum()) for weight in weights)
    return [weight / total for weight in weights]


def _loss(parts: Sequence[CollectiveTimings], weights: Sequence[Floats], fitted: Mapping[str, Any]) -> float:
    """Weighted mean of the absolute log errors."""
    return sum(float((np.abs(part.error(fitted)) * weight).sum()) for part, weight in zip(parts, weights, strict=True))


@dataclass(frozen=True)
class NetworkSpread:
    """Errors as fractions of the measured time."""

    median: float
    mean_absolute: float
    rows: int


def errors(fitted: Mapping[str, Any]) -> dict[tuple[str, str], NetworkSpread]:
    """The errors by (kind of link or network, region of sizes); and kernels and libraries of their own."""
    misses: dict[tuple[str, str], list[float]] = defaultdict(list)
    for part in timings():
        relative = np.expm1(part.error(fitted))
        for _, rows in part.parts:
            library = libraries().get(part.link, "") if part.network else ""
            kind = " ".join(filter(None, (part.network or part.link, library, part.kernel)))
            for region, (low, high) in REGIONS.items():
                inside = (part.size_bytes[rows] >= low) & (part.size_bytes[rows] < high)
                misses[kind, region] += relative[rows][inside].tolist()
    return {
        key: NetworkSpread(float(np.median(values)), float(np.mean(np.abs(values))), len(values))
        for key, values in sorted(misses.items())
        if values
    }


def written(fitted: Mapping[str, Any]) -> str:
    """The text of the factors' file, numbers to three digits."""
    import yaml

    def rounded(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: rounded(inner) for key, inner in value.items()}
        return value if isinstance(value, int) else float(f"{value:.3g}")

    return _HEADER + yaml.safe_dump(rounded(fitted), sort_keys=False, width=120, default_flow_style=None)


def main() -> None:
    result = fit()
    partial = FILE.with_suffix(".partial")
    partial.write_text(written(result), encoding="utf-8")
    partial.replace(FILE)
    print(f"wrote {FILE.name}")
    for (kind, region), spread in errors(result).items():
        print(f"{kind:18} {region:18} median {spread.median:+.1%}  MAPE {spread.mean_absolute:.1%}  {spread.rows} rows")


if __name__ == "__main__":
    main()
