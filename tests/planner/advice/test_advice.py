"""Advice over a fixed, varied set of plans: every gain that is told is what the changed plan really gives, and every
entry of the playbook is told somewhere."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import pytest
from advice_plans import PLANS, SERVING, TRAINING

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.playbook import entries, topics
from planner.advice.conditions import holes_in
from planner.advice.gains import SERVING_OBJECTIVES, TRAINING_OBJECTIVES, changed, figure, known_changes
from planner.serving.planned import memory_of, plan_serving
from planner.training.planned import plan_training
from planner.training.run import run_of
from tools import call

MORE = {"tokens_per_s", "output_tokens_per_s", "max_concurrency"}


@cache
def advice(name: str, **more: Any) -> dict[str, Any]:
    return call("advise", PLANS[name] | {"limit": 200, "all": True} | more)


def _estimate(kind: str, plan: Plan) -> dict[str, Any]:
    """The figures of a plan, estimated anew and read from the estimate itself."""
    if kind == "serving":
        one = plan_serving(plan)
        return {
            "output_tokens_per_s": float(one.estimates.output_tokens_per_s[one.entry]),
            "per_device_bytes": memory_of(one).per_device_bytes,
            "max_concurrency": memory_of(one).max_concurrency,
            "usd_per_million_output_tokens": figure(one, "usd_per_million_output_tokens"),
            "ttft_s": float(one.estimates.steady.ttft_s[one.entry]),
            "tpot_s": float(one.estimates.steady.tpot_s[one.entry]),
            "fits": one.fits,
        }
    found = plan_training(plan)
    seconds, run = float(found.estimates.step.seconds[found.index]), run_of(found)
    return {
        "tokens_per_s": found.job.tokens_per_step / seconds,
        "per_device_bytes": float(found.estimates.memory.total[found.index]),
        "hours": run.hours if run else None,
        "usd_per_million_tokens": figure(found, "usd_per_million_tokens"),
        "fits": found.fits,
    }


@pytest.mark.parametrize("name", PLANS)
def test_every_gain_is_true(name: str) -> None:
    kind = name.partition(":")[0]
    found = advice(name)
    base = Plan.parse(found["plan"])
    before = _estimate(kind, base)
    assert before["fits"] == found["fits"]
    for entry in [*found["entries"], *([found["together"]] if found["together"] else [])]:
        if entry["patch"] is None:
            continue
        after = _estimate(kind, base.patch(entry["patch"]))
        assert after["fits"] == entry["fits"], entry
        objective = entry["objective"]
        now, then = before[objective], after[objective]
        assert now, entry
        assert then, entry
        assert entry["before"][objective] == pytest.approx(now), entry
        assert entry["after"][objective] == pytest.approx(then), entry
        gain = then / now - 1 if objective in MORE else 1 - then / now
        assert gain > 0.0099, entry
        if entry["gain"] is not None:
            assert entry["gain"] == pytest.approx(gain), entry
        if "id" in entry:
            assert (entry["gain"] is not None) == entry["fits"], entry


def test_every_entry_that_computes_a_gain_tells_one_somewhere() -> None:
    told = {entry["id"] for name in PLANS for entry in advice(name)["entries"] if entry["gain"] is not None}
    assert {entry.id for entry in entries() if entry.computable} - told == set()


def test_every_entry_applies_to_some_plan_and_none_without_a_condition_to_all_but_a_few() -> None:
    told = Counter(entry["id"] for name in PLANS for entry in advice(name)["entries"])
    told += Counter(entry["id"] for name in PLANS for entry in advice(name)["not_worth"])
    assert {entry.id for entry in entries()} - set(told) == set()
    always = [entry.id for entry in entries() if not entry.when]
    assert len(always) < 10


@pytest.mark.parametrize("name", PLANS)
def test_texts_are_filled(name: str) -> None:
    for entry in advice(name)["entries"]:
        assert not holes_in(entry["advice"]), entry["advice"]
        assert "unknown" not in entry["advice"], entry["advice"]
        assert not any(holes_in(text) for text in entry["settings"].values())


def test_gains_are_those_of_the_tools_that_estimate() -> None:
    for name, tool, speed in (
        ("training: wasteful", "estimate_training", "tokens_per_s"),
        ("serving: few users", "estimate_inference", "output_tokens_per_s"),
    ):
        found = advice(name)
        now = call(tool, {"plan": found["plan"]})["throughput"][speed]
        told = [entry for entry in found["entries"] if entry["objective"] == speed]
        assert len(told) >= 2
        for entry in told:
            plan = Plan.parse(found["plan"]).patch(entry["patch"]).given()
            then = call(tool, {"plan": plan})
            assert then["throughput"][speed] / now - 1 == pytest.approx(entry["gain"])
            assert then["memory"]["per_device_bytes"] == pytest.approx(entry["after"]["per_device_bytes"])


@pytest.mark.parametrize("name", list(PLANS)[::5])
def test_order_and_limit(name: str) -> None:
    found = call("advise", PLANS[name] | {"limit": 6})
    shown = found["entries"]
    assert len(shown) <= 6
    computed = [entry["patch"] is not None for entry in shown]
    assert computed == sorted(computed, reverse=True)
    plain = sum(entry["patch"] is None for entry in advice(name)["entries"])
    if plain >= 2:
        assert sum(not one for one in computed) >= 2
    if found["fits"]:
        same = [entry["gain"] for entry in shown if entry["objective"] in ("tokens_per_s", "output_tokens_per_s")]
        assert same == sorted(same, reverse=True)
        assert all(entry["fits"] for entry in shown if entry["patch"])
    else:
        fits = [entry["fits"] for entry in shown if entry["patch"]]
        assert fits == sorted(fits, reverse=True)
        assert {entry["objective"] for entry in shown if entry["patch"]} <= {"per_device_bytes"}


def test_no_patch_says_again_what_another_tool_tries_by_name() -> None:
    """A change has one definition: an entry refers to the tools' own, or it is the only one to have it."""
    for name, plan in PLANS.items():
        kind = name.partition(":")[0]
        asked = Plan.parse(advice(name)["plan"])
        found = plan_serving(asked) if kind == "serving" else plan_training(asked)
        for objective in SERVING_OBJECTIVES if kind == "serving" else TRAINING_OBJECTIVES:
            known = [dict(change.patch) for change in known_changes(found, asked, objective)]
            for entry in entries():
                if entry.objective == objective and entry.kind == kind:
                    assert all(dict(patch) not in known for patch in entry.patches), (entry.id, plan)


def test_together_is_at_least_the_first_alone() -> None:
    several = 0
    for name in PLANS:
        found = advice(name)
        if both := found["together"]:
            several += 1
            known = {entry["id"]: entry for entry in found["entries"]}
            assert len(both["ids"]) >= 2
            for id in both["ids"]:
                assert known[id]["effect"] == "setting"
            if found["fits"]:
                assert both["fits"]
                assert both["gain"] > known[both["ids"][0]]["gain"]
    assert several > 10


def test_what_does_not_fit_is_helped_first() -> None:
    found = call("advise", PLANS["training: 70B on a node"])
    assert not found["fits"]
    assert found["entries"][0]["fits"]
    assert found["entries"][0]["after"]["per_device_bytes"] < found["entries"][0]["before"]["per_device_bytes"]
    assert "oom-order" in {entry["id"] for entry in found["entries"]}


@pytest.mark.parametrize("more", [{"seq_len": 4096}, {"concurrency": 8}])
def test_a_device_whose_memory_is_all_reserved_fits_nothing(more: dict[str, Any]) -> None:
    reserved = {"model": "gpt2", "accelerator": "mi300x", "count": 2, "reserve_gib": 20_000}
    assert not call("check_fit", reserved | more)["fits"]
    call("advise", reserved | more)


def test_topics_are_kept_to() -> None:
    found = call("advise", TRAINING["wasteful"] | {"topics": ["recompute", "FP8 and FP4 training"], "all": True})
    assert {entry["topic"] for entry in found["entries"]} == {"recompute", "fp8-fp4"}
    with pytest.raises(PlanError, match=r"there is no topic 'recmpute'.*recompute"):
        call("advise", TRAINING["wasteful"] | {"topics": ["recmpute"]})


def test_the_plans_goal_comes_first() -> None:
    found = call("advise", TRAINING["wasteful"] | {"objective": "cost", "limit": 3})
    assert found["entries"][0]["objective"] in ("usd_per_million_tokens", "tokens_per_s")
    memory = call("advise", TRAINING["large run"] | {"objective": "memory", "limit": 60})
    objectives = [entry["objective"] for entry in memory["entries"] if entry["patch"]]
    if "per_device_bytes" in objectives:
        assert objectives[0] == "per_device_bytes"


def test_every_topic_is_in_the_answers() -> None:
    told = {entry["topic"] for name in PLANS for entry in advice(name)["entries"]}
    assert told == {topic.id for topic in topics()}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": "many"}, "limit"),
        ({"topics": "oom"}, "topics"),
        ({"topics": ["x" * 5000]}, "topics"),
        ({"tp": -1}, "layout.tp"),
        ({"model": "gpt3000"}, "model"),
        ({"accelerator": None}, "cluster.accelerator"),
        ({"hours": 3}, "hours"),
    ],
)
def test_bad_arguments_are_named(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(PlanError) as error:
        call("advise", TRAINING["wasteful"] | changes)
    assert error.value.field == field
    assert len(str(error.value)) < 1000


def test_no_topic_at_all_gives_nothing() -> None:
    found = call("advise", SERVING["a node"] | {"topics": []})
    assert found["entries"] == []
    assert found["applying"] == 0


def test_a_change_that_cannot_be_is_none() -> None:
    assert changed(plan_training(Plan.parse(advice("training: wasteful")["plan"])), {"layout.tp": 7}) is None
    assert changed(plan_serving(Plan.parse(advice("serving: a node")["plan"])), {"layout.tp": 7}) is None
