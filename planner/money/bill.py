"""What a bill says of training and of serving alike: the choice among the offers, its money, its energy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from estimator.machine.hardware import Accelerator, Machine
from estimator.money.cost import energy_kwh
from estimator.plan.calendar import DAY_H, WEEK_D, FreeHours
from estimator.plan.schema import Goal
from knowledge.prices.age import is_stale
from knowledge.prices.book import check_provider
from knowledge.prices.energy import WORLD, Fact, GridHours, Place, energy_assumptions
from knowledge.prices.kin import alone_price, kin_price
from planner.asked.money import CostTerms
from planner.clock import today
from planner.estimates import PlanEstimate, run_warnings_of, warning_kinds_of
from planner.evidence import evidence_of
from planner.money.break_even import break_evens, by_hours_of_use
from planner.money.choice import Chosen, Hours, choose
from planner.money.offers import PriceKind, in_order
from planner.money.owned import owned_cost
from planner.money.results import CarbonElsewhere, CarbonHours, CostEstimate, OwnedCost
from planner.money.terms import place_of, places_of
from planner.rejected_rows import rejected_prices_of
from planner.result import Assumption, ProviderCost


@dataclass(frozen=True)
class Work:
    """What is paid for: `hours` are (hours, low, high) of it by the clock, of which `work_h` are work (the rest are
    failures of machines), `offers` what the price book has for these hours, `on_spot` what is assumed of interruptions.
    `goal` has the limits that it is held to; without an `ends` it is a month of what goes on."""

    estimate: PlanEstimate
    goal: Goal
    hours: tuple[float, float, float]
    work_h: float
    offers: list[ProviderCost]
    on_spot: list[Assumption]
    ends: bool = True

    @property
    def machine(self) -> Machine:
        return self.estimate.job.machine


@dataclass(frozen=True)
class Payment:
    """The offers in order, the same devices bought, what of all that is chosen, and facts about energy."""

    rows: list[ProviderCost]
    owned: OwnedCost | None
    chosen: Chosen
    energy: Mapping[str, Fact]


def paid(work: Work, kind: PriceKind, terms: CostTerms) -> Payment:
    """Raises PlanError for an unknown provider or region."""
    machine = work.machine
    rows = in_order(of_providers(work.offers, terms.providers), kind)
    owned = owned_cost(machine, terms, place_of(terms), work.hours)
    named = work.estimate.job.plan.goal.provider is not None
    only_bought = terms.price is None and kind == "on_demand" and not named and _is_only_bought(machine.accelerator)
    kind = "owned" if owned is not None and only_bought else kind
    chosen = choose(kind, terms, (rows, owned), Hours(*work.hours, work.work_h), machine.count, named)
    return Payment(rows, owned, chosen, energy_facts(terms))


def _is_only_bought(device: Accelerator) -> bool:
    """Whether neither it nor anything like it is rented out by the hour: a machine on a desk."""
    return alone_price(device) is None and kin_price(device) is None


def bill(work: Work, payment: Payment, terms: CostTerms, more: list[Assumption]) -> CostEstimate:
    """All that follows from the choice alone; tokens and the money for each of them are left to the kind of plan."""
    chosen, machine, goal = payment.chosen, work.machine, work.goal
    kwh, usd = _energy(machine, payment), chosen.usd
    kin = kin_price(machine.accelerator) or alone_price(machine.accelerator) if usd is None else None
    device_hours = chosen.hours * machine.count
    return CostEstimate(
        plan=work.estimate.complete_plan,
        assumptions=_assumed(work, payment, more),
        tokens=0.0,
        steps=None,
        hours=chosen.hours,
        low_hours=chosen.low_hours,
        high_hours=chosen.high_hours,
        device_hours=device_hours,
        price=chosen.kind,
        provider=chosen.row.provider if chosen.row else None,
        instance=chosen.row.instance if chosen.row else None,
        price_date=chosen.price_date,
        stale=None if chosen.row is None else is_stale(chosen.price_date, today()),
        usd=usd,
        low_usd=chosen.low_usd,
        high_usd=chosen.high_usd,
        usd_total=usd,
        kin_low_usd=kin.low_usd_per_hour * device_hours if kin else None,
        kin_high_usd=kin.high_usd_per_hour * device_hours if kin else None,
        parts=[] if usd is None else [*chosen.parts],
        usd_per_hour=chosen.usd_per_hour,
        usd_per_device_hour=per(chosen.usd_per_hour, machine.count),
        usd_per_million_tokens=None,
        region=place_of(terms).name,
        kwh=kwh,
        co2_kg=None if kwh is None else kwh * payment.energy["kg_co2_per_kwh"].value,
        co2_by_hours=_by_hours(work, payment, terms, kwh),
        co2_elsewhere=[] if kwh is None else [_carbon(place, kwh) for place in places_of(terms)[1:]],
        by_provider=payment.rows,
        owned=payment.owned,
        break_even=break_evens(payment.rows, payment.owned, chosen),
        plots=by_hours_of_use(payment.rows, payment.owned, chosen),
        within_budget=_within(usd, goal.budget_usd),
        within_deadline=_within(chosen.hours, goal.free_h),
        within_device_hours=_within(device_hours, goal.budget_device_hours),
        warning_kinds=warning_kinds_of(work.estimate),
        warnings=[*chosen.warnings, *run_warnings_of(work.estimate), *rejected_prices_of(machine.accelerator.id)],
        evidence=evidence_of(work.estimate.job),
    )


def of_providers(rows: list[ProviderCost], names: list[str] | None) -> list[ProviderCost]:
    """The rows of these providers, in any case of their names. Raises PlanError for an unknown one."""
    if names is None:
        return rows
    wanted = {check_provider(name, "providers").casefold() for name in names}
    return [row for row in rows if row.provider.casefold() in wanted]


def energy_facts(terms: CostTerms) -> dict[str, Fact]:
    """host_share, pue and kg_co2_per_kwh of the region that is asked for."""
    facts = dict(energy_assumptions(place_of(terms).name))
    if terms.region is None:
        weight = facts["kg_co2_per_kwh"]
        facts["kg_co2_per_kwh"] = Fact(weight.value, f"{WORLD.lower()} mean, as no region is named: {weight.source}")
    return facts | {"pue": Fact(terms.pue, "as given")} if terms.pue is not None else facts


def _by_hours(work: Work, payment: Payment, terms: CostTerms, kwh: float | None) -> list[CarbonHours]:
    if kwh is None or terms.region is None:
        return []
    mean = payment.energy["kg_co2_per_kwh"].value
    return [
        CarbonHours(
            from_hour=part.from_hour,
            before_hour=part.before_hour,
            kg_per_kwh=mean * part.share,
            co2_kg=kwh * mean * part.share,
            takes_days=_days(part, payment.chosen.hours) if work.ends else None,
            source=part.source,
        )
        for part in place_of(terms).hours
    ]


def _days(part: GridHours, hours: float) -> float:
    """By the calendar, of a run of so many hours that works in these of every day alone."""
    daily = FreeHours((part.before_hour - part.from_hour) % DAY_H, WEEK_D)
    return daily.elapsed_h(hours) / DAY_H


def _carbon(place: Place, kwh: float) -> CarbonElsewhere:
    weight = place.kg_co2_per_kwh
    return CarbonElsewhere(region=place.name, kg_per_kwh=weight.value, co2_kg=kwh * weight.value, source=weight.source)


def per(usd: float | None, amount: float | None) -> float | None:
    return None if usd is None or not amount else usd / amount


def _assumed(work: Work, payment: Payment, more: list[Assumption]) -> list[Assumption]:
    """Those of the plan, of the choice, of interruptions where anything is offered at spot prices, `more`, and of
    energy."""
    spot = work.on_spot if any(row.spot_usd_per_hour is not None for row in payment.rows) else []
    energy = [
        Assumption(field=f"energy.{name}", value=fact.value, why=fact.source) for name, fact in payment.energy.items()
    ]
    more = [each for each in more if each not in spot]
    return [*work.estimate.assumptions, *payment.chosen.assumptions, *spot, *more, *energy]


def _energy(machine: Machine, payment: Payment) -> float | None:
    """kWh at the meter: of owned machines what their power is paid for, else of devices at their limit."""
    chosen, facts = payment.chosen, payment.energy
    if chosen.kind == "owned" and payment.owned:
        return payment.owned.kw * facts["pue"].value * chosen.hours
    return energy_kwh(machine, chosen.hours, facts["host_share"].value, facts["pue"].value)


def _within(value: float | None, most: float | None) -> bool | None:
    return None if value is None or most is None else value <= most
