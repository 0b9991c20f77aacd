"""Pages of one model and of one accelerator, and of several beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from estimator.money.cost import HOURS_PER_MONTH
from estimator.money.ownership import HOURS_PER_YEAR
from knowledge.figures import NONE, count, gib, hours, known, label, number, percent, shown, usd, whole
from pages.blocks import Block, Headline, Prose, Table, value_of
from pages.rendering.clean import one_line
from pages.results.basis import notes, tail
from pages.results.columns import Column, labelled, listed, table
from pages.results.money import LARGEST, dated, largest, rented
from planner.money.offers import apart, of_strangers
from planner.money.results import HardwareBill, OwnedCost
from planner.result import ProviderCost
from planner.results import HardwareDescription, ModelDescription

_MOST_PRICES = 12
_SPANS = {1.0: "an hour", HOURS_PER_MONTH: "a month", HOURS_PER_YEAR: "a year"}
_WIDEST = 40
# Columns of prices that go first where it is narrow.
_LEAST_OF_PRICES = (LARGEST, *map(label, ("reserved_3y_usd_per_hour", "reserved_usd_per_hour")), "instance", "seller",
                    label("spot_usd_per_hour"), "price of")  # fmt: skip


def model(result: ModelDescription) -> list[Block]:
    active = result.active_parameters
    of_experts = f", {count(active)} of them active" if active != result.parameters else ""
    return [
        Headline(f"{result.id}: {count(result.parameters)} parameters{of_experts}."),
        *model_facts(result),
        *notes("Notes", result.notes),
        *tail((), result.assumptions),
    ]


def model_facts(result: ModelDescription) -> list[Block]:
    return listed(result, _MODEL)


def _exactly(row: ModelDescription) -> str:
    active = f" ({row.active_parameters:,} active)" if row.active_parameters != row.parameters else ""
    return f"{row.parameters:,}{active}"


def _experts(row: ModelDescription) -> str:
    return f"{row.experts}, {row.top_k} a token" if row.experts else NONE


def _heads(row: ModelDescription) -> str:
    return f"{row.heads} of width {row.head_dim}; {row.kv_heads} KV heads"


def _reading(row: ModelDescription | HardwareDescription) -> str:
    """How surely the name that was given means this, what it could mean else, and how many of it it stands for."""
    if row.name_score >= 1.0:
        return NONE
    stands = row.name_devices if isinstance(row, HardwareDescription) else None
    parts = [f"{percent(row.name_score)} sure"]
    parts += [f"for {stands} of it"] if stands else []
    parts += [f"it could also be {row.name_runner_up}"] if row.name_runner_up else []
    return "; ".join(parts)


def _images(row: ModelDescription) -> str:
    if row.vision_parameters is None:
        return NONE
    tokens = f"a square image of a megapixel is {row.image_tokens or 0:,} token{'' if row.image_tokens == 1 else 's'}"
    return f"{row.vision_parameters:,} vision parameters beside these; {tokens}"


_MODEL: tuple[Column, ...] = (
    "family", ("architecture of", lambda row: row.shares or NONE), ("parameters", _exactly),
    "embedding_parameters", "weights_bytes_bf16",
    ("published in", "weight_format"), ("as published", lambda row: gib(row.weights_bytes)), ("images", _images),
    "layers", "hidden",
    "ffn_width", ("experts", _experts), ("heads", _heads),
    ("KV cache per token", lambda row: f"{shown('kv_bytes_per_token', row.kv_bytes_per_token)} in 16 bits"),
    ("context", lambda row: f"{shown('context', row.context)} tokens" if row.context else NONE),
    "vocab", ("TP sizes", "valid_tp"), ("licence", "license"), "source", ("read from the name", _reading),
)  # fmt: skip


def accelerator(result: HardwareDescription) -> list[Block]:
    offers = result.prices
    title = "Prices of an instance" if len(offers) <= _MOST_PRICES else f"The {_MOST_PRICES} cheapest of {len(offers)}"
    return [
        Headline(f"{result.id}: {result.name}."),
        *billed(result),
        *device_facts(result),
        *prices(offers[:_MOST_PRICES], title),
        *notes("Notes", result.notes),
        *tail((), result.assumptions),
    ]


def device_facts(result: HardwareDescription) -> list[Block]:
    return listed(result, _HARDWARE)


def billed(facts: HardwareDescription, providers: Sequence[str] = (), asked: Sequence[str] = ()) -> list[Block]:
    """What so many devices cost by themselves; `asked` are the figures that were named, which come first."""
    bill = facts.bill
    if bill is None:
        return []
    evens = bill.break_even or [None] * len(bill.rented)
    kept = [pair for pair in zip(bill.rented, evens, strict=True) if not providers or pair[0].provider in providers]
    offers = [row for row, _ in kept]
    span = _SPANS.get(bill.hours) or hours(bill.hours)
    devices = f"{whole(bill.count)} x {facts.id}"
    texts = {
        "usd": _rented(offers[0], bill.count, facts.id, span) if offers else f"No price is known to rent {devices}."
    }
    if bill.kwh is not None and bill.power_usd is not None:
        texts["kwh"] = (
            f"**Electricity of {devices} for {span}: {usd(bill.power_usd)}**, {shown('kwh', bill.kwh)} at "
            f"{usd(bill.usd_per_kwh)} per kWh: always at full load, hosts and cooling included."
        )
    where = f" in {bill.grid_place}" if bill.grid_place else ""
    if bill.kwh is not None and bill.co2_kg is not None:
        texts["co2_kg"] = (
            f"**{shown('co2_kg', bill.co2_kg)} of CO2 from {devices} in {span}{where}**, "
            f"{shown('kwh', bill.kwh)} at full load."
        )
    if bill.owned:
        texts["capex_usd"] = _owning(bill.owned)
    if bill.owned and kept and (even := kept[0][1]):
        texts["break_even"] = _weighed(bill, bill.owned, offers[0], devices, even.hours_per_year)
    order = dict.fromkeys([*(name for name in asked if name in texts), *texts])
    told = [f"{item.field} {number(item.value)}: {item.why}" for item in bill.assumptions]
    return [
        *(Prose(texts[name]) for name in order),
        *rented(offers[:_MOST_PRICES]),
        *notes("Assumed", told, quiet=True),
    ]


def _owning(owned: OwnedCost) -> str:
    """What they cost at once, and by the hour of use with all that is paid while they stand there."""
    parts = [f"{row.part} {usd(row.usd)}" for row in owned.hourly_parts if row.usd]
    kept = _kept(owned)
    return (
        f"Buying them costs **{usd(owned.capex_usd)}**, their share of hosts and network included. Owning them comes "
        f"to **{usd(owned.usd_per_hour)} an hour of use**, {percent(owned.utilisation)} of all hours over {kept}: "
        f"{', '.join(parts)}."
    )


def _kept(owned: OwnedCost) -> str:
    """For how long they are kept: '5 years', '1.5 years', '100 hours'."""
    years = f"{number(owned.years)} year{'s' * (owned.years != 1.0)}"
    return years if owned.years >= 1.0 else hours(owned.years * HOURS_PER_YEAR)


def _weighed(bill: HardwareBill, owned: OwnedCost, row: ProviderCost, devices: str, even: float | None) -> str:
    """Whether to rent or to buy for so long, by the hours of a year from which to own costs less than this offer."""
    bought = f"{usd(owned.capex_usd)}, for {_kept(owned)}"
    if bill.kept_hours is not None:
        return _for_a_time(bill, owned, row, devices, bill.kept_hours)
    if bill.hours <= 1.0 and even is not None:
        # Nobody said for how long.
        return (
            f"**Buying {devices} pays from {whole(round(even))} hours of use a year** "
            f"({percent(even / HOURS_PER_YEAR)} of the time): {usd(owned.capex_usd)} for {_kept(owned)}"
            f", against {known(row.usd_per_hour, usd)} an hour at {row.provider}."
        )
    if even is None:
        pays = f"buying ({bought}) costs more even in constant use"
    else:
        pays = f"buying ({bought}) pays from {whole(round(even))} hours of use a year"
    span = _SPANS.get(bill.hours) or f"{whole(round(bill.hours))} hours of use"
    rents = f"{known(row.usd, usd)} at {row.provider}"
    if even is None or bill.hours_per_year <= even:
        yearly = f", {whole(round(bill.hours_per_year))} a year" if bill.hours_per_year < bill.hours else ""
        return f"**Rent {devices} for {span}{yearly}**: {rents}; {pays}."
    every = f"{whole(round(bill.hours_per_year))} hours every year"
    return f"**Buy {devices}, used {every}**: {pays}; renting for {span} costs {rents}."


def _span(span_h: float) -> str:
    years, rest = divmod(span_h, HOURS_PER_YEAR)
    return _SPANS.get(span_h) or (f"{whole(round(years))} years" if years and not rest else hours(span_h))


def _for_a_time(bill: HardwareBill, owned: OwnedCost, row: ProviderCost, devices: str, kept_h: float) -> str:
    """Whether to rent or to buy what is needed for so long and sold then."""
    kept = _span(kept_h)
    always = bill.hours_per_year == HOURS_PER_YEAR
    span = _span(bill.hours) if always else f"{whole(round(bill.hours))} hours of use"
    span += "" if always else f" in {kept}"
    owning = f"{usd(owned.usd)} ({usd(owned.capex_usd)}, sold after {kept})"
    rents = f"{known(row.usd, usd)} at {row.provider}"
    if row.usd is None or owned.usd < row.usd:
        return f"**Buy {devices} for {span}**: that comes to {owning}; renting costs {rents}."
    return f"**Rent {devices} for {span}**: {rents}; buying comes to {owning}."


def _rented(row: ProviderCost, devices: int, device: str, span: str) -> str:
    """'8 x h200-sxm for 7.0 days cost $5,363 at Hyperstack, on demand ($31.92 an hour); $2,000 on spot.'"""
    text = f"**{whole(devices)} x {device} for {span} cost {known(row.usd, usd)} at {row.provider}**, on demand"
    text += f" ({known(row.usd_per_hour, usd)} an hour)" if row.usd != row.usd_per_hour else ""
    reserved = f"reserved ({row.reserved_term})" if row.reserved_term else "reserved"
    kinds = (
        (row.spot_usd, "on spot"),
        (row.flex_start_usd, "by flex-start"),
        (row.reserved_usd, reserved),
        (row.reserved_3y_usd, "reserved for 3 years"),
    )
    ways = [f"{usd(paid)} {how}" for paid, how in kinds if paid]
    age = "date unknown" if row.price_date is None else f"dated {row.price_date}"
    doubts = [f"{doubt}." for doubt in apart(row, devices)] + ([f"Price {age}."] if row.stale else [])
    return " ".join([f"{'; '.join([text, *ways])}.", *doubts])


def prices(offers: Sequence[ProviderCost], title: str) -> list[Block]:
    columns: list[Column] = [
        "provider", "instance", "usd_per_hour", "spot_usd_per_hour", "flex_start_usd_per_hour",
        "reserved_usd_per_hour",
        "reserved_3y_usd_per_hour", ("price of", dated), (LARGEST, largest),
    ]  # fmt: skip
    strange = [("seller", "seller")] if any(of_strangers(row.seller) for row in offers) else []
    told = table(offers, [*columns[:2], *strange, *columns[2:]], title)
    return [replace(block, optional=_LEAST_OF_PRICES) if isinstance(block, Table) else block for block in told]


def _rates(row: HardwareDescription) -> str:
    return ", ".join(f"{name} {number(value)}" for name, value in row.peak_tflops.items()) or NONE


def _link(row: HardwareDescription) -> str:
    speed = shown("scaleup_bytes_per_s", row.scaleup_bytes_per_s)
    return f"{row.scaleup_link}, {speed} each way, {row.scaleup_domain} together" if row.scaleup_link else NONE


def _kin(row: HardwareDescription) -> str:
    pairs = (
        (row.kin_low_usd_per_hour, row.kin_high_usd_per_hour, "an hour"),
        (row.kin_low_usd, row.kin_high_usd, "to buy"),
    )
    costs = [f"{usd(low)} to {usd(high)} {unit}" for low, high, unit in pairs if low is not None and high is not None]
    return f"{costs[0]}: an assumption, no offer" if costs else NONE


def _sold(row: HardwareDescription) -> str:
    return f"{usd(row.bought.usd)} each ({row.bought.what})" if row.bought else NONE


_HARDWARE: tuple[Column, ...] = (
    "memory_bytes", "usable_bytes", "memory_bandwidth_bytes_per_s", ("TFLOP/s, dense", _rates), ("link", _link),
    "host_link_bytes_per_s", "per_node", "tdp_w", ("cores", lambda row: f"{row.cores:,}" if row.cores else NONE),
    ("family", lambda row: f"{row.vendor} {row.family}"),
    ("no price known; similar devices cost", _kin), ("sold for", _sold), "source", ("read from the name", _reading),
)  # fmt: skip


def beside(results: Sequence[ModelDescription] | Sequence[HardwareDescription]) -> list[Block]:
    """A row a figure, a column a model or an accelerator."""
    columns = _MODEL if isinstance(results[0], ModelDescription) else _HARDWARE
    told = [[one_line(value_of(row), _WIDEST) for row in labelled(result, columns)] for result in results]
    rows = [(row[0], *cells) for row, *cells in zip(labelled(results[0], columns), *told, strict=True)]
    names = [result.id for result in results]
    return [Table(("", *names), [row for row in rows if set(row[1:]) - {NONE, ""}], names, names=names)]
