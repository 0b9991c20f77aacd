"""Answers about serving: the verdict first, then latency, throughput, memory, cost, and what they rest on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.offline import sections, serving_choice, serving_sections, serving_sweep_answer
from agent.offline.small_talk import not_placed
from agent.wire import Outcome

Result = Mapping[str, Any]


def compose(plan: Mapping[str, Any], work: Mapping[str, Any], outcomes: list[Outcome]) -> tuple[str, list[str]]:
    """The answer and what it asks. `work` is the planner's reading of the turn."""
    unread = [not_placed(work["unread"])] if work.get("unread") else []
    results = {outcome.call.name: outcome.response for outcome in outcomes if not outcome.error}
    errors = {outcome.call.name: outcome.error for outcome in outcomes if outcome.error}
    estimate = results.get("estimate_inference")
    asked: list[str] = []
    if not results:
        problem = next(iter(errors.values()), None) or "no tool gave a result"
        notes = ["\n".join(f"- {note}" for note in work["notes"])] if work["notes"] else []
        blocks, asked = [f"I cannot work that out as asked. {problem}", *notes], [problem]
    elif found := results.get("project_mlperf"):
        blocks = serving_choice.mlperf(found)
    elif found := results.get("sweep"):
        blocks = serving_sweep_answer.compose(found)
    elif found := results.get("find_limit"):
        blocks = serving_choice.limit(found)
    else:
        blocks = _deployment(results, errors, work)
    if results:
        blocks += sections.files(results, errors, set(work["intents"]), estimate, bool(work["anyway"]))
        blocks += serving_sections.warnings(results)
        fits = estimate is None or estimate["memory"]["fits"]
        blocks += serving_sections.how_sure(next(iter(results.values()))) if fits else []
        blocks += serving_sections.assumptions(list(results.values()), work["notes"])
    return "\n\n".join([*blocks, *unread]), asked


def _deployment(results: Mapping[str, Result], errors: Mapping[str, str], work: Mapping[str, Any]) -> list[str]:
    """One deployment: what was asked for, or the best that a search found."""
    intents, limits = set(work["intents"]), work["asked"]
    estimate = results.get("estimate_inference")
    blocks: list[str] = []
    if found := results.get("size_serving"):
        blocks += serving_choice.sizes(found)
    elif found := results.get("best_serving"):
        blocks += serving_choice.best(found, bool(intents & {"why", "best"}))
    elif estimate:
        blocks.append(serving_sections.verdict(estimate, "fit" in intents, limits.get("e2e_limit_s")))
    if estimate:
        at_once = estimate["plan"]["workload"].get("scenario") == "offline"
        if estimate["memory"]["fits"]:
            blocks += serving_sections.slo(estimate, limits)
            # Of what is sent all at once, the wait says nothing.
            blocks += [] if at_once else [serving_sections.latency(estimate)]
            blocks.append(serving_sections.throughput(estimate))
        blocks += serving_sections.memory(estimate["memory"], estimate["plan"])
        blocks.append(serving_sections.layout(estimate))
        if estimate["memory"]["fits"]:
            blocks += serving_sections.what_limits(estimate, bool(intents & {"why", "faster"}))
    if fit := results.get("check_fit"):
        blocks += serving_sections.room(fit, "faster" in intents)
    if bill := results.get("estimate_cost"):
        blocks += serving_sections.bill(bill, limits.get("usd_per_million"))
    elif estimate and estimate["memory"]["fits"]:
        blocks += serving_sections.money(estimate["cost"], limits.get("usd_per_million"))
    return blocks + [
        f"The tool {name} answered: {text}" for name, text in errors.items() if name not in sections.FILE_TOOLS
    ]
