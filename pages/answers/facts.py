"""A model or an accelerator of the catalogue, and the catalogue's lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pages import figures
from pages.answers.markdown import bullets, table

if TYPE_CHECKING:
    from planner.records.catalogue import CatalogueList
    from planner.result import Assumption, ProviderCost
    from planner.results import HardwareDescription, ModelDescription

_MOST_OFFERS = 6


def model(facts: ModelDescription) -> list[str]:
    rows = [("layers", figures.whole(facts.layers)), ("hidden size", figures.whole(facts.hidden))]
    if facts.heads:
        wide = f"{figures.whole(facts.kv_heads)} for keys and values, {figures.whole(facts.head_dim)} wide"
        rows.append(("attention heads", f"{figures.whole(facts.heads)} ({wide})"))
    rows.append(("feed-forward width", figures.whole(facts.ffn_width)))
    if facts.experts:
        rows.append(("experts", f"{figures.whole(facts.experts)}, of which {figures.whole(facts.top_k)} per token"))
    rows.append(("vocabulary", figures.whole(facts.vocab)))
    if facts.context:
        rows.append(("context", f"{figures.whole(facts.context)} tokens"))
    if facts.kv_bytes_per_token:
        rows.append(("KV cache per token, 16 bits", f"{figures.whole(facts.kv_bytes_per_token)} bytes"))
    rows.append(("weights in bf16", figures.gib(facts.weights_bytes_bf16)))
    rows.append(("tensor parallel sizes", ", ".join(map(str, facts.valid_tp))))
    if facts.license:
        rows.append(("license", facts.license))
    text = f"**{facts.id}** has {figures.whole(facts.parameters)} parameters"
    if facts.active_parameters != facts.parameters:
        text += f", of which {figures.whole(facts.active_parameters)} work on each token"
    return [f"{text}.", _pairs(rows), *_notes(facts.assumptions, facts.notes)]


def device(facts: HardwareDescription, providers: Sequence[str]) -> list[str]:
    """`providers` are those whose prices were asked for; the cheapest of all where none was named."""
    rates = ", ".join(f"{name} {figures.number(rate)}" for name, rate in facts.peak_tflops.items())
    rows = [
        ("memory", f"{figures.gib(facts.memory_bytes)}, of which {figures.gib(facts.usable_bytes)} can be allocated"),
        ("memory bandwidth", figures.bandwidth(facts.memory_bandwidth_bytes_per_s)),
        ("dense peak, TFLOPS", rates),
        ("link between devices", f"{facts.scaleup_link}, {figures.bandwidth(facts.scaleup_bytes_per_s)} each way"),
        ("devices per node", str(facts.per_node)),
    ]
    if facts.tdp_w:
        rows.append(("power", f"{figures.whole(facts.tdp_w)} W"))
    priced = [(offer.usd_per_hour, offer) for offer in facts.prices if offer.usd_per_hour is not None]
    offers = [offer for _, offer in sorted(priced, key=lambda pair: pair[0])]
    known = [offer for offer in offers if not providers or offer.provider in providers]
    unknown = [f"No price of {' or '.join(providers)} is known for it."] if providers and not known else []
    return [
        f"**{facts.name}** (`{facts.id}`), {facts.vendor} {facts.family}.",
        _pairs(rows),
        *unknown,
        *([_prices(known[:_MOST_OFFERS])] if known else []),
        *_notes(facts.assumptions, facts.notes),
    ]


def _prices(offers: Sequence[ProviderCost]) -> str:
    rows = [
        (row.provider, row.instance, figures.known(row.usd_per_hour, figures.usd), row.price_date or "undated")
        for row in offers
    ]
    return table(("Provider", "Instance", "per instance-hour", "price of"), rows, words=(0, 1, 3))


def _pairs(rows: Sequence[tuple[str, str]]) -> str:
    return table(("", ""), rows, words=(0, 1))


def _notes(assumptions: Sequence[Assumption], notes: Sequence[str]) -> list[str]:
    return bullets("", dict.fromkeys([*(item.why for item in assumptions), *notes]))


def catalogue(rows: CatalogueList) -> list[str]:
    if rows.hardware:
        shown = len(rows.hardware)
        cells = [
            (row.id, row.name, figures.gib(row.usable_bytes), figures.bandwidth(row.memory_bandwidth_bytes_per_s))
            for row in rows.hardware
        ]
        listing = table(("Id", "name", "memory", "bandwidth"), cells, words=(0, 1))
    elif rows.models:
        shown = len(rows.models)
        cells = [(row.id, figures.whole(row.parameters) if row.parameters else "") for row in rows.models]
        listing = table(("Id", "parameters"), cells)
    elif rows.prices:
        shown = len(rows.prices)
        cells = [
            (row.provider, row.instance, f"{row.count} x {row.accelerator}",
             figures.known(row.usd_per_hour, figures.usd))
            for row in rows.prices
        ]  # fmt: skip
        listing = table(("Provider", "instance", "devices", "per hour"), cells, words=(0, 1, 2))
    else:
        return ["**The catalogue has none of that name.** `shardwise models` and `shardwise hardware` list everything."]
    part = f", of which these are {shown}" if shown < rows.total else ""
    return [f"**{rows.total} in the catalogue**{part}:", listing]
