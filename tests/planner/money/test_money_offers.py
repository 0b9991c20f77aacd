"""Which offers a run can use."""

from __future__ import annotations

from dataclasses import replace

import pytest

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.figures import usd
from knowledge.prices.book import prices
from knowledge.prices.cluster_sizes import largest_cluster
from planner.clock import today
from planner.clusters.candidates import Hourly
from planner.money.cost import CostRequest, estimate_cost
from planner.money.offers import PriceKind, cheapest, in_order, is_open, joins, of_strangers, offer, offers, usd_of
from planner.serving.prices import cheapest_hour
from planner.training.planned import plan_training


@pytest.mark.parametrize(("count", "nodes"), [(8, 1), (16, 2), (4096, 512), (16384, 2048)])
def test_a_run_over_nodes_is_priced_at_machines_that_work_as_one(count: int, nodes: int) -> None:
    plan = Plan.parse(
        {
            "model": "llama-3.1-8b",
            "cluster": {"accelerator": "h100-sxm", "count": count},
            "workload": {"kind": "training", "dataset_tokens": 1e9, "global_batch": count},
        }
    )
    rows = offers(plan_training(plan), 1.0)
    priced = [row for row in rows if row.usd is not None]
    order = [{True: 0, None: 1, False: 2}[row.joined] for row in priced]
    assert order == sorted(order)
    assert {row.provider for row in priced if row.joined is False} >= ({"Vast"} if nodes > 1 else set())
    assert all(row.joined for row in priced) == (nodes == 1)
    book = {(price.provider, price.instance): price for price in prices("h100-sxm")}
    for row in priced:
        most = book[row.provider, row.instance].max_devices
        assert row.joined is not True or nodes == 1 or most is None or most >= count
    dated = {row.provider for row in priced if row.price_date}
    assert not any(row.provider in dated and not row.price_date for row in priced)


def _asked(**more: object) -> CostRequest:
    plan = {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "count": 8, "dataset_tokens": 1e8}
    return CostRequest.model_validate(plan | more)


def test_machines_of_strangers_are_taken_only_where_they_are_asked_for() -> None:
    bill = estimate_cost(_asked())
    chosen = next(row for row in bill.by_provider if row.instance == bill.instance)
    least = min(row.usd for row in bill.by_provider if row.usd is not None and of_strangers(row.seller))
    assert bill.usd is not None
    assert not of_strangers(chosen.seller)
    assert least < bill.usd
    hour = cheapest_hour("h100-sxm", None, 8, 8)
    assert hour is not None
    assert bill.usd_per_hour == hour[1]
    community = estimate_cost(_asked(price="community"))
    assert community.usd == least
    assert any("other people's machines" in text for text in community.warnings)


@pytest.mark.parametrize("kind", ["on_demand", "spot", "flex_start", "reserved", "reserved_3y", "community"])
def test_each_tier_has_its_own_cheapest_offer_and_a_longer_term_costs_less(kind: PriceKind) -> None:
    rows = estimate_cost(_asked()).by_provider
    row = cheapest(in_order(rows, kind), kind)
    assert row is not None
    assert usd_of(row, kind) == estimate_cost(_asked(price=kind)).usd
    for each in rows:
        if each.reserved_3y_usd is not None and each.reserved_usd is not None and each.reserved_term == "1 year":
            assert each.reserved_3y_usd < each.reserved_usd


def test_of_equal_prices_that_which_is_not_old_comes_first() -> None:
    """OCI's MI300X, at what Azure's cost two quarters ago, stood behind them by its name."""
    first = estimate_cost(_asked()).by_provider[0]
    old, new = (first.model_copy(update={"provider": name, "stale": name == "A"}) for name in "AB")
    assert in_order([old, new]) == [new, old]
    dearer = new.model_copy(update={"usd": (new.usd or 0.0) + 0.01})
    assert in_order([dearer, old]) == [old, dearer]
    price = prices("h100-sxm")[0]
    aged, of_today = (Hourly(replace(price, price_date=day), 5.0) for day in ("2020-01-01", str(today())))
    assert of_today.place < aged.place


@pytest.mark.parametrize("kind", ["reserved", "reserved_3y", "on_demand"])
def test_a_price_of_ones_own_can_be_that_of_a_reservation(kind: str) -> None:
    bill = estimate_cost(_asked(price=kind, usd_per_device_hour=2.1))
    assert bill.price == "own"
    assert bill.usd_per_hour == pytest.approx(16.8)
    assert ("reserved" in bill.parts[0].what) == (kind != "on_demand")


def test_offers_of_more_nodes_than_anybody_sells_unasked_say_that_no_largest_cluster_is_stated() -> None:
    """Of which size clusters are is known of few providers."""
    for count in (8, 512, 1024, 16384):
        bill = estimate_cost(_asked(count=count, global_batch=count))
        book = {(price.provider, price.instance): price for price in prices("h100-sxm")}
        for row in bill.by_provider:
            most = book[row.provider, row.instance].max_devices
            assert row.most_devices == most if most else row.most_known_by != "provider"
            assert row.size_open == (count > 512 and most is None)
        chosen = next(row for row in bill.by_provider if row.instance == bill.instance)
        told = [text for text in bill.warnings if "no largest cluster" in text]
        assert len(told) == chosen.size_open
        assert all(f"{count:,} devices" in text for text in told)


def test_every_offer_has_a_largest_cluster_that_is_stated_or_taken_from_its_network() -> None:
    rented = [price for price in prices() if price.seller and price.capex_usd is None]
    sizes = [(price, largest_cluster(price)) for price in rented]
    for price, largest in sizes:
        assert largest.devices is not None
        assert largest.devices >= price.count
        assert (largest.known_by == "provider") == (price.max_devices is not None)
        if largest.known_by == "machine":
            assert not price.network
            assert joins(price, 2 * largest.devices, nodes=2) is not True
    assert {largest.known_by for _, largest in sizes} == {"provider", "network", "machine"}


def test_flex_start_is_no_reservation_and_is_lent_for_a_week_at_most() -> None:
    """Google: up to 7 days."""
    for days, lent in ((6.9, True), (7.1, False)):
        for price in prices(provider="GCP"):
            row = offer(price, price.count, 24.0 * days)
            assert (row.flex_start_usd is not None) == (lent and price.flex_usd_per_hour is not None)
            assert row.reserved_term is None or "flex" not in row.reserved_term
            if row.flex_start_usd is not None and row.usd is not None:
                assert row.flex_start_usd < row.usd
    late = estimate_cost(_asked(price="flex_start", dataset_tokens=1e11))
    assert late.usd is None


def test_rows_of_ones_own_are_known_to_hold_what_they_are_asked_for() -> None:
    (row,) = [price for price in prices("h100-sxm", "AWS") if price.instance == "p5.48xlarge"]
    assert not is_open(row, 2048)
    row = replace(row, max_devices=None)
    assert is_open(row, 2048)
    assert not is_open(replace(row, seller=""), 2048)
    assert not is_open(replace(row, max_devices=20_000), 2048)


@pytest.mark.parametrize(("count", "days", "sold"), [(2048, 100, True), (4096, 100, False), (2048, 200, False)])
def test_a_block_is_reserved_for_no_more_instances_and_days_than_are_sold(count: int, days: int, sold: bool) -> None:
    """AWS sells 256 instances over its capacity blocks, for 182 days."""
    (row,) = [price for price in prices("h100-sxm", "AWS") if price.instance == "p5.48xlarge"]
    reserved = offer(row, count, 24.0 * days)
    assert (reserved.reserved_usd is not None) == sold
    assert reserved.reserved_3y_usd is not None


@pytest.mark.parametrize(
    ("provider", "price", "term_h"),
    [
        ("Azure", "reserved", 8760),
        ("AWS", "reserved", 24),
        ("AWS", "reserved_3y", 26280),
        ("DigitalOcean", "reserved", 8760),
    ],
)
def test_a_term_that_a_run_does_not_fill_is_paid_for_as_a_whole(provider: str, price: str, term_h: float) -> None:
    short = estimate_cost(_asked(price=price, provider=provider, method="lora"))
    assert short.hours is not None
    assert short.usd_per_hour is not None
    assert short.hours < term_h
    (told,) = [text for text in short.warnings if "whether it is used or not" in text]
    assert usd(short.usd_per_hour * term_h) in told
    # A way that commits to more than the run costs is no cheaper one.
    ways = estimate_cost(_asked(cheaper=True, provider=provider, method="lora"))
    assert ways.usd is not None
    assert (price in {row.way for row in ways.savings}) == (short.usd_per_hour * term_h < ways.usd)


@pytest.mark.parametrize("price", ["on_demand", "community"])
def test_what_nothing_joins_is_said_before_all_else(price: str) -> None:
    asked = _asked(price=price, accelerator="rtx-4090", count=16, method="lora")
    bill = estimate_cost(asked)
    assert "nothing joins them" in bill.warnings[0]


def test_several_regions_are_weighed_beside_each_other() -> None:
    both = estimate_cost(_asked(region="Sweden, Poland"))
    alone = [estimate_cost(_asked(region=name)) for name in ("Sweden", "Poland")]
    assert both.region == alone[0].region
    assert both.co2_kg == alone[0].co2_kg
    (other,) = both.co2_elsewhere
    assert (other.region, other.co2_kg) == ("Poland", alone[1].co2_kg)
    assert not alone[0].co2_elsewhere
    with pytest.raises(PlanError, match="Atlantis"):
        estimate_cost(_asked(region="Sweden, Atlantis"))
