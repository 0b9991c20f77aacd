"""What the figures of an answer rest on, for people and for programs."""

from __future__ import annotations

from estimator.plan.serving.job import ServingJob
from knowledge.evidence import DEFAULT, Backing, cache_backing, memory_backing, serving_backing, time_backing
from planner.results import Evidence
from planner.training.planned import Planned


def evidence_of(planned: Planned) -> list[Evidence]:
    """The parts behind the time of a step, then that behind the memory; each with the interval of its figure."""
    job = planned.job
    found = [_row("time", backing, job.calibration.time_spread) for backing in time_backing(job)]
    return [*found, _row("memory", memory_backing(job), job.memory_below)]


def serving_evidence_of(job: ServingJob) -> list[Evidence]:
    """The parts behind latency and throughput of serving, then that behind the memory."""
    spread = max(job.factors.tpot_spread, job.factors.throughput_spread)
    found = [_row("time", backing, spread) for backing in serving_backing(job)]
    return [*found, _row("memory", cache_backing(job), None)]


def _row(figure: str, backing: Backing, spread: float | None) -> Evidence:
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
    )


_WHAT = {
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
