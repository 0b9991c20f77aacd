"""What a run costs, on demand and otherwise, here and elsewhere, and what is not in the price."""

from __future__ import annotations

from pydantic import Field

from estimator.plan.schema import Inference, Plan
from planner.estimates import PlanEstimate
from planner.money import serving, training
from planner.money.results import CostEstimate
from planner.money.terms import CostTerms
from planner.money.training import NOTHING, Wanted
from planner.requests import EitherRequest
from planner.training.planned import Planned


class CostRequest(EitherRequest, CostTerms):
    """A plan, and the terms on which its devices are paid for."""

    cheaper: bool = Field(False, description="Ways to pay less for training too; takes longer.")
    faster: bool = Field(False, description="Ways to be done sooner, with what they cost.")
    more_usd: float | None = Field(None, gt=0, le=1e12, description="What so much more money would buy, in USD.")


def estimate_cost(request: CostRequest) -> CostEstimate:
    """Estimate what a run costs."""
    return bill_of(request.to_plan(), request, Wanted(request.cheaper, request.faster, request.more_usd))


def bill_of(plan: Plan, terms: CostTerms, wanted: Wanted = NOTHING, known: PlanEstimate | None = None) -> CostEstimate:
    """Of a plan whose estimate may be `known`. Raises PlanError where the length of a training run is not, or terms
    contradict each other."""
    if isinstance(plan.workload, Inference):
        return serving.bill_of(plan, terms)
    return training.bill_of(plan, terms, wanted, known if isinstance(known, Planned) else None)
