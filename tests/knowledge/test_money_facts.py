"""API prices, failures and whole runs: every row can be used, names its source, and agrees with itself."""

from __future__ import annotations

import pytest

from knowledge.machines.catalogue import find_accelerator
from knowledge.machines.failures import BETWEEN_INTERRUPTIONS, SPOT_SHARE, failures
from knowledge.models.known import facts_of
from knowledge.prices.apis import api_prices
from knowledge.run_totals import run_totals


def test_prices_of_apis_name_models_that_exist_and_cost_less_cached() -> None:
    table = api_prices()
    assert len(table) == 1428
    for price in table:
        assert not price.model or facts_of(price.model), price.model
        assert price.price_date
        assert price.source
        assert (price.input_usd or 0) >= 0
        assert (price.output_usd or 0) >= 0
        if price.cached_input_usd and price.input_usd:
            assert price.cached_input_usd <= price.input_usd, price.name
    assert sum(bool(price.model) for price in table) > 800
    assert not any(price.model for price in table if price.open is False)


def test_offers_of_a_model_are_those_of_its_checkpoints_cheapest_first() -> None:
    offers = api_prices("llama-3.3-70b")
    assert len({price.provider for price in offers}) > 5
    known = [price.output_usd for price in offers if price.output_usd is not None]
    assert known == sorted(known)
    assert {price.model for price in offers} <= {
        checkpoint for checkpoint in (price.model for price in api_prices()) if "Llama-3.3-70B" in checkpoint
    }


def test_figures_of_failures_lie_between_their_ends() -> None:
    for row in failures():
        assert row.source
        assert row.date
        assert row.low is not None or row.high is not None
        if row.low is not None and row.high is not None:
            assert row.low <= row.high
        if row.unit == "share":
            assert 0 <= (row.low or 0) <= (row.high or 1) <= 1, row
        if row.accelerator:
            assert find_accelerator(row.accelerator).value.id == row.accelerator


def test_rates_that_papers_count_come_to_the_hours_that_they_say() -> None:
    """Hours between interruptions x interruptions = devices x length of the run (Llama 3: 54 days of 16,384)."""
    whole = 54 * 24 * 16384
    rows = [row for row in failures(BETWEEN_INTERRUPTIONS) if row.system == "Llama 3 405B" and row.count]
    assert len(rows) > 5
    for row in rows:
        assert row.low is not None
        assert row.count is not None
        assert row.low * row.count == pytest.approx(whole, rel=0.01)
    assert len(failures(SPOT_SHARE)) > 90


def test_runs_have_the_hours_of_their_devices_and_days() -> None:
    table = run_totals()
    assert len(table) > 40
    for row in table:
        assert row.source
        assert row.date
        for low, high in (row.mfu, row.effective):
            assert 0 <= (low or 0) <= (high or 1) <= 1
        if row.accelerator:
            assert find_accelerator(row.accelerator).value.id == row.accelerator
        if row.devices and row.days and row.device_hours:
            assert row.device_hours == pytest.approx(row.devices * row.days * 24, rel=0.35), row.model
