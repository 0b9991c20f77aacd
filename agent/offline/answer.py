"""What is told of a training run, a limit, a range and facts: the verdict first, then what it rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent.offline.outcomes import errors, joined, refused, result_of, results
from agent.reader.answers.training import failures, files_made, runs_at, verdict
from agent.wire import Outcome
from pages.answers import advice, assumptions, cost, facts, limit, memory, room, sweep, training
from pages.blocks import Block, Prose
from planner.money.results import CostEstimate
from planner.partial import get, knows_length
from planner.results import (
    BestParallelism,
    FitCheck,
    HardwareDescription,
    Limit,
    ModelDescription,
    TrainingEstimate,
)

_Blocks = tuple[list[Block], list[str]]
_FILE_TOOLS = ("write_configs", "render_configs")


def compose(plan: Mapping[str, Any], work: Mapping[str, Any], outcomes: list[Outcome]) -> tuple[str, list[str]]:
    """The answer and what it asks. `work` is the planner's reading of the turn."""
    if "facts" in work:
        blocks, asked = [block for each in outcomes for block in _facts(each, work.get("providers", []))], []
    elif work.get("limit"):
        blocks, asked = _limit(plan, work, outcomes)
    elif work.get("sweep"):
        blocks, asked = _sweep(work, outcomes)
    else:
        blocks, asked = _run(plan, work, outcomes)
    return joined(blocks, work), asked


def _facts(outcome: Outcome, providers: Sequence[str]) -> list[Block]:
    if isinstance(outcome.result, ModelDescription):
        return facts.model(outcome.result)
    if isinstance(outcome.result, HardwareDescription):
        return facts.device(outcome.result, providers)
    return [Prose(f"I cannot answer that. {outcome.error}")]


def _sweep(work: Mapping[str, Any], outcomes: list[Outcome]) -> _Blocks:
    swept: Any = outcomes[0].result
    if swept is None:
        return refused(outcomes[0].error, work)[0], []
    rest = [*assumptions.warnings([swept]), *assumptions.assumed([swept], work["notes"])]
    return [*sweep.describe(swept), *rest], []


def _run(plan: Mapping[str, Any], work: Mapping[str, Any], outcomes: list[Outcome]) -> _Blocks:
    """One run: as it was asked about, or with the best layout."""
    intents, asked = set(work["intents"]), list[str]()
    estimate, search = result_of(outcomes, TrainingEstimate), result_of(outcomes, BestParallelism)
    if estimate is None and search is None:
        return refused(next(iter(errors(outcomes).values()), None), work)
    bill, fit = result_of(outcomes, CostEstimate), result_of(outcomes, FitCheck)
    slow = estimate is not None and "faster" in intents
    # What limits a step is told in its own words; how long the run takes was not asked.
    intents -= {"why", "time", "run"} if slow else set()
    blocks = cost.device_hours(bill) if bill and "device_hours" in intents else []
    blocks += training.what_limits(estimate) if slow and estimate else []
    blocks.append(verdict(estimate, search, bill, intents))
    if search and intents & {"layout", "why"}:
        blocks += training.rivals(search, "why" in intents)
    if estimate:
        blocks += [] if slow and "fit" not in intents else memory.training(estimate.memory)
        blocks += [] if intents & {"layout", "why"} else [training.layout(estimate)]
        blocks += training.speed(estimate, "why" in intents)
    blocks += room.training(fit) if fit else []
    blocks += _cost(bill, plan) if bill else []
    if intents & {"cost", "run"} and not knows_length(plan):
        asked.append("workload.dataset_tokens: how many tokens will it train on?")
        wanted = "hours and dollars" if "cost" in intents else "the length of the whole run"
        blocks.append(Prose(f"For {wanted} I need the size of the data: how many tokens will it train on?"))
    by_name = results(outcomes)
    blocks += advice.beside(by_name["advise"]) if "advise" in by_name else []
    unfit = estimate is not None and not estimate.memory.fits
    blocks += files_made(outcomes, intents, unfit and not work["anyway"])
    blocks += failures(outcomes)
    blocks += assumptions.warnings(by_name.values())
    told = [result for name, result in by_name.items() if name != "advise"]
    return [*blocks, *assumptions.assumed(told, work["notes"])], asked


def _cost(bill: CostEstimate, plan: Mapping[str, Any]) -> list[Block]:
    return cost.training(bill, get(plan, "goal.budget_usd"), get(plan, "goal.deadline_h"))


def _limit(plan: Mapping[str, Any], work: Mapping[str, Any], outcomes: list[Outcome]) -> _Blocks:
    found, intents, asked = result_of(outcomes, Limit), set(work["intents"]), list[str]()
    if found is None:
        return refused(errors(outcomes).get("find_limit"), work)
    blocks = limit.training(found)
    blocks += runs_at(found, plan, outcomes, "why" in intents) if found.value is not None else []
    if {"run", "cost"} & intents and not get(plan, "workload.dataset_tokens"):
        asked.append("workload.dataset_tokens: how many tokens will it train on?")
        blocks.append(Prose("For the length and cost of the run I need the size of the data: how many tokens is it?"))
    return [*blocks, *assumptions.warnings([found]), *assumptions.assumed([found], work["notes"])], asked
