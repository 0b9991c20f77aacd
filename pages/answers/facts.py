"""A model or an accelerator of the catalogue, and the catalogue's lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from knowledge import figures
from knowledge.prices.age import price_day
from pages.answers.asked import named_figures
from pages.blocks import Block, Folded, Prose
from pages.results.basis import notes
from pages.results.facts import billed, device_facts, model_facts, prices
from pages.results.money import break_even, dated
from pages.results.records import rows
from planner.result import ProviderCost
from planner.results import BoughtDevice, HardwareDescription, ModelDescription

if TYPE_CHECKING:
    from planner.records.catalogue import CatalogueList

_MOST_OFFERS = 6


def model(facts: ModelDescription, asked: Sequence[str] = ()) -> list[Block]:
    """`asked` are the figures that were named."""
    text = f"**{facts.id}: {figures.count(facts.parameters)} parameters**"
    if facts.active_parameters != facts.parameters:
        text += f", {figures.count(facts.active_parameters)} of them active for each token"
    text += f"; {figures.gib(facts.weights_bytes)} of weights in {facts.weight_format}"
    text += f"; {facts.layers} layers of width {figures.whole(facts.hidden)}"
    text += f", a context of {figures.whole(facts.context)} tokens" if facts.context else ""
    cache = figures.shown("kv_bytes_per_token", facts.kv_bytes_per_token)
    named = named_figures([facts], asked).replace(f"**{cache}**", f"**{cache}** in 16 bits")
    text += "" if cache in named else f", {cache} of KV cache per token in 16 bits"
    return [Prose(f"{named} {text}.".strip()), *model_facts(facts), *_notes(facts)]


def device(facts: HardwareDescription, providers: Sequence[str], asked: Sequence[str] = ()) -> list[Block]:
    """`providers` are those whose prices were asked for; the cheapest of all where none was named. `asked` are the
    figures that were named."""
    device = f"**{facts.name}** (`{facts.id}`)"
    rated = _rated(facts, any(path.startswith("memory.") for path in asked))
    name = f"{device}: {rated}."
    bought = _bought(facts) if "break_even" in asked else []
    if facts.bill:
        return [*billed(facts, providers, asked), Prose(name), *device_facts(facts), *_notes(facts)]
    priced = [(offer.usd_per_hour, offer) for offer in facts.prices if offer.usd_per_hour is not None]
    offers = [offer for _, offer in sorted(priced, key=lambda pair: pair[0])]
    known = [offer for offer in offers if not providers or offer.provider in providers]
    unknown = f"No price of {' or '.join(providers)} is known for it." if providers and not known else ""
    told = sorted(
        filter(None, (rated, _from(known) or _alike(facts))),
        key=lambda text: text.startswith("from") != ("usd" in asked),
    )
    by_use = break_even(facts.break_even if not bought else (), f"A node of {facts.per_node}, by hours of use")
    offered = [*prices(known[:_MOST_OFFERS], "Prices of an instance"), *by_use]
    return [
        *(bought or [Prose(unknown or f"{device}: {'; '.join(told)}.")]),
        *([Prose(name)] if unknown else []),
        *device_facts(facts),
        *(offered if "usd" in asked or providers else [Folded(offered)]),
        *_notes(facts),
    ]


def _rated(facts: HardwareDescription, memory_first: bool) -> str:
    """'989 TFLOP/s in bf16, 80.0 GiB at 3,352 GB/s, 700 W'."""
    dtype = next((name for name in ("bf16", "fp16") if name in facts.peak_tflops), "")
    rate = [f"{figures.whole(facts.peak_tflops[dtype])} TFLOP/s dense in {dtype}"] if dtype else []
    rate += ["no bf16"] if dtype == "fp16" else []
    memory = figures.gib(facts.memory_bytes)
    memory += f" at {figures.shown('memory_bandwidth_bytes_per_s', facts.memory_bandwidth_bytes_per_s)}"
    link = []
    if facts.scaleup_domain > 1 and facts.scaleup_bytes_per_s:
        speed = figures.shown("scaleup_bytes_per_s", facts.scaleup_bytes_per_s)
        link = [f"{facts.scaleup_link} at {speed} each way"]
    first = [memory, *rate] if memory_first else [*rate, memory]
    return ", ".join([*first, *link, *([figures.shown("tdp_w", facts.tdp_w)] if facts.tdp_w else [])])


def against(first: HardwareDescription, other: HardwareDescription) -> list[Block]:
    """Two devices side by side in a line: how much the first has of what the other has, and what it costs."""
    dtype = next((name for name in ("bf16", "fp16") if {name} <= {*first.peak_tflops} & {*other.peak_tflops}), "")
    pairs = [(first.peak_tflops[dtype], other.peak_tflops[dtype], f"{dtype} TFLOP/s")] if dtype else []
    pairs += [
        (first.memory_bandwidth_bytes_per_s, other.memory_bandwidth_bytes_per_s, "memory bandwidth"),
        (first.memory_bytes, other.memory_bytes, "memory"),
    ]
    told = [f"{figures.ratio(mine / its)} the {what}" for mine, its, what in pairs if its]
    known = [[row.usd_per_device_hour for row in each.prices if row.usd_per_device_hour] for each in (first, other)]
    price = ""
    if all(known):
        price = f"; it rents from {figures.usd(min(known[0]))} an hour, {other.id} from {figures.usd(min(known[1]))}"
    parts = " and ".join(filter(None, (", ".join(told[:-1]), told[-1])))
    return [Prose(f"**{first.id}** has {parts} of **{other.id}**{price}.")]


def _from(offers: Sequence[ProviderCost]) -> str:
    """The cheapest offers of a device, on demand and on spot."""
    known = [(offer.usd_per_device_hour, offer) for offer in offers if offer.usd_per_device_hour is not None]
    if not known:
        return ""
    usd, offer = min(known, key=lambda pair: pair[0])
    text = f"from **{figures.usd(usd)} an hour** at {offer.provider} ({_machine(offer)}, {_day(offer)})"
    spot = [(usd, offer) for offer in offers if (usd := offer.spot_usd_per_device_hour) is not None]
    if spot:
        usd, offer = min(spot, key=lambda pair: pair[0])
        text += f", on spot {figures.usd(usd)} at {offer.provider} ({_machine(offer)})"
    return text


def _machine(offer: ProviderCost) -> str:
    return (
        offer.instance
        if offer.devices_per_instance == 1
        else f"each of {offer.devices_per_instance} in {offer.instance}"
    )


def _day(offer: ProviderCost) -> str:
    return f"price of {dated(offer)}" if offer.price_date else "price date unknown"


def _alike(facts: HardwareDescription) -> str:
    """What similar devices cost, where nobody is known to rent it out."""
    if facts.kin_low_usd is not None and facts.kin_high_usd is not None:
        low, high = figures.usd(facts.kin_low_usd), figures.usd(facts.kin_high_usd)
        return f"no price is known, similar machines cost {low} to {high} to buy (an assumption)"
    if facts.kin_low_usd_per_hour is None or facts.kin_high_usd_per_hour is None:
        rented = any(row.usd_per_hour or row.spot_usd_per_hour for row in facts.prices)
        return "" if rented else _to_buy(facts.bought) if facts.bought else "no price is known"
    low, high = figures.usd(facts.kin_low_usd_per_hour), figures.usd(facts.kin_high_usd_per_hour)
    return f"no on-demand offer is known, similar devices cost {low} to {high} an hour (an assumption)"


def _to_buy(sold: BoughtDevice) -> str:
    """What a device that nobody rents out is sold for."""
    used = "second-hand, " if sold.second_hand else ""
    day = f"price of {price_day(sold.price_date, sold.stale)}" if sold.price_date else "price date unknown"
    return f"no rental offer is known; **{figures.usd(sold.usd)}** to buy ({sold.what}, {used}{day})"


def _bought(facts: HardwareDescription) -> list[Block]:
    """From how much use on buying costs less than renting."""
    owned = next((row for row in facts.break_even if row.what == "owned"), None)
    if owned is None:
        return [Prose(f"Whether buying pays is not known: {facts.name} has no known price to buy, or none to rent.")]
    node = f"a node of {facts.per_node} x {facts.id}" if facts.per_node > 1 else facts.id
    text = f"**Rent {node}**: even in constant use renting is cheaper"
    if owned.hours_per_year is not None and owned.share is not None:
        hours = figures.whole(owned.hours_per_year)
        share = figures.percent(owned.share)
        text = f"**Buy {node} if it runs more than {hours} hours a year** ({share} of the time), else rent"
    text += f": owning costs {figures.shown('usd', owned.usd_per_year)} a year plus power, against {owned.than}."
    return [Prose(text), *break_even(facts.break_even, "By hours of use")]


def _notes(facts: ModelDescription | HardwareDescription) -> list[Block]:
    return notes("", list(dict.fromkeys([*(item.why for item in facts.assumptions), *facts.notes])))


def catalogue(found: CatalogueList) -> list[Block]:
    kinds = {"accelerators": found.hardware, "models": found.models, "prices": found.prices}
    kind, listed = next(((name, entries) for name, entries in kinds.items() if entries), ("", []))
    if not listed:
        return [
            Prose("**Nothing in the catalogue has that name.** `shardwise models` and `shardwise hardware` list all.")
        ]
    part = f", of which these are {len(listed)}" if len(listed) < found.total else ""
    return [Prose(f"**{found.total} {kind} in the catalogue**{part}:"), *rows(found)]
