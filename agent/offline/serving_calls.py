"""Which tools answer a question about serving, with which arguments, and in which order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.offline.payment import payment
from agent.offline.serving_words import mlperf_arguments
from agent.reader.calls.serving import laid_out, left_open, of_either, swept_away
from agent.wire import Outcome
from estimator.plan.schema import Plan, merge
from pages.answers.plan import complete
from planner.partial import flat, get
from planner.serving.results import BestServing, ServingEstimate, SizedServing
from tools.registry import Tool

Calls = list[tuple[str, dict[str, Any]]]
_LAYOUT = ("tp", "pp", "ep", "dp")
_GOALS = {"cost": "cost", "time": "latency", "throughput": "throughput"}
# What "which GPU?" is answered from where none is named: what is usually rented for serving.
COMMON_DEVICES = ("l40s", "a100-sxm-80gb", "h100-sxm", "h200-sxm", "b200-sxm", "mi300x")
# Tools for training and serving alike are told which it is.
_SERVING = {"workload": {"kind": "inference"}}


def next_calls(
    plan: Mapping[str, Any], work: Mapping[str, Any], outcomes: list[Outcome], tools: Mapping[str, Tool]
) -> Calls:
    """The calls that can be made now. What chooses a deployment runs first; the rest is about its choice."""
    arguments, intents = _arguments(plan), set(work["intents"])
    asked = work["asked"]
    own = {"usd_per_device_hour": work["usd_per_device_hour"]} if work["usd_per_device_hour"] else {}
    tail = asked.get("slo_statistic") and any(name in arguments for name in ("ttft_slo_ms", "tpot_slo_ms"))
    extra = own | ({"slo_statistic": asked["slo_statistic"]} if tail else {})
    called = {outcome.call.name: outcome for outcome in outcomes}
    if "mlperf" in intents:
        return [] if outcomes else [("project_mlperf", mlperf_arguments(plan, arguments))]
    if sweep := work["sweep"]:
        kept = {name: value for name, value in arguments.items() if name not in swept_away(sweep["field"])}
        return [] if outcomes else [("sweep", of_either(kept) | sweep | own)]
    if limit := work["limit"]:
        return [] if outcomes else [("find_limit", of_either(left_open(arguments, limit["goal"])) | limit)]
    first = _first(plan, work, intents)
    if first not in called:
        return [(first, _first_arguments(first, plan, arguments, work) | extra)]
    found = called[first].result
    if not isinstance(found, ServingEstimate | BestServing | SizedServing) or (
        isinstance(found, SizedServing) and found.best is None
    ):
        return []
    chosen = complete(found.plan)
    if not isinstance(found, ServingEstimate):
        arguments = _chosen(arguments, chosen)
        wanted = ["estimate_inference"]
    else:
        fits = found.memory.fits
        wanted = ["check_fit"] if intents & {"fit", "faster"} or not fits else []
        # How long all requests of a run take is told with what they cost.
        priced = "cost" in intents or get(plan, "workload.requests")
        wanted += ["estimate_cost"] if priced and fits else []
    if all(name in called for name in wanted):
        return _files(plan, work, called, arguments, tools)
    calls: Calls = []
    for name in wanted:
        if name == "estimate_inference":
            calls.append((name, arguments | extra))
        elif name == "check_fit":
            # What the layout leaves open stays so: more devices are laid out anew.
            calls.append((name, of_either(arguments)))
        else:
            paid = payment(work, tools)
            calls.append((name, of_either(laid_out(arguments, chosen)) | own | paid))
    return calls


def _files(
    plan: Mapping[str, Any],
    work: Mapping[str, Any],
    called: Mapping[str, Outcome],
    arguments: dict[str, Any],
    tools: Mapping[str, Tool],
) -> Calls:
    """Launch files of the deployment, where they were asked for and it fits."""
    name = next((f"{intent}_configs" for intent in ("write", "render") if intent in work["intents"]), None)
    estimate = called["estimate_inference"].result if "estimate_inference" in called else None
    if name is None or name in called or name not in tools or not isinstance(estimate, ServingEstimate):
        return []
    if not estimate.memory.fits and not work["anyway"]:
        return []
    targets = {"targets": work["targets"]} if work["targets"] else {}
    return [(name, of_either(laid_out(arguments, complete(estimate.plan))) | targets | work["fields"])]


def has_load(plan: Mapping[str, Any]) -> bool:
    return any(get(plan, f"workload.{name}") for name in ("request_rate", "concurrency"))


def _first(plan: Mapping[str, Any], work: Mapping[str, Any], intents: set[str]) -> str:
    if "size" in intents and has_load(plan):
        return "size_serving"
    if work["choices"] or intents & {"best", "size"}:
        return "best_serving"
    return "estimate_inference"


def _arguments(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Flat arguments of a tool for serving, which need not be told what kind of plan it is."""
    found = flat(plan)
    rest = merge(found.pop("plan", {}), {"workload.kind": None})
    rest = {name: value for name, value in rest.items() if value}
    return found | ({"plan": rest} if rest else {})


def _first_arguments(
    first: str, plan: Mapping[str, Any], arguments: dict[str, Any], work: Mapping[str, Any]
) -> dict[str, Any]:
    if first == "estimate_inference":
        return arguments
    found = dict(arguments)
    for name, argument in (("engine", "engines"), ("weight_dtype", "weight_dtypes")):
        if name in work["choices"]:
            found.pop(name, None)
            found |= {argument: work["choices"][name]} if work["choices"][name] else {}
    devices = work["choices"].get("accelerator") or ([] if arguments.get("accelerator") else list(COMMON_DEVICES))
    if devices:
        found |= {"accelerators": devices}
        found.pop("accelerator", None)
    if first == "size_serving":
        # Devices that were counted before are not the answer, and no bound of it.
        if not work["counted"]:
            found.pop("count", None)
        return found
    goal = get(plan, "goal.objective")
    return found | ({"goal": _GOALS[goal]} if goal in _GOALS else {})


def _chosen(arguments: Mapping[str, Any], plan: Plan) -> dict[str, Any]:
    """The user's arguments with what a search chose, so that every later figure is about the same deployment."""
    names = ("engine", "weight_dtype", "concurrency", "request_rate")
    found = {name: getattr(plan.workload, name) for name in names}
    found |= {name: getattr(plan.cluster, name) for name in ("accelerator", "count", "per_node")}
    return laid_out({**arguments, **{name: value for name, value in found.items() if value}}, plan)
