"""A model or an accelerator of the catalogue, and the catalogue's lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pages import figures
from pages.answers.markdown import bullets, table
from planner.result import Assumption, ProviderCost
from planner.results import HardwareDescription, ModelDescription

if TYPE_CHECKING:
    from planner.records.catalogue import CatalogueList

_MOST_OFFERS = 6


def model(facts: ModelDescription) -> list[str]:
    wide = f"{figures.whole(facts.kv_heads)} for keys and values, {figures.whole(facts.head_dim)} wide"
    rows = {
        "layers": figures.whole(facts.layers),
        "hidden size": figures.whole(facts.hidden),
        "attention heads": f"{figures.whole(facts.heads)} ({wide})" if facts.heads else "",
        "feed-forward width": figures.whole(facts.ffn_width),
        "experts": f"{facts.experts}, of which {facts.top_k} per token" if facts.experts else "",
        "vocabulary": figures.whole(facts.vocab),
        "context": f"{figures.whole(facts.context)} tokens" if facts.context else "",
        "KV cache per token, 16 bits": f"{figures.whole(facts.kv_bytes_per_token)} bytes"
        if facts.kv_bytes_per_token
        else "",
        "weights in bf16": figures.gib(facts.weights_bytes_bf16),
        "tensor parallel sizes": ", ".join(map(str, facts.valid_tp)),
        "license": facts.license or "",
    }
    text = f"**{facts.id}** has {figures.whole(facts.parameters)} parameters"
    if facts.active_parameters != facts.parameters:
        text += f", of which {figures.whole(facts.active_parameters)} work on each token"
    return [f"{text}.", _labelled(rows), *_notes(facts.assumptions, facts.notes)]


def device(facts: HardwareDescription, providers: Sequence[str]) -> list[str]:
    """`providers` are those whose prices were asked for; the cheapest of all where none was named."""
    rates = ", ".join(f"{name} {figures.number(rate)}" for name, rate in facts.peak_tflops.items())
    rows = {
        "memory": f"{figures.gib(facts.memory_bytes)}, of which {figures.gib(facts.usable_bytes)} can be allocated",
        "memory bandwidth": figures.bandwidth(facts.memory_bandwidth_bytes_per_s),
        "dense peak, TFLOPS": rates,
        "link between devices": f"{facts.scaleup_link}, {figures.bandwidth(facts.scaleup_bytes_per_s)} each way",
        "devices per node": str(facts.per_node),
        "power": f"{figures.whole(facts.tdp_w)} W" if facts.tdp_w else "",
    }
    priced = [(offer.usd_per_hour, offer) for offer in facts.prices if offer.usd_per_hour is not None]
    offers = [offer for _, offer in sorted(priced, key=lambda pair: pair[0])]
    known = [offer for offer in offers if not providers or offer.provider in providers]
    unknown = [f"No price of {' or '.join(providers)} is known for it."] if providers and not known else []
    return [
        f"**{facts.name}** (`{facts.id}`), {facts.vendor} {facts.family}.",
        _labelled(rows),
        *unknown,
        *([_prices(known[:_MOST_OFFERS])] if known else []),
        *_notes(facts.assumptions, facts.notes),
    ]


def _prices(offers: Sequence[ProviderCost]) -> str:
    rows = [(row.provider, row.instance, row.usd_per_hour, row.price_date or "undated") for row in offers]
    return table(("Provider", "Instance", "per instance-hour", "price of"), rows, words=2)


def _labelled(rows: Mapping[str, str]) -> str:
    return table(("", ""), [row for row in rows.items() if row[1]], words=2)


def _notes(assumptions: Sequence[Assumption], notes: Sequence[str]) -> list[str]:
    return bullets("", dict.fromkeys([*(item.why for item in assumptions), *notes]))


def catalogue(found: CatalogueList) -> list[str]:
    if found.hardware:
        heads = ("Id", "name", "memory", "bandwidth")
        rows = [(row.id, row.name, row.usable_bytes, row.memory_bandwidth_bytes_per_s) for row in found.hardware]
    elif found.models:
        heads = ("Id", "parameters")
        rows = [(row.id, row.parameters) for row in found.models]
    elif found.prices:
        heads = ("Provider", "instance", "devices", "per hour")
        rows = [
            (row.provider, row.instance, f"{row.count} x {row.accelerator}", row.usd_per_hour) for row in found.prices
        ]
    else:
        return ["**The catalogue has none of that name.** `shardwise models` and `shardwise hardware` list everything."]
    part = f", of which these are {len(rows)}" if len(rows) < found.total else ""
    return [f"**{found.total} in the catalogue**{part}:", table(heads, rows, words=len(heads) - 1)]
