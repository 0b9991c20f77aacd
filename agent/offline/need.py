"""How much memory a model needs where no device is named: what all of it takes, and which cards hold it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.offline.outcomes import joined, refused
from agent.wire import Outcome
from estimator.plan.schema import merge
from pages.answers import assumptions, memory
from planner.results import Limit, TrainingEstimate
from planner.serving.results import ServingEstimate

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
    first, *limits = outcomes
    found = first.result
    if not isinstance(found, TrainingEstimate | ServingEstimate):
        blocks, asked = refused(first.error, {})
        return joined(blocks, work), asked
    serving = isinstance(found, ServingEstimate)
    cards = [(outcome.call.arguments["accelerator"], outcome.result) for outcome in limits]
    blocks = memory.need(found, [(card, limit if isinstance(limit, Limit) else None) for card, limit in cards])
    return joined([*blocks, *assumptions.assumed([found], work["notes"], layout=not serving)], work), []
