"""estimate_cost: hours times devices times price, whole instances, dated prices, and energy with its assumptions."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from tool_calls import FLAT, result

from estimator.errors import PlanError
from knowledge.prices.book import prices
from tools import call


def test_the_bill_is_hours_times_whole_instances_times_price() -> None:
    found = result("estimate_cost")
    run = result("estimate_training")["run"]
    assert found["hours"] == run["hours"]
    assert found["steps"] == run["steps"]
    assert found["device_hours"] == pytest.approx(found["hours"] * 8)
    book = {(price.provider, price.instance): price for price in prices("h100-sxm")}
    assert found["by_provider"]
    for row in found["by_provider"]:
        price = book[row["provider"], row["instance"]]
        assert row["instances"] == math.ceil(8 / price.count)
        assert row["source"]
        if price.usd_per_hour is None:
            assert row["usd"] is None
        else:
            assert row["usd_per_hour"] == pytest.approx(price.usd_per_hour * row["instances"])
            assert row["usd"] == pytest.approx(price.usd_per_hour * row["instances"] * found["hours"])
        if row["price_date"]:
            assert re.fullmatch(r"20\d\d-\d\d(-\d\d)?", row["price_date"])


def test_the_cheapest_offer_is_taken_and_said_with_its_date() -> None:
    found = result("estimate_cost")
    strangers = ("marketplace", "community")
    priced = [row for row in found["by_provider"] if row["usd"] is not None and row["seller"] not in strangers]
    assert found["usd"] == min(row["usd"] for row in priced) == priced[0]["usd"]
    assert found["low_usd"] / found["usd"] == pytest.approx(found["low_hours"] / found["hours"])
    assert found["high_usd"] / found["usd"] == pytest.approx(found["high_hours"] / found["hours"])
    assert found["usd_per_million_tokens"] == pytest.approx(found["usd"] / 1000)
    said = {row["field"]: row for row in found["assumptions"]}["goal.provider"]
    assert priced[0]["provider"] in said["value"]
    assert "price of 20" in said["why"] or "undated" in said["why"]


def test_ones_own_price_replaces_the_price_book() -> None:
    found = call("estimate_cost", FLAT | {"usd_per_device_hour": 2.5})
    assert found["usd"] == pytest.approx(2.5 * 8 * found["hours"])
    assert found["usd_per_million_tokens"] == pytest.approx(found["usd"] / 1000)
    assert "goal.provider" not in {row["field"] for row in found["assumptions"]}


def test_a_named_provider_is_the_only_one() -> None:
    found = call("estimate_cost", FLAT | {"provider": "aws"})
    assert {row["provider"] for row in found["by_provider"]} == {"AWS"}
    named = [row["field"] for row in found["assumptions"]]
    assert "goal.provider" not in named
    assert "instance" in named


def test_a_part_of_a_node_pays_for_the_node() -> None:
    found = call("estimate_cost", FLAT | {"count": 4, "provider": "AWS"})
    for row in found["by_provider"]:
        assert row["instances"] == 1
    assert found["usd"] > found["device_hours"] * 6.88 * 0.9  # eight devices' price for four


def test_energy_says_what_it_assumes() -> None:
    found = result("estimate_cost")
    said = {row["field"]: row["value"] for row in found["assumptions"] if row["field"].startswith("energy.")}
    watts = 700 * 8 * (1 + said["energy.host_share"]) * said["energy.pue"]
    assert found["kwh"] == pytest.approx(watts / 1000 * found["hours"])
    assert found["co2_kg"] == pytest.approx(found["kwh"] * said["energy.kg_co2_per_kwh"])


@pytest.mark.parametrize(("goal", "key", "wanted"), [
    ({"budget_usd": "1"}, "within_budget", False), ({"budget_usd": "10M"}, "within_budget", True),
    ({"deadline_h": 1e-3}, "within_deadline", False), ({"deadline_h": 1e6}, "within_deadline", True),
    ({}, "within_budget", None), ({}, "within_deadline", None),
])  # fmt: skip
def test_goals_are_held_against_the_bill(goal: dict[str, Any], key: str, wanted: bool | None) -> None:
    assert call("estimate_cost", FLAT | goal)[key] is wanted


def test_twice_the_data_costs_twice_as_much() -> None:
    once, twice = result("estimate_cost"), call("estimate_cost", FLAT | {"epochs": 2})
    assert twice["tokens"] == 2 * once["tokens"]
    assert twice["usd"] == pytest.approx(2 * once["usd"], rel=1e-3)
    assert twice["usd_per_million_tokens"] == pytest.approx(once["usd_per_million_tokens"], rel=1e-3)


def test_an_accelerator_without_prices_has_no_bill_but_hours() -> None:
    found = call("estimate_cost", FLAT | {"accelerator": "p100-sxm", "precision": "fp16"})
    assert found["usd"] is None
    assert found["usd_per_million_tokens"] is None
    assert found["hours"] > 0
    assert any("no price" in warning for warning in found["warnings"])


def test_the_length_of_the_run_has_to_be_known() -> None:
    with pytest.raises(PlanError, match=r"^workload\.dataset_tokens: is required"):
        call("estimate_cost", FLAT | {"dataset_tokens": None})


@pytest.mark.parametrize("price", [0, -1, float("inf"), float("nan"), True])
def test_an_impossible_price_is_refused(price: Any) -> None:
    with pytest.raises(PlanError, match=r"^usd_per_device_hour: "):
        call("estimate_cost", FLAT | {"usd_per_device_hour": price})


@pytest.mark.parametrize("tokens", [1e7, 2e9, 2e10])
def test_a_run_that_works_at_some_hours_of_the_day_ends_in_the_last_of_them(tokens: float) -> None:
    """Six hours fit into those from 10:00 to 16:00 of one day, and seven end an hour into the next day's."""
    plan = {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "count": 8, "dataset_tokens": tokens}
    bill = call("estimate_cost", plan | {"region": "California"})
    assert len(bill["co2_by_hours"]) == 4
    for row in bill["co2_by_hours"]:
        days, rest = divmod(bill["hours"], (row["before_hour"] - row["from_hour"]) % 24)
        assert row["takes_days"] == pytest.approx((24 * days + rest) / 24, rel=1e-6)
