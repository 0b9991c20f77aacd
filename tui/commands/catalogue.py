"""`shardwise models`, `hardware`, `prices`: what the catalogue knows, as tables or JSON, and rows added to it."""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from estimator.errors import PlanError, nearest
from estimator.machine.hardware import Accelerator, Price
from knowledge.figures import gib, shown, written
from knowledge.machines.catalogue import accelerators, aliases
from knowledge.models.known import checkpoints, models
from knowledge.prices.age import age_days, is_stale, price_day
from knowledge.prices.book import hourly_by_device, prices
from knowledge.prices.cluster_sizes import largest_cluster, largest_words
from knowledge.prices.kin import kin_price
from pages.rendering.clean import one_line
from pages.rendering.table import table
from pages.rendering.terminal import amber, screen_width
from planner.clock import today
from planner.records.catalogue import (
    api_usd,
    best_known_first,
    most_offered_first,
    newest_and_most_used_first,
    sizes_of,
)
from tui.jsonout import write_json
from tui.pager import paged


def run(arguments: argparse.Namespace) -> int:
    if arguments.query[:1] == ["add"]:
        from tui.commands import adding  # the tools take longer to load than the catalogue

        return adding.run(arguments, arguments.query[1:])
    if arguments.catalogue == "models" and arguments.query[:1] == ["test"]:
        from tui.commands import models_test  # as above

        return models_test.run(arguments, arguments.query[1:])
    if arguments.catalogue == "prices" and arguments.query[:1] in (["age"], ["update"]):
        from tui.commands import price_lists  # as above

        return (price_lists.age if arguments.query[0] == "age" else price_lists.update)(arguments, arguments.query[1:])
    rows, words, show = _CATALOGUES[arguments.catalogue]()
    matches = [row for row in rows if _matches(arguments.query, words(row))]
    if arguments.catalogue == "prices":
        matches = [row for row in matches if _sold(row, arguments.provider, arguments.region or ())]
    if not matches:
        query = " ".join([*arguments.query, *filter(None, _chosen(arguments))])
        near = nearest(query, [row.id if arguments.catalogue != "prices" else row.provider for row in rows])
        raise PlanError(arguments.catalogue, f"nothing in the catalogue has {query!r} in its name", near)
    if arguments.json:
        write_json([_plain(row) for row in matches])
        return 0
    listed = show(matches)
    paged(listed)
    mark = f"; {_BY_KIN} no offer is known: the cheapest of devices like it" if f" {_BY_KIN}" in listed else ""
    print(f"{len(matches)} of {len(rows)}{mark}", file=sys.stderr)
    return 0


def _models() -> tuple[list[Any], Callable[[Any], Iterable[str]], Callable[[list[Any]], str]]:
    def show(rows: list[Any]) -> str:
        headers = ("ID", "FAMILY", "PARAMETERS", "ACTIVE", "CONTEXT", "$/1M OUT", "LICENSE", "RELEASED")
        lines = [
            (
                row.id,
                row.family,
                shown("parameters", whole),
                shown("active_parameters", active),
                shown("context", row.context or None),
                shown("usd_per_million_output_tokens", api_usd(row.id)),
                row.license or "–",
                row.released or "–",
            )
            for row in rows
            for whole, active in (sizes_of(row),)
        ]
        return _fitted(
            headers, lines, ("PARAMETERS", "ACTIVE", "CONTEXT", "$/1M OUT"), ("LICENSE", "$/1M OUT", "FAMILY")
        )

    copies: dict[str, list[str]] = {}
    for facts in checkpoints():
        copies.setdefault(facts.shares, []).append(facts.id)
    return (
        newest_and_most_used_first(models()),
        lambda row: (row.id, row.family, *row.aliases, *copies.get(row.id, ())),
        show,
    )


_BY_KIN = "~"


def _hour(device: Accelerator, offers: Sequence[float] | None) -> str:
    """What a device-hour costs from, of devices like it where it has no offer of its own."""
    kin = None if offers else kin_price(device)
    if kin:
        return f"{_BY_KIN}{shown('usd_per_device_hour', kin.low_usd_per_hour)}"
    return shown("usd_per_device_hour", next(iter(offers or ()), None))


def _hardware() -> tuple[list[Any], Callable[[Any], Iterable[str]], Callable[[list[Any]], str]]:
    hourly = hourly_by_device()

    def show(rows: list[Any]) -> str:
        headers = ("ID", "NAME", "YEAR", "FROM $/H", "USABLE", "BF16 TFLOP/S", "MEMORY BANDWIDTH", "LINK")
        lines = [
            (
                row.id,
                one_line(row.name, 44),
                str(row.year or "–"),
                _hour(row, hourly.get(row.id)),
                gib(row.torch_bytes),
                written("TFLOP/s", row.peak_flops["bf16"] / 1e12 if row.peak_flops.get("bf16") else None),
                shown("memory_bandwidth_bytes_per_s", row.memory_bandwidth or None),
                f"{row.scaleup_link}, {shown('scaleup_bytes_per_s', row.scaleup_bandwidth or None)}"
                if row.scaleup_link
                else "–",
            )
            for row in rows
        ]
        right = ("YEAR", "FROM $/H", "USABLE", "BF16 TFLOP/S", "MEMORY BANDWIDTH")
        return _fitted(headers, lines, right, ("LINK", "NAME", "MEMORY BANDWIDTH"))

    return (
        most_offered_first(accelerators()),
        lambda row: (row.id, row.name, row.vendor, row.family, *aliases(row.id)),
        show,
    )


def _largest(price: Price) -> str:
    largest = largest_cluster(price)
    return largest_words(largest.devices, largest.known_by)


def _prices() -> tuple[list[Any], Callable[[Any], Iterable[str]], Callable[[list[Any]], str]]:
    def show(rows: list[Any]) -> str:
        headers = ("PROVIDER", "INSTANCE", "ACCELERATOR", "COUNT", "USD PER HOUR", "SPOT", "FLEX-START", "RESERVED",
                   "TO BUY", "CLUSTER OF", "DATE", "DAYS", "SELLER", "REGION")  # fmt: skip
        day = today()
        lines = [
            (
                row.provider,
                one_line(row.instance, 40),
                row.accelerator,
                str(row.count),
                *(f"{usd:,.2f}" if usd is not None else "–"
                  for usd in (row.usd_per_hour, row.spot_usd_per_hour, row.flex_usd_per_hour,
                              row.reserved_usd_per_hour)),
                f"{row.capex_usd:,.0f}" if row.capex_usd is not None else "–",
                _largest(row) or "–",
                price_day(row.price_date, is_stale(row.price_date, day)),
                "–" if (age := age_days(row.price_date, day)) is None else str(age),
                row.seller or "–",
                row.region or "–",
            )
            for row in rows
        ]  # fmt: skip
        right = ("COUNT", "USD PER HOUR", "SPOT", "FLEX-START", "RESERVED", "TO BUY", "CLUSTER OF", "DAYS")
        return _fitted(
            headers,
            lines,
            right,
            ("CLUSTER OF", "REGION", "SELLER", "TO BUY", "RESERVED", "FLEX-START", "SPOT", "DAYS"),
        )

    return best_known_first(prices()), lambda row: (row.provider, row.instance, row.accelerator, row.region or ""), show


def _fitted(
    headers: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str], optional: Sequence[str]
) -> str:
    """The table in the width of the terminal; in a pipe a row stays a line, for grep."""
    width = screen_width() if sys.stdout.isatty() else None
    return table(headers, rows, right, width, optional=optional, old=amber)


_CATALOGUES = {"models": _models, "hardware": _hardware, "prices": _prices}


def _matches(query: list[str], words: Iterable[str]) -> bool:
    """Every word of the query is in the names, whatever the case and the punctuation ('llama3.1' finds Llama-3.1)."""
    names = [_folded(word) for word in words]
    return all(any(_folded(word) in name for name in names) for word in query)


def _chosen(arguments: argparse.Namespace) -> list[str]:
    """The provider and regions that flags name."""
    return [arguments.provider, *(arguments.region or ())] if arguments.catalogue == "prices" else []


def _sold(row: Any, provider: str | None, regions: Sequence[str]) -> bool:
    """Whether an offer is of that provider and of one of the regions, by parts of their names."""
    near = not regions or any(_folded(region) in _folded(row.region or "") for region in regions)
    return near and _folded(provider or "") in _folded(row.provider)


def _folded(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _plain(row: Any) -> dict[str, Any]:
    """A row as plain data, without the fields that only the estimator reads."""
    names = [field.name for field in dataclasses.fields(row) if field.repr]
    return {name: list(value) if isinstance(value := getattr(row, name), tuple) else value for name in names}
