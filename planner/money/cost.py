"""What a run costs, on demand and otherwise, here and elsewhere, and what is not in the price."""

from __future__ import annotations

from pydantic import Field

from estimator.plan.schema import Inference, Plan
from planner.money import serving, training
from planner.money.results import CostEstimate
from planner.money.terms import CostTerms
from planner.requests import EitherRequest


class CostRequest(EitherRequest, CostTerms):
    """A plan, and the terms on which its devices are paid for."""

    cheaper: bool = Field(False, description="Whether to look for ways to pay less for a training run; takes longer.")


def estimate_cost(request: CostRequest) -> CostEstimate:
    """Estimate what a run costs."""
    return bill_of(request.to_plan(), request, cheaper=request.cheaper)


def bill_of(plan: Plan, terms: CostTerms, *, cheaper: bool = False) -> CostEstimate:
    """Raises PlanError where the length of a training run is not known, or terms contradict each other."""
    if isinstance(plan.workload, Inference):
        return serving.bill_of(plan, terms)
    return training.bill_of(plan, terms, cheaper=cheaper)
