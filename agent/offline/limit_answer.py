"""Answers to questions for a limit, from find_limit and what was estimated at the limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.offline import memory_answer, sections
from agent.offline.slots import get
from agent.wire import Outcome
from pages import figures

Result = Mapping[str, Any]


def compose(plan: Result, work: Result, outcomes: list[Outcome]) -> tuple[list[str], list[str]]:
    """The blocks of the answer, and what it asks."""
    by_name: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_name.setdefault(outcome.call.name, []).append(outcome)
    first = by_name["find_limit"][0]
    if first.error:
        notes = ["\n".join(f"- {note}" for note in work["notes"])] if work["notes"] else []
        return [f"I cannot work that out as asked. {first.error}", *notes], [first.error]
    found, asked = first.response, []
    blocks = [verdict(found), _why(found)]
    if found["value"] is not None:
        blocks += [
            _layout(found),
            *memory_answer.describe(found["memory"]),
            *_runs(plan, found, work, by_name, outcomes),
        ]
    if {"run", "cost"} & set(work["intents"]) and not get(plan, "workload.dataset_tokens"):
        asked.append("workload.dataset_tokens: how many tokens will it train on?")
        blocks.append("For the length and cost of the run I need the size of the data: how many tokens is it?")
    blocks += sections.warnings({"find_limit": found})
    blocks += sections.assumptions([found], work["notes"])
    return blocks, asked


def verdict(found: Result) -> str:
    """The limit in a sentence."""
    run, hardware = sections.run_words(found["plan"])
    value, goal = found["value"], found["goal"]
    kind = run.rpartition(" of ")[0]
    if value is None:
        nothing = {
            "seq_len": f"no context length: {run} on {hardware} does not fit even with the shortest sequences",
            "micro_batch": f"no micro-batch: {run} on {hardware} does not fit even with one sequence at a time",
            "model": f"no model: not even the smallest of those considered fits for {kind} on {hardware}",
            "devices": f"no number of these devices that I tried: {run} does not fit",
        }[goal]
        return f"**None**, {nothing}."
    texts = {
        "seq_len": f"**{_whole(value)} tokens** is the longest context that fits: {run} on {hardware}.",
        "micro_batch": f"**{_whole(value)} sequences** is the largest micro-batch that fits: {run} on {hardware}.",
        "model": f"**{value}** ({found['parameters'] / 1e9:.2f} billion parameters) is the largest model that fits: "
        f"{kind} on {hardware}.",
        "devices": f"**{hardware}** are the fewest that fit: {run}.",
    }
    return (
        f"**{hardware}** is enough: {run} fits on a single device." if (goal, value) == ("devices", 1) else texts[goal]
    )


def _whole(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _why(found: Result) -> str:
    """What stops it there, in find_limit's own words."""
    limits = {"range": "nothing else", "catalogue": "the catalogue"}
    name = limits.get(found["limited_by"], memory_answer.component(found["limited_by"]))
    return f"What limits it: **{name}**; {found['why']}."


def _layout(found: Result) -> str:
    chosen = found["chosen"]
    return (
        f"**Layout** there, {chosen['framework']}: {sections.layout_words(found['plan'])}. A step takes about "
        f"{figures.seconds(chosen['step_s'])}, {figures.rate(chosen['tokens_per_s'])} tokens/s at "
        f"{figures.percent(chosen['mfu'])} MFU."
    )


def _runs(
    plan: Result, found: Result, work: Result, by_name: Mapping[str, list[Outcome]], outcomes: list[Outcome]
) -> list[str]:
    """What the run at the limit takes and costs; of devices, beside the same run on more of them."""
    estimates = by_name.get("estimate_training", [])
    if found["goal"] == "devices" and estimates:
        counts = [{"count": outcome.call.arguments["count"]} for outcome in estimates]
        rows, _, _, problems = sections.alternatives(counts, outcomes)
        table = ["What more of them would give:", "\n".join(rows)] if len(rows) > 2 else []
        return [*table, *(f"I could not estimate {problem}" for problem in problems)]
    blocks: list[str] = []
    for outcome in estimates:
        blocks += [outcome.error] if outcome.error else sections.speed(outcome.response, set(work["intents"]))
    for outcome in by_name.get("estimate_cost", []):
        budget, deadline = get(plan, "goal.budget_usd"), get(plan, "goal.deadline_h")
        blocks += [outcome.error] if outcome.error else sections.cost(outcome.response, budget, deadline)
    return blocks
