"""The sections of a report on a serving plan, from what the tools say of it."""

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
from planner.compare.sweep import SweepRequest, sweep
from planner.plots import Plot, Series, stacked
from planner.serving.estimate import estimate_inference
from planner.serving.request import InferenceRequest

_GIB = 2.0**30
# Loads around the planned one that are estimated for the curve.
_FACTORS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)


def serving(plan: Mapping[str, Any], price: Mapping[str, Any]) -> Told:
    """What the tools say of a plan, as a report's parts. `price` holds the user's own, usd_per_device_hour, or nothing.
    Raises PlanError as they do."""
    arguments = {"plan": plan}
    found = result_of(estimate_inference, InferenceRequest, arguments)
    bill = bill_of({**arguments, **price})
    return Told(
        subject=_subject(found),
        verdict=_verdict(found),
        good=found["memory"]["fits"] and found["meets_slo"] is not False,
        cards=_cards(found),
        warnings=found["warnings"],
        sections=[
            _plan(found),
            _latency(found),
            *piece(_load, {"plan": found["plan"]}),
            _memory(found),
            *costs(bill, False),
            *recommendations(arguments),
            assumed(found["assumptions"]),
            evidence(found["evidence"]),
            plan_code(plan, found["plan"]),
        ],
    )


def _subject(found: Mapping[str, Any]) -> str:
    plan = found["plan"]
    model = plan["model"] if isinstance(plan["model"], str) else "own model"
    return f"{model}: {plan['workload']['engine']} on {found['devices']} x {plan['cluster']['accelerator']}"


def _verdict(found: Mapping[str, Any]) -> str:
    memory, latency, speed = found["memory"], found["latency"], found["throughput"]
    if not memory["fits"]:
        need, room = figures.gib(memory["per_device_bytes"]), figures.gib(memory["capacity_bytes"])
        return f"Does not fit: a request needs {need} of {room} per device, most of it {words(memory['decided_by'])}."
    first = "no end of waiting" if latency["ttft_s"] is None else figures.seconds(latency["ttft_s"])
    told = (
        f"{figures.rate(speed['output_tokens_per_s'])} output tokens/s; first token after {first}, "
        f"{figures.seconds(latency['tpot_s'])} per token"
    )
    if found["meets_slo"] is None:
        return f"Fits: {told}."
    return f"{'Keeps' if found['meets_slo'] else 'Misses'} the limits of latency: {told}."


def _cards(found: Mapping[str, Any]) -> list[Card]:
    memory, latency, speed, cost = found["memory"], found["latency"], found["throughput"], found["cost"]
    low, high = figures.rate(speed["output_tokens_low_per_s"]), figures.rate(speed["output_tokens_high_per_s"])
    cards = [
        _ends("Time to first token", latency, "ttft"),
        _ends("Time per token", latency, "tpot"),
        Card("Output tokens per second", figures.rate(speed["output_tokens_per_s"]), f"{low} to {high}"),
        Card("Requests per second", f"{speed['requests_per_s']:.3g}", f"{found['running']:,.0f} at once"),
        Card("Requests that fit at once", f"{memory['max_concurrency']:,}", "of the planned length"),
    ]
    if cost:
        each = figures.usd(cost["usd_per_million_output_tokens"])
        hourly = f"{figures.usd(cost['usd_per_hour'])} per hour"
        cards.append(Card("Per million output tokens", each, hourly))
    return cards


def _ends(name: str, latency: Mapping[str, Any], key: str) -> Card:
    value, low, high = (latency[f"{key}_{end}"] for end in ("s", "low_s", "high_s"))
    if value is None:
        return Card(name, "without end", "the load is more than can be served")
    note = f"{figures.seconds(low)} to {figures.seconds(high)}" if low is not None and high is not None else ""
    return Card(name, figures.seconds(value), note)


def _plan(found: Mapping[str, Any]) -> Section:
    plan = found["plan"]
    workload, cluster, layout = plan["workload"], plan["cluster"], plan["layout"]
    load = "all requests at once"
    if workload["request_rate"] is not None:
        load = f"{workload['request_rate']:g} requests/s"
    elif workload["concurrency"] is not None:
        load = f"{workload['concurrency']:,} requests in flight"
    rows = [
        ["Model", plan["model"] if isinstance(plan["model"], str) else "described in the plan"],
        ["Engine", f"{workload['engine']}, weights {workload['weight_dtype']}, cache {workload['kv_dtype']}"],
        ["Devices", f"{found['devices']} x {cluster['accelerator']} in {found['replicas']} replicas"],
        [
            "Layout",
            ", ".join(f"{name} {value}" for name, value in layout.items() if value not in (None, False, 1)) or "1",
        ],
        ["Requests", f"{workload['input_len']:g} tokens in, {workload['output_len']:g} out; {load}"],
    ]
    return Section("The plan", found["why"], (), [Table(["", ""], rows)])


def _latency(found: Mapping[str, Any]) -> Section:
    step = found["time"]
    parts = {
        name: {key.removesuffix("_s"): seconds * 1e3 for key, seconds in step[name].items() if key != "total_s"}
        for name in ("generating", "reading")
    }
    plots = stacked("One pass through the model", "", "ms", ["generating", "reading prompts"], list(parts.values()))
    rows = [
        [words(limit["limit"]), figures.seconds(limit["seconds"]), figures.percent(limit["share"])]
        for limit in found["limits"]
    ]
    tables = [Table(["What a step waits for", "Time", "Share"], rows, numbers=(1, 2))]
    if found["slo"]:
        kept = [
            [
                f"{limit['limit']} ({limit['statistic']})",
                figures.seconds(limit["limit_s"]),
                "without end" if limit["value_s"] is None else figures.seconds(limit["value_s"]),
                ("kept" if limit["met"] else "missed") + ("" if limit["sure"] else ", not for sure"),
            ]
            for limit in found["slo"]
        ]
        tables.insert(0, Table(["Limit", "Asked", "Estimate", ""], kept, numbers=(1, 2)))
    text = [
        f"A sequence gets a token every {figures.seconds(step['step_s'])}; bound by {words(found['bottleneck'])}.",
        f"Prompts are read {figures.percent(step['prompt_utilisation'])} of the time.",
    ]
    return Section("Latency", text, plots, tables)


def _load(arguments: Mapping[str, Any]) -> Iterator[Section]:
    """Throughput and latency of the same deployment at other loads."""
    workload = arguments["plan"]["workload"]
    if workload["request_rate"] is not None:
        field, now, name = "request_rate", workload["request_rate"], "requests/s"
        loads = [float(f"{now * factor:.3g}") for factor in _FACTORS]
    elif workload["concurrency"] is not None:
        field, now, name = "concurrency", workload["concurrency"], "requests in flight"
        loads = sorted({max(1, round(now * factor)) for factor in _FACTORS})
    else:
        return
    found = result_of(sweep, SweepRequest, {**arguments, "field": field, "values": loads})
    points = [(load, point) for load, point in zip(loads, found["points"], strict=True) if point["tpot_s"] is not None]
    if len(points) < 2:
        return
    rows = [
        [
            f"{load:g}",
            figures.rate(point["output_tokens_per_s"]),
            "without end" if point["ttft_s"] is None else figures.seconds(point["ttft_s"]),
            figures.seconds(point["tpot_s"]),
        ]
        for load, point in points
    ]
    x: list[float | str] = [float(load) for load, _ in points]
    plots = [
        Plot(
            title="Throughput by load", kind="line", x_label=name, y_label="output tokens/s", x_log=True,
            series=[Series(name="output tokens/s", x=x, y=[point["output_tokens_per_s"] for _, point in points])],
        ),
        Plot(
            title="Time per token by load", kind="line", x_label=name, y_label="ms", x_log=True,
            series=[Series(name="time per token", x=x, y=[point["tpot_s"] * 1e3 for _, point in points])],
        ),
    ]  # fmt: skip
    head = [name[:1].upper() + name[1:], "Output tokens/s", "First token", "Per token"]
    strong = [number for number, (load, _) in enumerate(points) if load == now]
    yield Section("Load", (), plots, [Table(head, rows, numbers=(0, 1, 2, 3), strong=strong)])


def _memory(found: Mapping[str, Any]) -> Section:
    memory = found["memory"]
    plots = stacked(
        "Memory per device", "", "GiB", ["per device"],
        [{words(name): size for name, size in memory["components"].items()}], _GIB,
        memory["capacity_bytes"] / _GIB, f"{figures.gib(memory['capacity_bytes'])} can be allocated",
    )  # fmt: skip
    rows = [
        [words(name), figures.gib(size)]
        for name, size in sorted(memory["components"].items(), key=lambda item: -item[1])
        if size > 0
    ]
    tokens = "" if memory["kv_tokens"] is None else f" The caches have room for {memory['kv_tokens']:,} tokens."
    text = [f"Room for {memory['max_concurrency']:,} requests of the planned length at once.{tokens}"]
    return Section("Memory", text, plots, [Table(["Component", "Size"], rows, numbers=(1,))])
