"""A report on a training plan, from what the planner says of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from estimator.errors import PlanError
from estimator.plan.schema import Cluster, Plan
from knowledge.figures import between, gib, interval, label, seconds, shown
from pages.answers.memory import peak_words
from pages.blocks import Block, Chart, Details, Figures, Folded, Headline, Note, Row
from pages.report.sections import (
    MOST_ALTERNATIVES,
    Told,
    asked,
    bill_of,
    closing,
    costs,
    doubts,
    piece,
    prices,
    the_plan,
    ways_to_fit,
)
from pages.results.basis import notes
from pages.results.choice import LAYOUTS
from pages.results.columns import Column, table
from pages.results.estimate import memory, memory_chart, roofline, time_chart, where_time_goes
from pages.results.overview import figure_rows
from planner.compare.scaling import ScalingRequest, project_scaling
from planner.layouts.best import SearchRequest, best_parallelism
from planner.money.results import CostEstimate
from planner.results import LayoutChoice, TrainingEstimate
from planner.training.estimate import EstimateRequest, estimate_training

_MOST_LAYOUTS = 6


def training(plan: Mapping[str, Any], price: Mapping[str, Any]) -> Told:
    """What the planner says of a plan; `price` holds the user's own, usd_per_device_hour, or nothing. Raises
    PlanError."""
    arguments = {"plan": plan}
    estimate = asked(estimate_training, EstimateRequest, arguments)
    bill = bill_of({**arguments, **price})
    whole = Plan.parse(estimate.plan)
    nodes = {**arguments, **price, "nodes": _most_nodes(whole.cluster)}
    layouts = _layouts(arguments)
    blocks: list[Block] = [
        _verdict(estimate),
        Figures(_cards(estimate, bill)),
        the_plan(estimate),
        _memory(estimate),
        _time(estimate),
        *costs(bill, estimate.run is None),
        *(_alternatives(layouts) if estimate.memory.fits else ways_to_fit(estimate)),
        *doubts(estimate),
    ]
    appendix: list[Block] = [
        Details("Memory by component", memory(estimate.memory)),
        Details("Where the time goes", [*where_time_goes(estimate.limits), *roofline(estimate.roofline)]),
        *_all_layouts(layouts, estimate.why),
        *piece(_scaling, nodes),
        *prices(bill),
        *closing(plan, estimate),
    ]
    return Told(_subject(whole), [*blocks, Folded(appendix)])


def _subject(plan: Plan) -> str:
    workload, cluster = plan.training, plan.cluster
    model = plan.model if isinstance(plan.model, str) else "own model"
    return f"{model}: {workload.method} {workload.stage} on {cluster.count} x {cluster.accelerator}"


def _verdict(estimate: TrainingEstimate) -> Headline:
    memory = estimate.memory
    need = f"{gib(memory.per_device_bytes)} of {gib(memory.capacity_bytes)} per device"
    if not memory.fits:
        return Headline(f"Does not fit: it needs {need}, most of it {_words(memory.decided_by)}.", False)
    sure = "" if memory.high_bytes <= memory.capacity_bytes else " (the upper end of the interval is over it)"
    step = f"a step takes {seconds(estimate.time.step_s)}, bound by {_words(estimate.bottleneck)}"
    return Headline(f"Fits: {need}{sure}; {step}.", True)


def _cards(estimate: TrainingEstimate, bill: CostEstimate | None) -> list[Row]:
    memory = estimate.memory
    span = f"{interval(memory, 'per_device_bytes')}, of {gib(memory.capacity_bytes)}"
    cards: list[Row] = [("memory per device", gib(memory.per_device_bytes), span), *figure_rows(estimate)]
    if bill and bill.usd is not None:
        where = " ".join(filter(None, (bill.provider, bill.instance))) or "at your price"
        cards.append((label("usd"), shown("usd", bill.usd), f"{interval(bill, 'usd')}, {where}"))
    return cards


def _memory(estimate: TrainingEstimate) -> Details:
    result = estimate.memory
    host, capacity = result.host, result.host.capacity_bytes
    text = [
        peak_words(result),
        f"Host memory of a node: {gib(host.per_node_bytes)}" + (f" of {gib(capacity)}." if capacity else "."),
        f"A checkpoint to resume from takes {gib(result.save.resumable_bytes)} on disk.",
    ]
    return Details("Memory", [Note("", text), *memory_chart(result)])


def _time(estimate: TrainingEstimate) -> Details:
    step, roof = estimate.time, estimate.roofline
    bound = _words(estimate.bottleneck)
    text = [
        f"80 % interval {between('step_s', step.low_s, step.high_s)}. The step is bound by {bound}.",
        f"Forward and backward reach {shown('roofline.achieved_flops', roof.achieved_flops)} of "
        f"{shown('peak_flops', roof.peak_flops)} at {roof.arithmetic_intensity_flop_per_byte:,.0f} FLOP per byte.",
    ]
    return Details("Time", [Note("", text), *time_chart(estimate)])


def _layouts(arguments: Mapping[str, Any]) -> list[LayoutChoice]:
    """The best layouts of every framework that can run the plan, where it leaves any open; none where none fits."""
    try:
        search = asked(best_parallelism, SearchRequest, arguments)
    except PlanError:
        return []
    options = [search.best, *search.alternatives]
    return options if len(options) > 1 else []


def _alternatives(layouts: Sequence[LayoutChoice]) -> list[Details]:
    columns: list[Column] = [("layout", "summary"), "framework", "tokens_per_s", "mfu", "per_device_bytes"]
    text = "The fastest layouts that fit, of every framework that can run this, where the plan names none."
    rows = table(layouts[:MOST_ALTERNATIVES], columns, strong=(0,))
    return [Details("Alternatives", [Note("", [text]), *rows])] if rows else []


def _all_layouts(layouts: Sequence[LayoutChoice], why: Sequence[str]) -> list[Details]:
    rows = table(layouts[:_MOST_LAYOUTS], LAYOUTS, strong=(0,))
    return [Details("Layouts", [*notes("", why), *rows])] if layouts or why else []


def _most_nodes(cluster: Cluster) -> int:
    """Four times as many as planned, and 8 at the least."""
    return max(8, 4 * -(-(cluster.count or 1) // (cluster.per_node or 1)))


def _scaling(arguments: Mapping[str, Any]) -> Iterator[Details]:
    """From one node to `nodes`."""
    scaling = asked(project_scaling, ScalingRequest, arguments)
    points = [point for point in scaling.points if point.tokens_per_s]
    columns: list[Column] = ["nodes", "devices", "fits", "step_s", "tokens_per_s", "efficiency", "usd"]
    if len(points) > 1:
        yield Details("Scaling", [*notes("", scaling.why), *map(Chart, scaling.plots), *table(points, columns)])


def _words(name: str) -> str:
    return name.replace("_", " ")
