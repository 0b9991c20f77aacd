"""Answers about a model or an accelerator of the catalogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent.wire import Outcome
from pages import figures


def describe(outcome: Outcome, providers: Sequence[str]) -> str:
    """`providers` are those whose prices were asked for; the cheapest of all where none was named."""
    if outcome.error:
        return f"I cannot answer that. {outcome.error}"
    return _model(outcome.response) if outcome.call.name == "describe_model" else _device(outcome.response, providers)


def _model(facts: Mapping[str, Any]) -> str:
    rows = [f"| layers | {facts['layers']:,} |", f"| hidden size | {facts['hidden']:,} |"]
    if facts["heads"]:
        rows.append(
            f"| attention heads | {facts['heads']:,} ({facts['kv_heads']:,} for keys and "
            f"values, {facts['head_dim']:,} wide) |"
        )
    rows.append(f"| feed-forward width | {facts['ffn_width']:,} |")
    if facts["experts"]:
        rows.append(f"| experts | {facts['experts']:,}, of which {facts['top_k']:,} per token |")
    rows.append(f"| vocabulary | {facts['vocab']:,} |")
    if facts["context"]:
        rows.append(f"| context | {facts['context']:,} tokens |")
    if facts["kv_bytes_per_token"]:
        rows.append(f"| KV cache per token, 16 bits | {facts['kv_bytes_per_token']:,} bytes |")
    rows.append(f"| weights in bf16 | {figures.gib(facts['weights_bytes_bf16'])} |")
    rows.append(f"| tensor parallel sizes | {', '.join(f'{size}' for size in facts['valid_tp'])} |")
    if facts["license"]:
        rows.append(f"| license | {facts['license']} |")
    text = f"**{facts['id']}** has {facts['parameters']:,} parameters"
    if facts["active_parameters"] != facts["parameters"]:
        text += f", of which {facts['active_parameters']:,} work on each token"
    return "\n\n".join([f"{text}.", "\n".join(["| | |", "| --- | --- |", *rows]), *_notes(facts)])


def _device(facts: Mapping[str, Any], providers: Sequence[str]) -> str:
    rates = ", ".join(f"{name} {figures.number(rate)}" for name, rate in facts["peak_tflops"].items())
    rows = [
        f"| memory | {figures.gib(facts['memory_bytes'])}, of which "
        f"{figures.gib(facts['usable_bytes'])} can be allocated |",
        f"| memory bandwidth | {facts['memory_bandwidth_bytes_per_s'] / 1e9:,.0f} GB/s |",
        f"| dense peak, TFLOPS | {rates} |",
        f"| link between devices | {facts['scaleup_link']}, {facts['scaleup_bytes_per_s'] / 1e9:,.0f} GB/s each way |",
        f"| devices per node | {facts['per_node']} |",
    ]
    if facts["tdp_w"]:
        rows.append(f"| power | {facts['tdp_w']:,.0f} W |")
    blocks = [
        f"**{facts['name']}** (`{facts['id']}`), {facts['vendor']} {facts['family']}.",
        "\n".join(["| | |", "| --- | --- |", *rows]),
    ]
    offers = sorted(
        (offer for offer in facts["prices"] if offer["usd_per_hour"] is not None),
        key=lambda offer: offer["usd_per_hour"],
    )
    if providers:
        offers = [offer for offer in offers if offer["provider"] in providers]
        blocks += [] if offers else [f"No price of {' or '.join(providers)} is known for it."]
    if offers:
        table = ["| Provider | Instance | per instance-hour | price of |", "| --- | --- | ---: | --- |"]
        table += [
            f"| {offer['provider']} | {offer['instance']} | "
            f"{figures.usd(offer['usd_per_hour'])} | {offer['price_date'] or 'undated'} |"
            for offer in offers[:6]
        ]
        blocks.append("\n".join(table))
    return "\n\n".join([*blocks, *_notes(facts)])


def _notes(facts: Mapping[str, Any]) -> list[str]:
    said = [item["why"] for item in facts["assumptions"]] + list(facts["notes"])
    return ["\n".join(f"- {note}" for note in dict.fromkeys(said))] if said else []
