"""What a bill says however its run came about: the choice among the offers, its money, its energy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator.machine.hardware import Machine
from estimator.money.cost import energy_kwh
from estimator.plan.schema import Goal
from knowledge.prices.book import check_provider
from knowledge.prices.energy import WORLD, Fact, energy_assumptions
from planner.money.choice import Chosen
from planner.money.results import OwnedCost
from planner.money.terms import CostTerms
from planner.result import Assumption, ProviderCost


def of_providers(rows: list[ProviderCost], names: list[str] | None) -> list[ProviderCost]:
    """The rows of these providers, in any case of their names. Raises PlanError for an unknown one."""
    if names is None:
        return rows
    wanted = {check_provider(name, "providers").casefold() for name in names}
    return [row for row in rows if row.provider.casefold() in wanted]


def chosen_figures(
    chosen: Chosen,
    machine: Machine,
    goal: Goal,
    terms: CostTerms,
    rows: list[ProviderCost],
    owned: OwnedCost | None,
    facts: Mapping[str, Fact],
) -> dict[str, Any]:
    """The fields of a CostEstimate that follow from the choice alone."""
    kwh, usd = _energy(machine, chosen, owned, facts), chosen.usd
    return {
        "hours": chosen.hours,
        "low_hours": chosen.low_hours,
        "high_hours": chosen.high_hours,
        "device_hours": chosen.hours * machine.count,
        "price": chosen.kind,
        "provider": chosen.row.provider if chosen.row else None,
        "instance": chosen.row.instance if chosen.row else None,
        "usd": usd,
        "low_usd": chosen.low_usd,
        "high_usd": chosen.high_usd,
        "usd_per_hour": chosen.usd_per_hour,
        "usd_per_device_hour": per(chosen.usd_per_hour, machine.count),
        "region": terms.place.name,
        "kwh": kwh,
        "co2_kg": None if kwh is None else kwh * facts["kg_co2_per_kwh"].value,
        "by_provider": rows,
        "owned": owned,
        "within_budget": None if goal.budget_usd is None or usd is None else usd <= goal.budget_usd,
        "within_deadline": None if goal.deadline_h is None else chosen.hours <= goal.deadline_h,
    }


def energy_facts(terms: CostTerms) -> dict[str, Fact]:
    """host_share, pue and kg_co2_per_kwh of the region that is asked for."""
    facts = dict(energy_assumptions(terms.region))
    if terms.region is None:
        weight = facts["kg_co2_per_kwh"]
        facts["kg_co2_per_kwh"] = Fact(weight.value, f"{WORLD.lower()} mean, as no region is named: {weight.source}")
    return facts | {"pue": Fact(terms.pue, "as given")} if terms.pue is not None else facts


def assumed(
    given: list[Assumption],
    chosen: Chosen,
    rows: list[ProviderCost],
    spot: list[Assumption],
    facts: Mapping[str, Fact],
    more: list[Assumption],
) -> list[Assumption]:
    """Those of the plan, of the choice, of interruptions where anything is offered at spot prices, `more`, and of
    energy."""
    found = [*given, *chosen.assumptions]
    if any(row.spot_usd_per_hour is not None for row in rows):
        found += spot
    of_energy = [Assumption(field=f"energy.{name}", value=fact.value, why=fact.source) for name, fact in facts.items()]
    return [*found, *more, *of_energy]


def per(usd: float | None, amount: float | None) -> float | None:
    return None if usd is None or not amount else usd / amount


def _energy(machine: Machine, chosen: Chosen, owned: OwnedCost | None, facts: Mapping[str, Fact]) -> float | None:
    """kWh at the meter: of owned machines what their power is paid for, else of devices at their limit."""
    if chosen.kind == "owned" and owned:
        return owned.kw * facts["pue"].value * chosen.hours
    return energy_kwh(machine, chosen.hours, facts["host_share"].value, facts["pue"].value)
