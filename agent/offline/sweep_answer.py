"""Answers to questions for a range, from the sweep tool: the finding in a sentence, then a row for each point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.offline import sections
from agent.wire import Outcome
from pages import figures

Result = Mapping[str, Any]
_NAMES = {
    "cluster.count": "devices", "workload.seq_len": "sequence length", "layout.zero_stage": "ZeRO stage",
    "workload.lora.rank": "LoRA rank", "workload.concurrency": "users at once", "workload.input_len": "prompt tokens",
    "workload.output_len": "output tokens", "workload.request_rate": "requests/s",
}  # fmt: skip


def compose(work: Result, outcomes: list[Outcome]) -> list[str]:
    """The blocks of the answer."""
    first = outcomes[0]
    if first.error:
        notes = ["\n".join(f"- {note}" for note in work["notes"])] if work["notes"] else []
        return [f"I cannot work that out as asked. {first.error}", *notes]
    found = first.response
    return [
        _verdict(found),
        _table(found),
        *refused(found),
        *sections.warnings({"sweep": found}),
        *sections.assumptions([found], work["notes"]),
    ]


def _verdict(found: Result) -> str:
    run, hardware = sections.run_words(found["plan"])
    best, points = found["best"], [point for point in found["points"] if point["fits"]]
    if best is None:
        return f"**None of these fits**: {run}."
    path = found["fields"][0]
    if path == "cluster.count" and len(points) > 1:
        start, end = points[0], points[-1]
        work = "the batch growing along (weak scaling)" if found["scaling"] == "weak" else "the batch staying the same"
        return (
            f"From {start['devices']} to {end['devices']} devices {run} keeps "
            f"**{_efficiency(end['scaling_efficiency'])}** of its tokens/s per device, with {work}: "
            f"{figures.rate(end['tokens_per_s'])} tokens/s at {figures.percent(end['mfu'])} MFU."
        )
    goal = found["plan"]["goal"]["objective"]
    most = {"memory": "needs the least memory", "cost": "costs the least per token"}.get(goal, "is the fastest")
    where = "" if path in ("cluster.count", "cluster.accelerator") else f" on {hardware}"
    return (
        f"**{value_of(best['values'][path])}** ({name_of(path)}) {most} for {run}{where}: "
        f"{figures.rate(best['tokens_per_s'])} tokens/s, {figures.gib(best['per_device_bytes'])} per device."
    )


def _table(found: Result) -> str:
    fields = found["fields"]
    priced = any(point["usd_per_million_tokens"] is not None for point in found["points"])
    # Where the framework is open, what does not fit one may fit another.
    several = "workload.framework" not in fields and len({point["framework"] for point in found["points"]} - {None}) > 1
    heads = [
        *map(name_of, fields),
        *(["framework"] if several else []),
        "fits",
        "step",
        "tokens/s",
        "MFU",
        "per device",
        "tokens/s per device kept",
        "limit",
    ]
    if "cluster.count" not in fields:
        heads[-2] = "tokens/s against the first"
    heads += ["per million tokens"] if priced else []
    rows = [f"| {' | '.join(heads)} |", f"|{' ---: |' * len(heads)}"]
    for point in found["points"]:
        cells = [*(value_of(point["values"][path]) for path in fields)]
        cells += [point["framework"] or ""] if several else []
        cells.append("yes" if point["fits"] else "no")
        if point["step_s"] is None:
            cells += [""] * (len(heads) - len(cells))
        else:
            kept = "scaling_efficiency" if "cluster.count" in fields else "speedup"
            cells += [
                figures.seconds(point["step_s"]), figures.rate(point["tokens_per_s"]), figures.percent(point["mfu"]),
                figures.gib(point["per_device_bytes"]), _efficiency(point[kept]), point["bottleneck"],
            ]  # fmt: skip
            usd = point["usd_per_million_tokens"]
            cells += [figures.usd(usd) if usd is not None else ""] if priced else []
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def refused(found: Result) -> list[str]:
    lines = [
        f"- {', '.join(value_of(value) for value in point['values'].values())}: {point['why']}"
        for point in found["points"]
        if point["why"]
    ]
    return ["\n".join(["What cannot be, or does not fit:", *lines])] if lines else []


def _efficiency(value: float) -> str:
    """A share in percent; above one, as a factor."""
    return figures.percent(value) if value <= 1 else f"{value:.2f}x"


def name_of(path: str) -> str:
    name = path.rpartition(".")[2]
    return _NAMES.get(path, name.upper() if len(name) == 2 else name.replace("_", " "))


def value_of(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
