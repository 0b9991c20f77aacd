"""estimate_cost for serving: money per hour, month and million tokens, or for all requests of a run."""

from __future__ import annotations

from dataclasses import replace

from estimator.plan.schema import Plan
from planner.evidence import evidence_of
from planner.money.bill import assumed, chosen_figures, energy_facts, of_providers, per
from planner.money.choice import choose, not_included
from planner.money.offers import OfferTerms, in_order, offer
from planner.money.owned import owned_cost
from planner.money.results import CostEstimate
from planner.money.terms import CostTerms, interruptions_of
from planner.rejected_rows import rejected_prices_of
from planner.result import Assumption, ProviderCost
from planner.serving.planned import Served, per_replica, plan_serving
from planner.serving.prices import HOURS_PER_MONTH, offered
from planner.serving.warnings import warnings_of


def bill_of(plan: Plan, own_usd: float | None, terms: CostTerms | None = None) -> CostEstimate:
    """Of a month, or of the time in which all `requests` of the plan are served."""
    terms = terms or CostTerms.model_validate({"usd_per_device_hour": own_usd})
    kind, place = terms.kind(plan.goal.provider), terms.place
    served = plan_serving(plan, own_usd=own_usd)
    machine, workload, entry = served.job.machine, served.job.inference, served.entry
    requests_per_s = float(served.estimates.requests_per_s[entry])
    spread = 1.0 + served.job.factors.throughput_spread
    run = workload.requests is not None
    undisturbed = (workload.requests or 0) / requests_per_s / 3600.0 if run else HOURS_PER_MONTH
    widened = spread if run else 1.0
    hours = (undisturbed, undisturbed / widened, undisturbed * widened)
    interruptions, spot_assumed = interruptions_of(terms, undisturbed, machine.nodes, 0.0, together=False)
    on_spot = interruptions.run_on(1)
    slower = on_spot.hours / undisturbed if kind == "spot" and on_spot else 1.0
    if not run:  # A month stays a month: interruptions take tokens from it.
        interruptions = replace(interruptions, per_instance_hour=0.0)
    listed = _offers(served, undisturbed, terms.offered(interruptions, machine.per_node))
    rows = in_order(of_providers(listed, terms.providers), kind)
    owned = owned_cost(machine, terms, place, hours)
    named = served.job.plan.goal.provider is not None
    chosen = choose(kind, terms, rows, owned, hours, machine.count, named)
    month = Assumption(field="hours", value=undisturbed, why="a month, as the plan names no requests")
    facts = energy_facts(terms)
    output, total = (
        float(rate[entry]) / slower
        for rate in (served.estimates.output_tokens_per_s, served.estimates.total_tokens_per_s)
    )
    goal, hourly, usd = served.job.plan.goal, chosen.usd_per_hour, chosen.usd

    def per_million(rate: float) -> float | None:
        return per(hourly, rate * 3600.0 / 1e6)

    # A month without an end keeps to no deadline and misses none.
    goal = goal if run else goal.model_copy(update={"deadline_h": None})
    return CostEstimate(
        plan=served.complete_plan,
        assumptions=assumed(served.assumptions, chosen, rows, spot_assumed, facts, [] if run else [month]),
        tokens=total * chosen.hours * 3600.0,
        steps=None,
        **chosen_figures(chosen, machine, goal, terms, rows, owned, facts),
        usd_total=usd,
        parts=[] if usd is None else chosen.parts,
        usd_per_million_tokens=per_million(total),
        usd_per_million_output_tokens=per_million(output),
        usd_per_million_requests=per_million(requests_per_s / slower),
        usd_per_month=None if hourly is None else hourly * HOURS_PER_MONTH,
        not_included=not_included(chosen, stored=False),
        warnings=[*warnings_of(served), *chosen.warnings, *rejected_prices_of(machine.accelerator.id)],
        evidence=evidence_of(served.job),
    )


def _offers(served: Served, hours: float, terms: OfferTerms) -> list[ProviderCost]:
    """Instances (of the plan's provider) that hold one replica's devices of a node."""
    machine = served.job.machine
    together = min(machine.per_node, per_replica(served.estimates, served.entry))
    prices = offered(machine.accelerator.id, served.job.plan.goal.provider, together)
    return [offer(price, machine.count, hours, terms) for price in prices]
