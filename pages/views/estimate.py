"""Pages of one plan: what it comes to, and whether it fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pages import units
from pages.blocks import Block, Facts, Grid, Notes, Picture, Verdict
from pages.overview import Overview, fold
from pages.views import shared
from pages.views.shared import Data
from planner.plots import stacked

_GIB = 2.0**30


def estimate(result: Data) -> list[Block]:
    """Of estimate_training and estimate_inference."""
    return [
        fit_verdict(result),
        *shared.plan_facts(result),
        Facts(figures(result), "Figures (80 % interval)"),
        *memory(result),
        *where_time_goes(result),
        *_improvements(result),
        *shared.notes("Why this layout", result.get("why")),
        *_pictures(result),
        *shared.tail(result),
    ]


def fit(result: Data) -> list[Block]:
    """Of check_fit."""
    limits = [
        (label, f"{result[name]:,}")
        for label, name in (
            ("largest micro-batch", "largest_micro_batch"),
            ("longest sequence", "largest_seq_len"),
            ("users at once", "max_concurrency"),
        )
        if result.get(name) is not None
    ]
    return [
        fit_verdict(result),
        *shared.plan_facts(result),
        *memory(result),
        *([Facts(limits, "What fits at most")] if limits else []),
        *_remedies(result),
        *[Picture(plot) for plot in memory_plot(result)],
        *shared.tail(result),
    ]


def fit_verdict(result: Data) -> Verdict:
    """'It fits: 65.0 of 79.7 GiB per device (55.1 to 76.7), 2.9 GiB to spare.'"""
    found = result.get("memory") or {}
    fits = result.get("fits", found.get("fits"))
    used, room = units.memory(found["per_device_bytes"]), units.memory(found["capacity_bytes"])
    span = ""
    if found.get("low_bytes") is not None:
        span = f" ({units.memory_range(found['low_bytes'], found['high_bytes'])} with 80 % confidence)"
    words = f"{used}{span} of {room} per device"
    missed = [row for row in result.get("slo") or () if row.get("met") is False]
    if fits and missed:
        limits = " and ".join(str(row["limit"]).upper() for row in missed)
        return Verdict(f"It fits, but misses the limit of {limits}: {words}.", False)
    if fits:
        return Verdict(f"It fits: {words}.", True)
    # The estimate itself may lie below the capacity while the upper end of its interval does not.
    fails = "does not fit" if found["per_device_bytes"] > found["capacity_bytes"] else "does not fit safely"
    return Verdict(f"It {fails}: {words}.", False)


def figures(result: Data) -> list[tuple[str, str]]:
    overview = fold(Overview(), result)
    limits = [("limits", line) for line in overview.limits]
    bottleneck = [("waits for", overview.bottleneck)] if overview.bottleneck else []
    return [*overview.figures.items(), *bottleneck, *limits]


def memory(result: Data) -> list[Block]:
    """The parts of the fullest device, largest first."""
    found = result.get("memory") or {}
    parts = sorted((found.get("components") or {}).items(), key=lambda part: -part[1])
    total = sum(size for _, size in parts)
    rows = [
        [name.replace("_", " "), units.memory(size), units.percent(size / total)] for name, size in parts if size > 0
    ]
    head = ("MEMORY PER DEVICE", "SIZE", "SHARE")
    blocks: list[Block] = [Grid(head, rows, right=head[1:])] if rows else []
    if (host := found.get("host")) and host.get("fits") is False:
        said = f"{units.memory(host['per_node_bytes'])} needed of {units.memory(host['capacity_bytes'])} per node"
        blocks.append(Notes("Host memory is short", [f"{said}, most of it while {host['phase']}"]))
    return blocks


def where_time_goes(result: Data) -> list[Block]:
    rows = [
        [str(row["limit"]), units.short_duration(row["seconds"]), units.percent(row["share"])]
        for row in result.get("limits") or ()
        if row["seconds"] > 0
    ]
    head = ("A STEP WAITS FOR", "TIME", "SHARE")
    return [Grid(head, rows, right=head[1:])] if rows else []


def _remedies(result: Data) -> list[Block]:
    fits = result.get("fits")
    blocks: list[Block] = []
    for title, rows in (
        ("What would make room" if fits else "What would make it fit", result.get("remedies")),
        ("What more room would allow", result.get("relaxations")),
    ):
        blocks += shared.grid(
            rows or [],
            [
                ("CHANGE", shared.text("what")),
                ("PER DEVICE", shared.number("per_device_bytes", units.memory)),
                ("FITS", shared.yes("fits")),
                ("STEP", shared.number("slowdown", lambda factor: f"{factor:.2f}x")),
                ("FLAGS", lambda row: shared.flags(row.get("patch"))),
            ],
            right=("PER DEVICE", "STEP"),
            title=title,
        )
    return blocks


def _improvements(result: Data) -> list[Block]:
    return shared.grid(
        result.get("improvements") or [],
        [
            ("CHANGE", shared.text("what")),
            ("GAIN", shared.number("gain", lambda gain: f"{gain:+.0%}")),
            ("TOKENS/S", shared.number("tokens_per_s", units.count)),
            ("FLAGS", lambda row: shared.flags(row.get("patch"))),
        ],
        right=("GAIN", "TOKENS/S"),
        title="What would be faster",
    )


def _pictures(result: Data) -> list[Block]:
    return [Picture(plot) for plot in [*memory_plot(result), *_time_plot(result), *_roofline(result)]]


def memory_plot(result: Data) -> list[Data]:

    found = result.get("memory") or {}
    parts = found.get("components")
    if not parts:
        return []
    names = ["fullest device"]
    plots = stacked(
        "Memory per device", "", "GiB", names, [parts], _GIB, found["capacity_bytes"] / _GIB, "usable memory"
    )
    return [plot.model_dump() for plot in plots]


def _time_plot(result: Data) -> list[Data]:

    time = result.get("time") or {}
    if isinstance(parts := time.get("components"), Mapping):
        return [plot.model_dump() for plot in stacked("Step time", "", "s", ["step"], [parts])]
    kinds = {name: _seconds(time.get(name)) for name in ("generating", "reading")}
    able: Sequence[Mapping[str, float]] = [part for part in kinds.values() if part]
    names = [name for name, part in kinds.items() if part]
    return [plot.model_dump() for plot in stacked("One pass through the model", "", "ms", names, able, 1e-3)]


def _seconds(parts: Any) -> dict[str, float]:
    return {name.removesuffix("_s"): value for name, value in (parts or {}).items() if name != "total_s"}


def _roofline(result: Data) -> list[Data]:
    """The roof of the device, and where the step is under it."""
    roof = result.get("roofline")
    if not roof or not roof.get("ridge_flop_per_byte") or not roof.get("peak_flops"):
        return []
    ridge, here = roof["ridge_flop_per_byte"], roof["arithmetic_intensity_flop_per_byte"]
    peak = roof["peak_flops"] / 1e12
    left, right = min(ridge, here) / 4, max(ridge, here) * 4
    curve = {"name": "roof", "x": [left, ridge, right], "y": [peak * left / ridge, peak, peak]}
    point = {"name": "this step", "x": [here], "y": [roof["achieved_flops"] / 1e12]}
    return [
        {"title": "Roofline", "kind": "line", "x_label": "FLOP per byte", "y_label": "TFLOP/s per device",
         "series": [curve, point], "x_log": True, "y_log": True}
    ]  # fmt: skip
