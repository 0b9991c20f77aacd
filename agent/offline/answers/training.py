"""What is told of a training run, a limit, a range, or several of one kind: the verdict first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent.offline.answers.outcomes import (
    changes,
    errors,
    in_words,
    is_told_again,
    joined,
    refused,
    result_of,
    results,
    told_beside,
    without_method,
)
from agent.offline.turn import TurnWork
from agent.wire import DECLINED, Outcome
from knowledge import figures
from pages.answers import (
    advice,
    assumptions,
    cost,
    facts,
    files,
    lead,
    limit,
    memory,
    room,
    steps,
    sweep,
    training,
)
from pages.answers.asked import with_named
from pages.answers.plan import complete, kind_words
from pages.blocks import NO_FILES, Aside, Block, Folded, Headline, Prose
from pages.results import deciding
from planner.money.results import CostEstimate
from planner.partial import get, knows_length
from planner.results import (
    BestParallelism,
    FitCheck,
    HardwareDescription,
    Limit,
    ModelDescription,
    RenderedConfigs,
    TrainingEstimate,
    WrittenConfigs,
)

_Blocks = tuple[list[Block], list[str]]
_FILE_TOOLS = ("write_configs", "render_configs")


def compose(plan: Mapping[str, Any], work: TurnWork, outcomes: list[Outcome]) -> tuple[str, list[str]]:
    """The answer and what it asks. `work` is what the turn works on."""
    if work.limit:
        blocks, asked = _limit(plan, work, outcomes)
    elif work.sweep:
        blocks, asked = _sweep(work, outcomes)
    else:
        blocks, asked = _run(plan, work, outcomes)
    return joined(blocks, work), asked


def each(plan: Mapping[str, Any], work: TurnWork, outcomes: list[Outcome]) -> tuple[str, list[str]]:
    """Several calls of one kind, told one after another: facts of several things, a limit of several options."""
    devices = [outcome.result for outcome in outcomes if isinstance(outcome.result, HardwareDescription)]
    # Of two that are set side by side the offers are behind it.
    pair = len(devices) == 2 and not any(device.bill for device in devices)
    blocks: list[Block] = facts.against(*devices) if pair else []
    for name, outcome in zip(work.names, outcomes, strict=False):
        told = lead.short(_one(outcome, work), rows=0 if pair else lead.MOST_ROWS)
        if isinstance(outcome.result, Limit):
            # Of each the verdict alone: the rest is behind it.
            told = [told[0], Folded(told[1:])]
        blocks += [Prose(f"**{name}**"), *told] if name else told
    limits = [outcome.result for outcome in outcomes if isinstance(outcome.result, Limit)]
    rest = [*assumptions.warnings(limits), *assumptions.assumed(limits, work.notes)] if limits else []
    return joined([*blocks, Folded(rest)], work), []


def _one(outcome: Outcome, work: TurnWork) -> list[Block]:
    match outcome.result:
        case ModelDescription() as model:
            return facts.model(model, work.figures)
        case HardwareDescription() as device:
            return facts.device(device, work.providers, work.figures)
        case Limit() as extent:
            return limit.answer(extent)
    return [Prose(f"I cannot answer that. {outcome.error}")]


def _sweep(work: TurnWork, outcomes: list[Outcome]) -> _Blocks:
    swept: Any = outcomes[0].result
    if swept is None:
        return refused(outcomes[0].error, work)[0], []
    rest = [*assumptions.warnings([swept]), *assumptions.assumed([swept], work.notes)]
    return [*lead.of_a_range(sweep.describe(swept)), Folded(rest)], []


def _run(plan: Mapping[str, Any], work: TurnWork, outcomes: list[Outcome]) -> _Blocks:
    """One run: as it was asked about, or with the best layout."""
    intents, asked = set(work.intents), list[str]()
    estimate, search = result_of(outcomes, TrainingEstimate), result_of(outcomes, BestParallelism)
    if estimate is None and search is None:
        return refused(next(iter(errors(outcomes).values()), None), work)
    bill, fit = result_of(outcomes, CostEstimate), result_of(outcomes, FitCheck)
    if estimate:
        again = is_told_again(outcomes, work)
        asked_for, elsewhere = [*work.figures, *work.intents], told_beside(outcomes, work)
        head, *rest = lead.training(estimate, bill, fit, asked_for, search is not None, again, elsewhere)
        cheaper = ""
        if bill and "cheaper" in intents and isinstance(head, Headline) and head.good:
            spot = cost.on_spot(bill)
            cheaper = "" if spot else cost.cheaper_first(bill)
            head = replace(head, text=f"{spot or cheaper} {head.text}".strip())
        decisive = _decisive(estimate, bill, work, again, bool(cheaper))
        if again and decisive and "why" in intents and isinstance(head, Headline) and head.good:
            # What was asked is what limits it; how fast it is was told before.
            head = replace(head, text=training.limit_words(estimate))
            rest = [block for block in rest[1:] if not isinstance(block, Aside)]
        first = with_named(head, [estimate, *([bill] if bill else [])], work.figures)
        blocks = [*first, *_instead(outcomes), *changes(outcomes, work), *rest, *decisive]
    else:
        blocks: list[Block] = [training.best(search)] if search else []
    if bill:
        blocks.append(Prose(assumptions.taken_data(bill.assumptions)))
    elif intents & {"cost", "run"} and not knows_length(plan):
        asked.append("workload.dataset_tokens: how many tokens will it train on?")
        wanted = "hours and dollars" if "cost" in intents else "the length of the whole run"
        blocks.append(Prose(f"For {wanted}: how many tokens will it train on?"))
    unfit = estimate is not None and not estimate.memory.fits
    blocks = with_files(blocks, files_made(outcomes, intents, unfit and not work.anyway))
    blocks += failures(outcomes)
    written, slow = bool(intents & {"write", "render"}), "faster" in intents
    blocks += steps.training(estimate, bill is not None, written, slow) if estimate else []
    return [*blocks, Folded(_behind(plan, work, outcomes, intents))], asked


def _decisive(
    estimate: TrainingEstimate, bill: CostEstimate | None, work: TurnWork, again: bool, cheaper: bool
) -> list[Block]:
    """What decides the figures: where it costs too much what would cost less, where it is slow what would be faster;
    `cheaper` says that the first line has the first way to pay less."""
    if bill and bill.savings:
        return cost.first_savings(bill, cheaper)
    if {"write", "render"} & set(work.intents):
        # The files are what was asked for.
        return []
    if again and estimate.memory.fits:
        slow = "faster" in work.intents and not (bill and bill.faster)
        return training.first_limits(estimate) if slow or "why" in work.intents else []
    return deciding.sentence(estimate.decides, [*work.figures, *work.intents], estimate.memory.fits)


def _instead(outcomes: Sequence[Outcome]) -> list[Block]:
    """Why another method is told than the one that trains all weights, where none was named."""
    told = [outcome.result for outcome in outcomes if isinstance(outcome.result, TrainingEstimate)]
    if len({complete(each.plan).training.method for each in told}) < 2:
        return []
    first, last = complete(told[0].plan), complete(told[-1].plan)
    need = told[0].memory
    short = f"{figures.gib(need.per_device_bytes)} of {figures.gib(need.capacity_bytes)} per device"
    why = "needs host memory for what the devices cannot hold" if need.fits else f"does not fit ({short})"
    full, taken = kind_words(first.training), kind_words(last.training)
    return [without_method(taken, f"{full} {why}")]


def _behind(plan: Mapping[str, Any], work: TurnWork, outcomes: list[Outcome], intents: set[str]) -> list[Block]:
    """The details of one run: those that were asked for first."""
    estimate, search = result_of(outcomes, TrainingEstimate), result_of(outcomes, BestParallelism)
    bill, fit = result_of(outcomes, CostEstimate), result_of(outcomes, FitCheck)
    slow = estimate is not None and "faster" in intents
    # What limits a step is told in its own words; how long the run takes was not asked.
    intents -= {"why", "time", "run"} if slow else set()
    blocks = training.what_limits(estimate) if slow and estimate else []
    if search and intents & {"layout", "why"}:
        blocks += training.rivals(search, "why" in intents)
    if estimate:
        blocks += [] if slow and "fit" not in intents else memory.training(estimate.memory)
        blocks += [] if intents & {"layout", "why"} else [training.layout(estimate)]
        blocks += training.speed(estimate, "why" in intents)
        blocks += deciding.table(estimate.decides, estimate.memory.fits)
    blocks += room.training(fit) if fit else []
    blocks += _cost(bill, plan) if bill else []
    by_name = {name: result for name, result in results(outcomes).items() if name != "sweep"}
    blocks += advice.beside(by_name["advise"]) if "advise" in by_name else []
    told = [result for name, result in by_name.items() if name != "advise"]
    return [*blocks, *assumptions.warnings(by_name.values()), *assumptions.assumed(told, work.notes)]


def _cost(bill: CostEstimate, plan: Mapping[str, Any]) -> list[Block]:
    return cost.training(bill, get(plan, "goal.budget_usd"), get(plan, "goal.deadline_h"))


def files_made(outcomes: list[Outcome], intents: set[str], withheld: bool) -> list[Block]:
    """What became of the files that were asked for; `withheld` where the run would run out of memory."""
    if not intents & {"write", "render"}:
        return []
    if made := result_of(outcomes, WrittenConfigs):
        return [*files.otherwise(made), *files.written(made)]
    shown = result_of(outcomes, RenderedConfigs)
    head: list[Block] = [Prose(files.WITHHELD)] if withheld and ("write" in intents or shown is None) else []
    if shown:
        return [*files.otherwise(shown), *head, *files.rendered(shown)]
    refusals = errors(outcomes)
    for name, refusal in zip(_FILE_TOOLS, ("No files were written", "No files"), strict=True):
        if refusals.get(name) == DECLINED:
            return [Headline(f"{refusal}: they were not approved.", None, beware=True)]
        if name in refusals:
            return [Headline(f"{refusal}: {in_words(refusals[name])}", False)]
    return head


def with_files(blocks: list[Block], made: list[Block]) -> list[Block]:
    """An answer with what became of the files that it was asked for: that there are none comes first, and so do those
    that are written of a run that nothing hurts; else they follow the verdict on it."""
    hurts = [block for block in made if isinstance(block, Headline) and not _is_good(block)]
    told = [block for block in made if block not in hurts]
    if hurts and isinstance(blocks[0], Headline):
        # That no files can be had was said of the run, too.
        blocks = [replace(blocks[0], text=NO_FILES.sub("", blocks[0].text) or blocks[0].text), *blocks[1:]]
    if all(map(_is_good, [*blocks[:1], *told[:1]])):
        return [*hurts, *told, *blocks]
    return [*hurts, *blocks[:1], *told, *blocks[1:]]


def _is_good(block: Block) -> bool:
    return isinstance(block, Headline) and block.good is True and not block.beware


def failures(outcomes: list[Outcome]) -> list[Block]:
    """What tools refused that write no files."""
    refusals = errors(outcomes).items()
    return [Prose(f"**Not answered** ({name}): {text}") for name, text in refusals if name not in _FILE_TOOLS]


def _limit(plan: Mapping[str, Any], work: TurnWork, outcomes: list[Outcome]) -> _Blocks:
    extent, intents, asked = result_of(outcomes, Limit), set(work.intents), list[str]()
    if extent is None:
        return refused(errors(outcomes).get("find_limit"), work)
    head, *rest = limit.training(extent)
    told = changes(outcomes, work)
    blocks = lead.short([head, *told, *rest], 2 + len(told), 0)
    if extent.value is not None:
        blocks.append(Folded(runs_at(extent, plan, outcomes, "why" in intents)))
    if {"run", "cost"} & intents and extent.goal != "tokens" and not get(plan, "workload.dataset_tokens"):
        asked.append("workload.dataset_tokens: how many tokens will it train on?")
        blocks.append(Prose("For the length and cost of the run I need the size of the data: how many tokens is it?"))
    rest = [*assumptions.warnings([extent]), *assumptions.assumed([extent], work.notes)]
    return [*blocks, Folded(rest)], asked


def runs_at(extent: Limit, plan: Mapping[str, Any], outcomes: list[Outcome], why: bool) -> list[Block]:
    """What the run at the limit takes and costs; of devices, beside the same run on more of them."""
    estimates = [outcome for outcome in outcomes if outcome.call.name == "estimate_training"]
    if extent.goal == "devices" and estimates:
        return _on_more(estimates, outcomes)
    blocks: list[Block] = []
    for outcome in outcomes:
        if outcome.error:
            blocks.append(Prose(outcome.error))
        elif isinstance(outcome.result, TrainingEstimate):
            blocks += training.speed(outcome.result, why)
        elif isinstance(outcome.result, CostEstimate):
            blocks += _cost(outcome.result, plan)
    return blocks


def _on_more(estimates: Sequence[Outcome], outcomes: Sequence[Outcome]) -> list[Block]:
    runs: list[tuple[str, TrainingEstimate, float | None]] = []
    problems: list[str] = []
    for each in estimates:
        count = each.call.arguments["count"]
        name = "1 device" if count == 1 else f"{count} devices"
        if isinstance(each.result, TrainingEstimate):
            same = [outcome for outcome in outcomes if outcome.call.arguments.get("count") == count]
            bill = result_of(same, CostEstimate)
            runs.append((name, each.result, bill.usd if bill else None))
        else:
            problems.append(f"I could not estimate {name}: {each.error}")
    return [*limit.more_devices(runs), *map(Prose, problems)]
