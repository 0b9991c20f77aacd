"""estimate_cost for serving: money per hour, month and million tokens, or for all requests of a run."""

from __future__ import annotations

from estimator.cost import energy_kwh
from estimator.plan import Plan
from knowledge.energy import energy_assumptions
from tools.evidence import serving_evidence_of
from tools.offers import cheapest, offer
from tools.result import Assumption, ProviderCost
from tools.results import CostEstimate
from tools.serving_planning import Served, complete, per_replica, served
from tools.serving_prices import HOURS_PER_MONTH, offered
from tools.serving_warnings import warnings_of


def bill_of(plan: Plan, own_usd: float | None) -> CostEstimate:
    """Of a month, or of the time in which all `requests` of the plan are served."""
    found = served(plan, own_usd=own_usd)
    workload, entry = found.job.inference, found.entry
    requests_per_s = float(found.estimates.requests_per_s[entry])
    spread = 1.0 + found.job.factors.throughput_spread
    run = workload.requests is not None
    hours = (workload.requests or 0) / requests_per_s / 3600.0 if run else HOURS_PER_MONTH
    low, high = (hours / spread, hours * spread) if run else (hours, hours)
    rows = _offers(found, hours)
    notes, assumptions = warnings_of(found), found.assumptions
    hourly = _hourly(found, rows, own_usd, assumptions)
    if hourly is None:
        notes.append(f"the price book has no price of {found.job.machine.accelerator.name} for this choice")
    if not run:
        assumptions.append(Assumption(field="hours", value=hours, why="a month, as the plan names no requests"))
    facts = energy_assumptions()
    kwh = energy_kwh(found.job.machine, hours, facts["host_share"].value, facts["pue"].value)
    assumptions += [
        Assumption(field=f"energy.{name}", value=fact.value, why=fact.source) for name, fact in facts.items()
    ]
    output, total = (
        float(rate[entry]) for rate in (found.estimates.output_tokens_per_s, found.estimates.total_tokens_per_s)
    )
    goal = found.job.plan.goal
    usd = None if hourly is None else hourly * hours

    def per_million(rate: float) -> float | None:
        return None if hourly is None else hourly / (rate * 3600.0 / 1e6)

    return CostEstimate(
        plan=complete(found),
        assumptions=assumptions,
        tokens=total * hours * 3600.0,
        steps=None,
        hours=hours,
        low_hours=low,
        high_hours=high,
        device_hours=hours * found.job.machine.count,
        usd=usd,
        low_usd=None if hourly is None else hourly * low,
        high_usd=None if hourly is None else hourly * high,
        usd_per_million_tokens=per_million(total),
        usd_per_million_output_tokens=per_million(output),
        usd_per_million_requests=per_million(requests_per_s),
        usd_per_hour=hourly,
        usd_per_month=None if hourly is None else hourly * HOURS_PER_MONTH,
        kwh=kwh,
        co2_kg=None if kwh is None else kwh * facts["kg_co2_per_kwh"].value,
        by_provider=rows,
        within_budget=None if goal.budget_usd is None or usd is None else usd <= goal.budget_usd,
        within_deadline=None if goal.deadline_h is None or not run else hours <= goal.deadline_h,
        warnings=notes,
        evidence=serving_evidence_of(found.job),
    )


def _offers(found: Served, hours: float) -> list[ProviderCost]:
    """Instances (of the plan's provider) that hold one replica's devices of a node, cheapest first."""
    machine = found.job.machine
    together = min(machine.per_node, per_replica(found.estimates, found.entry))
    prices = offered(machine.accelerator.id, found.job.plan.goal.provider, together)
    rows = [offer(price, machine.count, hours) for price in prices]
    return sorted(rows, key=lambda row: (row.usd is None, row.usd or 0.0, row.provider))


def _hourly(found: Served, rows: list[ProviderCost], own: float | None, assumptions: list[Assumption]) -> float | None:
    """USD per hour at the user's own price, or at the cheapest listed offer (of the named provider)."""
    if own is not None:
        return own * found.job.machine.count
    best = cheapest(rows)
    if best is None:
        return None
    dated = f"price of {best.price_date}" if best.price_date else "undated price"
    field = "instance" if found.job.plan.goal.provider else "goal.provider"
    why = f"the cheapest on-demand offer in the price book ({dated})"
    assumptions.append(Assumption(field=field, value=f"{best.provider} {best.instance}", why=why))
    return best.usd_per_hour
