"""Decision tools: what a run costs."""

from __future__ import annotations

from pydantic import Field

from estimator.cost import energy_kwh
from estimator.errors import PlanError
from estimator.plan import Inference
from knowledge.energy import energy_assumptions
from tools.evidence import evidence_of
from tools.offers import cheapest, offers
from tools.planning import Planned, complete, planned, run_of, warnings_of
from tools.registry import tool
from tools.requests import EitherRequest
from tools.results import Assumption, CostEstimate, ProviderCost, RunLength


class CostRequest(EitherRequest):
    usd_per_device_hour: float | None = Field(None, gt=0, description="Your own price, instead of the price book.")


@tool(title="Estimate what a run costs", read_only=True)
def estimate_cost(request: CostRequest) -> CostEstimate:
    """Hours, device-hours, USD by provider and instance, energy and CO2 of a whole training run (needs dataset_tokens),
    or of serving: USD per hour, month and million tokens. Use it for "what does it cost", "cost per million tokens" and
    "which provider is cheapest"; prices come with their date and source."""
    plan = request.to_plan()
    if isinstance(plan.workload, Inference):
        from tools.serving_bill import bill_of

        return bill_of(plan, request.usd_per_device_hour)
    found = planned(plan)
    run = run_of(found)
    if run is None:
        raise PlanError("workload.dataset_tokens", "is required to know the length of the run", ["1B", "300M"])
    rows = offers(found, run.hours)
    notes = warnings_of(found)
    assumptions = found.assumptions
    chosen, low, high = _chosen_usd(found, run, request.usd_per_device_hour, rows, assumptions)
    if chosen is None:
        notes.append(f"the price book has no price of {found.job.machine.accelerator.name} for this choice")
    facts = energy_assumptions()
    kwh = energy_kwh(found.job.machine, run.hours, facts["host_share"].value, facts["pue"].value)
    assumptions += [
        Assumption(field=f"energy.{name}", value=fact.value, why=fact.source) for name, fact in facts.items()
    ]
    goal = found.job.plan.goal
    return CostEstimate(
        plan=complete(found),
        assumptions=assumptions,
        tokens=run.tokens,
        steps=run.steps,
        hours=run.hours,
        low_hours=run.low_hours,
        high_hours=run.high_hours,
        device_hours=run.hours * found.job.machine.count,
        usd=chosen,
        low_usd=low,
        high_usd=high,
        usd_per_million_tokens=None if chosen is None else chosen / (run.tokens / 1e6),
        kwh=kwh,
        co2_kg=None if kwh is None else kwh * facts["kg_co2_per_kwh"].value,
        by_provider=rows,
        within_budget=None if goal.budget_usd is None or chosen is None else chosen <= goal.budget_usd,
        within_deadline=None if goal.deadline_h is None else run.hours <= goal.deadline_h,
        warnings=notes,
        evidence=evidence_of(found),
    )


def _chosen_usd(
    found: Planned, run: RunLength, own: float | None, rows: list[ProviderCost], assumptions: list[Assumption]
) -> tuple[float | None, float | None, float | None]:
    """(USD, low, high) at the user's own price, or at the cheapest listed offer (of the named provider)."""
    if own is not None:
        hourly: float | None = own * found.job.machine.count
    else:
        best = cheapest(rows)
        hourly = best.usd_per_hour if best else None
        if best:
            dated = f"price of {best.price_date}" if best.price_date else "undated price"
            why = f"the cheapest on-demand offer in the price book ({dated})"
            value = f"{best.provider} {best.instance}"
            field = "instance" if found.job.plan.goal.provider else "goal.provider"
            assumptions.append(Assumption(field=field, value=value, why=why))
    if hourly is None:
        return None, None, None
    return hourly * run.hours, hourly * run.low_hours, hourly * run.high_hours
