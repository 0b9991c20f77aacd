"""What decides an estimate of serving: each assumption set otherwise, by estimates of neighbouring plans."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from estimator.errors import PlanError
from knowledge.engines import SERVERS
from planner.deciding import ranked, size
from planner.result import Decisive, NeighbourFigures
from planner.serving.planned import Served, latency_of, plan_serving, throughput_of
from planner.serving.warnings import reads

_LEAST = 0.05
_CHOICES = ("workload.engine", "workload.weight_dtype", "workload.kv_dtype")
# Figures of which the one that moves most is told.
_MOVING = ("ttft_s", "tpot_s", "output_tokens_per_s")


def decides(served: Served) -> list[Decisive]:
    """Those that matter most first: what loses or wins the fit, then by the change of the figure that moves most."""
    return ranked((_tried(served, field, other) for field, other in _others(served)), served.fits, _LEAST)


def _others(served: Served) -> Iterator[tuple[str, Any]]:
    """Values that people would as well have meant, of the fields that nobody named."""
    serving = served.job.inference
    assumed = {item.field for item in served.assumptions}
    numbers = {"concurrency": serving.concurrency, "input_len": serving.input_len, "output_len": serving.output_len}
    for name, value in numbers.items():
        if f"workload.{name}" in assumed and isinstance(value, int) and value > 1:
            yield f"workload.{name}", value * 2
            yield f"workload.{name}", value // 2
    if "workload.weight_dtype" in assumed and serving.weight_dtype in ("bf16", "fp16"):
        yield "workload.weight_dtype", "fp8"
    if "workload.kv_dtype" in assumed:
        yield "workload.kv_dtype", "fp8"
    if "workload.prefix_hit" in assumed and not serving.prefix_hit:
        yield "workload.prefix_hit", 0.5
    if "workload.engine" in assumed:
        yield from (("workload.engine", name) for name in SERVERS if name != serving.engine)


def _tried(served: Served, field: str, other: Any) -> Decisive | None:
    try:
        neighbour = plan_serving(served.plan.patch({field: other}), served.own_usd)
    except PlanError:
        return None
    if not (neighbour.fits or served.fits) or (reads(served.job) and not reads(neighbour.job)):
        return None
    before, after = _figures(served), _figures(neighbour)
    both = {name: (getattr(before, name), getattr(after, name)) for name in _moving(served, before)}
    moved = {name: now / then - 1.0 for name, (then, now) in both.items() if then and now}
    if not moved:
        return None
    figure = max(moved, key=lambda name: size(moved[name]))
    better = moved[figure] < 0 if figure != "output_tokens_per_s" else moved[figure] > 0
    if field in _CHOICES and not (neighbour.fits and better):
        # What is a free choice is told where there is a better one.
        return None
    section, _, name = field.partition(".")
    return Decisive(
        field=field, value=served.complete_plan[section][name], other=other, before=before, after=after,
        figure=figure, fits=neighbour.fits,
    )  # fmt: skip


def _moving(served: Served, now: NeighbourFigures) -> tuple[str, ...]:
    """The figures that are compared: of requests that are all there at once how long they take, since tokens a second
    of answers of other lengths say nothing of it."""
    if served.job.inference.scenario != "offline":
        return _MOVING
    return ("hours",) if now.hours else ("output_tokens_per_s",)


def _figures(served: Served) -> NeighbourFigures:
    latency, memory, rate = latency_of(served), served.estimates.memory, throughput_of(served)
    requests = served.job.inference.requests if served.job.inference.scenario == "offline" else None
    return NeighbourFigures(
        hours=requests / rate.requests_per_s / 3600.0 if requests and rate.requests_per_s else None,
        per_device_bytes=sum(float(values[served.entry]) for values in memory.components.values()),
        ttft_s=latency.ttft_s,
        tpot_s=latency.tpot_s,
        output_tokens_per_s=rate.output_tokens_per_s,
    )
