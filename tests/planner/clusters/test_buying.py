"""Machines to buy: within a budget for hardware, as they are sold, and by what they cost over their years."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.machines.catalogue import find_accelerator, machine
from planner.asked.money import CostTerms
from planner.money.owned import owned_cost
from planner.money.purchase import SECOND_HAND, purchase
from planner.money.terms import place_of
from tools.registry import find

QLORA: dict[str, Any] = {"model": "qwen2.5-7b", "method": "qlora", "dataset_tokens": "50M", "provider": "owned"}
CARDS = ["rtx-3090", "rtx-4090", "rtx-5060-ti-16gb", "h100-sxm"]


def test_the_budget_is_for_the_hardware_and_the_figures_are_those_of_a_bill():
    found = find("recommend_cluster")(QLORA | {"budget_usd": 3500, "accelerators": CARDS})
    assert found["satisfied"]
    assert found["options"]
    for option in found["options"]:
        assert option["capex_usd"] <= 3500
        assert option["fits_budget"]
        assert option["years_usd"] > option["capex_usd"]
    first = found["options"][0]
    plan = Plan.parse({"model": "qwen2.5-7b", "workload": {"method": "qlora", "dataset_tokens": 5e7}})
    bill = find("estimate_cost")({"plan": plan.patch(first["patch"]).given()})
    assert bill["price"] == "owned"
    assert round(bill["usd"], 2) == round(first["usd"], 2)
    assert bill["owned"]["capex_usd"] == pytest.approx(first["capex_usd"])
    assert bill["owned"]["usd_per_year"] * bill["owned"]["years"] == pytest.approx(first["years_usd"])
    even = {row["what"]: row["hours_per_year"] for row in bill["break_even"]}
    assert first["pays_from_hours_per_year"] == pytest.approx(even.get("owned"))


def test_what_stands_first_by_cost_costs_least_over_its_years():
    found = find("recommend_cluster")(QLORA | {"accelerators": CARDS, "sort": "cost"})
    costs = [option["years_usd"] for option in found["options"] if option["measured"]]
    assert costs == sorted(costs)


def test_modules_are_bought_by_the_node_and_cards_one_at_a_time():
    found = find("recommend_cluster")(
        {"model": "qwen2.5-7b", "concurrency": 2, "provider": "owned", "accelerators": ["h100-sxm", "rtx-4090"]}
    )
    counts = {name: {option["count"] for option in found["options"] if option["accelerator"] == name}
              for name in ("h100-sxm", "rtx-4090")}  # fmt: skip
    assert all(count % 8 == 0 for count in counts["h100-sxm"])
    assert min(counts["rtx-4090"]) < 8


def test_a_budget_that_buys_nothing_gets_what_it_buys_for_a_smaller_plan():
    wanted = {"model": "llama-3.1-70b", "concurrency": 1, "provider": "owned", "budget_usd": 4000}
    found = find("recommend_cluster")(wanted | {"accelerators": ["rtx-3090", "gb10-dgx-spark", "h100-sxm"]})
    assert not found["satisfied"]
    near = [row for row in found["nearest"] if row["what"] != "the limits raised"]
    assert near
    for row in near:
        sold = purchase(find_accelerator(row["accelerator"]).value)
        assert sold is not None
        assert row["count"] * sold.device_usd <= 4000


def test_new_machines_come_before_used_ones_and_a_desk_needs_no_room():
    terms = CostTerms.model_validate({})
    for name, whole in (("h100-sxm", True), ("rtx-3090", False)):
        sold = purchase(find_accelerator(name).value)
        assert sold is not None
        assert sold.whole == whole
        assert (sold.price.seller == SECOND_HAND) != whole
    desk, rack = (owned_cost(machine(name, count)[0], terms, place_of(terms), (1.0, 1.0, 1.0))
                  for name, count in (("rtx-3090", 2), ("h100-sxm", 1)))  # fmt: skip
    assert desk is not None
    assert rack is not None
    assert desk.parts["colocation"] == desk.parts["staff"] == 0.0
    assert rack.parts["colocation"] > 0.0 < rack.parts["staff"]


def test_machines_are_not_bought_and_rented_in_one_search():
    with pytest.raises(PlanError, match="owned beside others"):
        find("recommend_cluster")(QLORA | {"providers": ["owned", "AWS"]})


def test_cards_for_games_are_joined_over_nodes_only_where_they_are_named():
    """1,024 used RTX 3060 came first for a 70B, which nobody sells with machines and a network."""
    asked = {"model": "llama-3.1-70b", "dataset_tokens": "10B", "providers": ["owned"], "budget_usd": 1e6}
    for option in find("recommend_cluster")(asked)["options"]:
        device = find_accelerator(option["accelerator"]).value
        assert option["nodes"] == 1 or not device.personal
    named = find("recommend_cluster")(asked | {"accelerators": ["rtx-3060-12gb"]})
    assert any(option["nodes"] > 1 for option in named["options"])


def test_what_nobody_would_wait_for_is_no_machine_to_serve_with():
    """Two DGX Sparks hold a 70B in 16 bits, and give each of thirty people two tokens a second."""
    asked = {
        "model": "llama-3.1-70b",
        "concurrency": 30,
        "provider": "owned",
        "accelerators": ["gb10-dgx-spark", "h200-nvl"],
    }
    found = find("recommend_cluster")(asked)
    assert {option["accelerator"] for option in found["options"]} == {"h200-nvl"}
    assert any("No limit on latency was named" in text for text in found["why"])
    named = find("recommend_cluster")(asked | {"tpot_slo_ms": 1000.0, "ttft_slo_ms": 10000.0})
    assert "gb10-dgx-spark" in {option["accelerator"] for option in named["options"]}


def test_a_server_that_lays_layers_over_cards_takes_no_more_of_them_than_it_needs():
    asked = {"model": "llama-3.1-70b", "concurrency": 1, "weight_dtype": "q4_k_m", "engine": "llamacpp"}
    sized = find("size_serving")(asked | {"accelerator": "rtx-5090"})
    assert sized["best"]["devices"] == 2
