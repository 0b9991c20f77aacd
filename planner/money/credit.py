"""What credits pay of a bill, which end on a day and leave the rest to be paid."""

from __future__ import annotations

from datetime import date, timedelta

from estimator.money.cost import paid_by_credits
from estimator.plan.calendar import DAY_H, WEEK_D, FreeHours
from estimator.plan.schema import Goal
from planner.clock import today
from planner.money.results import CostEstimate, CreditUse

_ALWAYS = FreeHours(DAY_H, WEEK_D)


def credit_use(goal: Goal, cost: CostEstimate) -> CreditUse | None:
    """None where the plan names no credits, or no price is known."""
    if goal.credits_usd is None or cost.usd is None or cost.usd_total is None:
        return None
    end = goal.credits_end
    # From tomorrow on: an answer of the evening holds in the morning.
    tomorrow, free = today() + timedelta(days=1), goal.free or _ALWAYS
    left_h = None if end is None else free.free_between(tomorrow, date.fromisoformat(end))
    paid = paid_by_credits(cost.usd_total, cost.hours, goal.credits_usd, left_h)
    high = cost.usd_total - cost.usd + (cost.usd if cost.high_usd is None else cost.high_usd)
    return CreditUse(
        credits_usd=goal.credits_usd,
        end=end,
        hours_left=left_h,
        paid_usd=paid,
        left_usd=cost.usd_total - paid,
        high_left_usd=high - paid_by_credits(high, cost.high_hours, goal.credits_usd, left_h),
        lost_usd=goal.credits_usd - paid,
    )
