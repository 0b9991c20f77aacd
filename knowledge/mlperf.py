"""The language-model benchmarks of MLPerf Inference: lengths, limits and how long a run has to be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from estimator.errors import PlanError
from knowledge.data_files import document


@dataclass(frozen=True)
class Lengths:
    """Tokens of a data set's samples: mean, standard deviation, percentiles and the most; None where not known."""

    mean: float
    sd: float | None
    p50: float | None
    p90: float | None
    p99: float | None
    most: int


@dataclass(frozen=True)
class LatencyLimits:
    """What 99 % of the queries have to keep to in a scenario, milliseconds; None where the benchmark asks nothing."""

    ttft_ms: float | None
    tpot_ms: float | None
    e2e_ms: float | None
    since: str


@dataclass(frozen=True)
class Benchmark:
    """A benchmark: the catalogue's model, its data set, the limits of each scenario that has some.

    `loadgen` names the model in user.conf and mlperf.conf by scenario; its keys are the scenarios that there are.
    `beams` > 1: answers are searched with as many beams, each decoded like a sequence of its own.
    """

    id: str
    model: str
    dataset: str
    samples: int
    input: Lengths
    output: Lengths
    beams: int
    limits: Mapping[str, LatencyLimits]
    loadgen: Mapping[str, str]
    rounds: tuple[str, str | None]
    source: str


@lru_cache(maxsize=1)
def benchmarks() -> Mapping[str, Benchmark]:
    """All benchmarks by id."""
    return MappingProxyType({id: _benchmark(id, entry) for id, entry in _document()["benchmarks"].items()})


def benchmark(name: str) -> Benchmark:
    """A benchmark by its id or another name of it ("llama3_1-8b", "llama2-70b-99.9"), in any case.

    Raises PlanError for an unknown name.
    """
    known = benchmarks()
    id = _names().get(name.strip().casefold())
    if id is None:
        raise PlanError("benchmark", f"there is no MLPerf Inference benchmark {name!r}", list(known))
    return known[id]


def loadgen_name(bench: Benchmark, scenario: str) -> str:
    """The name of the model in LoadGen's configuration for a scenario: server, interactive, offline or single-stream.

    Raises PlanError where the benchmark has no such scenario.
    """
    if scenario not in bench.loadgen:
        raise PlanError("scenario", f"MLPerf's {bench.id} has no scenario {scenario!r}", bench.loadgen)
    return bench.loadgen[scenario]


def samples_of_run(bench: Benchmark, scenario: str, samples_per_s: float, min_duration_s: float | None = None) -> int:
    """How many samples LoadGen issues for a target rate: whole passes over the data set that last `min_duration_s`.

    loadgen/test_settings_internal.cc and loadgen.cc (GenerateQueries) of mlcommons/inference. For Server the gaps
    between queries are random, so that a run may need one pass more or fewer. `min_duration_s`: the rules' where None.
    Raises PlanError for a rate or duration that is not positive and for a scenario that the benchmark does not have.
    """
    loadgen_name(bench, scenario)
    rules = _document()["rules"]
    duration = rules["min_duration_s"]["value"] if min_duration_s is None else min_duration_s
    for field, value in (("samples_per_s", samples_per_s), ("min_duration_s", duration)):
        if not (math.isfinite(value) and value > 0):
            raise PlanError(field, f"{value!r} is not a positive number")
    slack = {"offline": "offline_slack", "single-stream": "single_stream_slack"}.get(scenario)
    wanted = samples_per_s * duration * (rules[slack]["value"] if slack else 1)
    return bench.samples * max(1, math.ceil(wanted / bench.samples))


@lru_cache(maxsize=1)
def _names() -> dict[str, str]:
    entries = _document()["benchmarks"]
    return {name.casefold(): id for id, entry in entries.items() for name in (id, *entry["aliases"])}


@lru_cache(maxsize=1)
def _document() -> dict[str, Any]:
    return document("mlperf.yaml")


def _benchmark(id: str, entry: dict[str, Any]) -> Benchmark:
    first, last = entry["rounds"]
    return Benchmark(
        id=id,
        model=entry["model"],
        dataset=entry["dataset"],
        samples=entry["samples"],
        input=Lengths(**entry["input"]),
        output=Lengths(**entry["output"]),
        beams=entry["beams"],
        limits=MappingProxyType({scenario: _limits(row) for scenario, row in entry["latency"].items()}),
        loadgen=MappingProxyType(dict(entry["loadgen"])),
        rounds=(first, last),
        source=entry["source"],
    )


def _limits(row: dict[str, Any]) -> LatencyLimits:
    return LatencyLimits(ttft_ms=row.get("ttft"), tpot_ms=row.get("tpot"), e2e_ms=row.get("e2e"), since=row["since"])
