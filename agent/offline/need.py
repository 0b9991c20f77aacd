"""How much memory a model needs where no device is named: what all of it takes, and which cards hold it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.offline import memory_answer, sections, serving_sections
from agent.offline.small_talk import not_placed
from agent.wire import Outcome
from estimator.plan.schema import merge
from pages import figures

# Cards of 24, 80 and 192 GB: whatever one has in mind, one of these is near it.
_CARDS = ("rtx-4090", "h100-sxm", "mi300x")
# What all of it takes is asked of one device, which need not hold it.
_ONE = "h100-sxm"


def calls(arguments: Mapping[str, Any], serving: bool, outcomes: list[Outcome]) -> list[tuple[str, dict[str, Any]]]:
    """The estimate on one device, and the fewest of each of the common cards."""
    if outcomes:
        return []
    estimate = "estimate_inference" if serving else "estimate_training"
    kind = {"plan": merge(arguments.get("plan") or {}, {"workload": {"kind": "inference"}})} if serving else {}
    rest = {name: value for name, value in arguments.items() if name not in ("count", "per_node")} | kind
    fewest = [("find_limit", rest | {"accelerator": card, "goal": "devices"}) for card in _CARDS]
    return [(estimate, dict(arguments) | {"accelerator": _ONE, "count": arguments.get("count", 1)}), *fewest]


def compose(work: Mapping[str, Any], outcomes: list[Outcome]) -> tuple[str, list[str]]:
    """The answer and what it asks: the sum first, its parts, then which cards hold it."""
    unread = [not_placed(work["unread"])] if work.get("unread") else []
    first, *limits = outcomes
    if first.error:
        return "\n\n".join([f"I cannot work that out as asked. {first.error}", *unread]), [first.error]
    found = first.response
    plan, memory = found["plan"], found["memory"]
    serving = plan["workload"]["kind"] == "inference"
    devices = plan["cluster"]["count"]
    whose = "if one GPU held all of it" if devices == 1 else f"on each of {devices} GPUs"
    model = str(plan["model"]).rpartition("/")[2] if isinstance(plan["model"], str) else "your model"
    workload = plan["workload"]
    what = f"serve {model}" if serving else f"train {model} ({workload['method']} {workload['stage']})"
    blocks = [f"**About {figures.gib(memory['per_device_bytes'])}** of device memory to {what}, {whose}."]
    rows = ["| Card | fewest | memory on each |", "| --- | ---: | ---: |"]
    for outcome in limits:
        card = outcome.call.arguments["accelerator"]
        if outcome.error or outcome.response["value"] is None:
            rows.append(f"| {card} | none that I tried | |")
        else:
            each = figures.gib(outcome.response["memory"]["per_device_bytes"])
            rows.append(f"| {card} | {outcome.response['value']:,} | {each} |")
    blocks.append("\n".join(rows))
    blocks.append(serving_sections.memory(memory, plan)[0] if serving else memory_answer.table(memory))
    blocks.append("Name your GPUs for speed, cost and the best layout.")
    said = serving_sections.assumptions if serving else sections.assumptions
    return "\n\n".join([*blocks, *said([found], work["notes"]), *unread]), []
