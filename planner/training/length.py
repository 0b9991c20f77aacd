"""The length of a run whose plan names neither data nor steps."""

from __future__ import annotations

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.models.catalogue import find_architecture
from knowledge.recipes import usual_tokens
from planner.partial import DATA_SIZES
from planner.result import Assumption

DATA = "workload.dataset_tokens"


def with_data(plan: Plan) -> tuple[Plan, list[Assumption]]:
    """A plan that says how long it trains: of pretraining with the usual tokens of its model where it does not.

    Raises PlanError where nobody can know it: how much data there is for fine-tuning is the person's own."""
    training = plan.training
    if any(getattr(training, name) is not None for name in DATA_SIZES):
        return plan, []
    if training.stage != "pretrain":
        problem = "is required to know the length of the run, or dataset_samples, or steps"
        raise PlanError(DATA, problem, ["1B", "300M"])
    model, _ = find_architecture(plan.model)
    tokens, why = usual_tokens(model.id, model.parameters)
    return plan.patch({DATA: tokens}), [Assumption(field=DATA, value=tokens, why=why)]
