"""What a run or a deployment costs: estimate_cost, and the price of an estimated deployment."""

from __future__ import annotations

from collections.abc import Sequence

from estimator.plan.schema import Inference
from pages import figures
from pages.answers.markdown import table
from pages.answers.plan import complete
from planner.money.results import CostEstimate
from planner.result import ProviderCost
from planner.serving.results import ServingCost

_MOST_OFFERS = 5
_WITHIN = {True: "within", False: "**over**"}
_OWNED_COUNTS = "the hardware costs the same when it stands idle, so say how much of the time it will be busy."


def device_hours(cost: CostEstimate) -> list[str]:
    """The hours first, where they are what was asked for."""
    return [f"**{figures.rate(cost.device_hours)} device-hours**, {figures.usd(cost.usd)}."] if cost.usd else []


def training(cost: CostEstimate, budget_usd: float | None, deadline_h: float | None) -> list[str]:
    offers = [offer for offer in cost.by_provider if offer.usd is not None]
    if cost.usd is None:
        text = _unpriced(offers)
    else:
        text = f"**Cost**: about {figures.usd(cost.usd)}"
        if cost.low_usd is not None and cost.high_usd is not None:
            text += f" ({figures.usd(cost.low_usd)} to {figures.usd(cost.high_usd)})"
        text += f" for {figures.hours(cost.hours)}, {figures.whole(cost.device_hours)} device-hours"
        if cost.usd_per_million_tokens is not None:
            text += f", {figures.usd(cost.usd_per_million_tokens)} per million tokens"
        text += "."
    text += _budget(cost, budget_usd)
    if cost.within_deadline is not None and deadline_h:
        text += f" It {'meets' if cost.within_deadline else '**misses**'} your deadline of {figures.hours(deadline_h)}."
    if cost.price == "owned" and (sides := _owned_or_rented(cost, offers)):
        return [*sides, *_energy(cost)]
    return [text, *_offers(offers, of_run=True), *_energy(cost)]


def serving(cost: CostEstimate, most_usd: float | None) -> list[str]:
    """Per hour, month and million tokens, or for all requests of a run."""
    offers = [offer for offer in cost.by_provider if offer.usd is not None]
    if cost.usd is None:
        return [_unpriced(offers)]
    plan = complete(cost.plan)
    whole_run = isinstance(plan.workload, Inference) and bool(plan.workload.requests)
    text = (
        f"**Cost**: {figures.known(cost.usd_per_million_output_tokens, figures.price)} per million output tokens, "
        f"{figures.known(cost.usd_per_million_tokens, figures.price)} per million tokens with prompts, "
        f"{figures.known(cost.usd_per_million_requests, figures.usd)} per million requests; "
        f"{figures.known(cost.usd_per_hour, figures.usd)} per hour, "
        f"{figures.known(cost.usd_per_month, figures.usd)} per month."
    )
    if whole_run:
        text += f" All requests take {figures.hours(cost.hours)} and cost {figures.usd(cost.usd)}."
    text += _against(cost.usd_per_million_output_tokens, most_usd)
    text += _budget(cost, plan.goal.budget_usd, "" if whole_run else " for a month")
    hourly = [offer for offer in offers[:_MOST_OFFERS] if offer.usd_per_hour is not None]
    return [text, *_offers(hourly, of_run=False), *_energy(cost, "" if whole_run else " in a month")]


def deployment(cost: ServingCost | None, most_usd: float | None) -> str:
    """Of an estimated deployment, at the cheapest offer or the user's own price."""
    if cost is None:
        return "**Cost**: I have no price for this hardware."
    dated = f" ({cost.provider} {cost.instance}, price of {cost.price_date or 'no date'})"
    return (
        f"**Cost**: {figures.usd(cost.usd_per_hour)} per hour, {figures.usd(cost.usd_per_month)} per month"
        f"{dated if cost.provider else ' at your price'}; {figures.price(cost.usd_per_million_output_tokens)} per "
        f"million output tokens, {figures.price(cost.usd_per_million_tokens)} per million tokens with prompts."
        f"{_against(cost.usd_per_million_output_tokens, most_usd)}"
    )


def _unpriced(offers: Sequence[ProviderCost]) -> str:
    return f"**Cost**: I have no price for this hardware{' at the provider you named' if offers else ''}."


def _budget(cost: CostEstimate, budget_usd: float | None, span: str = "") -> str:
    if cost.within_budget is None or not budget_usd:
        return ""
    return f" That is {_WITHIN[cost.within_budget]} your budget of {figures.usd(budget_usd)}{span}."


def _against(usd: float | None, most_usd: float | None) -> str:
    if usd is None or not most_usd:
        return ""
    return f" That is {_WITHIN[usd <= most_usd]} your {figures.price(most_usd)} per million output tokens."


def _offers(offers: Sequence[ProviderCost], of_run: bool) -> list[str]:
    """What providers ask, the cheapest first; with what the run comes to at each."""
    heads = ("Provider", "Instance", *(["run"] if of_run else []), "per hour", "price of")
    rows = [
        (row.provider, f"{row.instances} x {row.instance}",
         *([figures.known(row.usd, figures.usd)] if of_run else []), row.usd_per_hour, row.price_date or "undated")
        for row in offers[:_MOST_OFFERS]
    ]  # fmt: skip
    return [table(heads, rows, words=2)] if rows else []


def _energy(cost: CostEstimate, span: str = "") -> list[str]:
    if cost.kwh is None or cost.co2_kg is None:
        return []
    return [f"Energy: about {figures.rate(cost.kwh)} kWh, {figures.rate(cost.co2_kg)} kg of CO2{span}."]


def _owned_or_rented(cost: CostEstimate, offers: Sequence[ProviderCost]) -> list[str]:
    """The same run on hardware of one's own and rented, side by side; empty where one of the two has no price."""
    own = cost.owned
    priced = [(offer.usd, offer) for offer in offers if offer.usd is not None]
    if own is None or not priced:
        return []
    usd, rented = min(priced, key=lambda pair: pair[0])
    head = (
        f"**{'Owning' if own.usd <= usd else 'Renting'} is cheaper for this run**: about {figures.usd(own.usd)} on "
        f"hardware of your own against {figures.usd(usd)} renting from {rented.provider}, for "
        f"{figures.hours(cost.hours)}."
    )
    rows = [
        ("this run", own.usd, usd),
        ("per hour", own.usd_per_hour, rented.usd_per_hour),
        ("to pay at once", own.capex_usd, "nothing"),
        ("per year", own.usd_per_year, "only the hours in use"),
    ]
    counts = f"Owned counts {figures.plain(own.years)} years at {figures.percent(own.utilisation)} use; {_OWNED_COUNTS}"
    return [head, table(("", "owned", "rented"), rows), counts]
