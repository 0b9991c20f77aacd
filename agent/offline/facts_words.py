"""Questions about a model or a device of the catalogue, and what they leave for the question after."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agent.offline import vocabulary
from agent.offline.comparing import COMPARES
from agent.offline.page import ACCELERATOR, MODEL, Page
from agent.offline.slots import Device, Relative, Slot
from planner.partial import get

_ON_HARDWARE = re.compile(rf"\b(?:on|with|using|to)\s[^.?!]{{0,16}}{ACCELERATOR}", re.I)
_EACH = re.compile(r"\b(?:each|both|either|the two|them|they|these|those)\b", re.I)
_ITS = re.compile(r"\b(?:its?|that one|this one|that (?:card|model|gpu)|this (?:card|model|gpu))\b", re.I)
_A_FACT = re.compile(
    r"\b(?:context|window|layers?|heads?|experts?|param(?:eter)?s?|size|licen[cs]e|vocab\w*|hidden|architecture|released?|"
    r"old|t?flops|bandwidth|memory|vram|power|watts?|tdp|nvlink|prices?|costs?|rent|longest|max(?:imum)?)\b"
)


def asks_run(slots: list[Slot | Relative]) -> bool:
    """Whether more was said than what is asked about."""
    return any(slot.path not in ("model", "cluster.accelerator", "goal.provider") for slot in slots)


def facts_again(page: Page, plan: Mapping[str, Any], topic: Mapping[str, Any]) -> str | None:
    """'And the MI325X?' after a question about another device, or another model, of a catalogue."""
    before = (topic.get("turn") or {}).get("facts")
    if not before or plan.get("model"):
        return None
    hardware, models = page.of("accelerator", "instance"), page.of("model", "path")
    if before[0][0] == "describe_hardware" and hardware and not models:
        return "hardware"
    return "model" if before[0][0] == "describe_model" and models and not hardware else None


def again_about(
    named: str, plan: Mapping[str, Any], topic: Mapping[str, Any], elsewhere: bool
) -> tuple[list[str], list[Device]]:
    """(Models, devices) that a question about the catalogue was about, for one that goes on without a name: 'and its
    context?', 'what does each cost?'; `elsewhere`: it names another provider, 'and on RunPod?'."""
    before = (topic.get("turn") or {}).get("facts") or []
    asks = _EACH.search(named) if len(before) > 1 else _ITS.search(named)
    if plan.get("model") or not ((asks and _A_FACT.search(named)) or elsewhere):
        return [], []
    models = [row[1]["model"] for row in before if row[0] == "describe_model"]
    return models, [Device(row[1]["accelerator"], None) for row in before if row[0] == "describe_hardware"]


def described(plan: Mapping[str, Any], topic: Mapping[str, Any], kind: str) -> str | None:
    """The one model or device that the question before was about, where the plan has none."""
    before = (topic.get("turn") or {}).get("facts") or []
    if not before or before[-1][0] != f"describe_{kind}":
        return None
    known = get(plan, "model" if kind == "model" else "cluster.accelerator")
    return None if known else str(next(iter(before[-1][1].values())))


# What a model has, whatever layout it is asked for.
_OF_A_MODEL = re.compile(
    r"\bhow many (?:(?:kv|key[- ]value|query|attention|hidden|transformer) )*(?:heads|layers|blocks|experts)\b"
)


def facts_asked(
    named: str,
    page: Page,
    plan: Mapping[str, Any],
    models: list[str],
    accelerators: list[Device],
    slots: list[Slot | Relative],
) -> str | None:
    """Whether this asks about a model or a device rather than about a run."""
    run = {
        name
        for name, pattern in vocabulary.INTENTS
        if name in ("write", "render", "layout") and re.search(pattern, named)
    }
    if run or re.search(vocabulary.TRAINING, named):
        return None
    wanted = {slot.path for slot in slots} - {
        "model",
        "cluster.accelerator",
        "cluster.count",
        "note",
        "goal.provider",
        "goal.objective",
        "workload.precision",
        *(["cluster.per_node"] if page.of("instance") else []),
    }
    if wanted and not (_OF_A_MODEL.search(named) and all(path.startswith("layout.") for path in wanted)):
        return None
    if page.of("model", "path") and not page.of("accelerator", "instance"):
        return "model" if re.search(vocabulary.MODEL_FACTS, named.replace(MODEL, " ")) else None
    ran = plan.get("model") and (
        _ON_HARDWARE.search(named)
        or any(slot.path == "cluster.count" and slot.value != 1 for slot in slots if isinstance(slot, Slot))
    )
    if page.of("accelerator", "instance") and not page.of("model", "path") and not ran:
        beside = len(accelerators) > 1 and not plan.get("model") and re.search(COMPARES, named)
        return "hardware" if beside or re.search(vocabulary.HARDWARE_FACTS, named) else None
    return None
