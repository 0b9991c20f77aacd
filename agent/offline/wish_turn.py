"""What a turn's wish is once the session is known, and what stays of it for the turns after."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agent.offline import small_talk
from agent.offline.patching import flat, get
from agent.offline.reading import Reading
from agent.offline.slots import Slot
from agent.offline.wish_calls import of_hardware, own_arguments
from agent.offline.wishes import FREE, REPEATED, SEARCHES_HARDWARE, vendors_of
from agent.wire import Outcome
from estimator.plan import merge
from tools.registry import Tool
from tools.requests import ALL_PATHS, FLAT_PATHS

_Wish = tuple[str, dict[str, Any]]
_FLAT = {path: name for name, path in FLAT_PATHS.items()}
_FLAT_ALL = {path: name for name, path in ALL_PATHS.items()}
_MORE = re.compile(r"\b(?:add|also|too|as well|include|including|plus)\b", re.IGNORECASE)
# What a recommended cluster gives the plan when the next question takes it up.
_TAKEN = {"accelerator": "cluster.accelerator", "count": "cluster.count"}


def free_call(reading: Reading, plan: Mapping[str, Any], tools: Mapping[str, Tool]) -> _Wish | str | None:
    """The call of a wish that is about no plan, or the answer where there is nothing to call."""
    wish = reading.wish
    if wish is None or (wish.tool not in FREE and wish.tool != "diff_scenarios"):
        return None
    if wish.tool == "own":
        return small_talk.own(str(wish.own["kind"]))
    if wish.tool == "diff_scenarios":
        if not plan.get("model") and "b" not in wish.own:
            return small_talk.NOTHING_TO_COMPARE
        return "diff_scenarios", {"b": merge(plan, {})} | wish.own
    if wish.tool not in tools:
        return small_talk.NO_IMPORT
    if wish.tool == "import_config":
        fields = tools["import_config"].request.model_fields
        said = {_FLAT_ALL[slot.path]: slot.value for slot in reading.slots
                if isinstance(slot, Slot) and slot.path in _FLAT_ALL and slot.value is not None}  # fmt: skip
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
    from agent.offline.pasted import content

    text = content(path)
    return small_talk.no_file(path) if text is None else ("import_config", {"files": {path: text}} | said)


def extended(reading: Reading, topic: Mapping[str, Any]) -> Reading:
    """'Add ZeRO-1 too' after a comparison: one more value to compare, not a change of the plan."""
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
    rest = {FLAT_PATHS[name]: kept for name, kept in over.items() if FLAT_PATHS[name] not in values}
    return replace(reading, slots=[slot for slot in reading.slots if slot.path not in more], over=values | rest)


def wish_of(reading: Reading, topic: dict[str, Any], plan: Mapping[str, Any], serving: bool) -> _Wish | None:
    """This turn's wish about the plan, one of the turn before where nothing else is asked, or None.

    `topic` keeps it for the turn after.
    """
    if (found := _said(reading, topic, plan, serving)) is not None:
        tool, own = found
        found = tool, own_arguments(tool, own, reading, plan)
        if tool in REPEATED:
            topic["wish"] = list(found)
        return found
    before = topic.get("wish")
    asks = reading.intents or reading.limit or reading.sweep or reading.choices
    narrows = before and before[0] in SEARCHES_HARDWARE and (
        any(reading.most) or reading.providers or vendors_of(reading.text)
    )  # fmt: skip
    if before is None or asks or serving or not (reading.slots or reading.pricing or narrows):
        topic.pop("wish", None)
        return None
    tool, own = before[0], dict(before[1])
    said = {_FLAT.get(slot.path, slot.path) for slot in reading.slots}
    if said & set(own.get("over") or {}) or (of_hardware(own) and "accelerator" in said):
        topic.pop("wish", None)
        return None
    if tool == "recommend_cluster" and reading.accelerators:
        own.pop("vendors", None)
    own = own_arguments(tool, own, reading, plan)
    topic["wish"] = [tool, own]
    return tool, own


def _said(reading: Reading, topic: Mapping[str, Any], plan: Mapping[str, Any], serving: bool) -> _Wish | None:
    over = {_FLAT[path]: values for path, values in reading.over.items() if path in _FLAT}
    if reading.wish and reading.wish.tool not in FREE:
        own = {"over": over} if over and reading.wish.tool == "report" else {}
        return reading.wish.tool, reading.wish.own | own
    if serving:
        return None
    if over:
        return "compare", {"over": over}
    if reading.compare:
        return "compare", _compared(reading)
    if reading.both and (plans := topic.get("plans")) and not reading.slots:
        return "compare", {
            "scenarios": [{"name": "before", "plan": plans[-1]}, {"name": "now", "plan": merge(plan, {})}]
        }
    sweep = reading.sweep
    if sweep and sweep.scales and sweep.nodes:
        last = sweep.values[1] or 64
        first = sweep.values[0] or 1
        nodes: Any = last if first == 1 else f"{first}..{last}"
        return "project_scaling", {"nodes": nodes} | ({"scaling": "weak"} if sweep.weak else {})
    return None


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
    offer = topic.get("offer")
    searches = reading.wish and reading.wish.tool in SEARCHES_HARDWARE
    repeats = topic.get("wish") and not (
        reading.intents or reading.limit or reading.sweep or reading.wish or reading.both
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
    if outcome is None or outcome.error:
        return plan, topic
    found = outcome.response
    if outcome.call.name == "import_config":
        plans = [*topic.get("plans", []), plan] if plan else topic.get("plans", [])
        of_serving = (found["plan"].get("workload") or {}).get("kind") == "inference"
        intents = ["time"] if of_serving else ["fit", "time"]
        return dict(found["plan"]), {**topic, "plans": plans[-20:], "wish": None, "intents": intents}
    if outcome.call.name == "load_scenario":
        plans = [*topic.get("plans", []), plan] if plan else topic.get("plans", [])
        return dict(found["plan"]), {**topic, "plans": plans[-20:], "wish": None, "intents": []}
    option = found.get("option") if outcome.call.name == "auto_configure" else None
    if outcome.call.name == "recommend_cluster" and found["options"]:
        option = found["options"][0]
    if option:
        offer = {path: option[name] for name, path in _TAKEN.items() if option.get(name)}
        workload = (found.get("plan") or {}).get("workload") or {}
        if option.get("framework"):
            offer["workload.framework"] = option["framework"]
        if outcome.call.name == "auto_configure" and workload.get("method"):
            offer["workload.method"] = workload["method"]
        return plan, {**topic, "offer": offer}
    return plan, topic


__all__ = ["extended", "flat", "free_call", "offered", "settle", "wish_of"]
