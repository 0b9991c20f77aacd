"""The part of an answer about what limits a run's speed, and what would make it faster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pages import figures

Result = Mapping[str, Any]
_LEAST_SHARE = 0.01
_KINDS = {
    "framework": ", another framework",
    "training": ", changes the training",
    "hardware": ", other hardware",
}


def describe(estimate: Result) -> list[str]:
    """Blocks from estimate_training: the limit, where the step goes, the roofline, and what would help."""
    rate = estimate["throughput"]
    first = estimate["limits"][0]
    head = (
        f"**{first['limit'][0].upper()}{first['limit'][1:]}** limits it: {figures.percent(first['share'])} of a step "
        f"of {figures.seconds(estimate['time']['step_s'])}, at {figures.percent(rate['mfu'])} MFU."
    )
    return [head, _table(estimate), _roofline(estimate["roofline"]), *_improvements(estimate["improvements"])]


def _table(estimate: Result) -> str:
    rows = ["| What the step waits for | time | share |", "| --- | ---: | ---: |"]
    rows += [
        f"| {row['limit']} | {figures.seconds(row['seconds'])} | {figures.percent(row['share'])} |"
        for row in estimate["limits"]
        if row["share"] >= _LEAST_SHARE
    ]
    return "\n".join(rows)


def _roofline(found: Result) -> str:
    intensity, ridge = found["arithmetic_intensity_flop_per_byte"], found["ridge_flop_per_byte"]
    side = "beyond" if found["bound"] == "compute" else "below"
    return (
        f"**Roofline**: the passes do {intensity:,.1f} FLOP for each byte of device memory, {side} the "
        f"{ridge:,.1f} at which arithmetic takes over from memory bandwidth, so as a whole they are bound by "
        f"{found['bound']}."
    )


def _improvements(found: list[Result] | None) -> list[str]:
    if found is None:
        return []
    if not found:
        return ["I found no change that fits and gains more than a percent."]
    lines = [
        f"- {row['what']}{_KINDS.get(row['kind'], '')}: {_gain(row)}, {figures.seconds(row['step_s'])} a step, "
        f"{figures.percent(row['mfu'])} MFU, {figures.gib(row['per_device_bytes'])} per device; {row['why']}"
        for row in found
    ]
    return ["\n".join(["What would raise it, each by itself:", *lines])]


def _gain(row: Result) -> str:
    return f"{figures.percent(row['gain'])} more tokens/s" if row["gain"] < 1 else f"{row['speedup']:.2f}x the tokens/s"
