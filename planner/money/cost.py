"""What a run costs, on demand and otherwise, here and elsewhere, and what is not in the price."""

from __future__ import annotations

from estimator.errors import PlanError
from estimator.plan.schema import Inference, Plan
from planner.asked.money import CostRequest, CostTerms
from planner.estimates import PlanEstimate
from planner.money import serving, training
from planner.money.apis import NamedApi
from planner.money.results import CostEstimate, OwnMoney
from planner.money.training import NOTHING, Wanted
from planner.training.planned import Planned


def estimate_cost(request: CostRequest) -> CostEstimate:
    """Estimate what a run costs."""
    wanted = Wanted(request.cheaper, request.faster, request.more_usd, named_api(request))
    rate = request.rate
    cost = bill_of(request.to_plan(), request, wanted)
    cost.own_money = in_own_money(cost, *rate) if rate else None
    return cost


def named_api(request: CostRequest) -> NamedApi | None:
    """Raises PlanError where prices of prompts stand without that of outputs."""
    if request.api_usd is not None:
        return NamedApi(request.api_usd, request.api_input_usd, request.api_cached_usd)
    for name in ("api_input_usd", "api_cached_usd"):
        if getattr(request, name) is not None:
            raise PlanError(name, "needs the price of output tokens beside it", ["api_usd=0.8"])
    return None


def in_own_money(cost: CostEstimate, currency: str, usd_each: float) -> OwnMoney | None:
    """None where no price is known."""
    if cost.usd is None or cost.low_usd is None or cost.high_usd is None:
        return None
    return OwnMoney(
        currency=currency,
        usd_each=usd_each,
        amount=cost.usd / usd_each,
        low_amount=cost.low_usd / usd_each,
        high_amount=cost.high_usd / usd_each,
        per_hour=None if cost.usd_per_hour is None else cost.usd_per_hour / usd_each,
    )


def bill_of(plan: Plan, terms: CostTerms, wanted: Wanted = NOTHING, known: PlanEstimate | None = None) -> CostEstimate:
    """Of a plan whose estimate may be `known`. Raises PlanError where the length of a training run is not, or terms
    contradict each other."""
    if isinstance(plan.workload, Inference):
        return serving.bill_of(plan, terms, wanted.api)
    return training.bill_of(plan, terms, wanted, known if isinstance(known, Planned) else None)
