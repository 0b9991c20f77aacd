"""What a question is taken to be about where it does not say: a load, devices, a model to talk to, a run to explain
with; each with what is said about that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent.models import Turn
from agent.offline.calls.serving import has_load
from agent.offline.calls.wishes import SEARCHES_HARDWARE
from agent.offline.form import Edit, Reading
from agent.offline.options import label
from agent.offline.question import TurnQuestion
from agent.offline.usual import COUNT, DEVICE, usual, without_usual
from estimator.errors import PlanError
from estimator.plan.schema import Plan, merge
from knowledge import figures
from knowledge.jobs.serving import USUAL_CLIENTS
from knowledge.models.catalogue import architecture
from planner.partial import get, is_serving, knows_length
from planner.requests import ALL_PATHS, FLAT_NAMES, LATENCY_LIMITS

_DEVICE_HOURS = "goal.budget_device_hours"
# Requests that engines run at once unless they are told otherwise (vLLM's max_num_seqs on most devices).
_AT_ONCE = 256


# What people serve who only say what for: of its size the one that most engines run best.
ASSISTANT = "openai/gpt-oss-20b"


def is_any_assistant(turn: Turn, reading: Reading, plan: Mapping[str, Any]) -> bool:
    """Whether a first question is what to serve so many people with: 'a chatbot for 50, which model and GPU?'"""
    named = get(plan, "model") or get(plan, DEVICE) or reading.needs or reading.options or turn.plan
    return is_serving(plan) and has_load(plan) and not named and "assistant" in reading.own


# What a figure is explained with where no run is spoken of.
EXAMPLE = "Llama-3.1-8B on 8 x h100-sxm"
_EXAMPLE_RUN = {"model": "meta-llama/Llama-3.1-8B", DEVICE: "h100-sxm", COUNT: 8}


def example_of(plan: Mapping[str, Any], question: TurnQuestion) -> dict[str, Any]:
    """{path: value} of a run to explain a figure with: 'how is MFU calculated?'"""
    tool, own = question.wish or ("", {})
    if tool != "explain" or get(plan, "model") or get(plan, DEVICE):
        return {}
    # One without a pipeline has no bubble.
    piped = "time.components.bubble" in own.values() and get(plan, "layout.pp") is None
    return _EXAMPLE_RUN | ({"layout.pp": 4} if piped else {})


def as_spoken_of(
    plan: dict[str, Any], reading: Reading, topic: Mapping[str, Any]
) -> tuple[dict[str, Any], list[list[Edit]], list[str]]:
    """The plan with the model or the device whose facts were asked for last, where it has none; what is compared, of
    models those that were asked about one after another; and what is said about that."""
    notes: list[str] = []
    options = reading.options
    told = {edit.field for edits in (reading.edits, *reading.options) for edit in edits}
    counted = told & {"count", "nodes"}
    for name, names in topic.get("spoken", {}).items():
        if get(plan, ALL_PATHS[name]) is not None or name in told or reading.needs or reading.own.get(f"{name}s"):
            continue
        # What 32 of them cost was asked right before.
        number = None if counted else _paid_for(topic, names[-1])
        meant = counted or number or _is_of_the_last(topic, names)
        if name == "accelerator" and (not meant or reading.tool in SEARCHES_HARDWARE):
            continue
        if len(names) > 1 and reading.tool == "compare" and len(options) < 2:
            options = [[*(options[0] if options else ()), Edit(name, "set", each)] for each in names]
        else:
            plan = merge(plan, {ALL_PATHS[name]: names[-1]} | ({"cluster.count": number} if number else {}))
            notes.append(f"{names[-1]} taken, as asked about before")
    return plan, options, notes


def _is_of_the_last(topic: Mapping[str, Any], devices: Sequence[str]) -> bool:
    """Whether a single device was asked about right before: 'Can a T4 train anything? Phi-3 mini with QLoRA then.'"""
    match topic:
        case {"last": ["describe_hardware", _]}:
            return len(devices) == 1
    return False


def _paid_for(topic: Mapping[str, Any], device: str) -> int | None:
    """How many of a device it was asked right before what they cost."""
    match topic:
        case {"last": [_, {"paid_for": devices}]}:
            match devices.get(device):
                case {"count": number}:
                    return number
    return None


def under_load(plan: dict[str, Any], reading: Reading, question: TurnQuestion) -> tuple[dict[str, Any], list[str]]:
    """The plan with a load where machines are searched for and none was said, and what is said about that: one user
    where it is each user's speed that is to be met."""
    searched = question.wish is not None and question.wish[0] == "recommend_cluster"
    if not searched or not is_serving(plan):
        return plan, []
    plan, told = _in_time(plan, reading)
    if has_load(plan):
        return plan, told
    if get(plan, "workload.requests"):
        note = f"{_AT_ONCE} of the requests taken at once, as engines do"
        return merge(plan, {"workload.concurrency": _AT_ONCE}), [*told, note]
    limited = any(get(plan, ALL_PATHS[name]) for name in LATENCY_LIMITS)
    clients = 1 if limited else USUAL_CLIENTS
    users = "one user at a time" if clients == 1 else f"{clients} clients at once"
    return merge(plan, {"workload.concurrency": clients}), [*told, f"no load was said: {users} taken"]


def _in_time(plan: dict[str, Any], reading: Reading) -> tuple[dict[str, Any], list[str]]:
    """The plan with a limit of the first token where one of whole answers was said, to which searches for machines do
    not hold."""
    path, whole_s = ALL_PATHS["ttft_slo_ms"], reading.own.get("e2e_limit_s")
    if not whole_s or get(plan, path) is not None:
        return plan, []
    note = (
        f"an answer within {figures.seconds(whole_s)} is taken as its first token: whole answers are not limited here"
    )
    return merge(plan, {path: 1000.0 * whole_s}), [note]


# Tokens for each parameter (Hoffmann et al. 2022, table 3).
_TOKENS_PER_PARAMETER = 20


def compute_optimal(plan: dict[str, Any], reading: Reading) -> tuple[dict[str, Any], list[str]]:
    """The plan with as many tokens as its model makes best use of, where that is what is asked for, and what is said
    about that."""
    asked = "compute_optimal" in reading.own and not is_serving(plan) and not knows_length(plan)
    if not asked or get(plan, "model") is None:
        return plan, []
    tokens = float(_TOKENS_PER_PARAMETER * architecture(get(plan, "model")).parameters)
    note = f"compute-optimal: {figures.count(tokens)} tokens, {_TOKENS_PER_PARAMETER} for each parameter"
    return merge(plan, {"workload.dataset_tokens": tokens}), [note]


def on_usual(
    before: Mapping[str, Any], plan: dict[str, Any], reading: Reading, topic: dict[str, Any], settled: set[str]
) -> tuple[dict[str, Any], list[str]]:
    """The plan on the devices that people use for it, where none are named, and what is said about that. They stay
    until others are named, or another model is."""
    taken = topic.pop("usual", None)
    named = {edit.field for edit in reading.edits}
    if taken and not named & {"accelerator", "count", "nodes"}:
        if get(plan, "model") == get(before, "model") and is_serving(plan) == is_serving(before):
            topic["usual"] = taken
            return plan, []
        plan = without_usual(plan, taken)
    # 'Does it fit on H100?' is asked of one; where one is refused others are to be named.
    known = get(plan, DEVICE) is not None
    timed = get(plan, _DEVICE_HOURS) is not None
    left = (reading.tool == "check_fit" and not timed) if known else "accelerator" in named
    numbers = [edit.value for option in reading.options for edit in option if edit.field in ("count", "nodes")]
    if numbers and not known:
        # Whose number is compared: only their kind is open.
        settled, plan = settled - {COUNT}, merge(plan, {COUNT: max(numbers)})
    if compared := _usual_of_each(plan, reading):
        return compared
    devices = {} if left or settled & {DEVICE, COUNT} else usual(plan, "model" in settled, _is_said_of_one(reading))
    if devices and known and _fitted(before, plan, named):
        return plan, []
    if not devices:
        return plan, []
    topic["usual"] = devices
    plan = merge(plan, devices)
    on = label({FLAT_NAMES[path]: get(plan, path) for path in (DEVICE, COUNT) if get(plan, path)})
    if DEVICE not in devices:
        # What holds it, whatever it takes.
        fewest = usual(merge(plan, {COUNT: None, _DEVICE_HOURS: None, "workload.stage": "sft"}))
        lasts = "they last about a month" if timed else "they pretrain it in about two months"
        why = "it does not fit on fewer" if devices == fewest else lasts
        why = "it is spoken of as one" if devices == {COUNT: 1} else why
        return plan, [f"no number of devices was named: {on} taken, as {why}"]
    return plan, [f"no device was named: {on} taken, as is usual"]


def _fitted(before: Mapping[str, Any], plan: Mapping[str, Any], named: set[str]) -> bool:
    """Whether it was told of one of the devices that it fits, and what changes leaves it so."""
    alike = all(get(before, path) == get(plan, path) for path in (DEVICE, "model")) and before.get("workload")
    if not alike or get(before, COUNT) is not None or "accelerator" in named or is_serving(plan) or is_serving(before):
        return False
    from planner.training.planned import plan_to_fit  # loads searches, which few turns need

    try:
        return all(plan_to_fit(Plan.parse(merge(each, {COUNT: 1}))).fits for each in (before, plan))
    except PlanError:
        return False


def _is_said_of_one(reading: Reading) -> bool:
    """Whether the device is named once, and not as several: 'my 4070', not '4070s'."""
    spans = [edit.span for edit in reading.edits if edit.field == "accelerator" and edit.op == "set"]
    return len(spans) == 1 and not reading.text[slice(*spans[0])].endswith("s")


def _usual_of_each(plan: Mapping[str, Any], reading: Reading) -> tuple[dict[str, Any], list[str]] | None:
    """The plan with as many devices as each kind of those that are set side by side has room on, where none are
    counted."""
    kinds = [edit.value for option in reading.options for edit in option if edit.field == "accelerator"]
    counted = {edit.field for option in reading.options for edit in option} & {"count", "nodes"}
    if reading.tool != "compare" or len(kinds) < 2 or counted or get(plan, COUNT) or get(plan, "model") is None:
        return None
    fewest = {kind: usual(merge(plan, {DEVICE: kind})).get(COUNT, 1) for kind in kinds}
    most = max(fewest, key=lambda kind: fewest[kind])
    if fewest[most] == 1:
        return None
    note = f"no number of devices was named: {fewest[most]} of each taken, as it does not fit on fewer {most}"
    return merge(plan, {COUNT: fewest[most]}), [note]
