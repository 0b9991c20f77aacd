"""find_limit: how far a plan can go before it no longer fits."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from estimator.errors import PlanError
from estimator.plan.schema import Inference, Plan
from planner.limits import serving, training
from planner.limits.models import model_candidates
from planner.requests import EitherRequest
from planner.results import Limit

_SERVING_GOALS = ("context", "input_len", "concurrency")


class LimitRequest(EitherRequest):
    goal: Literal["seq_len", "micro_batch", "model", "devices", "context", "input_len", "concurrency"] = Field(
        description="What to push to its limit: seq_len, micro_batch, model (largest) or devices (least); of serving "
        "also context (longest request), input_len (longest prompt) or concurrency (most requests at once)."
    )
    family: str | None = Field(
        None, description="For goal model: a family such as llama or qwen2.5, or any; else that of the plan's model."
    )

    def asks_serving(self) -> bool:
        return self.goal in _SERVING_GOALS


def find_limit(request: LimitRequest) -> Limit:
    """Find how far a plan can go."""
    if request.family is not None and request.goal != "model":
        raise PlanError("family", f"goes with goal model alone, not with {request.goal}", ["goal=model"])
    plan, named = _plan_of(request)
    candidates = model_candidates(plan, request.family, named) if request.goal == "model" else None
    kind = serving if isinstance(plan.workload, Inference) else training
    return kind.limit_of(request.goal, plan, candidates)


def _plan_of(request: LimitRequest) -> tuple[Plan, bool]:
    """The plan, and whether it names a model: the search for the largest one needs none."""
    fields = {**(request.plan or {}), **request.model_dump(include={"model"}, exclude_none=True)}
    named = bool(fields.get("model"))
    if request.goal == "model" and not named:
        request = request.model_copy(update={"model": "any"})
    return request.to_plan(), named
