"""estimate_cost for serving: money per hour, month and million tokens, or for all requests of a run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from estimator.plan.schema import Goal, Plan
from estimator.serving.estimates import loads_of
from knowledge.figures import percent
from planner.asked.money import CostTerms
from planner.money.apis import Deployment, NamedApi, cheaper_of, compared
from planner.money.bill import Work, bill, paid, per
from planner.money.break_even import by_volume
from planner.money.choice import not_included
from planner.money.credit import credit_use
from planner.money.offers import OfferTerms, PriceKind, cheapest, in_order, offer, renter
from planner.money.results import CostEstimate
from planner.money.terms import offer_terms, place_of, serving_interruptions
from planner.result import Assumption, ProviderCost
from planner.serving.planned import Served, per_replica, plan_serving
from planner.serving.prices import HOURS_PER_MONTH, offered


def bill_of(plan: Plan, terms: CostTerms, api: NamedApi | None = None) -> CostEstimate:
    """Of a month, or of the time in which all `requests` of the plan are served; `api` is one of the
    person's own that it is set beside."""
    kind, _ = terms.kind(plan.goal.provider), place_of(terms)
    served = plan_serving(plan, own_usd=terms.usd_per_device_hour)
    machine, goal, estimates, entry = served.job.machine, served.job.plan.goal, served.estimates, served.entry
    requests, requests_per_s = served.job.inference.requests, float(estimates.requests_per_s[entry])
    run = requests is not None
    share = _part_served(goal, run, kind, terms)
    if not run:
        terms = terms.model_copy(update={"utilisation": share})
    month_h = HOURS_PER_MONTH * share
    undisturbed = month_h if requests is None else requests / requests_per_s / 3600.0
    spread = 1.0 + served.job.factors.throughput_spread if run else 1.0
    interruptions, on_spot = serving_interruptions(terms, undisturbed)
    # A month stays a month: interruptions take tokens from it. Without an end it keeps to no deadline.
    offered = interruptions if run else replace(interruptions, per_instance_hour=0.0)
    if not run:
        goal = goal.model_copy(update={"deadline_h": None})
    listed = _offers(served, undisturbed, offer_terms(terms, offered, machine.per_node))
    work = Work(served, goal, (undisturbed, undisturbed / spread, undisturbed * spread), undisturbed, listed, on_spot,
                run)  # fmt: skip
    payment = paid(work, kind, terms)
    cost = bill(work, payment, terms, [] if run else _of_a_month(undisturbed, share, kind))
    hourly, row = cost.usd_per_hour, payment.chosen.row
    slower = interruptions.slowdown(row.provider, row.instance) if kind == "spot" and row else 1.0

    def per_million(rate: float) -> float | None:
        return per(hourly, rate * 3600.0 / 1e6)

    output, total = float(estimates.output_tokens_per_s[entry]), float(estimates.total_tokens_per_s[entry])
    cost.tokens = total / slower * cost.hours * 3600.0
    cost.usd_per_million_tokens = per_million(total / slower)
    cost.usd_per_million_output_tokens = per_million(output / slower)
    cost.usd_per_million_requests = per_million(requests_per_s / slower)
    cost.usd_per_month = None if hourly is None else hourly * month_h
    cost.credits = credit_use(served.job.plan.goal, cost)
    month_s, inference = month_h * 3600.0, served.job.inference
    most = _most_requests_per_s(served) * inference.output_len / slower * month_s
    rate = inference.request_rate
    asked = None if rate is None or run else rate * inference.output_len * month_s
    usd_per_month, owned, other = cost.usd_per_month, kind == "owned", None
    if owned and not run:
        rent = cheapest(in_order(payment.rows))
        usd_per_month, owned, other = cheaper_of(rent.usd if rent else None, cost.usd_per_month)
    generated = None if requests is None else requests * inference.output_len
    deployment = Deployment(usd_per_month, owned, other, asked, most, cost.usd if run else None, generated)
    cost.api = compared(served.job.architecture.id, inference, deployment, api)
    cost.plots += by_volume(cost.api, usd_per_month, most)
    cost.not_included = not_included(payment.chosen)
    return cost


def _most_requests_per_s(served: Served) -> float:
    """Where there is no end of them; at a number of clients as many as these ask for."""
    if served.job.inference.request_rate is None:
        return float(served.estimates.requests_per_s[served.entry])
    these = served.estimates.deployments.take(np.array([served.entry]))
    return float(loads_of(served.job, these).capacity[0] * these.lanes[0] * these.replicas[0])


def _part_served(goal: Goal, run: bool, kind: PriceKind, terms: CostTerms) -> float:
    """Of the hours of a month. What serves the whole of it leaves its machines idle at no hour."""
    owned = not run and kind == "owned"
    return goal.free_share if not owned or terms.utilisation is None else terms.utilisation


def _of_a_month(hours: float, share: float, kind: PriceKind) -> list[Assumption]:
    """What is assumed of a month that goes on."""
    part = "" if share == 1.0 else f", {percent(share)} of its hours"
    month = Assumption(field="hours", value=hours, why=f"a month{part}, as the plan names no requests")
    if kind != "owned":
        return [month]
    return [month, Assumption(field="utilisation", value=share, why="the part of all hours that they serve")]


def _offers(served: Served, hours: float, terms: OfferTerms) -> list[ProviderCost]:
    """Instances (of the plan's provider) that hold one replica's devices of a node."""
    machine = served.job.machine
    together = min(machine.per_node, per_replica(served.estimates, served.entry))
    prices = offered(machine.accelerator.id, renter(served.job.plan.goal.provider), together)
    return [offer(price, machine.count, hours, terms) for price in prices]
