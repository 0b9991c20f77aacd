"""What a run costs, on demand and otherwise, here and elsewhere, and what is not in the price."""

from __future__ import annotations

from estimator.cost import energy_kwh, storage_usd
from estimator.errors import PlanError
from estimator.hardware import Machine
from estimator.plan import Inference
from knowledge.energy import WORLD, Fact, energy_assumptions
from knowledge.ownership import storage_price
from knowledge.prices import check_provider
from tools.cost_choice import Chosen, choose, not_included
from tools.cost_results import CostEstimate, CostPart, OwnedCost
from tools.cost_terms import CostTerms, interruptions_of
from tools.evidence import evidence_of
from tools.left_out import prices_left_out_of
from tools.offers import in_order, offers
from tools.owned import owned_cost
from tools.planning import Planned, complete, planned, run_of, warnings_of
from tools.registry import tool
from tools.requests import EitherRequest
from tools.result import Assumption, ProviderCost

# The last checkpoint, and the one before it in case the last is broken.
_KEPT = 2


class CostRequest(EitherRequest, CostTerms):
    """A plan, and the terms on which its devices are paid for."""


@tool(title="Estimate what a run costs", read_only=True)
def estimate_cost(request: CostRequest) -> CostEstimate:
    """Hours, device-hours, USD by provider and part, energy and CO2 of a whole training run (needs dataset_tokens,
    dataset_samples or steps), or of serving: USD per hour, month and million tokens. On demand, spot with its
    interruptions, reserved, at your own price, or owned (hardware, power, room, staff). Use it for "what does it cost",
    "what on spot", "buy or rent", "cost per million tokens" and "which provider is cheapest"; prices come with date and
    age."""
    plan = request.to_plan()
    if isinstance(plan.workload, Inference):
        from tools.serving_bill import bill_of

        return bill_of(plan, request.usd_per_device_hour, request)
    kind, place = request.kind(plan.goal.provider), request.place
    found = planned(plan)
    run = run_of(found)
    if run is None:
        problem = "is required to know the length of the run, or dataset_samples, or steps"
        raise PlanError("workload.dataset_tokens", problem, ["1B", "300M"])
    machine, goal = found.job.machine, found.job.plan.goal
    hours = (run.hours, run.low_hours, run.high_hours)
    interruptions, spot_assumed = interruptions_of(request, run.hours, machine.nodes, found.around.save.resumable_bytes)
    listed = offers(found, run.hours, request.offered(interruptions, machine.per_node))
    rows = in_order(of_providers(listed, request.providers), kind)
    owned = owned_cost(machine, request, place, hours)
    named = goal.provider is not None
    chosen = choose(kind, request, rows, owned, hours, machine.count, named)
    parts, stored = [*chosen.parts], _storage(found, request, chosen)
    assumptions = [*found.assumptions, *chosen.assumptions]
    if any(row.spot_usd_per_hour is not None for row in rows):
        assumptions += spot_assumed
    if stored:
        parts.append(stored[0])
        assumptions += stored[1]
    facts = energy_facts(request)
    kwh = energy_of(machine, chosen, owned, facts)
    assumptions += [
        Assumption(field=f"energy.{name}", value=fact.value, why=fact.source) for name, fact in facts.items()
    ]
    usd = chosen.usd
    size = found.job.run
    epochs = size.epochs if size else None
    return CostEstimate(
        plan=complete(found),
        assumptions=assumptions,
        tokens=run.tokens,
        steps=run.steps,
        epochs=epochs,
        hours=chosen.hours,
        low_hours=chosen.low_hours,
        high_hours=chosen.high_hours,
        device_hours=chosen.hours * machine.count,
        price=kind,
        provider=chosen.row.provider if chosen.row else None,
        instance=chosen.row.instance if chosen.row else None,
        usd=usd,
        low_usd=chosen.low_usd,
        high_usd=chosen.high_usd,
        usd_total=None if usd is None else usd + (stored[0].usd if stored else 0.0),
        parts=[] if usd is None else parts,
        usd_per_hour=chosen.usd_per_hour,
        usd_per_device_hour=per(chosen.usd_per_hour, machine.count),
        usd_per_step=per(usd, run.steps),
        usd_per_epoch=per(usd, epochs),
        usd_per_million_tokens=per(usd, run.tokens / 1e6),
        region=place.name,
        kwh=kwh,
        co2_kg=None if kwh is None else kwh * facts["kg_co2_per_kwh"].value,
        by_provider=rows,
        owned=owned,
        within_budget=None if goal.budget_usd is None or usd is None else usd <= goal.budget_usd,
        within_deadline=None if goal.deadline_h is None else chosen.hours <= goal.deadline_h,
        not_included=not_included(chosen, stored is not None),
        warnings=[
            *warnings_of(found),
            *chosen.warnings,
            *prices_left_out_of(found.job.machine.accelerator.id),
        ],
        evidence=evidence_of(found),
    )


def of_providers(rows: list[ProviderCost], names: list[str] | None) -> list[ProviderCost]:
    """The rows of these providers, in any case of their names. Raises PlanError for an unknown one."""
    if names is None:
        return rows
    wanted = {check_provider(name, "providers").casefold() for name in names}
    return [row for row in rows if row.provider.casefold() in wanted]


def energy_facts(terms: CostTerms) -> dict[str, Fact]:
    """host_share, pue and kg_co2_per_kwh of the region that is asked for."""
    facts = dict(energy_assumptions(terms.region))
    if terms.region is None:
        weight = facts["kg_co2_per_kwh"]
        facts["kg_co2_per_kwh"] = Fact(weight.value, f"{WORLD.lower()} mean, as no region is named: {weight.source}")
    return facts | {"pue": Fact(terms.pue, "as given")} if terms.pue is not None else facts


def energy_of(machine: Machine, chosen: Chosen, owned: OwnedCost | None, facts: dict[str, Fact]) -> float | None:
    """kWh at the meter: of owned machines what their power is paid for, else of devices at their limit."""
    if chosen.kind == "owned" and owned:
        return owned.kw * facts["pue"].value * chosen.hours
    return energy_kwh(machine, chosen.hours, facts["host_share"].value, facts["pue"].value)


def per(usd: float | None, amount: float | None) -> float | None:
    return None if usd is None or not amount else usd / amount


def _storage(found: Planned, terms: CostTerms, chosen: Chosen) -> tuple[CostPart, list[Assumption]] | None:
    """Checkpoints in storage during the run; None where no price of storage is known, or none is kept."""
    said = []
    usd = terms.usd_per_gb_month
    if usd is None:
        fact = storage_price(chosen.row.provider) if chosen.row else None
        if fact is None:
            return None
        usd = fact.value
        said.append(Assumption(field="usd_per_gb_month", value=usd, why=fact.source))
    kept = terms.checkpoints_kept
    if kept is None:
        kept = _KEPT
        said.append(Assumption(field="checkpoints_kept", value=kept, why="the last one and the one before it"))
    size = found.around.save.resumable_bytes
    total = storage_usd(size * kept, usd, chosen.hours)
    what = f"{kept} checkpoints of {size / 1e9:,.1f} GB during the run"
    return CostPart(part="checkpoint_storage", usd=total, what=what), said
