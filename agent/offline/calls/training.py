"""Which tools answer a question about a training run, with which arguments, and in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent.offline.answers.outcomes import result_of
from agent.offline.turn import TurnWork
from agent.wire import Outcome
from estimator.plan.schema import Plan
from pages.answers.plan import complete
from planner.compare.scenarios import Comparison
from planner.compare.sweep import Sweep
from planner.partial import flat, get, knows_length
from planner.requests import FLAT_NAMES, FLAT_PATHS
from planner.results import Assumption, BestParallelism, Limit, TrainingEstimate
from planner.training.concessions import CONCEDED
from tools.registry import Tool

Calls = list[tuple[str, dict[str, Any]]]
# The Plan path that each goal of find_limit solves for; where it is given a value, it is no question.
SOLVED = {
    "seq_len": "workload.seq_len",
    "micro_batch": "workload.micro_batch",
    "model": "model",
    "devices": "cluster.count",
    "accelerator": "cluster.accelerator",
    "tokens": "workload.dataset_tokens",
    "context": "workload.max_context",
    "input_len": "workload.input_len",
    "concurrency": "workload.concurrency",
}
# What "how many GPUs do I need?" is shown for: the fewest that fit, and what more of them would give.
_MORE_DEVICES = (2, 4)
# Fields of the complete plan that a chosen layout consists of; the calls that follow carry them.
_LAYOUT = ("tp", "sequence_parallel", "pp", "vpp", "schedule", "cp", "ep", "etp", "dp", "zero_stage", "shard_group",
           "recompute", "offload")  # fmt: skip
_LAYOUT_WORKLOAD = ("framework", "seq_len", "micro_batch", "global_batch")


def next_calls(plan: Mapping[str, Any], work: TurnWork, outcomes: list[Outcome], tools: Mapping[str, Tool]) -> Calls:
    """The calls that can be made now. Whatever chooses the layout runs first and alone; the rest carry its choice."""
    arguments, intents = flat(plan), set(work.intents)
    called = {outcome.call.name: outcome for outcome in outcomes}
    # How much data there is for pretraining can be taken from what models were trained on.
    wanted = {"cost", "cheaper", "faster", "device_hours"} | (set() if knows_length(plan) else {"run"})
    asked = bool(intents & wanted) or get(plan, "goal.credits_usd") is not None
    priced = asked and (knows_length(plan) or get(plan, "workload.stage") == "pretrain")
    if work.sweep:
        return [] if outcomes else [("sweep", _swept(arguments, work.sweep) | work.own_price)]
    if work.limit:
        return _limit_calls(work.limit, arguments, called, intents, priced)
    if work.frameworks:
        # One is refused: the best of the others is looked for first.
        if not outcomes:
            return [("sweep", arguments | {"field": "workload.framework", "values": work.frameworks})]
        arguments["framework"] = chosen_framework(outcomes) or work.frameworks[0]
    # What would make it faster is a question about this run, not about the layouts that it was chosen from.
    faster = {"improvements": True} if "faster" in intents else {}
    first = "best_parallelism" if intents & {"layout", "why"} and not faster else "estimate_training"
    if first not in called:
        return [(first, arguments | (faster if first == "estimate_training" else {}))]
    if work.methods:
        tried = [outcome for outcome in outcomes if outcome.call.name == first]
        if (more := work.methods[len(tried) - 1 :]) and tried[-1].result and not has_room(tried[-1].result):
            return [(first, arguments | {"method": more[0]})]
        arguments |= {"method": taken} if (taken := method_taken(outcomes)) else {}
        called[first] = next((outcome for outcome in reversed(tried) if outcome.result), tried[-1])
    chosen = called[first].result
    if not isinstance(chosen, TrainingEstimate | BestParallelism):
        return []
    carried = _carry(arguments, complete(chosen.plan), chosen.assumptions)
    wanted = ["estimate_training"]
    wanted += ["check_fit"] if "fit" in intents or _does_not_fit(called) else []
    wanted += ["estimate_cost"] if priced else []
    wanted += ["advise"] if faster and "advise" in tools else []
    if open_calls := [name for name in wanted if name not in called]:
        price = payment(work, tools) | {wish: True for wish in ("cheaper", "faster") if wish in intents}
        return [(name, carried | (price if name == "estimate_cost" else {})) for name in open_calls]
    return _files(work, called, (carried, arguments), tools)


def has_room(result: Any) -> bool:
    """Whether a run fits without moving to the host what the devices should hold."""
    match result:
        case TrainingEstimate():
            return result.memory.fits and complete(result.plan).layout.offload in (None, "none")
        case BestParallelism():
            return result.feasible > 0 and result.best.layout.get("offload") in (None, "none")
    return False


def method_taken(outcomes: list[Outcome]) -> str | None:
    """What is trained instead of all weights; None where they have room."""
    methods: list[str] = []
    for outcome in outcomes:
        match outcome.result:
            case TrainingEstimate(plan=plan) | BestParallelism(plan=plan) | Comparison(plan=plan) if plan:
                methods.append(complete(plan).training.method)
    return methods[-1] if len(set(methods)) > 1 else None


def chosen_framework(outcomes: list[Outcome]) -> str | None:
    """The best of the frameworks that were tried where another one is refused; None where none runs it."""
    swept = result_of(outcomes, Sweep)
    if swept is None or swept.best is None or swept.fields != ["workload.framework"]:
        return None
    return complete(swept.plan).training.framework


def _files(
    work: TurnWork,
    called: Mapping[str, Outcome],
    either: tuple[dict[str, Any], dict[str, Any]],
    tools: Mapping[str, Tool],
) -> Calls:
    """Of the run that was estimated; where no file can say its layout, of what the person said, for which another is
    chosen then. `either`: the arguments of the one and of the other."""
    carried, arguments = either
    intents = set(work.intents)
    files = next((f"{intent}_configs" for intent in ("write", "render") if intent in intents), None)
    if files is None or files not in tools or called["estimate_training"].error:
        return []
    if _does_not_fit(called) and not work.anyway:
        # What would run out of memory is shown, and written only for who insists.
        files = "render_configs"
    if files not in tools:
        return []
    if files not in called:
        return [(files, carried | of_files(work, tools[files]))]
    refused = (called[files].error or "").partition(":")[0].rpartition(".")[2]
    again = refused in set(carried) - set(arguments) and refused in called[files].call.arguments
    return [(files, arguments | of_files(work, tools[files]))] if again else []


def of_files(work: TurnWork, tool: Tool) -> dict[str, Any]:
    """What was said of launch files, as a tool that makes them takes it: targets by what they mean, not as named."""
    known = set(tool.request.model_fields) - {"targets"}
    fields = {key: value for key, value in work.own.items() if key in known}
    return fields | ({"targets": work.targets} if work.targets else {})


def _swept(arguments: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """The sweep's arguments: the plan's without the swept fields."""
    names = {name for name, path in FLAT_PATHS.items() if path in (asked["field"], asked.get("second_field"))}
    # With weak scaling the plan's own number of devices says whose batch it is.
    kept = {key: value for key, value in arguments.items() if key not in names or asked.get("scale_batch")}
    return {**kept, **asked}


def payment(work: TurnWork, tools: Mapping[str, Tool]) -> dict[str, Any]:
    """What the conversation said of prices, as far as estimate_cost takes it."""
    known = tools["estimate_cost"].request.model_fields if "estimate_cost" in tools else {}
    return {name: value for name, value in work.pricing.items() if name in known}


def limit_arguments(arguments: Mapping[str, Any], limit: Mapping[str, Any]) -> dict[str, Any]:
    """find_limit's arguments: the plan's without what is solved for."""
    solved = SOLVED[limit["goal"]].rpartition(".")[2]
    return {name: value for name, value in arguments.items() if name != solved} | dict(limit)


def _limit_calls(
    limit: Mapping[str, str],
    arguments: Mapping[str, Any],
    called: Mapping[str, Outcome],
    intents: set[str],
    priced: bool,
) -> Calls:
    """find_limit first; then, where time or cost is asked for, the run at the limit; of devices, twice as many too."""
    solved = SOLVED[limit["goal"]].rpartition(".")[2]
    rest = {name: value for name, value in arguments.items() if name != solved}
    if "find_limit" not in called:
        return [("find_limit", limit_arguments(arguments, limit))]
    result = called["find_limit"].result
    if len(called) > 1 or not isinstance(result, Limit) or result.value is None:
        return []
    at = {**_carry(rest, complete(result.plan), result.assumptions), solved: result.value}
    names = ["estimate_training", "estimate_cost"] if priced else ["estimate_training"]
    if isinstance(result.value, int) and result.goal == "devices":
        more = [{**rest, "count": times * result.value} for times in _MORE_DEVICES]
        return [(name, run) for run in (at, *more) for name in names]
    return [(name, at) for name in names] if intents & {"time", "cost", "why"} else []


def _does_not_fit(called: Mapping[str, Outcome]) -> bool:
    estimate = called["estimate_training"].result if "estimate_training" in called else None
    return isinstance(estimate, TrainingEstimate) and not estimate.memory.fits


def _carry(arguments: Mapping[str, Any], plan: Plan, assumptions: Sequence[Assumption]) -> dict[str, Any]:
    """The user's arguments with the layout that a tool chose, and what it gave up to fit, so that every later figure is
    about the same run."""
    chosen = {name: getattr(plan.layout, name) for name in _LAYOUT}
    chosen |= {name: getattr(plan.workload, name) for name in _LAYOUT_WORKLOAD}
    chosen |= {FLAT_NAMES[item.field]: item.value for item in assumptions if item.why == CONCEDED}
    if arguments.get("framework") == "auto":
        arguments = {name: value for name, value in arguments.items() if name != "framework"}
    return {name: value for name, value in chosen.items() if value is not None} | dict(arguments)
