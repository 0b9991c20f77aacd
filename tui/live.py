"""What the plan at hand comes to, for the pane beside the conversation. Slow enough to be called in a thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator.errors import PlanError
from tools.registry import find
from tui.plan_fields import kind_of

Data = Mapping[str, Any]

# What a run costs cannot be said before its length is known; what an hour or a token costs can.
_ANY_LENGTH = {"dataset_tokens": 1e9}
_OF_ANY_LENGTH = ("plan", "usd_per_hour", "usd_per_million_tokens")


def results_of(plan: Data) -> list[Data]:
    """The results of the estimate, and of the cost where there is a price. Raises PlanError."""
    serving = kind_of(plan) == "inference"
    estimate = find("estimate_inference" if serving else "estimate_training")({"plan": dict(plan)})
    whole = estimate["plan"]
    # Of the plan as completed: the layout is not searched again.
    if serving or estimate["run"] is not None:
        cost = _cost({"plan": whole})
    else:
        any_length = _cost({"plan": whole} | _ANY_LENGTH)
        cost = {key: any_length[key] for key in _OF_ANY_LENGTH} | {"plan": whole} if any_length else None
    return [estimate, cost] if cost else [estimate]


def _cost(arguments: dict[str, Any]) -> Data | None:
    """None where the price or the length of the run is not known."""
    try:
        return find("estimate_cost")(arguments)
    except PlanError:
        return None
