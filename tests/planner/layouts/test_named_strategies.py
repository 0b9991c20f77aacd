"""apply_strategies: the layouts that named strategies take, per model and platform."""

from __future__ import annotations

import json
from typing import Any

import pytest

from estimator.errors import PlanError
from tools import call

BOTH: dict[str, Any] = {"model": "meta-llama/Llama-3.1-8B", "count": 8, "accelerators": ["h100-sxm", "mi300x"]}


def by(found: dict[str, Any]) -> dict[tuple[str, str, str], dict[str, Any]]:
    return {(row["model"], row["strategy"], row["accelerator"]): row for row in found["rows"]}


def test_each_strategy_is_the_best_at_what_it_is_for() -> None:
    found = call("apply_strategies", BOTH | {"stage": "pretrain"})
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    rows = by(found)
    assert len(rows) == 5 * 2
    for name in BOTH["accelerators"]:
        at = {strategy: rows[BOTH["model"], strategy, name] for strategy in found["strategies"]}
        for row in at.values():
            assert row["fits"]
            assert row["why"] is None
            assert at["maximum_performance"]["step_s"] <= row["step_s"] * (1 + 1e-8)
            assert at["memory_optimized"]["per_device_bytes"] <= row["per_device_bytes"] * (1 + 1e-8)
            layout = row["layout"]
            if layout["tp"] == layout["pp"] == layout["cp"] == 1:
                assert at["minimal_communication"]["communication_s"] <= row["communication_s"] * (1 + 1e-8)
        assert at["minimal_communication"]["layout"]["dp"] == BOTH["count"]


@pytest.mark.parametrize(
    ("strategy", "split"),
    [
        ("data", (False, False)),
        ("model-parallel", (True, False)),
        ("pipeline", (False, True)),
        ("hybrid", (True, True)),
    ],
)
def test_a_kind_of_parallelism_splits_the_model_so(strategy: str, split: tuple[bool, bool]) -> None:
    plan = {"model": BOTH["model"], "accelerator": "h100-sxm", "count": 16, "stage": "pretrain"}
    row = call("apply_strategies", plan | {"strategies": [strategy]})["rows"][0]
    assert row["fits"], row["why"]
    assert (row["layout"]["tp"] > 1, row["layout"]["pp"] > 1) == split


def test_the_fastest_is_that_of_the_search() -> None:
    for plan in ({"stage": "pretrain"}, {}):
        found = call("apply_strategies", BOTH | plan | {"strategies": ["maximum_performance"]})
        for row in found["rows"]:
            alone = call(
                "estimate_training", {"model": row["model"], "accelerator": row["accelerator"], "count": 8} | plan
            )
            assert row["step_s"] == pytest.approx(alone["time"]["step_s"])


def test_a_row_is_the_estimate_of_its_layout() -> None:
    for row in call("apply_strategies", BOTH)["rows"]:
        arguments = {
            "model": row["model"],
            "accelerator": row["accelerator"],
            "count": 8,
            "framework": row["framework"],
        }
        sizes = {"micro_batch": row["micro_batch"], "plan": {"layout": row["layout"]}}
        alone = call("estimate_training", arguments | sizes)
        assert alone["time"]["step_s"] == pytest.approx(row["step_s"])
        assert alone["memory"]["per_device_bytes"] == pytest.approx(row["per_device_bytes"])


def test_an_identical_layout_is_identical_and_fits_on_all() -> None:
    names = ["h100-sxm", "mi300x", "a100-sxm-40gb"]
    found = call("apply_strategies", BOTH | {"accelerators": names, "strategies": ["Truly-Identical"], "count": 16})
    rows = found["rows"]
    assert [row["accelerator"] for row in rows] == names
    assert all(row["fits"] for row in rows)
    assert len({json.dumps([row["layout"], row["micro_batch"], row["global_batch"]]) for row in rows}) == 1
    assert set(found["identical_in"][BOTH["model"]]) >= {"tp", "pp", "cp", "dp", "micro_batch", "recompute"}
    assert rows[0]["relative_speed"] == 1


def test_where_one_platform_has_no_room_there_is_no_common_layout() -> None:
    arguments = {"model": "meta-llama/Llama-3.1-70B", "count": 8, "accelerators": ["a100-sxm-40gb", "b200"]}
    found = call("apply_strategies", arguments | {"strategies": ["truly_identical", "memory_optimized"]})
    rows = by(found)
    for name in ("a100-sxm-40gb", "b200-sxm"):
        row = rows[arguments["model"], "truly_identical", name]
        assert row["layout"] is None
        assert "a100-sxm-40gb nothing fits" in row["why"]
    assert rows[arguments["model"], "memory_optimized", "b200-sxm"]["fits"]
    assert "nothing fits" in rows[arguments["model"], "memory_optimized", "a100-sxm-40gb"]["why"]


def test_custom_is_the_layout_given() -> None:
    found = call("apply_strategies", BOTH | {"strategies": ["custom"], "custom_layout": {"tp": 4, "micro_batch": 2}})
    for row in found["rows"]:
        assert row["layout"]["tp"] == 4
        assert row["micro_batch"] == 2
    refused = call("apply_strategies", BOTH | {"strategies": ["custom"], "custom_layout": {"tp": 3}})
    assert all("does not divide the 32 attention heads" in row["why"] for row in refused["rows"])


def test_sizes_of_the_plan_are_kept_by_every_strategy() -> None:
    found = call("apply_strategies", BOTH | {"stage": "pretrain", "tp": 2})
    assert {row["layout"]["tp"] for row in found["rows"]} == {2}


def test_several_models() -> None:
    names = ["gpt2", "Qwen/Qwen2.5-7B"]
    found = call("apply_strategies", {"models": names, "count": 8, "accelerator": "h100", "strategies": ["balanced"]})
    assert [row["model"] for row in found["rows"]] == names
    assert len(found["plots"]) == 4


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"accelerators": None}, "accelerators"),
    ({"accelerators": []}, "accelerators"),
    ({"accelerators": ["no such"]}, "accelerators"),
    ({"strategies": ["fastest"]}, "strategies"),
    ({"strategies": []}, "strategies"),
    ({"strategies": ["custom"]}, "custom_layout"),
    ({"strategies": ["custom"], "custom_layout": {"tpp": 2}}, "custom_layout.tpp"),
    ({"model": "no-such"}, "model"),
    ({"model": None}, "model"),
    ({"tp": 3}, "layout.tp"),
    ({"models": [f"m{n}" for n in range(30)]}, "strategies"),
    ({"plan": {"workload": {"kind": "inference"}}}, "workload.kind"),
]


@pytest.mark.parametrize(("changes", "field"), WRONG, ids=range(len(WRONG)))
def test_a_request_that_cannot_be_names_the_field(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(PlanError) as caught:
        call("apply_strategies", BOTH | changes)
    assert caught.value.field == field
