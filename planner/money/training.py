"""estimate_cost for training: money for the whole run, with its checkpoints in storage."""

from __future__ import annotations

from dataclasses import dataclass

from estimator.money.cost import HOURS_PER_MONTH
from estimator.plan.schema import Plan
from planner.asked.money import CostTerms
from planner.money.apis import NamedApi
from planner.money.bill import Work, bill, paid, per
from planner.money.choice import not_included
from planner.money.credit import credit_use
from planner.money.offers import offers
from planner.money.results import CostEstimate
from planner.money.stored import kept
from planner.money.terms import failures_of, offer_terms, place_of, training_interruptions
from planner.money.ways import PaidRun, bought, savings, speedups
from planner.training.length import with_data
from planner.training.planned import Planned, plan_training
from planner.training.run import elapsed, failure_assumptions, save_hours, step_hours, wall_clock


@dataclass(frozen=True)
class Wanted:
    """What to look for beside the bill: ways to pay less, to be done sooner, and what more money would buy."""

    cheaper: bool = False
    faster: bool = False
    more_usd: float | None = None
    api: NamedApi | None = None


NOTHING = Wanted()


def bill_of(plan: Plan, terms: CostTerms, wanted: Wanted = NOTHING, known: Planned | None = None) -> CostEstimate:
    """With savings where it is over the budget or they are wanted, and ways to be done sooner past the deadline;
    `known` is what `plan_training` has of the plan, where that was asked before.

    Raises PlanError where the plan names neither data nor steps, and is not of pretraining.
    """
    kind, _ = terms.kind(plan.goal.provider), place_of(terms)
    whole, tokens = with_data(plan)
    planned = known if known and whole == plan else plan_training(whole)
    run = planned.job.run
    assert run is not None
    machine = planned.job.machine
    work_h, *_ = ends = step_hours(planned)
    clock = wall_clock(planned.job, ends, failures_of(terms))
    failures = clock.goodput.interruptions / clock.hours if clock.goodput else 0.0
    interruptions, on_spot = training_interruptions(terms, work_h, save_hours(planned.job), failures)
    listed = offers(planned, clock.hours, offer_terms(terms, interruptions, machine.per_node))
    hours = (clock.hours, clock.low_hours, clock.high_hours)
    work = Work(planned, planned.job.plan.goal, hours, work_h, listed, on_spot)
    payment = paid(work, kind, terms)
    stored = kept(planned, terms, payment.chosen)
    assumed = [*tokens, *(failure_assumptions(failures_of(terms)) if clock.goodput else [])]
    cost = bill(work, payment, terms, [*assumed, *stored.assumptions])
    cost.tokens, cost.steps = run.tokens, run.steps
    cost.epochs = planned.job.run.epochs if planned.job.run else None
    if cost.usd is not None:
        cost.usd_total = cost.usd + sum(part.usd for part in stored.parts)
        cost.parts += stored.parts
    for name, value in elapsed(planned.job.plan.goal, (cost.hours, cost.low_hours, cost.high_hours)).items():
        setattr(cost, name, value)
    free_month_h = HOURS_PER_MONTH * planned.job.plan.goal.free_share
    if cost.usd_per_hour is not None and clock.hours > free_month_h:
        cost.usd_per_month = cost.usd_per_hour * free_month_h
    cost.credits = credit_use(planned.job.plan.goal, cost)
    cost.usd_per_step, cost.usd_per_epoch = per(cost.usd, run.steps), per(cost.usd, cost.epochs)
    cost.usd_per_million_tokens = per(cost.usd, run.tokens / 1e6)
    paid_run = PaidRun(planned, payment.rows, payment.chosen, failures_of(terms))
    if wanted.cheaper or cost.within_budget is False:
        cost.savings = savings(paid_run)
    if wanted.faster or cost.within_deadline is False:
        cost.faster = speedups(paid_run)
    if wanted.more_usd is not None:
        cost.bought = bought(paid_run, wanted.more_usd)
    cost.not_included = not_included(payment.chosen, {part.part for part in stored.parts})
    return cost
