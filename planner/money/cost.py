"""What a run costs, on demand and otherwise, here and elsewhere, and what is not in the price."""

from __future__ import annotations

from estimator.plan.schema import Inference, Plan
from planner.asked.money import CostRequest, CostTerms
from planner.estimates import PlanEstimate
from planner.money import serving, training
from planner.money.results import CostEstimate
from planner.money.training import NOTHING, Wanted
from planner.training.planned import Planned


def estimate_cost(request: CostRequest) -> CostEstimate:
    """Estimate what a run costs."""
    wanted = Wanted(request.cheaper, request.faster, request.more_usd, request.api_usd)
    return bill_of(request.to_plan(), request, wanted)


def bill_of(plan: Plan, terms: CostTerms, wanted: Wanted = NOTHING, known: PlanEstimate | None = None) -> CostEstimate:
    """Of a plan whose estimate may be `known`. Raises PlanError where the length of a training run is not, or terms
    contradict each other."""
    if isinstance(plan.workload, Inference):
        return serving.bill_of(plan, terms, wanted.api_usd)
    return training.bill_of(plan, terms, wanted, known if isinstance(known, Planned) else None)
