"""The call that answers a wish: its tool with the plan's arguments and its own, and what must be asked before."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agent.offline.figure_words import by_value
from agent.offline.reading import Reading
from agent.offline.target_words import folder_of, read_targets
from agent.offline.wishes import FREE, SEARCHES_HARDWARE, vendors_of
from agent.wire import Content
from estimator.plan.schema import merge
from planner.partial import flat, get, is_serving
from planner.requests import ALL_PATHS

_THRESHOLD = re.compile(
    r"(?:below|under|at least|above|less than|more than|over|stays? at|[<>]=?)\s*(\d{1,2}(?:\.\d+)?)\s?%", re.IGNORECASE
)
# Of a search for hardware the plan's own cluster and layout are the question, not the answer.
_CLUSTER = ("accelerator", "count", "per_node", "interconnect", "usable_gib")
_LAYOUT = tuple(name for name, path in ALL_PATHS.items() if path.startswith("layout."))
_PRICES = ("price", "usd_per_device_hour", "region", "reserved_discount", "interruptions_per_day", "restart_minutes",
           "checkpoint_interval_minutes", "capex_usd_per_device", "years", "utilisation", "usd_per_kwh",
           "pue")  # fmt: skip


def of_hardware(own: Mapping[str, Any]) -> bool:
    """Whether the scenarios that are compared bring their own devices."""
    return any("accelerator" in one or "plan" in one for one in own.get("scenarios") or ())


def needs(tool: str, own: Mapping[str, Any], reading: Reading) -> set[str]:
    """Plan paths of the essentials that the tool can do without."""
    if tool in FREE or tool == "diff_scenarios":
        return {"model", "cluster.accelerator", "cluster.count"}
    settled: set[str] = set()
    over = own.get("over") or {}
    if tool in SEARCHES_HARDWARE or "accelerators" in own or "accelerator" in over or of_hardware(own):
        settled |= {"cluster.accelerator", "cluster.count"}
    if tool == "peak_throughput":
        settled |= {"cluster.accelerator", "cluster.count"}
    if "models" in own or "model" in over:
        settled |= {"model"}
    if tool == "project_scaling":
        settled |= {"cluster.count"}
    return settled


def own_arguments(tool: str, own: Mapping[str, Any], reading: Reading, plan: Mapping[str, Any]) -> dict[str, Any]:
    """The tool's own arguments, with what else the utterance says that only it takes."""
    found = dict(own)
    ids = [device.id for device in reading.accelerators]
    if tool in SEARCHES_HARDWARE:
        vendors = vendors_of(reading.text)
        devices, nodes = reading.most
        pricing = reading.pricing
        found |= {"vendors": vendors} if vendors and not ids else {}
        found |= {"max_devices": devices} if devices else {}
        found |= {"max_nodes": nodes} if nodes else {}
        found |= {"max_usd_per_hour": pricing["max_usd_per_hour"]} if "max_usd_per_hour" in pricing else {}
        found |= {"providers": reading.providers} if reading.providers else {}
        if reading.providers_left:
            kept = [name for name in found.pop("providers", []) if name not in reading.providers_left]
            found |= {"providers": kept} if kept else {}
        found |= {"region": pricing["region"]} if "region" in pricing else {}
        if (tool == "recommend_cluster" and ids) or (tool == "auto_configure" and len(ids) > 1):
            found["accelerators"] = ids
    if tool == "project_scaling" and (least := _THRESHOLD.search(reading.text)):
        found["efficiency_threshold"] = float(least[1]) / 100
    if tool == "benchmark_matrix":
        if re.search(r"\b(?:overwrite|replace (?:it|them|the old))\b", reading.text, re.IGNORECASE):
            found["overwrite"] = True
        if folder := folder_of(reading.text):
            found["folder"] = folder
        schedulers = {"kubernetes": "kubernetes-trainjob", "docker": "compose"}
        known = ("slurm", "ssh", "compose", "skypilot")
        named = [schedulers.get(name, name) for name in read_targets(reading.text.lower())]
        found |= next(({"scheduler": name} for name in named if name in known or name.startswith("kubernetes-")), {})
        found |= {"accelerators": ids} if len(ids) > 1 else {}
        found |= {"models": list(reading.models)} if len(reading.models) > 1 else {}
    if tool in ("peak_throughput", "apply_strategies"):
        if len(ids) > 1 or (ids and tool == "peak_throughput"):
            found["accelerators"] = ids
        if len(reading.models) > 1 or (reading.models and tool == "peak_throughput"):
            found["models"] = list(reading.models)
    return found


def arguments(
    tool: str, own: Mapping[str, Any], plan: Mapping[str, Any], pricing: Mapping[str, Any], messages: Sequence[Content]
) -> dict[str, Any]:
    """All arguments of the call. `messages` is the conversation, for figures that are named by their value."""
    own = dict(own)
    if tool in FREE:
        return own
    given = _plan_arguments(plan)
    if tool == "diff_scenarios":
        return {"b": merge(plan, {})} | own
    if tool in SEARCHES_HARDWARE:
        dropped = set(_LAYOUT) | (set(_CLUSTER) if tool == "recommend_cluster" or "accelerators" in own else set())
        given = {name: value for name, value in given.items() if name not in dropped}
        if "providers" in own or "provider" in own:
            given.pop("provider", None)
            own.pop("provider", None)
    if tool == "explain":
        if own["figure"] == "first":
            own["figure"] = _told_first(plan, _earlier(messages))
        elif any(letter.isdigit() for letter in own["figure"]) and "." in own["figure"] + ".":
            own["figure"] = by_value(own["figure"], _earlier(messages)) or own["figure"]
        given |= {
            name: pricing[name]
            for name in _PRICES
            if name in pricing and own["figure"] in ("usd", "co2_kg", "kwh", "usd_per_million_tokens")
        }
    swept = set(own.get("over") or {}) | ({"accelerator"} if "accelerators" in own else set())
    swept |= {"model"} if "models" in own else set()
    if of_hardware(own):
        swept |= {"accelerator", "count", "per_node"}
    if tool == "project_scaling":
        swept |= {"count"}
    if tool == "peak_throughput" and "accelerators" in own:
        swept |= {"count", "per_node"} if get(plan, "cluster.count") is None else set()
    if "usd_per_device_hour" in pricing and tool in (
        "compare",
        "project_scaling",
        "peak_throughput",
        "apply_strategies",
        "report",
    ):
        own["usd_per_device_hour"] = pricing["usd_per_device_hour"]
    return {name: value for name, value in given.items() if name not in swept} | own


def _told_first(plan: Mapping[str, Any], earlier: Sequence[Mapping[str, Any]]) -> str:
    """The figure that the last answer was about: 'where does that number come from?'."""
    if is_serving(plan):
        return "latency.ttft_s"
    last = earlier[0] if earlier else {}
    if last.get("usd") is not None and "by_provider" in last:
        return "usd"
    estimate = next((found for found in earlier if "run" in found and "time" in found), {})
    return "hours" if estimate.get("run") else "time.step_s"


def _plan_arguments(plan: Mapping[str, Any]) -> dict[str, Any]:
    found = flat(plan)
    if is_serving(plan):
        found["plan"] = merge(found.get("plan") or {}, {"workload": {"kind": "inference"}})
    return found


def _earlier(messages: Sequence[Content]) -> list[Mapping[str, Any]]:
    """Results of the conversation, the latest first."""
    responses = [
        part["functionResponse"]["response"]
        for content in messages
        for part in content["parts"]
        if part.get("functionResponse")
    ]
    return responses[::-1]
