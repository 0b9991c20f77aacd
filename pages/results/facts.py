"""Pages of one model and of one accelerator, and of several beside each other."""

from __future__ import annotations

from collections.abc import Sequence

from knowledge.figures import NONE, count, number, shown, usd
from pages.blocks import Block, Headline, Table, value_of
from pages.rendering.clean import one_line
from pages.results.basis import notes, tail
from pages.results.columns import Column, labelled, listed, table
from pages.results.money import dated
from planner.money.offers import of_strangers
from planner.result import ProviderCost
from planner.results import HardwareDescription, ModelDescription

_MOST_PRICES = 12
_WIDEST = 40


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
    return f"{row.heads}, of {row.head_dim}; {row.kv_heads} for keys and values"


def _images(row: ModelDescription) -> str:
    if row.vision_parameters is None:
        return NONE
    tokens = f"a square one of a megapixel is {row.image_tokens:,} tokens"
    return f"read by {row.vision_parameters:,} parameters more; {tokens}"


_MODEL: tuple[Column, ...] = (
    "family", ("architecture of", lambda row: row.shares or NONE), ("parameters", _exactly),
    "embedding_parameters", "weights_bytes_bf16",
    ("published in", "weight_format"), ("images", _images), "layers", "hidden",
    "ffn_width", ("experts", _experts), ("heads", _heads),
    ("KV cache per token", lambda row: f"{shown('kv_bytes_per_token', row.kv_bytes_per_token)} in 16 bits"),
    ("context", lambda row: f"{shown('context', row.context)} tokens" if row.context else NONE),
    "vocab", ("TP sizes", "valid_tp"), "license", "source",
)  # fmt: skip


def accelerator(result: HardwareDescription) -> list[Block]:
    offers = result.prices
    title = "Prices of an instance" if len(offers) <= _MOST_PRICES else f"The {_MOST_PRICES} cheapest of {len(offers)}"
    return [
        Headline(f"{result.id}: {result.name}."),
        *device_facts(result),
        *prices(offers[:_MOST_PRICES], title),
        *notes("Notes", result.notes),
        *tail((), result.assumptions),
    ]


def device_facts(result: HardwareDescription) -> list[Block]:
    return listed(result, _HARDWARE)


def prices(offers: Sequence[ProviderCost], title: str) -> list[Block]:
    columns: list[Column] = [
        "provider", "instance", "usd_per_hour", "spot_usd_per_hour", "reserved_usd_per_hour",
        "reserved_3y_usd_per_hour", ("price of", dated),
    ]  # fmt: skip
    strange = [("whose", "seller")] if any(of_strangers(row.seller) for row in offers) else []
    return table(offers, [*columns[:2], *strange, *columns[2:]], title)


def _rates(row: HardwareDescription) -> str:
    return ", ".join(f"{name} {number(value)}" for name, value in row.peak_tflops.items()) or NONE


def _link(row: HardwareDescription) -> str:
    speed = shown("scaleup_bytes_per_s", row.scaleup_bytes_per_s)
    return f"{row.scaleup_link}, {speed} each way, {row.scaleup_domain} together" if row.scaleup_link else NONE


def _kin(row: HardwareDescription) -> str:
    if row.kin_low_usd_per_hour is None or row.kin_high_usd_per_hour is None:
        return NONE
    return f"{usd(row.kin_low_usd_per_hour)} to {usd(row.kin_high_usd_per_hour)} an hour: an assumption, no offer"


_HARDWARE: tuple[Column, ...] = (
    "memory_bytes", "usable_bytes", "memory_bandwidth_bytes_per_s", ("TFLOP/s, dense", _rates), ("link", _link),
    "host_link_bytes_per_s", "per_node", "tdp_w", ("family", lambda row: f"{row.vendor} {row.family}"),
    ("rented out by nobody known; devices like it cost", _kin), "source",
)  # fmt: skip


def beside(results: Sequence[ModelDescription] | Sequence[HardwareDescription]) -> list[Block]:
    """A row a figure, a column a model or an accelerator."""
    columns = _MODEL if isinstance(results[0], ModelDescription) else _HARDWARE
    told = [[one_line(value_of(row), _WIDEST) for row in labelled(result, columns)] for result in results]
    rows = [(row[0], *cells) for row, *cells in zip(labelled(results[0], columns), *told, strict=True)]
    names = [result.id for result in results]
    return [Table(("", *names), [row for row in rows if set(row[1:]) - {NONE, ""}], names, names=names)]
