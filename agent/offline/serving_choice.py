"""Answers that choose a deployment, or project what one would do: best, sizes, limits, alternatives, MLPerf."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent.offline import serving_sections
from pages import figures

Result = Mapping[str, Any]
_MOST_ROWS, _MOST_REASONS = 5, 4


def best(found: Result, why: bool) -> list[str]:
    """The best deployment, its rivals, and what was not taken."""
    one = found["best"]
    model = serving_sections.run_words(found["plan"])[0].partition(" (")[0]
    aims = {
        "throughput": "the most tokens/s per device",
        "latency": "the shortest requests",
        "cost": "the cheapest tokens",
    }
    what = f"{one['summary']} on {one['devices']:,} x {one['accelerator']}"
    head = f"**{what}** is the best way I found to serve {model}, for {aims.get(found['goal'], found['goal'])}"
    if not one["fits"]:
        head = f"**Nothing that I tried fits.** Nearest for {model} is {what}"
    elif one["request_rate"] and one["requests_per_s"] < serving_sections.SERVED * one["request_rate"]:
        head = f"**Nothing keeps up with these requests.** Nearest for {model} is {what}"
    elif found["meets_slo"] is False:
        head = f"**Nothing keeps your limits.** Nearest for {model} is {what}"
    blocks = [f"{head}. {' '.join(found['why'])}"]
    several = len({row["accelerator"] for row in found["by_accelerator"]}) > 1
    rows = [row for row in found["by_accelerator"] if several] or [one, *found["alternatives"]]
    if len(rows) > 1:
        blocks.append(_table(rows[:_MOST_ROWS]))
    if why and found["rejected"]:
        lines = [f"- {row['choice']['summary']}: {row['rule']}" for row in found["rejected"][:_MOST_REASONS]]
        blocks.append("\n".join(["Not taken:", *lines]))
    if found["skipped"]:
        blocks.append("\n".join(["Not tried:", *(f"- {text}" for text in found["skipped"][:_MOST_REASONS])]))
    return blocks


def sizes(found: Result) -> list[str]:
    """How many devices serve the load, the cheapest first."""
    one, plan = found["best"], found["plan"]
    model = serving_sections.run_words(plan)[0].partition(" (")[0]
    load = serving_sections.load_words(plan)
    if one is None:
        return [f"**None** of the sizes that I tried serves {model} with {load}. {' '.join(found['why'])}"]
    price = f", {figures.usd(one['usd_per_hour'])} per hour" if one["usd_per_hour"] is not None else ""
    copies = f"{one['replicas']:,} replicas" if one["replicas"] > 1 else "one replica"
    each = f"{one['devices_per_replica']:,} device{'s' if one['devices_per_replica'] > 1 else ''}"
    text = (
        f"**{one['devices']:,} x {one['accelerator']}** can serve {model} with {load}: {copies} of {each} "
        f"({one['engine']}, {one['weight_dtype']}){price}. That uses {figures.percent(one['utilisation'])} of what "
        f"can be served; what limits one replica is {_limit(one['limited_by'])}."
    )
    rows = ["| Size | devices | used | TTFT | per token | per hour | per million output tokens |"]
    rows.append("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    shown = found["by_accelerator"] if len(found["by_accelerator"]) > 1 else found["sizes"]
    for row in shown[:_MOST_ROWS]:
        rows.append(
            f"| {row['accelerator']}: {row['summary']} | {row['devices']:,} | {figures.percent(row['utilisation'])} | "
            f"{_seconds(row['ttft_s'])} | {figures.seconds(row['tpot_s'])} | {_price(row['usd_per_hour'])} | "
            f"{_price(row['usd_per_million_output_tokens'])} |"
        )
    return [text, "\n".join(rows)] if len(rows) > 3 else [text]


def _limit(name: str) -> str:
    return {"ttft": "time to first token", "tpot": "time per token", "kv memory": "memory of the cache"}.get(name, name)


def _table(rows: Sequence[Result]) -> str:
    several = len({row["accelerator"] for row in rows}) > 1
    lines = ["| Deployment | TTFT | per token | output tokens/s | per device | per million output tokens |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: |")
    for row in rows:
        name = f"{row['accelerator']}: {row['summary']}" if several else row["summary"]
        lines.append(
            f"| {name}{'' if row['fits'] else ' (does not fit)'} | {_seconds(row['ttft_s'])} | "
            f"{figures.seconds(row['tpot_s'])} | {figures.rate(row['output_tokens_per_s'])} | "
            f"{figures.rate(row['output_tokens_per_s_per_device'])} | {_price(row['usd_per_million_output_tokens'])} |"
        )
    return "\n".join(lines)


def _seconds(value: float | None) -> str:
    return "grows" if value is None else figures.seconds(value)


def _price(value: float | None) -> str:
    return "" if value is None else figures.usd(value)


def limit(found: Result) -> list[str]:
    """The most that fits, what stops it there, and the deployment."""
    plan, value, chosen = found["plan"], found["value"], found["chosen"]
    run, hardware = serving_sections.run_words(plan)
    workload = plan["workload"]
    lengths = f"{workload['input_len']:,} tokens in and {workload['output_len']:,} out"
    if value is None:
        nothing = {
            "context": "no request, however short, fits",
            "input_len": "no prompt, however short, fits",
            "concurrency": "not even one user is served",
            "model": "not even the smallest model considered fits",
            "devices": "no number of these devices that I tried is enough",
        }[found["goal"] if found["goal"] != "seq_len" else "context"]
        return [
            f"**None**: {nothing} ({run} on {hardware}). What limits it: {_part(found['limited_by'])}; {found['why']}."
        ]
    heads = {
        "context": f"**{value:,} tokens** is the longest request, prompt and answer, that fits"
        if _whole(value)
        else "",
        "input_len": f"**{value:,} tokens** is the longest prompt that fits" if _whole(value) else "",
        "concurrency": f"**{value:,} users** at once, with {lengths}, are the most" if _whole(value) else "",
        "model": f"**{value}** ({found['parameters'] / 1e9:.2f} billion parameters) is the largest model that fits",
        "devices": f"**{hardware}** {'is' if value == 1 else 'are'} the fewest that do",
    }
    heads["seq_len"] = heads["context"]
    where = hardware if found["goal"] == "model" else run if found["goal"] == "devices" else f"{run} on {hardware}"
    blocks = [f"{heads[found['goal']]}: {where}.", f"What limits it: **{_part(found['limited_by'])}**; {found['why']}."]
    speed = (
        f"**There**: {chosen['summary']}; first token after {_seconds(chosen['ttft_s'])}, then one every "
        f"{figures.seconds(chosen['tpot_s'])}, {figures.rate(chosen['output_tokens_per_s'])} output tokens/s."
    )
    return [*blocks, speed, *serving_sections.memory(found["memory"], plan)]


def _whole(value: Any) -> bool:
    return isinstance(value, int)


def _part(name: str) -> str:
    names = {
        "kv memory_slo_ms": "memory of the cache",
        "kv_cache": "memory of the cache",
        "range": "nothing else",
        "catalogue": "the catalogue",
    }
    return names.get(name, name.replace("_", " "))


def mlperf(found: Result) -> list[str]:
    """What a machine would score, on one node and on several."""
    where = f"{found['devices']:,} x {found['accelerator']}"
    name = f"MLPerf {found['benchmark']} ({found['scenario']})"
    low, high = found["samples_low_per_s"], found["samples_high_per_s"]
    text = (
        f"**{figures.rate(found['tokens_per_s'])} tokens/s** in {name} on {where}, "
        f"{figures.rate(found['samples_per_s'])} samples/s ({figures.rate(low)} to {figures.rate(high)}): "
        f"{found['choice']['summary']}."
    )
    blocks = [text, " ".join(found["why"])]
    if found["scenario"] in ("server", "interactive"):
        told = [f"{_NAMES.get(key, key)} {figures.seconds(ms / 1e3)}" for key, ms in found["limits_ms"].items()]
        values = [
            f"{_NAMES[key]} {figures.seconds(found[f'{key}_p99_s'])}"
            for key in ("ttft", "tpot")
            if found[f"{key}_p99_s"]
        ]
        blocks.append(f"p99 limits: {', '.join(told)}; estimated there: {', '.join(values)}.")
    else:
        blocks.append(
            f"The whole data set takes {figures.seconds(found['dataset_s'])}, a valid run "
            f"{figures.seconds(found['run_s'])}."
        )
    if len(found["by_nodes"]) > 1:
        rows = [
            "| nodes | devices | samples/s | tokens/s | scaling efficiency |",
            "| ---: | ---: | ---: | ---: | ---: |",
        ]
        rows += [
            f"| {row['nodes']:,} | {row['devices']:,} | {figures.rate(row['samples_per_s'])} | "
            f"{figures.rate(row['tokens_per_s'])} | {figures.percent(row['scaling_efficiency'])} |"
            for row in found["by_nodes"]
        ]
        blocks.append("\n".join(rows))
    return [*blocks, f"**What limits it**: {_limit(found['limited_by'])}."]


_NAMES = {"ttft": "time to first token", "tpot": "time per token", "e2e": "whole request"}
