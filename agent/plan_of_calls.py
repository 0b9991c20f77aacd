"""What a language model's tool calls say about the session's plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent.wire import Call
from estimator.errors import PlanError
from planner.partial import nested
from planner.requests import PlanArguments
from tools.registry import Tool


def plan_of(calls: Sequence[Call], tools: Mapping[str, Tool]) -> dict[str, Any] | None:
    """The plan of the last call that takes one and names a model; None when there is no such call."""
    return next((plan for plan in _plans(reversed(calls), tools) if plan.get("model") is not None), None)


def _plans(calls: Iterable[Call], tools: Mapping[str, Tool]) -> Iterable[dict[str, Any]]:
    for call in calls:
        if call.name not in tools or "plan" not in tools[call.name].request.model_fields:
            continue
        request = _parsed(call, tools)
        arguments = call.arguments
        if isinstance(arguments.get("plan"), str) and request is not None:
            # The name of a scenario, in whose place goes its plan.
            arguments = {**arguments, "plan": getattr(request, "plan", None)}
        yield nested(arguments, isinstance(request, PlanArguments) and _serves(request))


def _parsed(call: Call, tools: Mapping[str, Tool]) -> Any:
    try:
        return tools[call.name].parse(call.arguments)
    except PlanError:
        return None


def _serves(request: PlanArguments) -> bool:
    """Arguments that make no plan are taken as for training."""
    try:
        return request.to_plan().workload.kind == "inference"
    except PlanError:
        return False
