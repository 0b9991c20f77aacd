"""Which tools answer a question about serving, with which arguments, and in which order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.offline.calls.training import SOLVED, Calls, of_files, payment
from agent.offline.language.own.apis import API_PRICES
from agent.offline.turn import TurnWork
from agent.wire import Outcome
from estimator.plan.schema import Inference, Plan, merge
from knowledge.machines.catalogue import find_accelerator
from knowledge.mlperf import benchmarks
from pages.answers.plan import complete
from planner.partial import flat, get
from planner.results import FitCheck, Limit
from planner.serving.results import BestServing, ServingEstimate, SizedServing
from tools.registry import Tool

_LAYOUT = ("tp", "pp", "ep", "dp")
_GOALS = {"cost": "cost", "time": "latency", "throughput": "throughput"}
# What "which GPU?" is answered from where none is named: what is usually rented for serving.
COMMON_DEVICES = ("l40s", "a100-sxm-80gb", "h100-sxm", "h200-sxm", "b200-sxm", "mi300x")
# Tools for training and serving alike are told which it is.
_SERVING = {"workload": {"kind": "inference"}}
_FORMAT, _ENGINE = "workload.weight_dtype", "workload.engine"
# Formats that cost too much quality to be taken unasked, on a person's own card and on servers.
_COARSE = ("q2", "q3")
_FOUR_BITS = (*_COARSE, "q4", "awq", "gptq", "int4", "nvfp4", "mxfp4", "nf4")


def next_calls(plan: Mapping[str, Any], work: TurnWork, outcomes: list[Outcome], tools: Mapping[str, Tool]) -> Calls:
    """The calls that can be made now. What chooses a deployment runs first; the rest is about its choice."""
    arguments, intents = _arguments(plan), set(work.intents)
    own = work.own_price
    if work.limit and work.format_open and outcomes:
        return _limit_in_fewer_bits(plan, arguments, work.limit, outcomes)
    if alone := _alone(plan, arguments, work, own):
        return [] if outcomes else [alone]
    called = {outcome.call.name: outcome for outcome in outcomes}
    first = _first(plan, work, intents)
    if first not in called:
        return [(first, _first_arguments(first, plan, arguments, work) | own)]
    result = called[first].result
    if not isinstance(result, ServingEstimate | BestServing | SizedServing):
        return []
    if isinstance(result, SizedServing) and result.best is None:
        return []
    chosen = complete(result.plan)
    calls: Calls = []
    if isinstance(result, ServingEstimate):
        if work.format_open and (taken := format_with_room(plan, outcomes)):
            estimates = [outcome.call for outcome in outcomes if outcome.call.name == first]
            arguments |= taken
            if len(estimates) == 1:
                return [(first, arguments | own)]
        if intents & {"fit", "faster"} or not result.memory.fits:
            # What the layout leaves open stays so: more devices are laid out anew.
            calls.append(("check_fit", of_either(arguments)))
        # How long all requests of a run take is told with what they cost.
        priced = "cost" in intents or "api" in work.figures or get(plan, "workload.requests")
        if result.memory.fits and priced:
            paid = payment(work, tools) | _api(work)
            calls.append(("estimate_cost", of_either(laid_out(arguments, chosen)) | own | paid))
        if result.memory.fits and "cheaper" in intents:
            # On the same devices: other engines, formats and layouts, each with as many requests as it takes.
            calls.append(
                ("best_serving", _first_arguments("best_serving", plan, arguments, work) | own | {"goal": "cost"})
            )
    else:
        arguments = _chosen(arguments, chosen)
        calls.append(("estimate_inference", arguments | own))
        if "api" in work.figures or ("cost" in intents and payment(work, tools)):
            # What a month of it costs is told with its size; what owning it does, or power, is not.
            calls.append(("estimate_cost", of_either(arguments) | own | payment(work, tools) | _api(work)))
    if all(name in called for name, _ in calls):
        return _files(work, called, arguments, tools)
    return calls


def _api(work: TurnWork) -> dict[str, Any]:
    """The price of an API that machines of one's own are set beside, where one was named."""
    named = [work.asked.get(name) for name in API_PRICES] if "api" in work.figures else []
    taken = zip(("api_usd", "api_input_usd", "api_cached_usd"), named, strict=False)
    return {name: value for name, value in taken if value is not None}


def _alone(
    plan: Mapping[str, Any],
    arguments: Mapping[str, Any],
    work: TurnWork,
    own: dict[str, Any],
) -> tuple[str, dict[str, Any]] | None:
    """The call that answers a benchmark, a range or a limit, which is the whole answer."""
    if "mlperf" in work.intents:
        return "project_mlperf", _mlperf(plan, arguments, work.own)
    if sweep := work.sweep:
        kept = {name: value for name, value in arguments.items() if name not in swept_away(sweep["field"])}
        return "sweep", of_either(kept) | sweep | own
    if limit := work.limit:
        return "find_limit", limit_arguments(arguments, limit)
    return None


def format_with_room(plan: Mapping[str, Any], outcomes: list[Outcome]) -> dict[str, str]:
    """The widest format of weights that fits where the one that was looked at does not, with the engine that reads it
    where none was named: on the devices themselves, before what the host's memory holds of it. Empty where that fits,
    or none does that people take unasked: 8 bits on servers, 4 on a card of their own."""
    fit = next((outcome.result for outcome in outcomes if isinstance(outcome.result, FitCheck)), None)
    if fit is None or fit.fits:
        return {}
    left = set() if get(plan, _ENGINE) else {_ENGINE}
    device = find_accelerator(str(complete(fit.plan).cluster.accelerator)).value
    fitting = [
        remedy for remedy in fit.remedies
        if remedy.fits and _FORMAT in remedy.patch and set(remedy.patch) <= {_FORMAT, "workload.weight_bits", *left}
        and not str(remedy.patch[_FORMAT]).startswith(_COARSE if device.personal else _FOUR_BITS)
    ]  # fmt: skip
    # What the host holds of it is read slowly: there the fewest bits do best.
    widest = max(
        fitting,
        key=lambda way: (
            not way.in_host_memory, _ENGINE not in way.patch,
            -way.slowdown if way.in_host_memory else way.per_device_bytes,
        ),
        default=None,
    )  # fmt: skip
    if widest is None:
        return {}
    return {path.rpartition(".")[2]: str(value) for path, value in widest.patch.items() if value}


def _limit_in_fewer_bits(
    plan: Mapping[str, Any], arguments: Mapping[str, Any], limit: Mapping[str, Any], outcomes: list[Outcome]
) -> Calls:
    """Where nothing fits with the weights as they are published: the limit with the widest that do."""
    result = outcomes[0].result
    if not isinstance(result, Limit) or result.value is not None or result.goal == "model":
        return []
    if len(outcomes) == 1:
        return [("check_fit", of_either(left_open(arguments, result.goal)))]
    taken = format_with_room(plan, outcomes) if len(outcomes) == 2 else {}
    return [("find_limit", limit_arguments({**arguments, **taken}, limit))] if taken else []


def limit_arguments(arguments: Mapping[str, Any], limit: Mapping[str, Any]) -> dict[str, Any]:
    """find_limit's arguments: the plan's without what is solved for."""
    return of_either(left_open(arguments, limit["goal"])) | dict(limit)


def _files(
    work: TurnWork, called: Mapping[str, Outcome], arguments: dict[str, Any], tools: Mapping[str, Tool]
) -> Calls:
    """Launch files of the deployment, where they were asked for and it fits."""
    name = next((f"{intent}_configs" for intent in ("write", "render") if intent in work.intents), None)
    estimate = called["estimate_inference"].result if "estimate_inference" in called else None
    if name is None or name in called or name not in tools or not isinstance(estimate, ServingEstimate):
        return []
    if not estimate.memory.fits and not work.anyway:
        return []
    return [(name, of_either(laid_out(arguments, complete(estimate.plan))) | of_files(work, tools[name]))]


def has_load(plan: Mapping[str, Any]) -> bool:
    return any(get(plan, f"workload.{name}") for name in ("request_rate", "concurrency"))


def _first(plan: Mapping[str, Any], work: TurnWork, intents: set[str]) -> str:
    if "size" in intents and has_load(plan):
        return "size_serving"
    # What an API costs less than is a deployment that is kept busy.
    busy = "api" in work.figures and not has_load(plan)
    if work.choices or intents & {"best", "size"} or busy:
        return "best_serving"
    return "estimate_inference"


def _arguments(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Flat arguments of a tool for serving, which need not be told what kind of plan it is."""
    arguments = flat(plan)
    rest = merge(arguments.pop("plan", {}), {"workload.kind": None})
    rest = {name: value for name, value in rest.items() if value}
    return arguments | ({"plan": rest} if rest else {})


def of_either(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a tool for training and serving alike."""
    return {**arguments, "plan": merge(arguments.get("plan") or {}, _SERVING)}


def _first_arguments(first: str, plan: Mapping[str, Any], arguments: dict[str, Any], work: TurnWork) -> dict[str, Any]:
    if first == "estimate_inference":
        return arguments
    # "Which engine is best?" leaves the engine open, whatever the plan has.
    chosen = {name: value for name, value in arguments.items() if name not in work.own.get("left_open", ())}
    for name, argument in (("engine", "engines"), ("weight_dtype", "weight_dtypes")):
        if name in work.choices:
            chosen.pop(name, None)
            chosen |= {argument: work.choices[name]} if work.choices[name] else {}
    devices = work.choices.get("accelerator") or ([] if arguments.get("accelerator") else list(COMMON_DEVICES))
    if devices:
        chosen |= {"accelerators": devices}
        chosen.pop("accelerator", None)
    if first == "size_serving":
        # Devices that were counted before are not the answer, and no bound of it.
        if not work.counted:
            chosen.pop("count", None)
        return chosen
    goal = work.own.get("goal") or _GOALS.get(get(plan, "goal.objective"))
    return chosen | ({"goal": goal} if goal else {})


def _chosen(arguments: Mapping[str, Any], plan: Plan) -> dict[str, Any]:
    """The user's arguments with what a search chose, so that every later figure is about the same deployment."""
    names = ("engine", "weight_dtype", "kv_dtype", "concurrency", "request_rate")
    choice = {name: getattr(plan.workload, name) for name in names}
    choice |= {name: getattr(plan.cluster, name) for name in ("accelerator", "count", "per_node")}
    return laid_out({**arguments, **{name: value for name, value in choice.items() if value}}, plan)


def laid_out(arguments: Mapping[str, Any], plan: Plan) -> dict[str, Any]:
    sizes = {name: getattr(plan.layout, name) for name in _LAYOUT}
    return {name: size for name, size in sizes.items() if size} | dict(arguments)


def left_open(arguments: Mapping[str, Any], goal: str) -> dict[str, Any]:
    """The arguments without what a question for a limit solves for."""
    solved = {SOLVED[goal].rpartition(".")[2]}
    solved |= {"concurrency": {"request_rate"}, "context": {"input_len"}, "input_len": {"max_context"}}.get(goal, set())
    if goal == "concurrency" and "input_len" not in arguments and (most := arguments.get("max_context")):
        # "How many users at 8k context": each of them uses it.
        answer = arguments.get("output_len") or Inference.model_fields["output_len"].default
        arguments = {**arguments, "input_len": max(1, int(most - answer))}
    # The longest is asked of one request, where no number of clients was said.
    alone = {"concurrency": 1} if goal in ("context", "input_len") and "request_rate" not in arguments else {}
    return alone | {name: value for name, value in arguments.items() if name not in solved}


def swept_away(field: str) -> set[str]:
    name = field.rpartition(".")[2]
    return {name} | {"concurrency": {"request_rate"}, "request_rate": {"concurrency"}}.get(name, set())


_VARIANTS = frozenset({"instruct", "chat", "hf", "it", "base", "v0.1", "v0.2", "v0.3"})
_TAKEN = ("accelerator", "count", "per_node", "engine", "software_version", "weight_dtype", "kv_dtype", *_LAYOUT)


def _mlperf(plan: Mapping[str, Any], arguments: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """project_mlperf's arguments: the benchmark of the plan's model, and what the plan says of machine and engine."""
    model, scenario = str(plan.get("model") or ""), arguments.get("scenario")
    same = [row.id for row in benchmarks().values() if _stem(row.model) == _stem(model)]
    request = {name: arguments[name] for name in _TAKEN if name in arguments}
    request |= {"scenario": scenario} if scenario in ("offline", "server", "interactive", "single-stream") else {}
    request |= {name: own[name] for name in ("benchmark", "nodes") if name in own}
    return {"benchmark": same[0] if same else model.rpartition("/")[2].lower(), **request}


def _stem(model: str) -> str:
    """A model's name without its owner and without what sets instruction-tuned variants apart."""
    name = model.rpartition("/")[2].lower().removeprefix("meta-")
    return "-".join(part for part in name.split("-") if part not in _VARIANTS)
