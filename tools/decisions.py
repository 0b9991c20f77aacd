"""Decision tools: what a run costs."""

from __future__ import annotations

from pydantic import Field

from estimator.cost import bill, energy_kwh
from estimator.errors import PlanError
from estimator.hardware import Price
from knowledge.energy import energy_assumptions
from knowledge.prices import prices
from tools.planning import Planned, complete, evidence_of, planned, run_of, warnings_of
from tools.registry import tool
from tools.requests import PlanRequest
from tools.results import Assumption, CostEstimate, ProviderCost, RunLength


class CostRequest(PlanRequest):
    usd_per_device_hour: float | None = Field(None, gt=0, description="Your own price, instead of the price book.")


@tool(title="Estimate what a run costs", read_only=True)
def estimate_cost(request: CostRequest) -> CostEstimate:
    """Hours, device-hours, USD by provider and instance, energy and CO2 of a whole training run. Needs dataset_tokens.
    Use it for "what does it cost" and "which provider is cheapest"; prices come with their date and source."""
    found = planned(request.to_plan())
    run = run_of(found)
    if run is None:
        raise PlanError("workload.dataset_tokens", "is required to know the length of the run", ["1B", "300M"])
    offers = _offers(found, run)
    notes = warnings_of(found)
    assumptions = found.assumptions
    chosen, low, high = _chosen_usd(found, run, request.usd_per_device_hour, offers, assumptions)
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
        by_provider=offers,
        within_budget=None if goal.budget_usd is None or chosen is None else chosen <= goal.budget_usd,
        within_deadline=None if goal.deadline_h is None else run.hours <= goal.deadline_h,
        warnings=notes,
        evidence=evidence_of(found),
    )


def offer(price: Price, devices: int, hours: float) -> ProviderCost:
    """One price as a row of the result."""
    paid = bill(price, devices, hours)
    return ProviderCost(
        provider=price.provider,
        instance=price.instance,
        instances=paid.instances,
        usd_per_hour=paid.usd_per_hour,
        usd=paid.usd,
        spot_usd=paid.spot_usd,
        price_date=price.price_date,
        note=price.notes,
        source=price.source,
    )


def _offers(found: Planned, run: RunLength) -> list[ProviderCost]:
    """Instances that can hold the run's nodes, cheapest first; those without a price last."""
    machine = found.job.machine
    needed = min(machine.per_node, machine.count)
    rows = []
    for price in prices(machine.accelerator.id, found.job.plan.goal.provider):
        per_unit = price.count == 1 and "(per " in price.instance
        if price.provider == "owned" or (price.count < needed and not per_unit):
            continue
        rows.append(offer(price, machine.count, run.hours))
    return sorted(rows, key=lambda row: (row.usd is None, row.usd or 0.0, row.provider))


def _chosen_usd(
    found: Planned, run: RunLength, own: float | None, offers: list[ProviderCost], assumptions: list[Assumption]
) -> tuple[float | None, float | None, float | None]:
    """(USD, low, high) at the user's own price, or at the cheapest listed offer (of the named provider)."""
    if own is not None:
        hourly: float | None = own * found.job.machine.count
    else:
        best = next((row for row in offers if row.usd is not None), None)
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
