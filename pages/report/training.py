"""The sections of a report on a training plan, from what the tools say of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pages import figures
from pages.report.page import Card, Section, Table
from pages.report.shared import (
    Told,
    assumed,
    bill_of,
    costs,
    evidence,
    piece,
    plan_code,
    recommendations,
    result_of,
    words,
)
from planner.compare.scaling import ScalingRequest, project_scaling
from planner.layouts.best import SearchRequest, best_parallelism
from planner.plots import Plot, stacked
from planner.training.estimate import EstimateRequest, estimate_training

_GIB = 2.0**30
_MOST_LAYOUTS = 6


def training(plan: Mapping[str, Any], price: Mapping[str, Any]) -> Told:
    """What the tools say of a plan, as a report's parts. `price` holds the user's own, usd_per_device_hour, or nothing.
    Raises PlanError as they do."""
    arguments = {"plan": plan}
    found = result_of(estimate_training, EstimateRequest, arguments)
    bill = bill_of({**arguments, **price})
    return Told(
        subject=_subject(found["plan"]),
        verdict=_verdict(found),
        good=found["memory"]["fits"],
        cards=_cards(found, bill),
        warnings=found["warnings"],
        sections=[
            _plan(found),
            _memory(found),
            _time(found),
            *piece(_layouts, arguments),
            *piece(_scaling, {**arguments, **price, "nodes": _most_nodes(found["plan"]["cluster"])}),
            *costs(bill, found["run"] is None),
            *recommendations(arguments),
            assumed(found["assumptions"]),
            evidence(found["evidence"]),
            plan_code(plan, found["plan"]),
        ],
    )


def _subject(plan: Mapping[str, Any]) -> str:
    workload, cluster = plan["workload"], plan["cluster"]
    model = plan["model"] if isinstance(plan["model"], str) else "own model"
    return f"{model}: {workload['method']} {workload['stage']} on {cluster['count']} x {cluster['accelerator']}"


def _verdict(found: Mapping[str, Any]) -> str:
    memory, step = found["memory"], found["time"]
    need = f"{figures.gib(memory['per_device_bytes'])} of {figures.gib(memory['capacity_bytes'])} per device"
    if not memory["fits"]:
        return f"Does not fit: it needs {need}, most of it {words(memory['decided_by'])}."
    sure = "" if memory["high_bytes"] <= memory["capacity_bytes"] else " (the upper end of the interval is over it)"
    return f"Fits: {need}{sure}; a step takes {figures.seconds(step['step_s'])}, bound by {words(found['bottleneck'])}."


def _cards(found: Mapping[str, Any], bill: Mapping[str, Any] | None) -> list[Card]:
    memory, step, speed, run = found["memory"], found["time"], found["throughput"], found["run"]
    cards = [
        Card(
            "Memory per device",
            figures.gib(memory["per_device_bytes"]),
            f"{figures.gib_range(memory['low_bytes'], memory['high_bytes'])}, of "
            f"{figures.gib(memory['capacity_bytes'])}",
        ),
        Card(
            "Step time",
            figures.seconds(step["step_s"]),
            f"{figures.seconds(step['low_s'])} to {figures.seconds(step['high_s'])}",
        ),
        Card(
            "Tokens per second",
            figures.rate(speed["tokens_per_s"]),
            f"{figures.rate(speed['tokens_per_s_per_device'])} per device",
        ),
        Card("MFU", figures.percent(speed["mfu"]), f"{speed['model_tflops_per_device']:,.0f} model TFLOP/s per device"),
    ]
    if run:
        cards.append(Card("Run", figures.hours(run["hours"]), figures.hour_range(run["low_hours"], run["high_hours"])))
    if bill and bill["usd"] is not None:
        where = " ".join(filter(None, (bill["provider"], bill["instance"]))) or "at your price"
        low, high = figures.usd(bill["low_usd"]), figures.usd(bill["high_usd"])
        cards.append(Card("Cost", figures.usd(bill["usd"]), f"{low} to {high}, {where}"))
    return cards


def _plan(found: Mapping[str, Any]) -> Section:
    plan = found["plan"]
    workload, cluster, layout = plan["workload"], plan["cluster"], plan["layout"]
    rows = [
        ["Model", plan["model"] if isinstance(plan["model"], str) else "described in the plan"],
        ["Work", f"{workload['stage']}, {workload['method']}, {workload['precision']}, {workload['optimizer']}"],
        ["Framework", str(workload["framework"])],
        ["Devices", f"{cluster['count']} x {cluster['accelerator']}, {cluster['per_node']} per node"],
        ["Layout", ", ".join(f"{name} {value}" for name, value in layout.items() if value not in (None, False, 1))],
        [
            "Batch",
            f"{workload['global_batch']} sequences of {workload['seq_len']} tokens a step, "
            f"{workload['micro_batch']} at a time",
        ],
    ]
    return Section("The plan", text=found["why"], tables=[Table(["", ""], rows)])


def _memory(found: Mapping[str, Any]) -> Section:
    memory = found["memory"]
    stages = memory["stages"]
    names = [f"stage {stage['stage']}" if len(stages) > 1 else "per device" for stage in stages]
    plots = stacked(
        "Memory per device" + (" of each pipeline stage" if len(stages) > 1 else ""),
        "",
        "GiB",
        names,
        [{words(name): size for name, size in stage["components"].items()} for stage in stages],
        _GIB,
        memory["capacity_bytes"] / _GIB,
        f"{figures.gib(memory['capacity_bytes'])} can be allocated",
    )
    total = memory["per_device_bytes"]
    rows = [
        [words(name), figures.gib(size), figures.percent(size / total)]
        for name, size in sorted(memory["components"].items(), key=lambda item: -item[1])
        if size > 0
    ]
    rows.append(["total", figures.gib(total), ""])
    host = memory["host"]
    text = [
        f"The worst moment is {words(memory['peak'])}; 80 % interval "
        f"{figures.gib_range(memory['low_bytes'], memory['high_bytes'])}.",
        f"Host memory of a node: {figures.gib(host['per_node_bytes'])}"
        + (f" of {figures.gib(host['capacity_bytes'])}." if host["capacity_bytes"] else "."),
        f"A checkpoint to resume from takes {figures.gib(memory['save']['resumable_bytes'])} on disk.",
    ]
    table = Table(["Component", "Size", "Share"], rows, numbers=(1, 2), strong=(len(rows) - 1,))
    return Section("Memory", text, plots, [table])


def _time(found: Mapping[str, Any]) -> Section:
    step = found["time"]
    plots = stacked(
        "Step time", "", "s", ["one step"], [{words(name): s for name, s in step["components"].items()}], 1.0
    )
    rows = [
        [words(limit["limit"]), figures.seconds(limit["seconds"]), figures.percent(limit["share"])]
        for limit in found["limits"]
    ]
    roof = found["roofline"]
    text = [
        f"80 % interval {figures.seconds(step['low_s'])} to {figures.seconds(step['high_s'])}. "
        f"The step is bound by {words(found['bottleneck'])}.",
        f"Forward and backward reach {roof['achieved_flops'] / 1e12:,.0f} of {roof['peak_flops'] / 1e12:,.0f} TFLOP/s "
        f"at {roof['arithmetic_intensity_flop_per_byte']:,.0f} FLOP per byte.",
    ]
    return Section("Time", text, plots, [Table(["What the step waits for", "Time", "Share"], rows, numbers=(1, 2))])


def _layouts(arguments: Mapping[str, Any]) -> Iterator[Section]:
    """The best layouts, where the plan leaves any open."""
    found = result_of(best_parallelism, SearchRequest, arguments)
    options = [found["best"], *found["alternatives"]][:_MOST_LAYOUTS]
    if len(options) < 2:
        return
    rows = [
        [
            f"{option['summary']}, {option['framework']}",
            figures.gib(option["per_device_bytes"]),
            figures.seconds(option["step_s"]),
            figures.rate(option["tokens_per_s"]),
            figures.percent(option["mfu"]),
        ]
        for option in options
    ]
    text = ["The best of every framework that can run the plan, where it names none.", *found["why"]]
    head = ["Layout", "Memory", "Step", "Tokens/s", "MFU"]
    yield Section("Layouts", text, (), [Table(head, rows, numbers=(1, 2, 3, 4), strong=(0,))])


def _most_nodes(cluster: Mapping[str, Any]) -> int:
    """Four times as many as planned, and 8 at the least."""
    return max(8, 4 * -(-cluster["count"] // cluster["per_node"]))


def _scaling(arguments: Mapping[str, Any]) -> Iterator[Section]:
    """From one node to `nodes`."""
    found = result_of(project_scaling, ScalingRequest, arguments)
    points = [point for point in found["points"] if point["tokens_per_s"]]
    if len(points) < 2:
        return
    rows = [
        [
            f"{point['nodes']}",
            f"{point['devices']}",
            "yes" if point["fits"] else "no",
            figures.seconds(point["step_s"]),
            figures.rate(point["tokens_per_s"]),
            figures.percent(point["efficiency"]) if point["efficiency"] else "",
            figures.usd(point["usd"]) if point["usd"] else "",
        ]
        for point in points
    ]
    head = ["Nodes", "Devices", "Fits", "Step", "Tokens/s", "Efficiency", "Cost"]
    table = Table(head, rows, numbers=(0, 1, 3, 4, 5, 6))
    yield Section("Scaling", found["why"], [Plot.model_validate(plot) for plot in found["plots"]], [table])
