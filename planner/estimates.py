"""The estimate of a plan of either kind, and what tools that take both ask of it."""

from __future__ import annotations

from collections.abc import Sequence

from estimator.plan.schema import Inference, Plan
from knowledge.figures import plain
from planner.result import Assumption
from planner.serving import warnings as serving_warnings
from planner.serving.planned import Served, plan_serving
from planner.training import planned as training
from planner.training.planned import Planned, plan_to_fit, plan_training

PlanEstimate = Planned | Served


def estimate_plan(plan: Plan, own_usd: float | None = None) -> PlanEstimate:
    """As `plan_training`, or `plan_serving` with the user's own price per device and hour. Raises PlanError."""
    return plan_serving(plan, own_usd=own_usd) if isinstance(plan.workload, Inference) else plan_training(plan)


def estimate_written(plan: Plan) -> PlanEstimate:
    """The same of what files say: what a framework that they name would not do unasked is not switched on."""
    if isinstance(plan.workload, Inference):
        return plan_serving(plan)
    return plan_training(plan, beyond_usual=plan.training.framework == "auto")


def estimate_to_fit(plan: Plan) -> PlanEstimate:
    """The estimate that a verdict rests on. Raises PlanError."""
    return plan_serving(plan) if isinstance(plan.workload, Inference) else plan_to_fit(plan)


def warnings_of(estimate: PlanEstimate) -> list[str]:
    return serving_warnings.warnings_of(estimate) if isinstance(estimate, Served) else training.warnings_of(estimate)


def run_warnings_of(estimate: PlanEstimate) -> list[str]:
    """The same with what the length of a run rests on."""
    return [*uncounted(estimate), *warnings_of(estimate)]


def uncounted(estimate: PlanEstimate) -> list[str]:
    """Of a run whose samples have no known length: hours and money are in proportion to it."""
    filled = estimate.job.assumptions if isinstance(estimate, Planned) and estimate.job.run else ()
    lengths = [item.value for item in filled if item.field == "workload.sample_tokens"]
    return [
        f"no length of samples is known, each counts as full ({plain(length)} tokens): it may take much less"
        for length in lengths
    ]


def warning_kinds_of(estimate: PlanEstimate) -> dict[str, str]:
    """The warnings that figures of the estimate say too, by their text."""
    if isinstance(estimate, Served):
        return serving_warnings.kinds_of(estimate)
    return training.warning_kinds_of(estimate)


def component_bytes(estimate: PlanEstimate) -> dict[str, float]:
    """Bytes per device by component."""
    memory = estimate.estimates.memory
    entry = estimate.entry if isinstance(estimate, Served) else estimate.index
    return {name: float(values[entry]) for name, values in memory.components.items()}


def common_assumptions(estimates: Sequence[PlanEstimate]) -> list[Assumption]:
    """What was assumed alike in all of several estimates; what differs stands in the rows."""
    lists = [estimate.assumptions for estimate in estimates]
    return [item for item in lists[0] if all(item in other for other in lists[1:])] if lists else []
