"""Pages of one model and of one accelerator."""

from __future__ import annotations

from pages import figures, units
from pages.blocks import Block, Verdict
from pages.views import shared
from pages.views.shared import Column, Data

_MOST_PRICES = 12


def model(result: Data) -> list[Block]:
    """Of describe_model."""
    total, active = result["parameters"], result["active_parameters"]
    of_experts = f", {units.count(active)} of them active" if active != total else ""
    experts = f"{result['experts']}, {result['top_k']} a token" if result["experts"] else shared.NONE
    rows = [
        ("parameters", f"{total:,}" + (f" ({active:,} active)" if active != total else "")),
        ("embeddings", f"{result['embedding_parameters']:,}"),
        ("weights in bf16", units.memory(result["weights_bytes_bf16"])),
        ("layers", shared.text("layers")(result)),
        ("hidden", f"{result['hidden']:,}"),
        ("feed-forward", f"{result['ffn_width']:,}"),
        ("experts", experts),
        ("heads", f"{result['heads']}, of {result['head_dim']}; {result['kv_heads']} for keys and values"),
        ("KV cache per token", f"{figures.number(result['kv_bytes_per_token'] / 1024)} KiB in 16 bits"),
        ("context", f"{result['context']:,} tokens" if result["context"] else shared.NONE),
        ("vocabulary", f"{result['vocab']:,}"),
        ("TP sizes", shared.text("valid_tp")(result)),
        ("license", shared.text("license")(result)),
        ("source", shared.text("source")(result)),
    ]
    return [
        Verdict(f"{result['id']}: {units.count(total)} parameters{of_experts}."),
        shared.known(rows),
        *shared.notes("Notes", result["notes"]),
        *shared.tail(result),
    ]


def accelerator(result: Data) -> list[Block]:
    """Of describe_hardware."""

    def rate(name: str) -> str:
        return shared.number(name, lambda value: f"{value / 1e9:,.0f} GB/s")(result)

    rates = ", ".join(f"{name} {figures.number(value)}" for name, value in result["peak_tflops"].items())
    link = f"{result['scaleup_link']}, {rate('scaleup_bytes_per_s')} each way, {result['scaleup_domain']} together"
    rows = [
        ("memory", f"{units.memory(result['usable_bytes'])} usable, {rate('memory_bandwidth_bytes_per_s')}"),
        ("TFLOP/s, dense", rates or shared.NONE),
        ("link", link if result["scaleup_link"] else shared.NONE),
        ("to the host", rate("host_link_bytes_per_s")),
        ("per node", shared.text("per_node")(result)),
        ("power", shared.number("tdp_w", lambda watts: f"{watts:,.0f} W")(result)),
        ("family", f"{result['vendor']} {result['family']}"),
        ("source", shared.text("source")(result)),
    ]
    prices: list[Column] = [
        ("PROVIDER", shared.text("provider")),
        ("INSTANCE", shared.text("instance")),
        ("$/H", shared.number("usd_per_hour", units.usd)),
        ("SPOT $/H", shared.number("spot_usd_per_hour", units.usd)),
        ("RESERVED $/H", shared.number("reserved_usd_per_hour", units.usd)),
        ("PRICE OF", lambda row: f"{row.get('price_date') or 'no date'}{' (old)' if row.get('stale') else ''}"),
    ]
    offers = result["prices"]
    title = "Prices of an instance" if len(offers) <= _MOST_PRICES else f"The {_MOST_PRICES} cheapest of {len(offers)}"
    return [
        Verdict(f"{result['id']}: {result['name']}."),
        shared.known(rows),
        *shared.grid(offers[:_MOST_PRICES], prices, ("$/H", "SPOT $/H", "RESERVED $/H"), title),
        *shared.notes("Notes", result["notes"]),
        *shared.tail(result),
    ]
