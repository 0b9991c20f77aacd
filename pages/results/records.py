"""Pages of what is kept: files of plans and of rows of the user's own, and what the catalogue lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from knowledge.figures import file_size
from knowledge.prices.age import price_day
from pages.blocks import Block, Headline, Text
from pages.results.basis import notes, tail
from pages.results.columns import Column, table

if TYPE_CHECKING:  # each has the files that it reads behind it
    from planner.records.catalogue import AddedRow, CatalogueList, ShownRow
    from planner.records.scenarios import DeletedScenario, LoadedScenario, RenderedScenario, SavedScenario


def plan_file(result: LoadedScenario | RenderedScenario) -> list[Block]:
    return [Headline(result.name), *(Text(file.text, file.path) for file in result.files)]


def saved(result: SavedScenario) -> list[Block]:
    where = ", ".join(file.path for file in result.files)
    return [Headline(f"Saved as {result.name} ({where} in {result.folder}).", True)]


def deleted(result: DeletedScenario) -> list[Block]:
    return [Headline(f"Deleted {result.name}.")]


def own_file(result: ShownRow) -> list[Block]:
    files = [Text(file.text, file.path) for file in result.files]
    return [Headline(result.id), *files, *tail(result.warnings, result.assumptions)]


def added(result: AddedRow) -> list[Block]:
    where = ", ".join(f"{file.path} ({file_size(file.bytes)})" for file in result.files)
    head = Headline(f"{result.id} is written: {where} in {result.folder}.", True)
    return [head, *tail(result.warnings, result.assumptions)]


def catalogue(result: CatalogueList) -> list[Block]:
    shown = len(result.hardware) + len(result.models) + len(result.prices)
    return [
        Headline(f"{shown} of {result.total} rows."),
        *rows(result),
        *notes("Files that cannot be used", [f"{row.path}: {row.problem}" for row in result.left_out]),
    ]


def rows(result: CatalogueList) -> list[Block]:
    hardware = ["id", "usable_bytes", "memory_bandwidth_bytes_per_s", "bf16_tflops", "per_node", "vendor", "name"]
    prices: list[Column] = [
        "provider",
        "instance",
        "accelerator",
        "count",
        "usd_per_hour",
        "spot_usd_per_hour",
        "seller",
    ]
    prices.append(("price of", lambda row: price_day(row.price_date, row.stale)))
    return [
        *table(result.hardware, hardware),
        *table(result.models, ["id", "parameters", "active_parameters", "context_tokens", "family"]),
        *table(result.prices, prices),
    ]
