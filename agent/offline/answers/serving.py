"""What is told of serving: the verdict first, then latency, throughput, memory, cost, and what they rest on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent.offline.answers.outcomes import changes, errors, is_told_again, joined, refused, result_of, results
from agent.offline.answers.training import failures, files_made, with_files
from agent.offline.turn import TurnWork
from agent.wire import Outcome
from estimator.plan.schema import Inference
from pages.answers import assumptions, choice, cost, lead, limit, memory, room, serving, steps, sweep
from pages.answers.asked import with_named
from pages.answers.plan import complete
from pages.blocks import Block, Folded, Headline, Prose
from pages.results import deciding
from pages.results.estimate import lacking
from pages.results.money import beside_api, own_money
from planner.money.results import CostEstimate
from planner.results import FitCheck, Limit
from planner.serving.results import (
    BestServing,
    MlperfProjection,
    ServingEstimate,
    ServingMemoryEstimate,
    SizedServing,
)


def compose(plan: Mapping[str, Any], work: TurnWork, outcomes: list[Outcome]) -> tuple[str, list[str]]:
    """The answer and what it asks. `work` is the planner's reading of the turn."""
    by_name = results(outcomes)
    if not by_name:
        blocks, asked = refused(next(iter(errors(outcomes).values()), None), work)
        return joined(blocks, work), asked
    if projection := result_of(outcomes, MlperfProjection):
        blocks = lead.short(choice.mlperf(projection))
    elif "sweep" in by_name:
        blocks = lead.of_a_range(sweep.describe(by_name["sweep"]))
    elif extent := result_of(outcomes, Limit):
        head, *rest = limit.serving(extent)
        told = changes(outcomes, work)
        blocks = lead.short([head, *told, *_format_taken(outcomes), *rest], 2 + len(told), 0)
    else:
        blocks = deployment(outcomes, work)
    estimate = result_of(outcomes, ServingEstimate)
    fits = estimate is None or estimate.memory.fits
    blocks = with_files(blocks, files_made(outcomes, set(work.intents), not fits and not work.anyway))
    rest = assumptions.warnings(by_name.values())
    rest += [assumptions.how_sure(next(iter(by_name.values())).evidence)] if fits else []
    rest += assumptions.assumed(by_name.values(), work.notes, layout=False)
    return joined([*blocks, Folded(rest)], work), []


def deployment(outcomes: list[Outcome], work: TurnWork) -> list[Block]:
    """One deployment: what was asked for, or the best that a search found."""
    # Limits that no plan holds.
    intents, limits = set(work.intents), work.asked
    estimate = result_of(outcomes, ServingEstimate)
    # A price that was named beside an API is that of the API.
    most_usd = None if "api" in work.figures else limits.get("usd_per_million")
    blocks: list[Block] = []
    fit, bill = result_of(outcomes, FitCheck), result_of(outcomes, CostEstimate)
    if fit and estimate and estimate.memory.fits and not fit.fits:
        fit = None  # It is of the format that has no room.
    helps = room.serving(fit, "faster" in intents) if fit else []
    sized, search = result_of(outcomes, SizedServing), result_of(outcomes, BestServing)
    if sized or (search and "cheaper" not in intents):
        blocks += _searched(sized, search, estimate, work, is_told_again(outcomes, work))
        blocks[1:1] = changes(outcomes, work)
    elif estimate:
        verdict = serving.verdict(estimate, limits.get("e2e_limit_s"), [*work.figures, *work.intents])
        head, *rest = lead.serving(estimate, verdict, fit, bill, "why" in intents)
        wanted = not intents & {"write", "render"}
        decisive = deciding.sentence(estimate.decides, work.intents, estimate.memory.fits) if wanted else []
        if estimate.memory.fits and is_told_again(outcomes, work):
            # The answer before was about the same deployment: only what is asked now is told.
            rest, decisive = rest if intents & {"why", "faster"} else [], []
        if fit and estimate.memory.fits and "faster" in intents:
            # The changes that gain most stand at first, and all of them behind.
            rest, decisive = lead.short([*rest, *helps[1:]], len(rest)), []
        if bill and (work.intents[:1] == ["cost"] or cost.of_all_requests(bill)):
            head, rest = lead.priced_first(head, rest, bill, most_usd, work.figures)
        if bill and search and isinstance(head, Headline) and head.good:
            head = replace(head, text=f"{cost.cheaper_tokens(bill, search)} {head.text}".strip())
        first = with_named(_with_carbon(head, bill, work.figures), [estimate], work.figures)
        blocks += [*first, *_format_taken(outcomes), *changes(outcomes, work), *rest, *decisive]
    bills = cost.serving(bill, most_usd) if bill else []
    if estimate and estimate.memory.fits and not bill:
        bills = [cost.deployment(estimate.cost, most_usd)]
    told = cost.first(bill, work.figures) if bill else ""
    is_told = sized is not None or (bool(told) and any(told in row.text for row in blocks if isinstance(row, Headline)))
    if (most_usd or "cost" in intents) and not is_told:
        # What is asked first is told right behind the verdict.
        place = 1 if work.intents[:1] == ["cost"] else len(blocks)
        blocks[place:place] = bills[:1]
    blocks[1:1] = [*own_money(bill), *cost.weighed(bill, work.figures)]
    if bill and "api" in work.figures:
        api = beside_api(bill.api) if bill.api else "No price of this model over an API is known here."
        # It answers the question, unless the deployment that it is set beside does not hold.
        first = blocks[0] if blocks and isinstance(blocks[0], Headline) else None
        if first and first.good is not False:
            blocks[0] = replace(first, text=api, more=f"{first.text} {first.more}".strip())
        else:
            blocks.insert(1, Prose(api))
    rest: list[Block] = []
    if estimate:
        rest += _estimate(estimate, bool(intents & {"why", "faster"}), limits.get("e2e_limit_s"))
    if fit:
        told = estimate is not None and estimate.memory.fits and "faster" in intents
        rest += helps[:1] if told else helps
    done = bool(intents & {"write", "render"}), bill is not None or "cost" in intents
    blocks += steps.serving(estimate, *done, search) if estimate else []
    return [*blocks, *failures(outcomes), Folded([*rest, *(block for block in bills if block not in blocks)])]


def _with_carbon(head: Block, bill: CostEstimate | None, asked: Sequence[str]) -> Block:
    """The first line with what a month of the deployment gives off, where that is asked."""
    told = cost.carbon(bill) if bill and "co2_kg" in asked else ""
    return replace(head, text=f"{told} a month. {head.text}") if told and isinstance(head, Headline) else head


def _searched(
    sized: SizedServing | None, search: BestServing | None, estimate: ServingEstimate | None, work: TurnWork,
    again: bool,
) -> list[Block]:  # fmt: skip
    """What a search found: how many devices serve the load, or the best way to; `again` where that was told before."""
    intents = set(work.intents)
    if sized:
        priced = estimate.cost if estimate and "cost" in intents else None
        return lead.short(choice.size(sized, priced.usd_per_month if priced else None))
    if search is None:
        return []
    told = choice.best(search, bool(intents & {"why", "best"}), [*work.figures, *work.intents])
    return lead.short(told, 1, 0) if again else lead.short(told, 2, 2)


def _format_taken(outcomes: list[Outcome]) -> list[Block]:
    """Why other weights are told than those that are published, where no format was named."""
    fit = next((outcome.result for outcome in outcomes if isinstance(outcome.result, FitCheck)), None)
    last = next(
        (outcome.result for outcome in reversed(outcomes) if isinstance(outcome.result, ServingEstimate | Limit)), None
    )
    if fit is None or last is None:
        return []
    asked, answered = complete(fit.plan).inference, complete(last.plan).inference
    before, taken = asked.weight_dtype, answered.weight_dtype
    if before == taken:
        return []
    taken += "" if answered.engine == asked.engine else f" in {answered.engine}"
    plan, memory = complete(fit.plan), fit.memory
    short = f" ({lacking(memory, plan)})" if isinstance(memory, ServingMemoryEstimate) else ""
    return [Prose(f"No weight format was named: {taken} is taken, since {before} does not fit{short}.")]


def _estimate(estimate: ServingEstimate, why: bool, e2e_limit_s: float | None) -> list[Block]:
    workload = complete(estimate.plan).workload
    engine = workload.engine if isinstance(workload, Inference) else "the engine"
    blocks: list[Block] = []
    if estimate.memory.fits:
        blocks.append(serving.slo(estimate, e2e_limit_s))
        # Of what is sent all at once, the wait says nothing.
        at_once = isinstance(workload, Inference) and workload.scenario == "offline"
        blocks += [] if at_once else [serving.latencies(estimate.latency)]
        blocks.append(serving.throughput(estimate))
    blocks += deciding.table(estimate.decides, estimate.memory.fits)
    blocks += [*memory.serving(estimate.memory, engine), serving.layout(estimate)]
    return [*blocks, *(serving.what_limits(estimate, why) if estimate.memory.fits else [])]
