"""A plan over a range of values: the finding in a sentence, a row for each point, and what cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from estimator.plan.schema import Inference, Plan
from knowledge import figures
from pages.answers.lead import verdict
from pages.answers.plan import complete, hardware_words, run_words
from pages.blocks import Block
from pages.results.fields import field_name
from pages.results.many import own_layouts_of_points, points

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from planner.compare.sweep import Sweep, SweepPoint
    from planner.compare.sweep.serving import ServingPoint

# Above this more devices do not scale, fewer lack memory: caches and rounding alone explain no more.
_MOST_EFFICIENT = 1.1
_BEST = {"memory": "which needs the least memory", "cost": "which costs the least per token"}
_OF_SERVING = {**_BEST, "time": "with the shortest requests"}


def describe(sweep: Sweep) -> list[Block]:
    """Of training or of serving."""
    plan, best = complete(sweep.plan), sweep.best
    if best is None:
        text = f"None of these fits: {run_words(plan)}."
    elif _is_trained(best):
        able = [point for point in sweep.points if _is_trained(point) and point.fits]
        text = _training_verdict(sweep, plan, best, able)
    else:
        text = _serving_verdict(sweep, plan, best)
    return [verdict(text, bool(best), sweep.warnings, own_layouts_of_points(sweep)), *points(sweep)]


def _is_trained(point: SweepPoint | ServingPoint) -> TypeIs[SweepPoint]:
    return hasattr(point, "step_s")


def _training_verdict(sweep: Sweep, plan: Plan, best: SweepPoint, points: Sequence[SweepPoint]) -> str:
    run, path = run_words(plan), sweep.fields[0]
    if path == "cluster.count" and len(points) > 1:
        start, end = points[0], points[-1]
        batch = "batch grows with the devices (weak scaling)" if sweep.scaling == "weak" else "same global batch"
        return f"{_scaled(start, end)}: {run}, {batch}, {_reached(end)}."
    where = "" if path in ("cluster.count", "cluster.accelerator") else f" on {hardware_words(plan)}"
    does = _BEST.get(plan.goal.objective, "the fastest")
    return (
        f"**Best {field_name(path)}: {figures.plain(best.values[path])}**, {does} for {run}{where}: "
        f"{figures.known(best.tokens_per_s, figures.rate)} tokens/s, "
        f"{figures.known(best.per_device_bytes, figures.gib)} per device."
    )


def _scaled(start: SweepPoint, end: SweepPoint) -> str:
    """What more devices bring. Where a few are slow, as they have to save memory, more of them bring more than their
    number: that is no efficiency."""
    if not (start.tokens_per_s and end.tokens_per_s):
        known = figures.known(end.scaling_efficiency, figures.percent)
        return f"**{known} scaling efficiency** on {end.devices} devices"
    faster = figures.ratio(end.tokens_per_s / start.tokens_per_s)
    if end.scaling_efficiency is not None and end.scaling_efficiency > _MOST_EFFICIENT:
        slow = f"{start.devices} reach only {figures.known(start.mfu, figures.percent)} MFU"
        return f"**{faster} the tokens/s on {end.devices} devices**, as {slow}"
    return (
        f"**{figures.known(end.scaling_efficiency, figures.percent)} scaling efficiency** on {end.devices} devices, "
        f"{faster} the tokens/s of {start.devices}"
    )


def _reached(point: SweepPoint) -> str:
    rate = figures.known(point.tokens_per_s, figures.rate)
    return f"{rate} tokens/s at {figures.known(point.mfu, figures.percent)} MFU"


def _serving_verdict(sweep: Sweep, plan: Plan, best: ServingPoint) -> str:
    workload, path = plan.workload, sweep.fields[0]
    limited = isinstance(workload, Inference) and (workload.ttft_slo_ms or workload.tpot_slo_ms)
    missed = best.meets_slo is False
    value = figures.plain(best.values[path])
    if missed:
        head = f"**None of these meets your limits**; the highest throughput is at {field_name(path)} {value}"
    else:
        does = _OF_SERVING.get(plan.goal.objective, "the most output tokens/s")
        head = f"**Best {field_name(path)}: {value}**, {does}{' within your limits' if limited else ''}"
    return (
        f"{head} for {run_words(plan)} on "
        f"{hardware_words(plan)}: {figures.known(best.output_tokens_per_s, figures.rate)} output tokens/s, TTFT "
        f"{figures.known(best.ttft_s, figures.seconds, 'grows without bound')}, "
        f"TPOT {figures.known(best.tpot_s, figures.seconds)}."
    )
