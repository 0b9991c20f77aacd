"""What decides an estimate of training: each assumption set otherwise, by estimates of neighbouring plans."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.change import OPEN_LAYOUT
from planner.deciding import ranked
from planner.result import Decisive, NeighbourFigures
from planner.training.neighbours import faster_on, neighbour, other_frameworks
from planner.training.planned import Planned, throughput_of
from planner.training.programs import has_program
from planner.training.run import run_of

# Below this change of the time per token, or of memory, an assumption decides nothing: an estimate is not that sure.
_LEAST = 0.03
_CHOICES = ("workload.compile", "workload.attention")


def decides(planned: Planned) -> list[Decisive]:
    """Those that matter most first: what loses or wins the fit, then by the change of time; each field once."""
    tried = [*(_tried(planned, field, other) for field, other in _others(planned)), *_faster_frameworks(planned)]
    return ranked(tried, planned.fits, _LEAST, "tokens_per_s")


def _others(planned: Planned) -> Iterator[tuple[str, Any]]:
    """Values that people would as well have meant, of the fields that nobody named."""
    job, training = planned.job, planned.job.training
    assumed = {item.field for item in planned.assumptions}
    numbers = {"workload.seq_len": training.seq_len, "workload.global_batch": job.global_batch}
    for field, value in numbers.items():
        if value and field in assumed:
            yield field, value * 2
            if value % 2 == 0:
                yield field, value // 2
    if "workload.method" in assumed and training.method == "full" and training.stage != "pretrain":
        yield "workload.method", "lora"
    if "workload.compile" in assumed and not training.compile:
        yield "workload.compile", True
    hopper = job.machine.accelerator.family == "Hopper"
    if "workload.attention" in assumed and training.attention == "flash" and hopper:
        yield "workload.attention", "flash3"
    if "cluster.interconnect" in assumed and (slower := _slower(job.machine.network.name)) and job.machine.nodes > 1:
        yield "cluster.interconnect", slower


def _slower(network: str) -> str | None:
    """Half the bandwidth of every port: 'ib-200x8' of 'ib-ndr-400x8'."""
    kind, _, ports = network.partition("-")
    gbps, _, count = ports.rpartition("-")[2].partition("x")
    return f"{kind}-{float(gbps) / 2:g}x{count}" if count else None


def _tried(planned: Planned, field: str, other: Any) -> Decisive | None:
    """None where that cannot be, or where its time was never measured and the plan's own was."""
    relaid, other_plan = False, neighbour(planned, {field: other})
    if planned.fits and other_plan is not None and not other_plan.fits:
        # The same layout has no room for it; another one may have.
        anew = neighbour(planned, {field: other} | OPEN_LAYOUT)
        relaid, other_plan = (True, anew) if anew is not None and anew.fits else (False, other_plan)
    if other_plan is None:
        return None
    faster = throughput_of(other_plan).tokens_per_s > throughput_of(planned).tokens_per_s
    faster = faster and other_plan.job.calibration.time_measured
    if field in _CHOICES and not (other_plan.fits and faster):
        # What is a free choice is told where there is a better one.
        return None
    if not (planned.fits or other_plan.fits):
        return None
    return _decisive(planned, field, other, other_plan, relaid)


def _faster_frameworks(planned: Planned) -> Iterator[Decisive]:
    """The fastest of the other frameworks that people would take and that have launch files, and one without them
    where that is faster yet."""
    if not any(item.field == "workload.framework" for item in planned.assumptions):
        return
    best: dict[bool, Planned] = {}
    tokens_per_s = (1.0 + _LEAST) * throughput_of(planned).tokens_per_s
    for name in other_frameworks(planned.job):
        other = faster_on(planned, name, tokens_per_s)
        if other is not None and other.job.calibration.time_measured:
            best[has_program(planned.plan, name)] = other
            tokens_per_s = (1.0 + _LEAST) * throughput_of(other).tokens_per_s
    for started, other in best.items():
        row = _decisive(planned, "workload.framework", other.job.framework.name, other, relaid=True)
        yield row.model_copy(update={"started": started})


def _decisive(planned: Planned, field: str, other: Any, other_plan: Planned, relaid: bool) -> Decisive:
    before, after = _figures(planned), _figures(other_plan)
    section, _, name = field.partition(".")
    value = planned.job.machine.network.name if name == "interconnect" else planned.complete_plan[section][name]
    return Decisive(
        field=field, value=value, other=other, before=before, after=after,
        figure="tokens_per_s" if after.hours is None else "hours", fits=other_plan.fits, relaid=relaid,
    )  # fmt: skip


def _figures(planned: Planned) -> NeighbourFigures:
    run = run_of(planned)
    return NeighbourFigures(
        per_device_bytes=float(planned.estimates.memory.total[planned.index]),
        tokens_per_s=throughput_of(planned).tokens_per_s,
        hours=run.hours if run else None,
    )
