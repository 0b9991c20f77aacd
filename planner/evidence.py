"""What the figures of an answer rest on, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterable

from estimator.plan.serving.job import ServingJob
from estimator.plan.training.job import Job
from knowledge.evidence import DEFAULT, Backing, cache_backing, memory_backing, serving_backing, time_backing
from planner.result import Evidence


def evidence_of(job: Job | ServingJob) -> list[Evidence]:
    """The parts behind the time of a step (of serving: latency and throughput), then that behind the memory; each with
    the interval of its figure."""
    if isinstance(job, Job):
        rows = [_row("time", backing, job.time_spread) for backing in time_backing(job)]
        return [*rows, _row("memory", memory_backing(job), job.memory_below, job.memory_above)]
    spread = max(job.factors.tpot_spread, job.factors.throughput_spread)
    rows = [_row("time", backing, spread) for backing in serving_backing(job)]
    return [*rows, _row("memory", cache_backing(job), None)]


def union_evidence(jobs: Iterable[Job | ServingJob]) -> list[Evidence]:
    """The evidence of all of them, each row once."""
    return list({repr(row): row for job in jobs for row in evidence_of(job)}.values())


def _row(figure: str, backing: Backing, spread: float | None, above: float | None = None) -> Evidence:
    return Evidence(
        figure=figure,
        part=backing.part,
        basis=_basis(backing),
        measured=backing.measured,
        stands_for=backing.stands_for,
        runs=backing.runs,
        points=backing.points,
        error=backing.error,
        borrowed=backing.borrowed,
        versions=list(backing.versions),
        sources=list(backing.sources),
        spread=spread,
        spread_above=spread if above is None else above,
    )


_WHAT = {
    "own": "your own calibration for {}",
    "framework": "factors of {}",
    "engine": "factors of {}",
    "device": "factors of {} devices",
    "matmul": "{}",
    "cache": "{}",
    "cache_room": "sizes of caches that {} printed",
    "attention": "attention by {}",
    "scan": "scans of {}",
    "scaleup": "collectives over {}",
    "network": "collectives over {}",
    "memory": "spread of peaks of {}",
}
# Of the parts that can have nothing of their own.
_PLURALS = {
    "framework": "factors of frameworks",
    "engine": "factors of engines",
    "cache_room": "sizes of caches that engines printed",
    "device": "factors of devices",
    "scaleup": "collectives over links",
    "memory": "spread of peaks of frameworks",
}


def _basis(backing: Backing) -> str:
    text = _WHAT[backing.part].format(backing.measured)
    if backing.measured == DEFAULT:
        text = f"{_PLURALS[backing.part]}, the middle of all that were measured"
    if backing.stands_for:
        text += f", in place of {backing.stands_for}"
    if backing.borrowed:
        return f"{text} (taken from: {backing.borrowed})"
    return f"{text} ({'; '.join(backing.sources)})" if backing.sources else text
