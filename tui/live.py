"""What the plan at hand comes to, for the pane beside the conversation. Slow enough to be called in a thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from estimator.errors import PlanError
from planner.money.results import CostEstimate
from planner.results import TrainingEstimate
from planner.serving.results import ServingEstimate
from tools.registry import find
from tui.plan_fields import kind_of

Data = Mapping[str, Any]

# What a run costs cannot be said before its length is known; what an hour or a token costs can.
_ANY_LENGTH = {"dataset_tokens": 1e9}


class Rates(BaseModel):
    """What a run of unknown length costs by the hour and by the token."""

    plan: dict[str, Any]
    usd_per_hour: float | None
    usd_per_million_tokens: float | None


def results_of(plan: Data) -> list[BaseModel]:
    """The results of the estimate, and of the cost where there is a price. Raises PlanError."""
    serving = kind_of(plan) == "inference"
    estimate = find("estimate_inference" if serving else "estimate_training").run({"plan": dict(plan)})
    assert isinstance(estimate, TrainingEstimate | ServingEstimate)
    # Of the plan as completed: the layout is not searched again.
    endless = isinstance(estimate, TrainingEstimate) and estimate.run is None
    cost = _cost({"plan": estimate.plan} | (_ANY_LENGTH if endless else {}))
    if cost is None:
        return [estimate]
    rates = Rates(
        plan=estimate.plan, usd_per_hour=cost.usd_per_hour, usd_per_million_tokens=cost.usd_per_million_tokens
    )
    return [estimate, rates if endless else cost]


def _cost(arguments: dict[str, Any]) -> CostEstimate | None:
    """None where the price or the length of the run is not known."""
    try:
        cost = find("estimate_cost").run(arguments)
    except PlanError:
        return None
    assert isinstance(cost, CostEstimate)
    return cost
