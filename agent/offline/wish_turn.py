"""What a turn's wish is once the session is known, and what stays of it for the turns after."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent.offline import small_talk
from agent.offline.figure_words import figure_of
from agent.offline.pasted import content
from agent.offline.reading import Reading
from agent.offline.slots import Slot
from agent.offline.wish_calls import of_hardware, own_arguments
from agent.offline.wish_words import TAKES
from agent.offline.wishes import FREE, REPEATED, SEARCHES_HARDWARE, Wish, vendors_of
from agent.wire import Outcome
from estimator.plan.schema import merge
from planner.clusters.results import AutoConfigured, ClusterOption, RecommendedCluster
from planner.partial import get, knows_length
from planner.requests import ALL_PATHS
from tools.registry import Tool

if TYPE_CHECKING:
    from planner.files.importing import ImportedConfig
    from planner.records.scenarios import LoadedScenario, SavedScenario

_Wish = tuple[str, dict[str, Any]]
_FLAT = {path: name for name, path in ALL_PATHS.items()}
_MORE = re.compile(r"\b(?:add|also|too|as well|include|including|plus)\b", re.IGNORECASE)
# Which of what was compared it shall be, or what the plan shall be from now on.
_SETTLES = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|so|then|good|well|now|let'?s|please)\W+)*(?:use|take|go with|set|make it)\b", re.IGNORECASE
)
# Which of the options that were offered it shall be, by its place.
_PLACES = {"second": 1, "2nd": 1, "third": 2, "3rd": 2, "fourth": 3}
# 'And cheaper?' of what was compared.
_JUDGES = re.compile(
    r"^\W*(?:(?:and|so|but|ok)\W+)*(?:(?:which|what)(?: one)?(?: of (?:the |these |those |them ?)?(?:\w+)?)?"
    r"(?:'s| is| was| would be)? )?(?:the )?(?:(?:cheap|fast|quick|slow|dear)(?:er|est)|better|best)(?: one)?"
    r"(?: (?:per \w+|overall|in total|then|here|now|for us|for me))*\W*$",
    re.IGNORECASE,
)
# 'And for the 70B?' after what one change does: the same question elsewhere.
_SAME_FOR = re.compile(r"^\W*(?:and|what about|how about|same)\b[^.?!]*\b(?:for|on|with|at)\b", re.IGNORECASE)
_ELSEWHERE = {"model", "cluster.accelerator", "cluster.count", "cluster.per_node", "workload.seq_len"}
_GOES_ON = re.compile(r"^\W*(?:and|what about|how about|same for|now)\b", re.IGNORECASE)
_MOST_OFFERS = 6


def free_call(
    reading: Reading, plan: Mapping[str, Any], tools: Mapping[str, Tool], topic: Mapping[str, Any]
) -> _Wish | str | None:
    """The call of a wish that is about no plan, or the answer where there is nothing to call."""
    wish = reading.wish
    if wish is None or (wish.tool not in FREE and wish.tool != "diff_scenarios"):
        return None
    if wish.tool == "own":
        return small_talk.own(str(wish.own["kind"]))
    saved = topic.get("saved", [])
    if wish.tool == "diff_scenarios" and not wish.own:
        if len(saved) < 2:
            return small_talk.NOTHING_TO_COMPARE
        return "diff_scenarios", {"a": saved[-2], "b": saved[-1]}
    if wish.tool == "diff_scenarios":
        if not plan.get("model") and "b" not in wish.own:
            return small_talk.NOTHING_TO_COMPARE
        return "diff_scenarios", {"b": merge(plan, {})} | wish.own
    if wish.tool not in tools:
        return small_talk.NO_IMPORT
    if wish.tool == "import_config":
        fields = tools["import_config"].request.model_fields
        said = {_FLAT[slot.path]: slot.value for slot in reading.slots
                if isinstance(slot, Slot) and slot.path in _FLAT and slot.value is not None}  # fmt: skip
        if "accelerator" not in said and (device := get(plan, "cluster.accelerator")):
            said["accelerator"] = device
        said = {name: value for name, value in said.items() if name in fields}
        if path := wish.own.get("path"):
            return _of_file(str(path), said)
        return "import_config", wish.own | said
    if wish.tool == "matrix_results" and "folder" not in wish.own:
        return small_talk.WHICH_FOLDER
    return wish.tool, wish.own


def _of_file(path: str, said: dict[str, Any]) -> _Wish | str:
    """The import of a file of the working folder."""

    text = content(path)
    return small_talk.no_file(path) if text is None else ("import_config", {"files": {path: text}} | said)


def extended(reading: Reading, topic: Mapping[str, Any]) -> Reading:
    """'Add ZeRO-1 too' after a comparison: one more value to compare, not a change of the plan."""
    last = ((topic.get("turn") or {}).get("wish") or [None])[0]
    asks = set(reading.intents) - {"fit", "time", "cost"} or reading.wish or reading.limit or reading.sweep
    if (
        last == "explain"
        and _GOES_ON.match(reading.text)
        and not (reading.pricing or reading.slots or asks or reading.compare or reading.back)
    ):
        # 'And the optimizer part?'
        figure = figure_of(reading.text.lower(), "")
        return (
            replace(reading, wish=Wish("explain", {"figure": figure}), intents=[], in_scope=True) if figure else reading
        )
    tool, own = topic.get("wish") or (None, {})
    over = own.get("over") if tool == "compare" else None
    if not over or reading.over or not _MORE.search(reading.text):
        return reading
    more: dict[str, list[Any]] = {}
    for slot in reading.slots:
        name = _FLAT.get(slot.path)
        if isinstance(slot, Slot) and name in over:
            more.setdefault(slot.path, []).append(slot.value)
    if not more:
        return reading
    values = {path: list(dict.fromkeys([*over[_FLAT[path]], *added])) for path, added in more.items()}
    rest = {ALL_PATHS[name]: kept for name, kept in over.items() if ALL_PATHS[name] not in values}
    return replace(reading, slots=[slot for slot in reading.slots if slot.path not in more], over=values | rest)


def wish_of(reading: Reading, topic: dict[str, Any], plan: Mapping[str, Any], serving: bool) -> _Wish | None:
    """This turn's wish about the plan, one of the turn before where nothing else is asked, or None.

    `topic` keeps it for the turn after.
    """
    once = topic.pop("once", None)
    if (found := _said(reading, topic, plan, serving)) is not None:
        tool, own = found
        found = tool, own_arguments(tool, own, reading, plan)
        if reading.wish and reading.wish.once:
            topic["once"] = list(found)
        elif tool in REPEATED:
            topic["wish"] = list(found)
        elif (topic.get("wish") or [None])[0] not in SEARCHES_HARDWARE:
            topic.pop("wish", None)
        return found
    if not serving and _wants_hardware(reading, plan, topic):
        found = "recommend_cluster", own_arguments("recommend_cluster", {}, reading, plan)
        topic["wish"] = list(found)
        return found
    if not serving and _how_many_in_time(reading, plan):
        # How many finish by then is another question than how many hold the model.
        own = own_arguments("recommend_cluster", {"sort": "cost"}, reading, plan)
        device = get(plan, "cluster.accelerator")
        found = "recommend_cluster", ({"accelerators": [device]} if device else {}) | own
        topic["wish"] = list(found)
        return found
    asks = _intents(reading) or reading.limit or reading.sweep or reading.choices
    paths = {slot.path for slot in reading.slots}
    if once and paths and not asks and paths <= _ELSEWHERE and _SAME_FOR.search(reading.text):
        topic["once"] = once
        return once[0], dict(once[1])
    before = topic.get("wish")
    narrows = before and before[0] in SEARCHES_HARDWARE and (
        any(reading.most) or reading.providers or vendors_of(reading.text)
    )  # fmt: skip
    if before and before[0] == "compare" and not reading.slots and _JUDGES.match(reading.text):
        return before[0], dict(before[1])
    if before is None or asks or not (reading.slots or reading.pricing or narrows):
        topic.pop("wish", None)
        return None
    tool, own = before[0], dict(before[1])
    if tool == "compare" and _SETTLES.search(reading.text):
        topic.pop("wish", None)
        return None
    said = {_FLAT.get(slot.path, slot.path) for slot in reading.slots}
    if said & set(own.get("over") or {}) or (of_hardware(own) and "accelerator" in said):
        topic.pop("wish", None)
        return None
    if tool in SEARCHES_HARDWARE and len(reading.accelerators) == 1 and "count" in said:
        # "We have two 4090s" is no search any more.
        topic.pop("wish", None)
        return None
    if tool == "recommend_cluster" and reading.accelerators:
        own.pop("vendors", None)
    own = own_arguments(tool, own, reading, plan)
    topic["wish"] = [tool, own]
    return tool, own


def _intents(reading: Reading) -> list[str]:
    """What is asked: 'nothing over $60/h' is a limit of the search, no question for the cost."""
    limited = "max_usd_per_hour" in reading.pricing
    return [intent for intent in reading.intents if not (limited and intent == "cost")]


def _how_many_in_time(reading: Reading, plan: Mapping[str, Any]) -> bool:
    """Whether the fewest devices are asked for that finish a run, whose length is known, by a deadline."""
    fewest = reading.limit is not None and reading.limit.goal == "devices"
    return bool(fewest and get(plan, "goal.deadline_h") and knows_length(plan))


def _wants_hardware(reading: Reading, plan: Mapping[str, Any], topic: Mapping[str, Any]) -> bool:
    """Whether money or time is limited and no device was ever named: which to take is the question then."""
    limited = {"goal.budget_usd", "goal.deadline_h"} & {slot.path for slot in reading.slots}
    limited = limited or "max_usd_per_hour" in reading.pricing
    named = reading.accelerators or reading.questions or topic.get("offer") or get(plan, "cluster.accelerator")
    return bool(limited and plan.get("model") and not (named or reading.limit or reading.sweep or topic.get("wish")))


def _said(reading: Reading, topic: Mapping[str, Any], plan: Mapping[str, Any], serving: bool) -> _Wish | None:
    over = {_FLAT[path]: values for path, values in reading.over.items() if path in _FLAT}
    if reading.wish and reading.wish.tool not in FREE:
        tool, own = reading.wish.tool, reading.wish.own
        compared = {"over": over} if over else _last_compared(topic)
        own = own | compared if tool == "report" else own
        own = own | {"precisions": over["precision"]} if tool == "peak_throughput" and "precision" in over else own
        return tool, own
    if serving and {"size", "best"} & set(reading.intents or topic.get("intents", [])):
        # These choose among what is named.
        return None
    over = over or {name: values for name, values in reading.choices.items() if len(values) > 1}
    if over:
        return "compare", {"over": over}
    restricts = (topic.get("wish") or [None])[0] in SEARCHES_HARDWARE and not (reading.models or reading.wish)
    if reading.compare and not (restricts and not any(device.count for device in reading.accelerators)):
        return "compare", _compared(reading)
    if reading.both and (plans := topic.get("plans")) and not reading.slots:
        return "compare", {
            "scenarios": [{"name": "before", "plan": plans[-1]}, {"name": "now", "plan": merge(plan, {})}]
        }
    sweep = reading.sweep
    before, kept = topic.get("wish") or (None, {})
    if before == "project_scaling" and sweep and sweep.open:
        # "And with weak scaling?" is about the nodes that were asked about.
        return before, {**kept, "scaling": "weak" if sweep.weak else "strong"}
    if not serving and sweep and sweep.scales and sweep.nodes:
        last = sweep.values[1] or 64
        first = sweep.values[0] or 1
        nodes: Any = last if first == 1 else f"{first}..{last}"
        return "project_scaling", {"nodes": nodes} | ({"scaling": "weak"} if sweep.weak else {})
    return None


def _last_compared(topic: Mapping[str, Any]) -> dict[str, Any]:
    """What the turn before set side by side, as a report takes it: 'turn it into a PDF'."""
    tool, own = topic.get("wish") or (None, {})
    return {name: own[name] for name in ("over", "scenarios") if name in own} if tool == "compare" else {}


def _compared(reading: Reading) -> dict[str, Any]:
    """'8 H100 or 4 B200' as scenarios, 'H100 or B200' and 'Llama or Qwen' as values of one field."""
    devices = reading.accelerators[:8]
    if len(devices) > 1:
        if len({device.count for device in devices}) == 1:
            return {"over": {"accelerator": [device.id for device in devices]}}
        return {
            "scenarios": [
                {"name": f"{device.count or ''} {device.id}".strip(), "accelerator": device.id}
                | ({"count": device.count} if device.count else {})
                for device in devices
            ]
        }
    return {"over": {"model": reading.models[:8]}}


def offered(reading: Reading, topic: dict[str, Any], plan: Mapping[str, Any]) -> tuple[dict[str, Any], str] | None:
    """The cluster that was recommended last, for a question about it: (patch, what is said about that)."""
    taken = re.search(TAKES, reading.text.lower())
    offers = topic.get("offers") or []
    offer = offers[min(_PLACES.get(taken[1], 0), len(offers) - 1)] if offers and taken else topic.get("offer")
    searches = reading.wish and reading.wish.tool in SEARCHES_HARDWARE
    repeats = topic.get("wish") and not (
        taken or _intents(reading) or reading.limit or reading.sweep or reading.wish or reading.both
    )
    if not offer or searches or repeats or get(plan, "cluster.accelerator") or reading.accelerators or reading.over:
        return None
    named = {slot.path for slot in reading.slots}
    # Files are for a program of their own, and what is named now goes before.
    files = {"workload.framework"} if reading.targets else set()
    patch = {path: value for path, value in offer.items() if get(plan, path) is None and path not in named | files}
    topic.pop("wish", None)
    return patch, f"{offer['cluster.count']} x {offer['cluster.accelerator']} taken, as recommended before"


def settle(
    plan: dict[str, Any], topic: dict[str, Any], outcomes: list[Outcome]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plan and topic after a wish was answered: a loaded scenario is the plan, a recommended cluster is remembered."""
    outcome = outcomes[0] if outcomes else None
    result: Any = outcome.result if outcome else None
    if outcome is None or result is None:
        return plan, topic
    if isinstance(result, RecommendedCluster | AutoConfigured):
        return plan, topic | _offers(result)
    plans = ([*topic.get("plans", []), plan] if plan else topic.get("plans", []))[-20:]
    match outcome.call.name:
        case "import_config":
            imported: ImportedConfig = result
            of_serving = (imported.plan.get("workload") or {}).get("kind") == "inference"
            intents = ["time"] if of_serving else ["fit", "time"]
            return imported.plan, {**topic, "plans": plans, "wish": None, "intents": intents}
        case "load_scenario":
            loaded: LoadedScenario = result
            return loaded.plan, {**topic, "plans": plans, "wish": None, "intents": []}
        case "save_scenario":
            saved: SavedScenario = result
            return plan, {**topic, "saved": [*topic.get("saved", []), saved.name][-20:]}
    return plan, topic


def _offers(result: RecommendedCluster | AutoConfigured) -> dict[str, Any]:
    """What recommended clusters give the plan when the next question takes one up; the first unless it says which."""
    if isinstance(result, RecommendedCluster):
        offers = [_offer(option) for option in result.options[:_MOST_OFFERS]]
    else:
        method = get(result.plan or {}, "workload.method")
        offers = [_offer(result.option) | ({"workload.method": method} if method else {})] if result.option else []
    return {"offer": offers[0], "offers": offers} if offers else {}


def _offer(option: ClusterOption) -> dict[str, Any]:
    offer = {"cluster.accelerator": option.accelerator, "cluster.count": option.count}
    return offer | ({"workload.framework": option.framework} if option.framework else {})
