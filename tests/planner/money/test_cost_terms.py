"""estimate_cost on other terms: spot, reserved, owned, one's own price; regions, the age of prices, and all parts."""

from __future__ import annotations

import json
import math
from datetime import date, timedelta
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples
from serving_calls import SERVE
from tool_calls import FLAT

from estimator.errors import PlanError
from knowledge.prices.book import prices
from planner import clock
from tools import call

# The layout is named whole, so that a call is one estimate.
TRAIN: dict[str, Any] = FLAT | {
    "framework": "deepspeed", "tp": 1, "pp": 1, "cp": 1, "dp": 8, "zero_stage": 2, "micro_batch": 1,
    "recompute": "none",
}  # fmt: skip


def cost(**changes: Any) -> dict[str, Any]:
    return call("estimate_cost", {name: value for name, value in (TRAIN | changes).items() if value is not None})


@cache
def plain() -> dict[str, Any]:
    return cost()


def said(found: dict[str, Any]) -> dict[str, Any]:
    return {row["field"]: row["value"] for row in found["assumptions"]}


@pytest.mark.parametrize("terms", [
    {}, {"price": "spot"}, {"price": "spot", "interruptions_per_day": 3}, {"price": "reserved", "provider": "AWS"},
    {"price": "reserved", "reserved_discount": 0.4}, {"price": "owned"}, {"price": "owned", "region": "France"},
    {"usd_per_device_hour": 2.5}, {"usd_per_device_hour": 2.5, "usd_per_gb_month": 1.0}, {"provider": "AWS"},
    {"capex_usd_per_device": 20_000, "usd_per_gb_month": 0.02}, {"method": "lora", "provider": "GCP"},
])  # fmt: skip
@pytest.mark.parametrize("base", [TRAIN, SERVE, SERVE | {"requests": 100_000}], ids=["training", "month", "requests"])
def test_money_is_rate_times_hours_and_parts_add_up(base: dict[str, Any], terms: dict[str, Any]) -> None:
    if "method" in terms and base is not TRAIN:
        return
    found = call("estimate_cost", base | terms)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["usd"] == found["usd_per_hour"] * found["hours"]
    assert found["low_usd"] == found["usd_per_hour"] * found["low_hours"]
    assert found["high_usd"] == found["usd_per_hour"] * found["high_hours"]
    assert math.fsum(part["usd"] for part in found["parts"]) == pytest.approx(found["usd_total"], rel=1e-9)
    assert found["usd_total"] >= found["usd"]
    assert found["usd_per_million_tokens"] * found["tokens"] / 1e6 == pytest.approx(found["usd"])
    assert found["low_hours"] <= found["hours"] <= found["high_hours"]
    assert found["device_hours"] == pytest.approx(found["hours"] * found["plan"]["cluster"]["count"])
    assert found["price"] == terms.get("price") or found["price"] in ("on_demand", "own", "owned")
    assert found["not_included"]
    if base is TRAIN:
        assert found["usd_per_step"] * found["steps"] == pytest.approx(found["usd"])
        assert found["usd_per_epoch"] * found["epochs"] == pytest.approx(found["usd"])


@settings(max_examples=examples(15))
@given(st.floats(1e8, 1e11))
def test_twice_the_steps_cost_twice_as_much(tokens: float) -> None:
    steps = max(1, int(tokens / 262_144))
    once, twice = cost(dataset_tokens=None, steps=steps), cost(dataset_tokens=None, steps=2 * steps)
    # From a day on what failures of machines add is a part of it.
    times = twice["hours"] / once["hours"]
    assert 2 <= times * (1 + 1e-6) <= 2.05
    assert twice["usd"] == pytest.approx(times * once["usd"])
    assert twice["owned"]["usd"] == pytest.approx(times * once["owned"]["usd"])
    assert twice["kwh"] == pytest.approx(times * once["kwh"])


def test_each_way_to_say_the_length_costs_the_same() -> None:
    ways = [
        {"dataset_tokens": 2048 * 500_000}, {"dataset_tokens": None, "dataset_samples": "500k", "sample_tokens": 2048},
        {"dataset_tokens": None, "dataset_samples": 250_000},  # each fills a sequence of 4096
        {"dataset_tokens": None, "steps": math.ceil(2048 * 500_000 / (64 * 4096))},
        {"dataset_tokens": 1024 * 500_000, "epochs": 2},
    ]  # fmt: skip
    assert len({cost(**way)["hours"] for way in ways}) == 1


def test_spot_without_interruptions_costs_its_price_and_with_them_more() -> None:
    calm = cost(price="spot", provider="AWS", interruptions_per_day=0)
    row = calm["by_provider"][0]
    price = next(price for price in prices("h100-sxm", "AWS") if price.instance == "p5.48xlarge")
    assert calm["usd"] == row["spot_usd"] == pytest.approx(price.spot_usd_per_hour * calm["hours"])
    assert calm["hours"] == plain()["hours"]
    assert [part["part"] for part in calm["parts"]] == [
        "devices", "checkpoint_storage", "data_storage", "data_transfer",
    ]  # fmt: skip
    usual, rough = cost(price="spot", provider="AWS"), cost(price="spot", provider="AWS", interruptions_per_day=4)
    assert calm["usd"] < usual["usd"] < rough["usd"]
    assert calm["hours"] < usual["hours"] < rough["hours"]
    assert rough["by_provider"][0]["spot_usd_with_interruptions"] == pytest.approx(rough["usd"])
    assert rough["usd"] > rough["by_provider"][0]["spot_usd"]
    assert {"interruptions_per_day", "restart_minutes", "checkpoint_save_s"} <= said(usual).keys()
    assert "interruptions_per_day" not in said(rough)


def test_more_machines_are_interrupted_more_often() -> None:
    wide = {"price": "spot", "provider": "AWS", "interruptions_per_day": 1, "count": 64, "dp": 64, "global_batch": 512}
    one, eight = cost(price="spot", provider="AWS", interruptions_per_day=1), cost(**wide)
    assert eight["hours"] / cost(**wide | {"price": None})["hours"] > one["hours"] / plain()["hours"]


def test_a_hopeless_run_has_no_spot_price() -> None:
    found = cost(price="spot", interruptions_per_day=9000)
    assert found["usd"] is None
    assert found["usd_total"] is None
    assert found["parts"] == []
    assert any("would not end" in text for text in found["warnings"])
    assert all(row["spot_usd_with_interruptions"] is None for row in found["by_provider"])


def test_reserved_is_published_or_by_ones_own_discount() -> None:
    with clock.on(date(2027, 6, 1)):
        published = cost(price="reserved", providers=["AWS"])
    assert (published["provider"], published["usd_per_hour"]) == ("AWS", 47.76)
    assert any("days old" in text for text in published["warnings"])
    own = cost(price="reserved", reserved_discount=0.25)
    assert own["usd"] == pytest.approx(0.75 * plain()["usd"])
    none = cost(price="reserved", provider="Vultr")
    assert none["usd"] is None
    assert any("no price" in text and "reserved_discount" in text for text in none["warnings"])


def test_owned_follows_its_arguments() -> None:
    found = cost(price="owned", region="us-east-1")
    owned = found["owned"]
    assert found["usd"] == owned["usd"] == pytest.approx(sum(owned["parts"].values()))
    assert owned["kw"] == pytest.approx(10.2)  # of a DGX H100
    assert owned["parts"]["power"] == pytest.approx(found["kwh"] * 0.0892)  # the energy figure's own kWh, paid once
    assert owned["usd_per_year"] == pytest.approx(owned["usd_per_hour"] * 8760 * owned["utilisation"])
    assert said(found)["colocation_usd_per_kw_month"] > 0
    bare = cost(
        capex_usd_per_device=35_040, resale_share=0, years=4, utilisation=1, usd_per_kwh=0,
        colocation_usd_per_kw_month=0, maintenance_share=0, staff_usd_per_device_year=0,
    )  # fmt: skip
    assert bare["price"] == "owned"
    assert bare["usd_per_device_hour"] == pytest.approx(1.0)
    assert "years" not in said(bare)
    hours = [cost(price="owned", years=years)["owned"]["usd_per_device_hour"] for years in (2, 4, 6)]
    assert hours == sorted(hours, reverse=True)
    assert cost(provider="owned")["price"] == "owned"
    assert cost(price="owned", resale_share=0)["owned"]["usd"] > owned["usd"]


def test_at_the_break_even_owning_costs_what_renting_does() -> None:
    """Whoever uses the machines for longer than that a year pays less for owning, whoever does for less pays more."""
    found = cost(price="owned")
    (own,) = [row for row in found["break_even"] if row["what"] == "owned"]
    rent = plain()["usd_per_hour"]
    at = cost(price="owned", utilisation=own["share"])["owned"]
    assert at["usd_per_hour"] == pytest.approx(rent)
    assert cost(price="owned", utilisation=own["share"] * 0.9)["owned"]["usd_per_hour"] > rent
    (picture,) = found["plots"]
    curves = {curve["name"]: curve["y"] for curve in picture["series"]}
    assert curves["owned"][0] == pytest.approx(own["usd_per_year"])
    assert curves["renting on demand"][-1] == pytest.approx(rent * 8760)


def test_a_reservation_pays_from_its_share_of_the_hourly_price_on() -> None:
    rows = cost(providers=["AWS"])["break_even"]
    (term,) = [row for row in rows if row["what"].startswith("three years")]
    (offer,) = [row for row in cost(providers=["AWS"])["by_provider"] if row["reserved_3y_usd_per_hour"]][:1]
    assert term["share"] == pytest.approx(offer["reserved_3y_usd_per_hour"] / offer["usd_per_hour"])


def test_what_is_not_known_is_not_guessed() -> None:
    found = cost(accelerator="p100-sxm", precision="fp16", framework=None, price="owned")
    assert found["owned"] is None
    assert found["usd"] is None
    assert any("capex_usd_per_device" in text for text in found["warnings"])
    assert cost(accelerator="p100-sxm", precision="fp16", framework=None, capex_usd_per_device=500)["usd"] > 0
    rows = cost(accelerator="b200-sxm")["by_provider"]
    unpriced = [row for row in rows if row["instance"] == "a4-highgpu-8g"]
    assert unpriced
    assert all(row["usd"] is row["stale"] is None for row in unpriced)


def test_checkpoints_are_stored_at_the_providers_price() -> None:
    found = cost(provider="AWS")
    part = {row["part"]: row for row in found["parts"]}["checkpoint_storage"]
    save = call("estimate_training", TRAIN)["memory"]["save"]
    kept, usd = said(found)["checkpoints_kept"], said(found)["usd_per_gb_month"]
    assert part["usd"] == pytest.approx(save["resumable_bytes"] / 1e9 * kept * usd * found["hours"] / 730)
    assert not any("checkpoints" in text for text in found["not_included"])
    unknown = cost(provider="RunPod")
    assert any("checkpoints" in text for text in unknown["not_included"])
    none = cost(provider="AWS", checkpoints_kept=0, usd_per_gb_month=0)
    assert none["usd_total"] - found["usd"] == pytest.approx(none["parts"][-1]["usd"])


def test_data_is_stored_and_the_weights_leave_once() -> None:
    found = cost(provider="GCP")
    parts, assumed = {row["part"]: row["usd"] for row in found["parts"]}, said(found)
    tokens = call("estimate_training", TRAIN)["run"]["tokens"]
    month = found["hours"] / 730
    assert parts["data_storage"] == pytest.approx(4 * tokens / 1e9 * assumed["usd_per_gb_month"] * month)
    save = call("estimate_training", TRAIN)["memory"]["save"]
    assert parts["data_transfer"] == pytest.approx(save["checkpoint_bytes"] / 1e9 * assumed["usd_per_gb_out"])
    assert sum(parts.values()) == pytest.approx(found["usd_total"])
    free = {row["part"]: row for row in cost(provider="AWS")["parts"]}["data_transfer"]
    assert free["usd"] == 0.0
    assert "100 are free" in free["what"]
    unknown = cost(provider="RunPod")
    assert "data_transfer" not in {row["part"] for row in unknown["parts"]}
    assert "data transfer out of the cloud" in unknown["not_included"]


def test_regions_change_carbon_and_electricity_and_mark_prices() -> None:
    france, world = cost(region="France"), plain()
    assert (france["region"], world["region"]) == ("France", "World")
    assert france["co2_kg"] < 0.2 * world["co2_kg"]
    assert france["kwh"] == world["kwh"]
    assert france["usd"] == world["usd"]  # RunPod's source names no region
    here = cost(region="us-east-1", providers=["AWS", "GCP", "Azure"])
    priced = [row for row in here["by_provider"] if row["usd"] is not None and row["instance"] != "a3-highgpu-8g"]
    assert {row["provider"]: row["in_region"] for row in priced} == {"AWS": True, "GCP": True, "Azure": True}
    away = cost(region="europe-west4", provider="GCP")
    assert away["by_provider"][0]["in_region"] is False
    assert any("region asked for" in text for text in away["warnings"])


def test_prices_are_stale_after_ninety_days() -> None:
    price = next(price for price in prices("h100-sxm", "AWS") if price.instance == "p5.48xlarge")
    listed = date.fromisoformat(price.price_date or "")
    for days, stale in ((0, False), (90, False), (91, True), (-5, False)):
        with clock.on(listed + timedelta(days=days)):
            found = cost(provider="AWS")
            row = found["by_provider"][0]
            assert (row["price_age_days"], row["stale"]) == (max(0, days), stale)
            assert any("days old" in text for text in found["warnings"]) is stale
            assert row["spot_stale"] is stale
            hardware = call("describe_hardware", {"accelerator": "h100-sxm"})["prices"]
            assert next(r["stale"] for r in hardware if r["instance"] == "p5.48xlarge") is stale
    assert clock.today() == date.today()
    with clock.on(date(2026, 11, 1)):
        undated = cost(provider="OCI", accelerator="a100-sxm-40gb")
    assert undated["by_provider"][0]["stale"] is True
    assert undated["by_provider"][0]["price_age_days"] is None
    assert any("undated" in text for text in undated["warnings"])


def test_providers_narrow_the_rows() -> None:
    assert {row["provider"] for row in cost(providers=["aws", "LAMBDA"])["by_provider"]} == {"AWS", "Lambda"}
    assert cost(providers=[])["usd"] is None


def test_serving_on_spot_takes_longer_or_serves_less() -> None:
    terms = {"price": "spot", "interruptions_per_day": 4}
    month, calm = (
        call("estimate_cost", SERVE | terms),
        call("estimate_cost", SERVE | terms | {"interruptions_per_day": 0}),
    )
    assert month["hours"] == calm["hours"] == 730
    assert month["usd"] == calm["usd"] == month["usd_per_month"]
    lost = 4 / 24 * 0.25  # restarts an hour, a quarter of an hour each
    assert month["tokens"] == pytest.approx(calm["tokens"] / (1 + lost))
    assert month["usd_per_million_tokens"] == pytest.approx(calm["usd_per_million_tokens"] * (1 + lost))
    run = call("estimate_cost", SERVE | terms | {"requests": 10_000})
    assert run["hours"] == pytest.approx(call("estimate_cost", SERVE | {"requests": 10_000})["hours"] * (1 + lost))


@pytest.mark.parametrize(("terms", "field"), [
    ({"price": "own"}, "usd_per_device_hour"), ({"price": "spot", "usd_per_device_hour": 2}, "price"),
    ({"price": "cheap"}, "price"), ({"region": "Atlantis"}, "region"), ({"region": 3}, "region"),
    ({"providers": ["Lamda"]}, "providers"), ({"reserved_discount": 1}, "reserved_discount"),
    ({"reserved_discount": True}, "reserved_discount"), ({"years": 0}, "years"), ({"years": float("nan")}, "years"),
    ({"utilisation": 1.2}, "utilisation"), ({"pue": 0.9}, "pue"),
    ({"interruptions_per_day": -1}, "interruptions_per_day"),
    ({"interruptions_per_day": float("inf")}, "interruptions_per_day"), ({"checkpoints_kept": 1.5}, "checkpoints_kept"),
    ({"checkpoint_interval_minutes": 0}, "checkpoint_interval_minutes"), ({"usd_per_kwh": -1}, "usd_per_kwh"),
    ({"capex_usd_per_device": 0}, "capex_usd_per_device"), ({"capex": 5}, "capex"),
])  # fmt: skip
@pytest.mark.parametrize("base", [TRAIN, SERVE], ids=["training", "serving"])
def test_impossible_terms_are_refused(base: dict[str, Any], terms: dict[str, Any], field: str) -> None:
    with pytest.raises(PlanError) as caught:
        call("estimate_cost", base | terms)
    assert caught.value.field.split(".")[0] == field


@pytest.mark.parametrize("window", [{}, {"hours_per_day": 8, "days_per_week": 5}, {"hours_per_day": 12}])
@pytest.mark.parametrize("utilisation", [None, 0.3])
def test_a_month_of_owned_machines_is_a_twelfth_of_their_year(
    window: dict[str, int], utilisation: float | None
) -> None:
    terms = {"price": "owned"} | ({} if utilisation is None else {"utilisation": utilisation})
    found = call("estimate_cost", SERVE | window | terms)
    owned = found["owned"]
    free = window.get("hours_per_day", 24) * window.get("days_per_week", 7) / (24 * 7)
    assert owned["utilisation"] == pytest.approx(utilisation or free)
    assert found["usd_per_month"] == pytest.approx(owned["usd_per_year"] / 12)
    fixed, power = owned["fixed_usd_per_year"] / 12, owned["power_usd_per_hour"]
    assert found["usd_per_month"] == pytest.approx(fixed + power * 730 * (utilisation or free))
    assert found["usd"] == pytest.approx(found["usd_per_month"])
    assert said(found)["utilisation"] == pytest.approx(utilisation or free)


def test_a_rented_month_is_of_the_hours_that_are_served_in() -> None:
    whole, office = (call("estimate_cost", SERVE | window) for window in ({}, {"hours_per_day": 8, "days_per_week": 5}))
    assert office["usd_per_month"] == pytest.approx(whole["usd_per_month"] * 40 / 168)
    assert office["usd_per_million_tokens"] == pytest.approx(whole["usd_per_million_tokens"])
    estimated = call("estimate_inference", {"plan": office["plan"]})
    assert estimated["cost"]["usd_per_month"] == pytest.approx(office["usd_per_month"])


def test_a_run_of_months_has_a_monthly_bill() -> None:
    long = call("estimate_cost", TRAIN | {"dataset_tokens": 1e12})
    assert long["hours"] > 730
    assert long["usd_per_month"] == pytest.approx(730 * long["usd_per_hour"])
    assert call("estimate_cost", TRAIN)["usd_per_month"] is None
