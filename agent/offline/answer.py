"""Answers in Markdown from tool results: the verdict first, then what it rests on. Every figure comes from a result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.offline import (
    decision_answers,
    facts_answer,
    limit_answer,
    memory_answer,
    sections,
    speed_answer,
    sweep_answer,
)
from agent.offline.patching import knows_length
from agent.offline.slots import get
from agent.offline.small_talk import not_placed
from agent.wire import Outcome
from pages import figures


def compose(plan: Mapping[str, Any], work: Mapping[str, Any], outcomes: list[Outcome]) -> tuple[str, list[str]]:
    """The answer and what it asks. `work` is the planner's reading of the turn."""
    unread = [not_placed(work["unread"])] if work.get("unread") else []
    if "facts" in work:
        told = [facts_answer.describe(outcome, work.get("providers", [])) for outcome in outcomes]
        return "\n\n".join([*told, *unread]), []
    if work.get("limit"):
        blocks, asked = limit_answer.compose(plan, work, outcomes)
        return "\n\n".join([*blocks, *unread]), asked
    if work.get("sweep"):
        return "\n\n".join([*sweep_answer.compose(work, outcomes), *unread]), []
    results = {outcome.call.name: outcome.response for outcome in outcomes if not outcome.error}
    errors = {outcome.call.name: outcome.error for outcome in outcomes if outcome.error}
    estimate = results.get("estimate_training")
    first = estimate or results.get("best_parallelism")
    if first is None:
        problem = next(iter(errors.values()), None) or "no tool gave a result"
        return "\n\n".join([f"I cannot work that out as asked. {problem}", *_said(work), *unread]), [problem]
    intents, asked = set(work["intents"]), []
    slow = estimate is not None and "faster" in intents
    # What limits a step is told in its own words; how long the run takes was not asked.
    intents -= {"why", "time", "run"} if slow else set()
    hours = results.get("estimate_cost") if "device_hours" in intents else None
    blocks = [
        *(
            [f"**{figures.rate(hours['device_hours'])} device-hours**, {figures.usd(hours['usd'])}."]
            if hours and hours["usd"]
            else []
        ),
        *(speed_answer.describe(estimate) if slow and estimate else []),
        sections.verdict(first, results, intents),
    ]
    if "layout" in intents or "why" in intents:
        blocks += sections.layout_choice(results, intents)
    if estimate:
        blocks += [] if slow and "fit" not in intents else memory_answer.describe(estimate["memory"])
        if not intents & {"layout", "why"}:
            blocks += sections.layout(estimate)
        blocks += sections.speed(estimate, intents)
    if fit := results.get("check_fit"):
        blocks += sections.room(fit)
    if cost := results.get("estimate_cost"):
        blocks += sections.cost(cost, get(plan, "goal.budget_usd"), get(plan, "goal.deadline_h"))
    if intents & {"cost", "run"} and not knows_length(plan):
        asked.append("workload.dataset_tokens: how many tokens will it train on?")
        wanted = "hours and dollars" if "cost" in intents else "the length of the whole run"
        blocks.append(f"For {wanted} I need the size of the data: how many tokens will it train on?")
    if found := results.get("advise"):
        blocks += decision_answers.beside(found)
    blocks += sections.files(results, errors, intents, estimate, bool(work["anyway"]))
    blocks += [f"The tool {name} answered: {text}" for name, text in errors.items() if name not in sections.FILE_TOOLS]
    blocks += sections.warnings(results)
    blocks += sections.assumptions([found for name, found in results.items() if name != "advise"], work["notes"])
    return "\n\n".join([*blocks, *unread]), asked


def _said(work: Mapping[str, Any]) -> list[str]:
    return ["\n".join(f"- {note}" for note in work["notes"])] if work["notes"] else []
