from __future__ import annotations

import pytest

from estimator.errors import PlanError
from knowledge.data_files import rows
from knowledge.machines.catalogue import accelerators
from knowledge.prices.book import check_provider, prices, providers
from knowledge.prices.kin import kin_price, kin_purchase


def test_every_row_loads_with_sane_values() -> None:
    book = prices()
    assert len(book) == 415
    assert sum(price.usd_per_hour is not None for price in book) == 262
    known = {row.id for row in accelerators()}
    for price in book:
        assert price.accelerator in known
        assert price.count >= 1
        assert price.source
        sellers = (
            ("", "second-hand") if price.provider == "owned" else ("hyperscaler", "cloud", "marketplace", "community")
        )
        assert price.seller in sellers
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


def test_prices_beside_on_demand_belong_to_rows_and_are_below_them() -> None:
    book = {(price.provider, price.instance): price for price in prices()}
    for row in (row for row in rows("prices.csv") if row["kind"] not in ("on demand", "purchase")):
        price = book[row["provider"], row["instance"]]
        usd = float(row["usd"])
        reserved = price.long_usd_per_hour if row["term"] == "3 years" else price.reserved_usd_per_hour
        by_hour = {"spot": price.spot_usd_per_hour, "flex-start": price.flex_usd_per_hour}
        assert usd == by_hour.get(row["kind"], reserved)
        assert price.usd_per_hour is None or usd < price.usd_per_hour
        assert row["source"]
        assert (row["kind"] == "reserved") == bool(row["term"])
    aws = book["AWS", "p5.48xlarge"]
    assert aws.spot_price_date == "2026-09-19"
    assert book["AWS", "p3.8xlarge"].spot_price_date == ""  # undated, though the on-demand price is not
    assert book["GCP", "a3-highgpu-8g"].spot_price_date == "2026-08-03"  # older than the price itself


def test_a_device_that_nobody_rents_out_has_a_range_by_its_kin() -> None:
    rented = {price.accelerator for price in prices() if price.usd_per_hour is not None}
    ranges = {device.id: kin_price(device) for device in accelerators()}
    assert not any(ranges[id] for id in rented)
    assert sum(found is not None for found in ranges.values()) >= 60
    for range_there in filter(None, ranges.values()):
        assert 0 < range_there.low_usd_per_hour <= range_there.high_usd_per_hour
        assert len(range_there.kin) >= 2
        assert set(range_there.kin) <= rented


def test_a_machine_that_is_only_bought_has_a_range_by_its_kin() -> None:
    sold = {price.accelerator for price in prices() if price.capex_usd}
    bought = [device for device in accelerators() if device.form_factor == "SoC"]
    for device in bought:
        found = kin_purchase(device)
        assert (found is not None) != (device.id in sold), device.id
        if found:
            assert 0 < found.low_usd <= found.high_usd
            assert set(found.kin) <= sold & {other.id for other in bought}


def test_no_device_is_without_a_price_or_a_range() -> None:
    known = {price.accelerator for price in prices() if price.usd_per_hour or price.capex_usd}
    bare = [
        device
        for device in accelerators()
        if device.id not in known and kin_price(device) is None and kin_purchase(device) is None
    ]
    assert not bare


def test_providers_are_found_in_any_case() -> None:
    assert check_provider(" aws ") == "AWS"
    with pytest.raises(PlanError, match=r"^providers: there is no price book of 'x'"):
        check_provider("x", "providers")
