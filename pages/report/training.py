"""A report on a training plan, from what the planner says of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from estimator.plan.schema import Cluster, Plan
from knowledge.figures import between, gib, interval, label, percent, seconds, shown
from pages.answers.memory import peak_words
from pages.answers.plan import complete
from pages.blocks import Block, Chart, Details, Figures, Folded, Headline, Note, Row, capitalised
from pages.report.sections import (
    Told,
    advised,
    asked,
    cards_of,
    closing,
    costs,
    costs_of,
    doubts,
    piece,
    prices,
    rivals,
    same_choice,
    subject,
    the_plan,
    ways_to_fit,
)
from pages.results.basis import notes
from pages.results.choice import LAYOUTS
from pages.results.columns import Column, table
from pages.results.estimate import memory, memory_chart, misfit, roofline, time_chart, where_time_goes
from pages.results.limits import doubt_words, limit_words, untold
from planner.compare.scaling import ScalingRequest, project_scaling
from planner.fit.remedies import remedies
from planner.layouts.best import best_of
from planner.money.results import CostEstimate
from planner.results import LayoutChoice, TrainingEstimate
from planner.training.estimate import estimate_of
from planner.training.planned import Planned, choice, known_to_fit, on_every_framework, plan_training

_MOST_LAYOUTS = 6
# Times the tokens/s from which an alternative is worth a sentence.
_FASTER = 1.02


def training(plan: Plan, price: Mapping[str, Any]) -> Told:
    """What the planner says of a plan; `price` holds the user's own, usd_per_device_hour, or nothing. Raises
    PlanError."""
    partial_plan, planned = plan.given(), plan_training(plan)
    estimate = estimate_of(planned)
    bill = costs_of(plan, price, planned)
    whole = planned.plan
    nodes = {"plan": partial_plan, **price, "nodes": _most_nodes(whole.cluster)}
    layouts, fitting = _layouts(plan, planned), known_to_fit(plan, planned)
    blocks: list[Block] = [
        _verdict(estimate, bill, layouts),
        Figures(_cards(estimate, bill)),
        the_plan(estimate),
        _memory(estimate),
        _time(estimate),
        *costs(bill, estimate.run is None, estimate.warnings),
        *(_alternatives(planned, layouts) if planned.fits else ways_to_fit(remedies(fitting, plan))),
        *doubts(estimate),
    ]
    appendix: list[Block] = [
        Details("Memory by component", memory(estimate.memory)),
        Details("Where the time goes", [*where_time_goes(estimate.limits), *roofline(estimate.roofline)]),
        *_all_layouts(layouts, estimate),
        *piece(_scaling, nodes),
        *prices(bill),
        *closing(partial_plan, estimate, advised(plan, fitting)),
    ]
    return Told(subject(whole), [*blocks, Folded(appendix)])


def _verdict(estimate: TrainingEstimate, bill: CostEstimate | None, layouts: Sequence[LayoutChoice]) -> Headline:
    """Broken limits first; behind it what is faster, so that no alternative comes as a surprise."""
    memory = estimate.memory
    need = f"{gib(memory.per_device_bytes)} of {gib(memory.capacity_bytes)} per device"
    if not memory.fits:
        return Headline(
            f"{capitalised(misfit(memory))}: it needs {need}, most of it {_words(memory.decided_by)}.", False
        )
    limits = limit_words(complete(estimate.plan).goal, bill, estimate.run)
    verdict = f"Fits{', but tightly' * memory.tight}: {need}; a step takes {seconds(estimate.time.step_s)}, bound by "
    sentences = [*limits.broken, *limits.doubtful, f"{verdict}{_words(estimate.bottleneck)}.", *limits.kept]
    more = " ".join(filter(None, (doubt_words(untold(estimate)), _faster(estimate, layouts))))
    return Headline(" ".join(sentences), not limits.broken, more,
                    memory.tight or bool(limits.doubtful or estimate.warnings))  # fmt: skip


def _faster(estimate: TrainingEstimate, layouts: Sequence[LayoutChoice]) -> str:
    """The alternative that is faster than the plan; nothing where none is."""
    now = estimate.throughput.tokens_per_s
    if not layouts or layouts[0].tokens_per_s < _FASTER * now:
        return ""
    best = layouts[0]
    return f"Faster: {best.framework} with {best.summary}, {percent(best.tokens_per_s / now - 1)} more tokens/s."


def _cards(estimate: TrainingEstimate, bill: CostEstimate | None) -> list[Row]:
    memory = estimate.memory
    span = f"{interval(memory, 'per_device_bytes')}, of {gib(memory.capacity_bytes)}"
    cards: list[Row] = [("memory per device", gib(memory.per_device_bytes), span), *cards_of(estimate)]
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


def _layouts(plan: Plan, planned: Planned) -> list[LayoutChoice]:
    """The best layouts of every framework that can run the plan, where it leaves any open."""
    search = best_of(on_every_framework(plan, planned), _MOST_LAYOUTS - 1)
    options = [search.best, *search.alternatives]
    return options if len(options) > 1 else []


def _alternatives(planned: Planned, layouts: Sequence[LayoutChoice]) -> list[Details]:
    columns: list[Column] = [("layout", "summary"), "framework", "tokens_per_s", "mfu", "per_device_bytes"]
    if not layouts:
        return []
    this = choice(planned.estimates, planned.index)
    others = [row for row in layouts if not same_choice(row, this)]
    return rivals([this, *others], columns, f"This plan, and the fastest layouts of {_tried(layouts)} that fit.")


def _tried(layouts: Sequence[LayoutChoice]) -> str:
    """A plan may name its framework."""
    frameworks = {row.framework for row in layouts}
    return "every framework" if len(frameworks) > 1 else frameworks.pop()


def _all_layouts(layouts: Sequence[LayoutChoice], estimate: TrainingEstimate) -> list[Details]:
    why = notes("Why this layout", estimate.why)
    rows = table(layouts[:_MOST_LAYOUTS], LAYOUTS, f"Of {_tried(layouts)}" if layouts else "", strong=(0,))
    return [Details("Layouts", [*why, *rows])] if rows or why else []


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
