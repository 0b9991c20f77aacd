"""find_limit: how far a plan can go before it no longer fits."""

from __future__ import annotations

from estimator.errors import PlanError
from estimator.plan.schema import Inference, Plan, Training
from planner.asked.training import SERVING_GOALS, LimitRequest
from planner.limits import serving, training
from planner.limits.data import most_tokens
from planner.limits.models import finishing, model_candidates
from planner.results import Limit


def find_limit(request: LimitRequest) -> Limit:
    """Find how far a plan can go."""
    if request.family is not None and request.goal != "model":
        raise PlanError("family", f"goes with goal model alone, not with {request.goal}", ["goal=model"])
    plan, named = _plan_of(request)
    if request.goal == "tokens":
        if isinstance(plan.workload, Inference):
            raise PlanError("goal", "tokens is of training, but the plan is for serving", SERVING_GOALS)
        return most_tokens(plan)
    candidates = model_candidates(plan, request.family, named) if request.goal == "model" else None
    timed = candidates is not None and plan.goal.hours_on(1) is not None and _knows_length(plan)
    if candidates and timed:
        candidates = finishing(plan, candidates)
    if isinstance(plan.workload, Inference):
        limit = serving.limit_of(request.goal, plan, candidates)
    else:
        limit = training.limit_of(request.goal, plan, candidates)
    return limit.model_copy(update={"warnings": [*_not_looked_at(plan, timed), *limit.warnings]})


def _knows_length(plan: Plan) -> bool:
    """Whether it is known, or follows from the model, how many tokens a run takes."""
    workload = plan.workload
    return isinstance(workload, Training) and bool(workload.dataset_tokens or workload.stage == "pretrain")


def _not_looked_at(plan: Plan, timed: bool) -> list[str]:
    """What the plan wants besides fitting, which the limit does not keep to."""
    wanted = {
        "the deadline": plan.goal.deadline_h if not timed else None, "the budget": plan.goal.budget_usd,
        "the device-hours": plan.goal.budget_device_hours if not timed else None,
    }  # fmt: skip
    named = [name for name, value in wanted.items() if value]
    text = f"not checked: {' and '.join(named)}; a run at this limit may take longer or cost more"
    return [text] if named else []


def _plan_of(request: LimitRequest) -> tuple[Plan, bool]:
    """The plan, and whether it names a model: the search for the largest one needs none."""
    fields = {**(request.plan or {}), **request.model_dump(include={"model"}, exclude_none=True)}
    named = bool(fields.get("model"))
    if request.goal == "model" and not named:
        request = request.model_copy(update={"model": "any"})
    return request.to_plan(), named
