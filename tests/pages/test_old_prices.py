"""Prices over 90 days old, or of unknown date, are told wherever money is, and are amber."""

from __future__ import annotations

import re
from typing import Any

import pytest

from knowledge.prices.age import is_marked_old, is_stale
from knowledge.prices.book import prices
from pages.blocks import Headline, Table
from pages.rendering import html
from pages.rendering.terminal import render
from pages.results.money import providers
from pages.results.of_results import VIEWS
from pages.results.overview import Overview, fold
from planner.clock import today
from tools.registry import find

# All of its prices are of May 2026.
OLD = "Thunder Compute"
_RUN = {"model": "llama-3.1-8b", "accelerator": "h100-pcie", "count": 1, "method": "lora", "dataset_tokens": 1e7}
_SERVED = {"model": "llama-3.1-8b", "accelerator": "h100-pcie", "count": 1}
ASKED: dict[str, dict[str, Any]] = {
    "estimate_cost": _RUN,
    "compare": {**_RUN, "scenarios": [{"patch": {"micro_batch": 1}}, {"patch": {"micro_batch": 2}}]},
    "sweep": {**_RUN, "field": "micro_batch", "values": [1, 2]},
    "project_scaling": {**_RUN, "per_node": 1, "nodes": [1]},
    "recommend_cluster": {**_RUN, "accelerator": None, "count": None},
    "auto_configure": {**_RUN, "accelerator": None, "count": None},
    "best_serving": _SERVED,
    "size_serving": {**_SERVED, "count": None, "request_rate": 5.0},
}


@pytest.mark.parametrize("tool", ASKED)
def test_old_prices_are_amber_wherever_money_is(tool: str) -> None:
    assert all(is_stale(price.price_date, today()) for price in prices(provider=OLD) if price.usd_per_hour)
    asked = {name: value for name, value in ASKED[tool].items() if value is not None}
    result = find(tool).run(asked | {"provider": OLD})
    head = next(block for block in VIEWS[type(result).__name__](result) if isinstance(block, Headline))
    assert head.tone == "beware", head
    told = f"{head.text} {head.more}".lower()
    assert "days old" in told or "dated" in told or "price date unknown" in told, told


@pytest.mark.parametrize("tool", ["compare", "sweep", "project_scaling", "best_serving", "size_serving"])
def test_nobody_is_told_how_old_their_own_price_is(tool: str) -> None:
    asked = {name: value for name, value in ASKED[tool].items() if value is not None}
    result: Any = find(tool).run(asked | {"provider": OLD, "usd_per_device_hour": 2.0})
    assert not any("days old" in text or "undated" in text for text in result.warnings)


def test_cells_of_old_prices_are_amber_in_a_terminal_and_on_a_page() -> None:
    asked = {name: value for name, value in ASKED["estimate_cost"].items() if value is not None}
    result: Any = find("estimate_cost").run(asked | {"provider": OLD})
    (table,) = [block for block in providers(result.by_provider) if isinstance(block, Table)]
    old = [cell for row in table.rows for cell in row if is_marked_old(cell)]
    assert old
    text, page = render([table], 200, colour=True), html.render([table])
    for cell in old:
        assert f"\x1b[33m{cell}\x1b[0m" in text
        assert re.search(rf'<td class="[^"]*\bold\b[^"]*">{re.escape(cell)}<', page)
    assert render([table], 200).splitlines()[1:] == [
        re.sub(r"\x1b\[\d+m", "", line) for line in text.splitlines()
    ][1:]  # fmt: skip


def test_the_pane_beside_a_conversation_marks_money_at_an_old_price() -> None:
    asked = {name: value for name, value in ASKED["estimate_cost"].items() if value is not None}
    old = fold(Overview(), find("estimate_cost").run(asked | {"provider": OLD}))
    assert {"cost", "per hour"} <= old.old
    assert "run" not in old.old
    own = fold(old, find("estimate_cost").run(asked | {"usd_per_device_hour": 2.0}))
    assert not own.old
