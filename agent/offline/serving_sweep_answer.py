"""Answers to questions for a range of values of a serving plan: the finding, then a row for each point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.offline import serving_sections
from agent.offline.sweep_answer import name_of, refused, value_of
from pages import figures

Result = Mapping[str, Any]


def compose(found: Result) -> list[str]:
    """The blocks of the answer."""
    return [_verdict(found), _table(found), *refused(found)]


def _verdict(found: Result) -> str:
    run, hardware = serving_sections.run_words(found["plan"])
    one, path = found["best"], found["fields"][0]
    if one is None:
        return f"**None of these fits**: {run}."
    limits = found["plan"]["workload"]
    kept = " within your limits" if limits.get("ttft_slo_ms") or limits.get("tpot_slo_ms") else ""
    missed = one["meets_slo"] is False
    head = "**None of these keeps your limits**; the most comes with " if missed else ""
    text = f"{head}**{value_of(one['values'][path])}** ({name_of(path)})"
    text += "" if missed else f" gives the most output tokens/s{kept}"
    first = "grows without end" if one["ttft_s"] is None else figures.seconds(one["ttft_s"])
    return (
        f"{text} for {run} on {hardware}: {figures.rate(one['output_tokens_per_s'])} output tokens/s, first token "
        f"{first}, {figures.seconds(one['tpot_s'])} per token."
    )


def _table(found: Result) -> str:
    fields, points = found["fields"], found["points"]
    asked = any(point["meets_slo"] is not None for point in points)
    priced = any(point["usd_per_million_output_tokens"] is not None for point in points)
    heads = [*map(name_of, fields), "fits", *(["limits"] if asked else []), "TTFT", "per token", "tokens/s per user",
             "output tokens/s", "per device", "memory per device", "limited by",
             *(["per million output tokens"] if priced else [])]  # fmt: skip
    rows = [f"| {' | '.join(heads)} |", f"|{' ---: |' * len(heads)}"]
    for point in points:
        cells = [*(value_of(point["values"][path]) for path in fields), "yes" if point["fits"] else "no"]
        if point["tpot_s"] is None:
            rows.append(f"| {' | '.join(cells + [''] * (len(heads) - len(cells)))} |")
            continue
        cells += [{True: "kept", False: "missed", None: ""}[point["meets_slo"]]] if asked else []
        cells += [
            "grows" if point["ttft_s"] is None else figures.seconds(point["ttft_s"]), figures.seconds(point["tpot_s"]),
            figures.rate(point["tokens_per_s_per_user"]), figures.rate(point["output_tokens_per_s"]),
            figures.rate(point["output_tokens_per_s_per_device"]), figures.gib(point["per_device_bytes"]),
            point["bottleneck"],
        ]  # fmt: skip
        usd = point["usd_per_million_output_tokens"]
        cells += [figures.usd(usd) if usd is not None else ""] if priced else []
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)
