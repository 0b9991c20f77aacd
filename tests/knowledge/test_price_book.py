from __future__ import annotations

import pytest

from estimator.errors import PlanError
from knowledge.hardware import accelerators
from knowledge.prices import prices, providers


def test_every_row_loads_with_sane_values() -> None:
    book = prices()
    assert len(book) == 176
    assert sum(price.usd_per_hour is not None for price in book) == 150
    known = {row.id for row in accelerators()}
    for price in book:
        assert price.accelerator in known
        assert price.count >= 1
        assert price.source
        assert price.usd_per_hour is None or 0.05 < price.usd_per_hour / price.count < 30, price.instance
        assert (
            price.spot_usd_per_hour is None
            or price.usd_per_hour is None
            or price.spot_usd_per_hour <= price.usd_per_hour
        )
        assert price.network_bandwidth_per_node is None or 1e8 < price.network_bandwidth_per_node < 1e13


def test_filters() -> None:
    aws = prices("h100", "aws")
    assert {price.provider for price in aws} == {"AWS"}
    assert {price.accelerator for price in aws} == {"h100-sxm"}
    assert any(price.instance == "p5.48xlarge" and price.usd_per_hour == 55.04 for price in aws)
    assert prices(provider="runpod") == prices(None, "RunPod")


def test_unknown_names_are_refused() -> None:
    with pytest.raises(PlanError) as caught:
        prices(provider="Lambada")
    assert caught.value.field == "goal.provider"
    assert caught.value.valid == providers()
    with pytest.raises(PlanError, match=r"cluster\.accelerator"):
        prices("h300")


def test_owned_machines_have_no_hourly_price() -> None:
    owned = prices(provider="owned")
    assert owned
    assert all(price.usd_per_hour is None for price in owned)
    assert any(price.capex_usd and price.power_kw for price in owned)
