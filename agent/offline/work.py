"""What the steps of a turn go by, once its question and its plan are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent.models import Turn
from agent.offline.calls import serving as of_serving
from agent.offline.calls import training as of_training
from agent.offline.calls.wishes import SEARCHES_HARDWARE
from agent.offline.catalogue import Catalogue
from agent.offline.form import Edit, Reading
from agent.offline.options import Changed, label
from agent.offline.question import TurnQuestion
from agent.offline.refusing import devices_left, frameworks
from estimator.plan.schema import merge
from knowledge.figures import usd
from knowledge.machines.catalogue import find_accelerator
from launchers.targets import TARGETS
from planner.partial import flat, get, is_serving
from planner.requests import ALL_PATHS


def common(
    turn: Turn, start: int, reading: Reading, lead: Sequence[str] = (), notes: Sequence[str] = ()
) -> dict[str, Any]:
    """Of every turn: the first lines of its answer, how it was read, and what to go back to where it fails."""
    before = {name: value for name, value in turn.topic.items() if name not in ("turn", "pending")}
    first = list(dict.fromkeys([*lead, *first_lines(reading)]))
    last = [note for note in dict.fromkeys(notes) if note not in first]
    return {
        "start": start, "lead": first, "unread": reading.lost, "notes": last, "before": [turn.plan, before],
        "earlier": {} if reading.new else turn.topic.get("told", {}), "edited": any(map(_of_the_run, reading.edits)),
    }  # fmt: skip


def _of_the_run(edit: Edit) -> bool:
    """Whether it sets something of what runs, not a limit that is to be kept."""
    return not ALL_PATHS.get(edit.field, edit.field).startswith("goal.") and not edit.field.endswith("_slo_ms")


def with_more_money(
    question: TurnQuestion, pricing: Mapping[str, Any], plan: Mapping[str, Any]
) -> tuple[TurnQuestion, list[str]]:
    """'What would $10k more buy?' of a search for hardware is that search with so much more, and what is said of it."""
    budget, more = get(plan, "goal.budget_usd"), pricing.get("more_usd")
    if not (question.wish and question.wish[0] in SEARCHES_HARDWARE and budget and more):
        return question, []
    tool, own = question.wish
    raised = replace(question, wish=(tool, own | {"budget_usd": budget + more}))
    return raised, [f"with {usd(more)} more than {usd(budget)}"]


def ranked_on_demand(question: TurnQuestion, reading: Reading) -> list[str]:
    """What is said where clusters, or the most data, are searched for at prices that the search does not know: 'on
    spot?'."""
    price = next((kind for kind in ("spot", "reserved") if kind in reading.pricing.values()), None)
    if price and "tokens" in (question.limit or {}).values():
        return [f"how far the money goes is told at prices on demand, not {price} ones: ask what a run costs so"]
    if not (price and question.wish and question.wish[0] in SEARCHES_HARDWARE):
        return []
    return [f"clusters are ranked by prices on demand, not {price} ones: take one, and ask what it costs so"]


def first_lines(reading: Reading) -> list[str]:
    """What was assumed to read the turn so, which its answer begins with."""
    edits = [*reading.edits, *(edit for option in reading.options for edit in option)]
    return list(dict.fromkeys([*reading.assumed, *(edit.note for edit in edits if edit.note)]))


# Goals of a plan that are called like what people ask for.
_OBJECTIVES = ("cost",)
# How adapters and whole weights are trained; the largest model is told for each.
_METHODS = ("full", "lora", "qlora")


def work_of(
    turn: Turn, reading: Reading, plan: Mapping[str, Any], topic: Mapping[str, Any], question: TurnQuestion,
    options: Sequence[Changed], catalogue: Catalogue,
) -> dict[str, Any]:  # fmt: skip
    """What the calls of the question need beside the plan."""
    left_out = topic.get("refused", {})
    others = (
        [name for name in catalogue.providers if name not in left_out["provider"]] if "provider" in left_out else []
    )
    pricing = ({"providers": others} if others else {}) | topic["pricing"]
    left = devices_left(left_out.get("accelerator", ()))
    if question.wish:
        tool, own = question.wish
        own = {"accelerators": left} | own if tool in SEARCHES_HARDWARE and left else own
        compares = tool == "compare"
        return {
            "kind": "wish", "wish": [tool, own], "pricing": pricing, "intents": question.intents,
            "figures": [*_aims(reading), *reading.figures, *reading.focus],
            "methods": _methods(turn, plan, reading, left_out.get("method", ())) if compares else [],
            "shared_format": _shared_format(options, plan) if compares and _is_format_open(turn, plan, reading) else {},
        }  # fmt: skip
    serving = is_serving(plan)
    searched = left and not get(plan, "cluster.accelerator")
    common_left = {"accelerator": devices_left(left_out["accelerator"], of_serving.COMMON_DEVICES)} if searched else {}
    if question.limit and not options and _of_any_method(plan, question.limit):
        # What is the largest depends on the method more than on anything else.
        options = [{"method": method} for method in _METHODS]
    if question.limit and not options and "family" in question.limit and _is_format_open(turn, plan, reading):
        # As is what a server, or a card at home, is given.
        weights = [dict(each) for each in (_WEIGHTS_AT_HOME if _is_personal([], plan) else _WEIGHTS_OF_SERVERS)]
        return _limit_of_each(
            plan, question.limit, weights, [f"Weights in {' in '.join(each.values())}" for each in weights]
        )
    if question.limit and options:
        return _limit_of_each(plan, question.limit, options)
    targets = _targets(reading.own.get("targets", []), plan, catalogue)
    refused = left_out.get("framework", [])
    insists = "write" in question.intents and "write" in turn.topic.get("intents", ())
    needs = "need" in question.intents and not get(plan, "cluster.accelerator")
    return {
        "kind": "need" if needs else "serving" if serving else "training",
        "intents": question.intents,
        "figures": [*reading.figures, *_limits_set(reading)],
        "limit": question.limit,
        "sweep": question.sweep,
        "choices": common_left | question.choices if serving else {},
        "frameworks": frameworks(plan, refused),
        "methods": _methods(turn, plan, reading, left_out.get("method", ())),
        "format_open": _is_format_open(turn, plan, reading),
        "targets": targets,
        "own": reading.own,
        "pricing": pricing,
        "asked": topic.get("asked", {}),
        "counted": any(edit.field in ("count", "nodes") for edit in reading.edits),
        # Who asks again where nothing was written insists.
        "anyway": bool(reading.own.get("anyway") or insists),
    }


def _aims(reading: Reading) -> list[str]:
    """What the turn wants the best of: 'which is the cheapest per token' asks for a price, not for seconds."""
    return [edit.value for edit in reading.edits if edit.field == "objective" and edit.value in _OBJECTIVES]


def _limits_set(reading: Reading) -> list[str]:
    """The limits that the turn sets: whether they are kept is what it asks."""
    paths = (ALL_PATHS.get(edit.field, "") for edit in reading.edits)
    return [path for path in dict.fromkeys(paths) if path.startswith("goal.") and path != "goal.objective"]


def _methods(turn: Turn, plan: Mapping[str, Any], reading: Reading, refused: Sequence[str]) -> list[str]:
    """Adapters that a first question about fine-tuning is answered for where all weights have no room: who names no
    method asks what works. What is asked later keeps the method that was told."""
    # On a card of one's own nobody trains a model from nothing.
    at_home = _is_personal((), plan) and not is_serving(plan)
    stage = get(plan, "workload.stage") or ("sft" if at_home else None)
    tuned = stage == "sft" and get(plan, "workload.method") is None
    if not (_is_first(turn) and tuned) or _named(reading) & {"method", "offload", "optimizer_in_backward"}:
        return []
    return [method for method in _METHODS[1:] if method not in refused]


# Weights as most are published and with fewer bits, as servers read them and as people run them on cards of their own.
_WEIGHTS_OF_SERVERS = ({"weight_dtype": "bf16"}, {"weight_dtype": "fp8"})
_WEIGHTS_AT_HOME = tuple({"weight_dtype": dtype, "engine": "llamacpp"} for dtype in ("q8_0", "q4_k_m"))


def _shared_format(options: Sequence[Changed], plan: Mapping[str, Any]) -> dict[str, str]:
    """What deployments are compared with where not all have room for the published weights: the same for all."""
    if any("model" in option for option in options):
        return {}  # Each model is served as it is published.
    engines = get(plan, "workload.engine") or any("engine" in option for option in options)
    personal = _is_personal(options, plan)
    return {} if personal and engines else dict((_WEIGHTS_AT_HOME if personal else _WEIGHTS_OF_SERVERS)[-1])


def _is_personal(options: Sequence[Changed], plan: Mapping[str, Any]) -> bool:
    """Whether one of the devices is usually one person's."""
    named = {str(value) for option in options for name, value in option.items() if name == "accelerator" and value}
    device = get(plan, "cluster.accelerator")
    return any(find_accelerator(name).value.personal for name in named or ({str(device)} if device else ()))


def _is_format_open(turn: Turn, plan: Mapping[str, Any], reading: Reading) -> bool:
    """Whether a first question about serving leaves the format of the weights to what has room."""
    fields = ("weight_dtype", "weight_bits", "host_gib")
    told = any(get(plan, ALL_PATHS[name]) is not None for name in fields) or _named(reading) & set(fields)
    return _is_first(turn) and is_serving(plan) and not told


def _is_first(turn: Turn) -> bool:
    """Whether nothing could be estimated before."""
    return get(turn.plan, "model") is None or get(turn.plan, "cluster.accelerator") is None


def _named(reading: Reading) -> set[str]:
    return {edit.field for edit in reading.edits} | {edit.field for option in reading.options for edit in option}


def _of_any_method(plan: Mapping[str, Any], limit: Mapping[str, Any]) -> bool:
    """Whether the largest model to fine-tune is asked for, and no method was said."""
    tuned = get(plan, "workload.stage") not in (None, "pretrain")
    return "family" in limit and tuned and not is_serving(plan) and get(plan, "workload.method") is None


def _limit_of_each(
    plan: Mapping[str, Any], limit: dict[str, Any], options: Sequence[Changed], names: Sequence[str] = ()
) -> dict[str, Any]:
    """One question for a limit asked of several options."""
    arguments = (of_serving if is_serving(plan) else of_training).limit_arguments
    plans = [merge(plan, {ALL_PATHS[name]: value for name, value in option.items()}) for option in options]
    calls = [["find_limit", arguments(flat(option_plan), limit)] for option_plan in plans]
    return {"kind": "each", "calls": calls, "names": list(names or map(label, options))}


def _targets(targets: Sequence[str], plan: Mapping[str, Any], catalogue: Catalogue) -> list[str]:
    """Targets as render_configs calls them: what Kubernetes and Docker mean depends on what is run."""
    count, device = get(plan, "cluster.count") or 1, get(plan, "cluster.accelerator")
    each = get(plan, "cluster.per_node") or (catalogue.per_node(str(device)) if device else count)
    kubernetes = "kubernetes-trainjob"
    if is_serving(plan):
        kubernetes = "kubernetes-lws" if count > each else "kubernetes-deployment"
    general = {"kubernetes": kubernetes, "docker": "compose"}
    return list(dict.fromkeys(name if name in TARGETS else general.get(name, name) for name in targets))
