"""Prices over 90 days old, or of unknown date, are told wherever money is, and are amber."""

from __future__ import annotations

from typing import Any

import pytest

from knowledge.prices.age import is_stale
from knowledge.prices.book import prices
from pages.blocks import Headline
from pages.results.of_results import VIEWS
from planner.clock import today
from tools.registry import find

# All of its prices are of May 2026 or have no date.
OLD = "Verda"
_RUN = {"model": "llama-3.1-8b", "accelerator": "h200-sxm", "count": 1, "method": "lora", "dataset_tokens": 1e7}
_SERVED = {"model": "llama-3.1-8b", "accelerator": "h200-sxm", "count": 1}
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
