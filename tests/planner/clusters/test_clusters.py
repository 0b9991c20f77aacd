"""recommend_cluster: every option is what the other tools say of the same plan."""

import itertools
from functools import cache
from math import inf
from types import SimpleNamespace
from typing import Any

import pytest
from pace import within
from samples import part

from estimator.errors import PlanError
from estimator.plan.schema import Plan, merge
from estimator.units import GIB
from knowledge.machines.catalogue import accelerators, find_accelerator
from knowledge.models.known import facts_of
from knowledge.prices.book import prices
from launchers.render import able_targets
from planner.clusters.recommend import ClusterRequest
from planner.clusters.request import UNHURRIED_H
from planner.clusters.request import asked as asked_of
from planner.clusters.training import screening
from planner.money.owned import metered_kw
from planner.training.neighbours import family_sizes
from tools.registry import find

LLAMA, MIXTRAL = "meta-llama/Llama-3.1-8B", "mistralai/Mixtral-8x7B-v0.1"
PLANS = {
    "lora": {"model": LLAMA, "method": "lora", "dataset_tokens": "100M", "limit": 5},
    "full": {"model": LLAMA, "dataset_tokens": "1B", "sort": "cost", "limit": 6},
    "moe": {"model": MIXTRAL, "method": "lora", "dataset_tokens": "300M", "sort": "time", "max_nodes": 4, "limit": 4},
    "pretrain": {"model": LLAMA, "stage": "pretrain", "dataset_tokens": "20B", "deadline_h": 200, "limit": 3},
    "unpriced": {
        "model": LLAMA,
        "method": "lora",
        "dataset_tokens": "50M",
        "accelerators": ["radeon-pro-w7900", "l40s"],
    },
    "rate": {"model": LLAMA, "request_rate": 20, "ttft_slo_ms": 1000, "tpot_slo_ms": 50, "limit": 5},
    "clients": {
        "model": LLAMA,
        "concurrency": 64,
        "requests": 10_000,
        "sort": "cost",
        "vendors": ["NVIDIA"],
        "limit": 4,
    },
}
FILTERS = {"accelerators", "providers", "max_nodes", "max_devices", "sort", "limit"}


@cache
def asked(name):
    return find("recommend_cluster")(PLANS[name])


def plan_of(name, option):
    request: Any = find("recommend_cluster").request
    plain = request.model_validate({key: value for key, value in PLANS[name].items() if key not in FILTERS})
    return Plan.parse(merge(plain.to_plan().given(), option["patch"])).given()


@pytest.mark.parametrize("name", PLANS)
def test_every_option_fits_and_costs_what_the_cost_tool_says(name):
    found = asked(name)
    assert found["options"]
    for option in found["options"]:
        plan = plan_of(name, option)
        assert find("check_fit")({"plan": plan})["fits"], option["accelerator"]
        cost = find("estimate_cost")({"plan": plan})
        assert cost["hours"] == pytest.approx(option["hours"], rel=1e-9)
        if option["usd"] is None:
            assert cost["usd"] is None
        else:
            assert round(cost["usd"], 2) == round(option["usd"], 2)
            assert option["low_usd"] <= option["usd"] <= option["high_usd"]


@pytest.mark.parametrize("name", PLANS)
def test_no_pareto_option_is_dominated(name):
    serving = name in ("rate", "clients")
    rows = [(one["usd"], one["e2e_s"] if serving else one["hours"], one) for one in asked(name)["options"]]
    priced = [row for row in rows if row[0] is not None]
    for usd, took, option in priced:
        beaten = any(u <= usd and t <= took and (u < usd or t < took) for u, t, _ in priced)
        assert not (option["pareto"] and beaten)
    assert all(not option["pareto"] for usd, _, option in rows if usd is None)


@pytest.mark.parametrize(("name", "key"), [("full", "usd"), ("moe", "hours"), ("lora", "balanced_score")])
def test_options_come_in_the_order_asked_for(name, key):
    options = [option for option in asked(name)["options"] if option["usd"] is not None]
    for before, after in itertools.pairwise(options):
        if before is options[0] and before["launch_targets"] and not after["launch_targets"]:
            continue  # What can be launched comes first.
        assert before["measured"] or not after["measured"]
        assert before["measured"] != after["measured"] or before[key] <= after[key] * (1 + 1e-9)


def _wide(tokens):
    return {"model": LLAMA, "dataset_tokens": tokens, "accelerators": FEW, "limit": 100}


@cache
def _widely(tokens, sort):
    return find("recommend_cluster")(_wide(tokens) | {"sort": sort})["options"]


@pytest.mark.parametrize(
    ("limits", "sort", "figure"),
    [
        ({"deadline_h": 24}, "cost", "usd"),
        ({"deadline_h": 2, "budget_usd": 400}, "cost", "usd"),
        ({"budget_usd": 60}, "time", "hours"),
        ({"max_usd": 400}, "time", "hours"),
    ],
)
@pytest.mark.parametrize("tokens", part(["100M"], ["100M", "300M"]))
def test_limits_are_met_first_and_then_the_cheapest_in_time_or_the_fastest_within_budget(limits, sort, figure, tokens):
    """Of a wide search no option that keeps the limits, was measured and has files is better than the first;
    what keeps them is looked for in every order."""
    found = find("recommend_cluster")(_wide(tokens) | limits)
    assert found["sort"] == sort
    assert found["satisfied"]
    first = found["options"][0]
    budget = limits.get("budget_usd", limits.get("max_usd", inf))
    others = [
        option
        for other in ("cost", "time", "balanced")
        for option in _widely(tokens, other)
        if option["usd"] is not None and option["usd"] <= budget
        and option["high_hours"] <= limits.get("deadline_h", inf) and option["measured"] and option["launch_targets"]
    ]  # fmt: skip
    assert first["usd"] <= budget
    assert first["hours"] <= limits.get("deadline_h", inf)
    assert len(others) > 1
    assert first[figure] <= min(option[figure] for option in others) * (1 + 1e-9)


@pytest.mark.parametrize("sort", ["cost", "time", "balanced"])
@pytest.mark.parametrize(
    ("plan", "unmeasured"), [(PLANS["full"], "l40s"), (PLANS["lora"], "rtx-4090"), (PLANS["rate"], "tpu-v6e")]
)
def test_what_was_never_measured_comes_behind_what_was(plan, unmeasured, sort):
    """However good its estimate is."""
    found = find("recommend_cluster")(
        plan | {"sort": sort, "limit": 100, "accelerators": ["a100-sxm-80gb", unmeasured, "h100-sxm"]}
    )
    priced = [option for option in found["options"] if option["usd_per_hour"] is not None]
    behind = priced if priced[0]["launch_targets"] else priced[1:]
    measured = [option["measured"] for option in behind]
    assert measured == sorted(measured, reverse=True)
    assert len(set(measured)) == 2


def test_first_is_the_plan():
    found = asked("full")
    first = found["options"][0]
    assert found["plan"]["cluster"]["accelerator"] == first["accelerator"]
    assert found["plan"]["cluster"]["count"] == first["count"]
    assert found["plan"]["goal"]["provider"] == first["provider"]


def test_every_accelerator_is_an_option_or_rejected():
    found = asked("full")
    named = {option["accelerator"] for option in found["options"]}
    for row in found["rejected"]:
        assert row["why"]
        assert row["accelerators"]
        named |= set(row["accelerators"])
    assert {device.id for device in accelerators()} == named


def test_without_a_price_there_are_no_dollars():
    options = asked("unpriced")["options"]
    bare = [option for option in options if option["accelerator"] == "radeon-pro-w7900"]
    assert bare
    assert all(option["usd"] is None and option["usd_per_hour"] is None for option in bare)
    assert not any(price.usd_per_hour for price in prices("radeon-pro-w7900"))
    first_bare = next(place for place, option in enumerate(options) if option["usd"] is None)
    assert all(option["usd"] is None for option in options[first_bare:])


def test_announced_parts_are_tried_only_by_name():
    announced = {device.id for device in accelerators() if device.announced}
    assert announced
    found = asked("lora")
    assert not announced & {option["accelerator"] for option in found["options"]}
    row = next(row for row in found["rejected"] if row["why"].startswith("announced"))
    assert set(row["accelerators"]) == announced
    named = find("recommend_cluster")(PLANS["lora"] | {"accelerators": sorted(announced)})
    assert {option["accelerator"] for option in named["options"]} <= announced


def test_filters_hold():
    found = find("recommend_cluster")(
        PLANS["lora"] | {"vendors": ["amd"], "least_memory_gib": 200, "max_devices": 6, "max_usd_per_hour": 60}
    )
    by_id = {device.id: device for device in accelerators()}
    for option in found["options"]:
        device = by_id[option["accelerator"]]
        assert device.vendor == "AMD"
        assert device.memory_bytes >= 200 * GIB
        assert option["count"] <= 6
        assert option["usd_per_hour"] <= 60
    aws = find("recommend_cluster")(PLANS["lora"] | {"providers": ["aws"], "limit": 5})["options"]
    assert aws
    assert {option["provider"] for option in aws} == {"AWS"}


def test_limits_are_kept_or_said_to_be_missed():
    free = asked("full")["options"]
    budget = min(option["usd"] for option in free) * 1.2
    kept = find("recommend_cluster")(PLANS["full"] | {"max_usd": budget})
    assert kept["satisfied"]
    assert all(option["fits_budget"] and option["usd"] <= budget for option in kept["options"])
    missed = find("recommend_cluster")(PLANS["full"] | {"budget_usd": 0.5, "accelerators": ["h100", "a10g"]})
    assert not missed["satisfied"]
    assert missed["warnings"]
    assert all(option["fits_budget"] is False for option in missed["options"])
    row = next(row for row in missed["rejected"] if row["reason"] == "over_budget")
    assert set(row["accelerators"]) == {"h100-sxm", "a10g"}
    assert row["least_usd"]["h100-sxm"] > 0.5
    late = find("recommend_cluster")(PLANS["full"] | {"deadline_h": 0.5, "max_devices": 1, "limit": 2})
    assert not late["satisfied"]
    assert all(option["fits_deadline"] is False for option in late["options"])


def test_what_has_no_price_keeps_to_no_budget() -> None:
    """Where all that can be rented is too dear, what nobody rents out is no answer within the budget."""
    asks = {"model": LLAMA, "concurrency": 4, "budget_usd": 20, "accelerators": ["radeon-pro-w7900", "l40s"]}
    found = find("recommend_cluster")(asks)
    assert not found["satisfied"]
    assert not any(option["fits_budget"] for option in found["options"])


def test_what_fits_nowhere_says_how_many_would():
    found = find("recommend_cluster")(
        {"model": "meta-llama/Llama-3.1-70B", "dataset_tokens": "1B", "accelerators": ["h100"], "max_devices": 2}
    )
    assert found["options"] == []
    assert found["plan"] is None
    row = next(row for row in found["rejected"] if row["reason"] == "does_not_fit")
    least = row["least_devices"]["h100-sxm"]
    fits = find("check_fit")({"model": "meta-llama/Llama-3.1-70B", "accelerator": "h100-sxm", "count": least})
    assert least > 2
    assert fits["fits"]


def test_without_data_options_are_ranked_by_tokens():
    found = find("recommend_cluster")({"model": LLAMA, "method": "lora", "sort": "cost", "max_devices": 8, "limit": 4})
    values = [option["usd_per_million_tokens"] for option in found["options"]]
    assert values == sorted(values)
    assert all(option["hours"] is None for option in found["options"])
    assert any("names no data" in text for text in found["warnings"])


def test_the_cluster_in_a_plan_is_what_is_asked_for():
    plan = find("estimate_training")({"model": LLAMA, "accelerator": "h100", "count": 8, "dataset_tokens": "1B"})[
        "plan"
    ]
    found = find("recommend_cluster")({"plan": plan, "sort": "cost", "limit": 8, "accelerators": FEW})
    assert len({option["accelerator"] for option in found["options"]}) > 1
    assert any(item["field"] == "cluster" for item in found["assumptions"])
    flat = find("recommend_cluster")({"plan": plan, "accelerator": "h100", "count": 16})
    assert {(option["accelerator"], option["count"]) for option in flat["options"]} == {("h100-sxm", 16)}


@pytest.mark.parametrize(
    ("bad", "field", "valid"),
    [
        ({"providers": ["Lamda"]}, "providers", "Lambda"),
        ({"vendors": ["nvidea"]}, "vendors", "NVIDIA"),
        ({"accelerators": ["h1000"]}, "accelerators", "h100"),
        ({"sort": "cheap"}, "sort", "cost"),
        ({"max_usd": float("nan")}, "max_usd", ""),
        ({"limit": 0}, "limit", ""),
        ({"accelerators": []}, "accelerators", ""),
        ({"accelerators": ["h100"] * 60_000}, "accelerators", ""),
        ({"providers": ["AWS"] * 60_000}, "providers", ""),
        ({"model": "no such model"}, "model", ""),
        ({"plan": {"cluster": "h100"}}, "cluster", ""),
    ],
)
def test_bad_arguments_are_named(bad, field, valid):
    with pytest.raises(PlanError) as caught, within(0.5):
        find("recommend_cluster")(PLANS["lora"] | bad)
    assert caught.value.field == field
    assert valid.lower() in " ".join(caught.value.valid).lower()


def test_serving_needs_a_load():
    with pytest.raises(PlanError, match="request_rate"):
        find("recommend_cluster")({"model": LLAMA, "input_len": 100})


UNPRICED = [
    one.id for one in accelerators()
    if one.vendor == "NVIDIA" and not any(price.usd_per_hour for price in prices(one.id))
]  # fmt: skip
# Of all kinds, a sixth of each, or all.
# Whichever devices the draw has, servers that people rent are among them.
RENTED = [device.id for device in accelerators() if prices(device.id)]
FEW = [id for place, id in enumerate(RENTED) if place % part(6, 1) == 0 or id in ("h100-sxm", "b200-sxm", "l40s")]
LORA = {"model": LLAMA, "method": "lora", "dataset_tokens": "20B"}
FULL = {"model": LLAMA, "dataset_tokens": "200B"}
GRPO = {"model": MIXTRAL, "method": "lora", "stage": "grpo", "dataset_tokens": "1B"}
LIMITS: dict[str, dict[str, Any]] = {
    "balanced": LORA | {"accelerators": FEW},
    "cost": LORA | {"sort": "cost", "accelerators": FEW},
    "kept": LORA | {"deadline_h": 30, "budget_usd": 2000, "accelerators": FEW},
    "unpriced": LORA | {"accelerators": UNPRICED[:12], "limit": 8},
    "generated": GRPO | {"deadline_h": 100, "accelerators": FEW},
    "hopeless": FULL | {"deadline_h": 10, "budget_usd": 50, "limit": 5, "accelerators": FEW},
}


@pytest.mark.parametrize("name", LIMITS)
def test_what_is_left_out_unestimated_could_not_have_been_an_option(name, monkeypatch):
    found = find("recommend_cluster")(LIMITS[name])
    monkeypatch.setattr(screening._Ahead, "outdone", lambda self, one: inf)
    monkeypatch.setattr(screening._Ahead, "nearest", lambda self, one: inf)
    every = find("recommend_cluster")(LIMITS[name])
    assert every["sizes_tried"] > found["sizes_tried"]
    # A score is set against the cheapest and the fastest that were estimated.
    beside = [[{**option, "balanced_score": None} for option in each["options"]] for each in (every, found)]
    assert beside[0] == beside[1]


@pytest.mark.parametrize(
    ("sort", "money", "expected"), [("cost", inf, 5.0), ("time", 3.0, 5.0), ("cost", 3.0, 5.0), ("balanced", 5.0, 3.0)]
)
def test_a_cluster_is_outdone_once_enough_others_come_before_it(sort, money, expected):
    ask = asked_of(ClusterRequest.model_validate({"model": LLAMA}))
    assert ask.unhurried_h == 0.0  # its length is not known
    ahead = screening._Ahead(ask, sort, 5)
    for place in range(1, 6):
        price = inf if money == inf else 3.0 * place if sort == "cost" else 3.0
        other: Any = SimpleNamespace(money=price, time=float(place), measured=True, missed=lambda _: 0.0)
        ahead.add(other)
    one: Any = SimpleNamespace(money=money, time=1.0, bought=False, tries=SimpleNamespace(measured=True))
    assert ahead.outdone(one) == pytest.approx(expected)


def test_more_devices_are_tried_until_the_deadline_is_kept():
    """What a bound takes to be enough devices is far from it where a run mostly generates."""
    wanted = {"model": LLAMA, "stage": "grpo", "rollout": "colocated", "dataset_tokens": "30B"}
    found = find("recommend_cluster")(wanted | {"accelerators": ["a100-sxm-80gb"], "deadline_h": 24, "sort": "cost"})
    assert found["satisfied"]
    kept = found["options"][0]
    assert kept["count"] > 64
    half = find("estimate_training")(wanted | {"accelerator": "a100-sxm-80gb", "count": kept["count"] // 2})
    assert half["run"]["hours"] > 24 > kept["hours"]


def test_nor_are_they_where_more_of_them_do_not_help():
    """Hours that the trained model generates token by token are the same on any number of devices."""
    wanted = {"model": LLAMA, "stage": "grpo", "dataset_tokens": "1B", "accelerators": ["h100-sxm"], "deadline_h": 1}
    found = find("recommend_cluster")(wanted)
    assert not found["satisfied"]
    assert found["sizes_tried"] < 12


def test_a_short_run_is_tried_on_larger_clusters_where_the_first_cannot_hold_it():
    """By its least time it seemed short on one device, and no other number was opened."""
    given = {"model": "deepseek-v3", "method": "qlora", "steps": 10}
    found = find("recommend_cluster")(given | {"accelerators": ["h100-sxm"]})
    assert found["options"]
    assert find("check_fit")(given | {"accelerator": "h100-sxm", "count": found["options"][0]["count"]})["fits"]


def test_smaller_nodes_are_screened_as_such():
    ask = asked_of(ClusterRequest.model_validate({"model": LLAMA, "dataset_tokens": "20B", "accelerators": ["l40s"]}))
    candidates = screening.screened(ask, "cost", 1000).candidates
    small = [one for one in candidates if one.shape.per_node == 4]
    assert small
    for one in small:
        result = find("estimate_training")({"plan": ask.plan.patch(dict(one.changes)).given()})
        assert one.time == pytest.approx(result["run"]["hours"])


def test_the_whole_catalogue_is_quick():
    with within(4):
        find("recommend_cluster")(PLANS["lora"])


@pytest.mark.parametrize("sort", ["cost", "balanced"])
def test_what_would_change_the_winner_changes_it(sort):
    found = find("recommend_cluster")(PLANS["full"] | {"sort": sort, "accelerators": FEW})
    first = found["options"][0]
    rows = {row["assumption"]: row for row in found["winner_changes"]}
    assert rows["speed"]["winner"] != f"{first['count']} x {first['accelerator']} at {first['provider']}"
    if first["stale"]:
        assert "price date" in rows
    assert first["measured"] or "measurements" in rows


def test_only_what_can_be_launched_takes_the_place_of_what_can():
    # Several hosts of TPUs have no launch files, and are close to what comes first.
    few = {"accelerators": ["mi300x", "tpu-v6e"], "sort": "balanced", "dataset_tokens": "20B", "limit": 8}
    found = find("recommend_cluster")(PLANS["full"] | few)
    first, *others = found["options"]
    assert first["launch_targets"]
    assert found["winner_changes"]
    for row in found["winner_changes"]:
        winner = next(o for o in others if f"{o['count']} x {o['accelerator']} at {o['provider']}" == row["winner"])
        assert able_targets(Plan.parse(found["plan"]).patch(winner["patch"]))
    for one in others:
        times = (one["usd"] * one["hours"] / first["usd"] / first["hours"]) ** 0.5
        assert one["balanced_score"] == pytest.approx(first["balanced_score"] * times)


def test_a_budget_of_a_month_that_no_cluster_keeps_has_plans_that_do():
    load = {"kind": "inference", "request_rate": 1, "input_len": 500, "output_len": 200}
    plan = {"model": "meta-llama/Llama-3.1-70B", "workload": load, "goal": {"budget_usd": 500}}
    found = find("recommend_cluster")({"plan": plan, "accelerators": ["h200-sxm", "l4", "rtx-a6000", "rtx-4090"]})
    assert not found["satisfied"]
    assert any(row["usd"] <= 500 for row in found["nearest"])


def test_the_knee_is_on_the_front_and_between_its_ends():
    # So long that hours count on any of them.
    found = find("recommend_cluster")(PLANS["full"] | {"dataset_tokens": "200B", "limit": 100, "accelerators": FEW})
    front = [option for option in found["options"] if option["pareto"]]
    knee = found["knee"]
    assert len(front) >= 3
    assert knee["pareto"]
    usd, hours = ([option[name] for option in front] for name in ("usd", "hours"))
    between = min(usd) < knee["usd"] < max(usd) and min(hours) < knee["hours"] < max(hours)
    # A front that bends outwards has none: there it is the best balance.
    assert between or knee["usd"] * knee["hours"] == min(each["usd"] * each["hours"] for each in front)


def test_nodes_are_joined_where_a_network_is_stated():
    """Clouds that state none between their nodes come where nobody does: 'at Verda, four to a node' is a question."""
    found = find("recommend_cluster")(PLANS["full"] | {"accelerators": ["b300-sxm", "h200-sxm"], "limit": 20})
    joined = [option for option in found["options"] if option["nodes"] > 1]
    assert joined
    for option in joined:
        rows = [row for row in prices(option["accelerator"], option["provider"]) if row.instance == option["instance"]]
        assert any(row.network or row.network_bandwidth_per_node for row in rows)


def test_without_data_the_cheapest_tokens_come_first():
    found = find("recommend_cluster")({"model": LLAMA, "accelerators": ["h100-sxm", "l40s"]})
    assert found["sort"] == "cost"
    costs = [option["usd_per_million_tokens"] for option in found["options"] if option["measured"]]
    assert costs[0] == min(costs)


def test_nobody_pays_for_hours_that_are_not_waited_for():
    """Of what is done within a working day the cheapest comes first, and is the knee."""
    found = find("recommend_cluster")({"model": LLAMA, "dataset_tokens": "300M", "limit": 100, "accelerators": FEW})
    first = found["options"][0]
    assert first["hours"] <= UNHURRIED_H
    for option in found["options"][1:]:
        if option["usd"] is not None and option["launch_targets"] and option["hours"] <= UNHURRIED_H:
            assert option["measured"] <= first["measured"]
            assert option["measured"] < first["measured"] or option["usd"] >= first["usd"]
    unhurried = [option["usd"] for option in found["options"] if option["usd"] and option["hours"] <= UNHURRIED_H]
    assert found["knee"]["usd"] == min(unhurried)


@pytest.mark.parametrize(
    ("limits", "run"),
    [
        ({"budget_usd": 20}, {}),
        ({"deadline_h": 0.5, "budget_usd": 60}, {}),
        ({"budget_usd": 20}, {"stage": "pretrain"}),
        ({"budget_usd": 1}, {"stage": "pretrain", "precision": "fp8"}),
        ({"budget_usd": 20}, {"dataset_tokens": 1e12}),  # starting is as dear as all that is left of the data
    ],
)
def test_a_hopeless_budget_gets_plans_that_are_not(limits, run):
    wanted = {"model": "qwen2.5-7b", "dataset_tokens": "1B", "accelerators": ["h100", "l40s", "a100"]} | limits | run
    found = find("recommend_cluster")(wanted)
    assert not found["satisfied"]
    assert len(found["nearest"]) == 3
    assert all(row["what"] != "the limits raised" for row in found["nearest"])
    for row in found["nearest"]:
        assert row["gives_up"]
        if row["what"] == "the limits raised":
            continue
        assert row["usd"] <= limits["budget_usd"]
        assert row["hours"] <= limits.get("deadline_h", inf)
        plan = Plan.parse({"model": "qwen2.5-7b", "workload": {"kind": "training", "dataset_tokens": 1e9} | run})
        cost = find("estimate_cost")({"plan": plan.patch(row["patch"]).given()})
        assert cost["usd"] == pytest.approx(row["usd"])


def test_options_name_the_targets_that_can_write_them():
    # Not every cheap device has a framework that a target of ours starts.
    option = next(option for option in asked("full")["options"] if option["launch_targets"])
    for target in ("llamafactory", "torchtitan", "skypilot"):
        try:
            find("render_configs")({"plan": plan_of("full", option), "targets": [target]})
            able = True
        except PlanError:
            able = False
        assert able == (target in option["launch_targets"])


def test_a_limit_of_power_holds_at_the_meter():
    wanted = PLANS["full"] | {"limit": 30, "sort": "time", "accelerators": FEW}
    free = find("recommend_cluster")(wanted)
    capped = find("recommend_cluster")(wanted | {"max_kw": 14})
    draws = [metered_kw(find_accelerator(row["accelerator"]).value) or 0.0 for row in free["options"]]
    assert max(row["count"] * kw for row, kw in zip(free["options"], draws, strict=True)) > 14
    assert {option["kw"] for option in free["options"]} == {None}  # nobody asked
    assert capped["options"]
    for option in capped["options"]:
        assert option["kw"] <= 14
    rejected = find("recommend_cluster")(wanted | {"max_kw": 0.5})["rejected"]
    assert any("0.5 kW" in row["why"] for row in rejected)


def test_the_first_can_be_launched_and_what_cannot_is_offered_after_it():
    """Of AWS's devices the cheapest are more than the files of any target take."""
    found = find("recommend_cluster")(
        {"model": "llama-2-13b", "stage": "pretrain", "dataset_tokens": "10B", "vendors": ["AWS"], "sort": "cost"}
    )
    first, *others = found["options"]
    assert first["launch_targets"]
    ahead = [row for row in others if row["usd"] and row["usd"] < first["usd"]]
    assert ahead
    assert not any(row["launch_targets"] for row in ahead[:1])
    assert "fits and has launch files" in found["why"][0]
    assert any("% less" in text and "Shardwise writes no launch files for it" in text for text in found["why"])


@pytest.mark.parametrize("model", ["meta-llama/Llama-3.1-70B", "Qwen/Qwen2.5-72B", "google/gemma-2-27b"])
def test_smaller_models_are_the_makers_own_and_each_of_another_size(model):
    smaller = [*filter(None, map(facts_of, family_sizes(model, larger=False)))]
    assert smaller
    assert {row.id.split("/")[0] for row in smaller} == {model.split("/")[0]}
    assert len({row.parameters for row in smaller}) == len(smaller)


def test_a_number_that_nothing_joins_says_so_and_has_no_price():
    """A marketplace of single machines rents out 64 devices, but no cluster of them."""
    asked = {"model": "llama-3.1-8b", "stage": "sft", "dataset_tokens": 1e9, "providers": ["Vast"], "count": 64}
    found = find("recommend_cluster")(asked)
    assert found["options"][0]["usd_per_hour"] is None
    assert any("nothing joins the machines of Vast" in text for text in found["warnings"]), found["warnings"]
    assert not any(change["assumption"] == "price" for change in found["winner_changes"])


def test_a_device_that_nobody_sells_has_no_dangling_word():
    found = find("recommend_cluster")({"model": "llama-3.1-8b", "dataset_tokens": 1e8, "accelerators": ["gaudi3"]})
    assert "similar devices cost" in found["warnings"][0]
    assert found["warnings"][0].endswith(" an hour each")


@pytest.mark.parametrize(
    ("model", "clients", "device"), [("moonshotai/Kimi-K2-Instruct", 200, "b200-sxm"), (LLAMA, 300, "h100-sxm")]
)
def test_no_server_takes_a_load_for_less_than_the_cheapest_cluster(model: str, clients: int, device: str) -> None:
    # A few percent of speed are a whole replica where one is all but enough.
    load = {"model": model, "concurrency": clients}
    first = find("recommend_cluster")(load | {"accelerators": [device], "sort": "cost"})["options"][0]
    formats = [first["patch"]["workload.weight_dtype"]]
    sized = find("size_serving")(load | {"accelerator": device, "weight_dtypes": formats})
    assert first["usd_per_hour"] <= sized["best"]["usd_per_hour"] * (1.0 + 1e-9)
