"""How much memory a model needs where no device is named: what all of it takes, and which cards hold it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.offline.calls.training import Calls
from agent.offline.turn import TurnWork
from agent.wire import Outcome
from estimator.plan.schema import merge
from planner.partial import flat, is_serving
from tools.registry import Tool

# Cards of 24, 80 and 192 GB: whatever one has in mind, one of these is near it.
_CARDS = ("rtx-4090", "h100-sxm", "mi300x")
# What all of it takes is asked of one device with room for any of it: nothing is moved to the host or given up.
_ONE, _ROOM_GIB = "h100-sxm", 100_000


def next_calls(plan: Mapping[str, Any], work: TurnWork, outcomes: list[Outcome], tools: Mapping[str, Tool]) -> Calls:
    """The estimate on one device, and the fewest of each of the common cards."""
    if outcomes:
        return []
    arguments, serving = flat(plan), is_serving(plan)
    estimate = "estimate_inference" if serving else "estimate_training"
    kind = {"plan": merge(arguments.get("plan") or {}, {"workload": {"kind": "inference"}})} if serving else {}
    # What a model needs is what one request needs, or one sequence at a time, unless a load or a batch is named.
    named = {"concurrency", "request_rate", "micro_batch", "global_batch"} & arguments.keys()
    load = {} if named else {"concurrency" if serving else "micro_batch": 1}
    arguments = arguments | load
    rest = {name: value for name, value in arguments.items() if name not in ("count", "per_node")} | kind
    fewest = [("find_limit", rest | {"accelerator": card, "goal": "devices"}) for card in _CARDS]
    room = {} if serving else {"usable_gib": _ROOM_GIB}
    return [(estimate, arguments | room | {"accelerator": _ONE, "count": arguments.get("count", 1)}), *fewest]
