"""What a run or a deployment costs: estimate_cost, and the price of an estimated deployment."""

from __future__ import annotations

from collections.abc import Sequence

from estimator.plan.schema import Inference
from knowledge import figures
from knowledge.prices.energy import WORLD
from pages.answers.plan import complete
from pages.blocks import Block, Prose
from pages.results.money import (
    BOUGHT,
    CHEAPER,
    FASTER,
    break_even,
    cheaper,
    over_api,
    own_money,
    owned,
    providers,
    unpriced,
    ways,
)
from planner.money.offers import of_strangers
from planner.money.results import CarbonHours, CostEstimate, OwnedCost, Saving
from planner.result import ProviderCost
from planner.serving.results import BestServing, ServingCost

_MOST_OFFERS = 5
_DAY_H = 24.0
_MOST_WAYS = 3
_PRICED = {"spot": " on spot", "flex_start": " by flex-start", "reserved": " reserved",
           "reserved_3y": " reserved for three years", "community": " on community machines"}  # fmt: skip
_TERMS = {"reserved": "reserved", "reserved_3y": "three years"}
_WITHIN = {True: "within", False: "**over**"}
_CHEAPER = {True: "Owning", False: "Renting"}
_OWNED_COUNTS = "idle hardware costs the same, so say how much of the time it will be busy."


def training(cost: CostEstimate, budget_usd: float | None, deadline_h: float | None) -> list[Block]:
    offers = [offer for offer in cost.by_provider if offer.usd is not None]
    if cost.usd is None:
        text = f"**Cost**: {unpriced(cost)}."
    else:
        text = f"**Cost**: about {figures.held(cost, 'usd')}"
        text += f" for {figures.hours(cost.hours)}, {figures.shown('device_hours', cost.device_hours)} device-hours"
        if cost.usd_per_million_tokens is not None:
            text += f", {figures.usd(cost.usd_per_million_tokens)} per million tokens"
        text += "."
    text += _budget(cost, budget_usd)
    if cost.within_deadline is not None and deadline_h:
        text += f" It {'meets' if cost.within_deadline else '**misses**'} your deadline of {figures.hours(deadline_h)}."
    if cost.price == "owned" and (sides := _owned_or_rented(cost, offers)):
        return [*sides, *_energy(cost)]
    wished = [*cheaper(cost.savings), *ways(cost.faster, FASTER), *ways(cost.bought, BOUGHT)]
    return [Prose(text), *wished, *providers(offers[:_MOST_OFFERS]), *_energy(cost)]


def beside(cost: CostEstimate) -> list[Block]:
    """What the first lines say beside the price: owning against renting, on spot, by the term."""
    sides: list[Block] = []
    if cost.price == "owned" and (pair := _own_and_rent(cost, cost.by_provider)):
        sides = [Prose(_cheaper_of(cost, *pair))]
    if cost.price == "spot" and (text := _spot(cost)):
        sides = [Prose(text)]
    if cost.price in _TERMS and (text := _by_term(cost)):
        sides = [Prose(text)]
    return [*own_money(cost), *sides]


def sought(cost: CostEstimate) -> str:
    """What would be sooner and what more money buys, of whoever asked that: 'Faster: 64 x h100-sxm, 5.0 hours for
    $605.'"""
    lines = (_line(_least_given_up(rows), title) for rows, title in ((cost.faster, FASTER), (cost.bought, BOUGHT)))
    return " ".join(filter(None, lines))


def _by_term(cost: CostEstimate) -> str:
    """Paying for a whole term beside paying by the hour: from how many hours of a year, and at those that were said."""
    row = next((row for row in cost.break_even if row.what.startswith(_TERMS[cost.price])), None)
    if row is None:
        return ""
    if row.hours_per_year is None or row.share is None:
        return f"**{row.what[:1].upper()}{row.what[1:]}** never costs less than {row.than}."
    even = f"{figures.whole(round(row.hours_per_year))} hours of use a year ({figures.percent(row.share)})"
    text = f"**{row.what[:1].upper()}{row.what[1:]}** costs less than {row.than} from {even} on"
    used = cost.owned.utilisation if cost.owned and not _is_assumed(cost.owned, "utilisation") else None
    if used is None:
        return f"{text}, as it is paid whether they work or not."
    verdict = "it is cheaper" if used >= row.share else "paying by the hour is cheaper"
    return f"{text}: at {figures.percent(used)} {verdict}."


def _is_assumed(owned: OwnedCost, field: str) -> bool:
    return any(item.field == field for item in owned.assumptions)


def _spot(cost: CostEstimate) -> str:
    """The spot offer that was taken beside the same machines on demand, and beside the cheapest of these."""
    row = _chosen(cost)
    if row is None or row.spot_usd_per_hour is None or cost.usd is None:
        return ""
    text = f"**Spot** {row.instance} of {row.provider}: {figures.usd(row.spot_usd_per_hour)} an hour, "
    text += "the time lost to interruptions included"
    best = _cheapest_by_hour(cost)
    for other in {row.provider: row, **({best.provider: best} if best else {})}.values():
        if other.usd is not None and other.usd_per_hour is not None:
            text += f"; on demand {other.instance} of {other.provider} {figures.usd(other.usd)}"
            text += f" at {figures.usd(other.usd_per_hour)} an hour"
    return f"{text}."


def _cheapest_by_hour(cost: CostEstimate) -> ProviderCost | None:
    """On demand, of a cloud where one has a price."""
    priced = [other for other in cost.by_provider if other.usd is not None and other.joined is not False]
    clouds = [other for other in priced if not of_strangers(other.seller)] or priced
    return min(clouds, key=lambda other: other.usd or 0.0, default=None)


def first_savings(cost: CostEstimate, told: bool = False) -> list[Block]:
    """What would cost less, those first that keep the budget; without the first of them where that is `told`."""
    rows = _least_given_up(_savings(cost))
    line = _line(rows[1:], f"Also {CHEAPER.lower()}") if told else _line(rows, CHEAPER)
    return [Prose(titled(line))] if line else []


def titled(line: str) -> str:
    """The line as a paragraph: what it is of in bold."""
    title, colon, ways = line.partition(": ")
    return f"**{title}**{colon}{ways}" if colon else line


def cheaper_first(cost: CostEstimate) -> str:
    """'Cheaper: megatron-bridge, 10.6 hours for $272 instead of $472.' for whoever asks for that."""
    if cost.usd is None:
        return ""
    rows = _least_given_up(_savings(cost))
    if not rows:
        return f"Nothing cheaper than {figures.usd(cost.usd)} was found for this run."
    return f"{CHEAPER}: {_way(rows[0])} instead of {figures.usd(cost.usd)}."


# What is cheaper by less is as good as tied.
_TIED = 0.03


def cheaper_tokens(cost: CostEstimate, search: BestServing) -> str:
    """'Cheaper: PP 2, fp8, trtllm, 219 in flight: $0.42 per million output tokens instead of $1.46.' on the same
    devices."""
    now, least = cost.usd_per_million_output_tokens, search.best.usd_per_million_output_tokens
    if now is None or least is None:
        return ""
    if not search.best.fits or least > (1.0 - _TIED) * now:
        return f"Nothing cheaper than {figures.usd(now)} per million output tokens was found on these devices."
    instead = f"{figures.usd(least)} per million output tokens instead of {figures.usd(now)}"
    return f"{CHEAPER}: {search.best.summary}, {instead}."


def on_spot(cost: CostEstimate) -> str:
    """'Spot is cheaper (on demand $945).' for whoever asks whether."""
    if cost.price != "spot" or cost.usd is None:
        return ""
    usual = _cheapest_by_hour(cost)
    if usual is None or usual.usd is None:
        return ""
    verdict = "Spot is cheaper" if cost.usd < usual.usd else "Spot is not cheaper"
    return f"{verdict} (on demand {figures.usd(usual.usd)})."


def _savings(cost: CostEstimate) -> list[Saving]:
    return sorted(cost.savings, key=lambda row: (not row.within_budget, row.way == "model"))


def _least_given_up(rows: Sequence[Saving]) -> list[Saving]:
    """Those that give up least; where there is a deadline, of those that keep it. A smaller model is told where it
    keeps the budget, or nothing else is left."""
    able = [row for row in rows if row.within_deadline] or list(rows)
    return [row for row in able if row.way != "model" or row.within_budget] or able


def _line(rows: Sequence[Saving], title: str) -> str:
    told = "; ".join(map(_way, rows[:_MOST_WAYS]))
    return f"{title}: {told}." if told else ""


def _way(row: Saving) -> str:
    return f"{row.what}, {figures.hours(row.hours)} for {figures.usd(row.usd)}"


def serving(cost: CostEstimate, most_usd: float | None) -> list[Block]:
    """Per hour, month and million tokens, or for all requests of a run."""
    offers = [offer for offer in cost.by_provider if offer.usd is not None]
    if cost.usd is None:
        return [Prose(f"**Cost**: {unpriced(cost)}.")]
    plan = complete(cost.plan)
    whole_run = _whole_run(cost)
    text = (
        f"**Cost**: {figures.known(cost.usd_per_million_output_tokens, figures.usd)} per million output tokens, "
        f"{figures.known(cost.usd_per_million_tokens, figures.usd)} per million tokens with prompts, "
        f"{figures.known(cost.usd_per_million_requests, figures.usd)} per million requests; "
        f"{figures.known(cost.usd_per_hour, figures.usd)} per hour, "
        f"{figures.known(cost.usd_per_month, figures.usd)} per month."
    )
    text += _against(cost.usd_per_million_output_tokens, most_usd)
    text += _budget(cost, plan.goal.budget_usd, "" if whole_run else " for a month")
    hourly = [offer for offer in offers[:_MOST_OFFERS] if offer.usd_per_hour is not None]
    energy = _energy(cost, "" if whole_run else " in a month")
    return [Prose(text), *providers(hourly), *over_api(cost.api, "Over an API"), *energy]


def priced(cost: CostEstimate) -> str:
    """'$119 ($102–140) on spot at AWS': what it costs, how it is priced where that is not by the hour on demand, and by
    whom."""
    return "" if cost.usd is None else f"{figures.held(cost, 'usd')}{_how(cost)}"


def _how(cost: CostEstimate) -> str:
    row = _chosen(cost)
    term = f" ({row.reserved_term})" if cost.price == "reserved" and row and row.reserved_term else ""
    return f"{_PRICED.get(cost.price, '')}{term}{f' at {cost.provider}' if cost.provider else ''}"


def _chosen(cost: CostEstimate) -> ProviderCost | None:
    return next(
        (row for row in cost.by_provider if (row.provider, row.instance) == (cost.provider, cost.instance)), None
    )


def first(cost: CostEstimate, asked: Sequence[str] = ()) -> str:
    """What a deployment costs, in a sentence, the figure that was `asked` first; of so many requests for all of
    them."""
    if cost.usd is None:
        return f"{unpriced(cost)}."
    if _whole_run(cost):
        return of_all_requests(cost)
    per_token, per_month = cost.usd_per_million_output_tokens, cost.usd_per_month
    if per_token is None or cost.usd_per_hour is None or per_month is None:
        return ""
    per_hour = f"{figures.usd(cost.usd_per_hour)} an hour{' of use' if cost.price == 'owned' else ''}"
    month, tokens = f"{figures.usd(per_month)} a month", f"{figures.usd(per_token)} per million output tokens"
    if "usd_per_month" in asked and "usd_per_million_tokens" not in asked:
        return f"{month}{_how(cost)}: {per_hour}, {tokens}."
    return f"{tokens}{_how(cost)}: {per_hour}, {month}."


def over(cost: CostEstimate, most_usd: float | None) -> str:
    """'Over your $2.00 per million output tokens.'; nothing where it is not."""
    usd = cost.usd_per_million_output_tokens
    if usd is None or not most_usd or usd <= most_usd:
        return ""
    return f"Over your {figures.usd(most_usd)} per million output tokens."


def of_all_requests(cost: CostEstimate) -> str:
    """How long a job of so many requests takes, and what it costs; nothing of a deployment that goes on."""
    workload = complete(cost.plan).workload
    if not (_whole_run(cost) and isinstance(workload, Inference) and workload.requests and cost.hours):
        return ""
    paid = f" and cost {priced(cost)}" if cost.usd is not None else ""
    return f"All {figures.whole(workload.requests)} requests take {figures.held(cost, 'hours')}{paid}."


def _whole_run(cost: CostEstimate) -> bool:
    workload = complete(cost.plan).workload
    return isinstance(workload, Inference) and bool(workload.requests)


def deployment(cost: ServingCost | None, most_usd: float | None) -> Prose:
    """Of an estimated deployment, at the cheapest offer or the user's own price."""
    if cost is None:
        return Prose("**Cost**: no price is known for this hardware.")
    old = ", an old price" if cost.stale and cost.price_date else ""
    date = f"price of {cost.price_date}{old}" if cost.price_date else "price date unknown"
    dated = f" ({cost.provider} {cost.instance}, {date})"
    return Prose(
        f"**Cost**: {figures.usd(cost.usd_per_hour)} per hour, {figures.usd(cost.usd_per_month)} per month"
        f"{dated if cost.provider else ' at your price'}; {figures.usd(cost.usd_per_million_output_tokens)} per "
        f"million output tokens, {figures.usd(cost.usd_per_million_tokens)} per million tokens with prompts."
        f"{_against(cost.usd_per_million_output_tokens, most_usd)}"
    )


def _budget(cost: CostEstimate, budget_usd: float | None, span: str = "") -> str:
    if cost.within_budget is None or not budget_usd:
        return ""
    return f" That is {_WITHIN[cost.within_budget]} your budget of {figures.usd(budget_usd)}{span}."


def _against(usd: float | None, most_usd: float | None) -> str:
    if usd is None or not most_usd:
        return ""
    return f" That is {_WITHIN[usd <= most_usd]} your {figures.usd(most_usd)} per million output tokens."


def _energy(cost: CostEstimate, span: str = "") -> list[Block]:
    if cost.kwh is None or cost.co2_kg is None:
        return []
    energy, carbon = figures.shown("kwh", cost.kwh), figures.shown("co2_kg", cost.co2_kg)
    text = f"Energy: about {energy}, {carbon} of CO2{span}."
    if cost.co2_by_hours:
        least = min(cost.co2_by_hours, key=lambda row: row.co2_kg)
        text += f" Run only from {_span(least)}: {figures.shown('co2_kg', least.co2_kg)}."
    return [Prose(text)]


def carbon(cost: CostEstimate) -> str:
    """'17,648 kg of CO2 in Poland, 958 kg in Sweden': of each region that was asked for."""
    if cost.co2_kg is None:
        return ""
    first = f"{figures.shown('co2_kg', cost.co2_kg)} of CO2"
    first += "" if cost.region in (None, WORLD) else f" in {cost.region}"
    others = [f"{figures.shown('co2_kg', row.co2_kg)} in {row.region}" for row in cost.co2_elsewhere]
    return ", ".join([first, *others])


def carbon_by_hours(cost: CostEstimate) -> str:
    """What the run weighs that works at some hours of the day alone, and how many days it then takes."""
    if cost.co2_kg is None or cost.region in (None, WORLD) or cost.co2_elsewhere:
        return ""
    if not cost.co2_by_hours:
        return f"The carbon intensity by hour of the day is not known for {cost.region}."
    parts = []
    for row in sorted(cost.co2_by_hours, key=lambda row: row.co2_kg):
        takes = "" if row.takes_days is None else f" over {figures.hours(_DAY_H * row.takes_days)}"
        parts.append(f"only from {_span(row)} {figures.shown('co2_kg', row.co2_kg)}{takes}")
    return f"**By the hour in {cost.region}**: {'; '.join(parts)}."


def _span(row: CarbonHours) -> str:
    return f"{row.from_hour}:00 to {row.before_hour}:00"


def _owned_or_rented(cost: CostEstimate, offers: Sequence[ProviderCost]) -> list[Block]:
    """The same run on hardware of one's own and rented, side by side; empty where one of the two has no price."""
    pair = _own_and_rent(cost, offers)
    if pair is None:
        return []
    own, rented = pair
    spread = f"{figures.plain(own.years)} years at {figures.percent(own.utilisation)} use"
    counts = f"The purchase is written off over {spread}; {_OWNED_COUNTS}"
    return [Prose(_cheaper_of(cost, own, rented)), *break_even(cost.break_even), *owned(own), *providers([rented]),
            Prose(counts)]  # fmt: skip


def _own_and_rent(cost: CostEstimate, offers: Sequence[ProviderCost]) -> tuple[OwnedCost, ProviderCost] | None:
    """What owning costs, and the cheapest offer of those that can do the run."""
    priced = [offer for offer in offers if offer.usd is not None and offer.joined is not False]
    priced = [offer for offer in priced if not of_strangers(offer.seller)] or priced
    return (cost.owned, min(priced, key=lambda offer: offer.usd or 0.0)) if cost.owned and priced else None


def _cheaper_of(cost: CostEstimate, own: OwnedCost, rented: ProviderCost) -> str:
    """Own hardware takes its share of the run from all years of its use; bought for one run it is seldom paid by it."""
    usd = rented.usd or 0.0
    owning = own.usd <= usd
    alone = owning and own.capex_usd > usd
    span = "by the hour, renting for this run alone" if alone else "for this run"
    bought = f"; the machines themselves cost {figures.usd(own.capex_usd)}" if alone else ""
    return (
        f"**{_CHEAPER[owning]} is cheaper {span}**: about {figures.usd(own.usd)} on hardware of your own, "
        f"{_busy(own)}, against {figures.usd(usd)} renting from {rented.provider}, "
        f"for {figures.hours(cost.hours)}{bought}."
    )


def _busy(own: OwnedCost) -> str:
    return f"busy {figures.percent(own.utilisation)} of {figures.plain(own.years)} years"


def weighed(cost: CostEstimate | None, asked: Sequence[str]) -> list[Block]:
    """Whether to own or to rent what serves, by an hour of its use, where that is asked."""
    pair = _own_and_rent(cost, cost.by_provider) if cost and "break_even" in asked else None
    if pair is None or pair[1].usd_per_hour is None:
        return []
    (own, rented), per_hour = pair, pair[1].usd_per_hour
    return [Prose(
        f"**{_CHEAPER[own.usd_per_hour <= per_hour]} is cheaper**: {figures.usd(own.usd_per_hour)} an hour of use on "
        f"hardware of your own, {_busy(own)}, against {figures.usd(per_hour)} renting from {rented.provider}."
    )]  # fmt: skip
