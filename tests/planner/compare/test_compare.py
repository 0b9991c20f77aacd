"""compare: rows are the estimates of their own plans, what differs is told, and one bad scenario harms no other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pace import within
from samples import examples

from estimator.errors import PlanError
from pages.blocks import Table
from pages.results.many import side_by_side
from planner.compare.rows import ComparedServing
from planner.compare.scenarios import CompareRequest, compare
from tools import call

EIGHT: dict[str, Any] = {"model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm", "count": 8}
SERVED: dict[str, Any] = {"model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm", "count": 1, "concurrency": 16}
FIGURES = {
    "name", "plan", "error", "fits", "per_device_bytes", "headroom_bytes", "step_s", "low_s", "high_s", "tokens_per_s",
    "tokens_per_s_per_device", "mfu", "hours", "usd", "usd_per_million_tokens", "kwh", "layout", "summary", "framework",
    "bottleneck", "speedup", "cost_ratio", "memory_ratio", "memory_difference_bytes",
}  # fmt: skip
SERVING_FIGURES = {
    "ttft_s", "tpot_s", "output_tokens_per_s", "requests_per_s", "max_concurrency", "usd_per_million_tokens", "engine",
    "fits", "per_device_bytes", "speedup",
}  # fmt: skip


def test_a_row_is_the_estimate_of_its_plan() -> None:
    found = call("compare", EIGHT | {"over": {"method": ["full", "lora"]}, "dataset_tokens": "1B"})
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert {"rows", "differences", "best", "plots", "assumptions", "warnings", "evidence"} <= found.keys()
    for row in found["rows"]:
        assert row.keys() >= FIGURES
        alone = call("estimate_training", EIGHT | {"method": row["name"], "dataset_tokens": "1B"})
        assert row["plan"] == alone["plan"]
        assert row["step_s"] == alone["time"]["step_s"]
        assert (row["low_s"], row["high_s"]) == (alone["time"]["low_s"], alone["time"]["high_s"])
        assert row["per_device_bytes"] == alone["memory"]["per_device_bytes"]
        assert row["headroom_bytes"] == alone["memory"]["capacity_bytes"] - alone["memory"]["high_bytes"]
        assert row["mfu"] == alone["throughput"]["mfu"]
        assert row["hours"] == alone["run"]["hours"]
        assert row["usd"] == pytest.approx(row["usd_per_hour"] * row["hours"])
        paid = call("estimate_cost", EIGHT | {"method": row["name"], "dataset_tokens": "1B"})
        assert row["usd_per_million_tokens"] == pytest.approx(row["usd"] / 1000)
        for name in ("usd", "kwh", "usd_per_million_tokens"):
            assert row[name] == pytest.approx(paid[name])


def test_equal_plans_differ_in_nothing() -> None:
    found = call("compare", EIGHT | {"scenarios": [{}, {"patch": {}}, {"count": 8}]})
    assert found["differences"] == []
    assert len({row["name"] for row in found["rows"]}) == 3
    for row in found["rows"]:
        assert row["speedup"] == row["memory_ratio"] == row["cost_ratio"] == 1
        assert row["memory_difference_bytes"] == 0
        assert row["apart"] is False
    assert not [text for text in found["conclusions"] if "instead of" in text or "against" in text]


def test_patches_may_be_flat_dotted_or_nested() -> None:
    forms = [{"tp": 2}, {"patch": {"tp": 2}}, {"patch": {"layout.tp": 2}}, {"patch": {"layout": {"tp": 2}}}]
    forms.append({"plan": {"model": EIGHT["model"], "cluster": {"accelerator": "h100-sxm", "count": 8},
                           "layout": {"tp": 2}}})  # fmt: skip
    found = call("compare", EIGHT | {"scenarios": forms, "include_base": False})
    assert len({json.dumps(row["plan"]) for row in found["rows"]}) == 1
    assert found["differences"] == []


def test_over_is_every_combination_with_the_last_field_innermost() -> None:
    found = call("compare", EIGHT | {"over": {"accelerator": ["h100-sxm", "b200"], "count": "8..16"}})
    assert [row["name"] for row in found["rows"]] == [
        "h100-sxm, 8 devices", "h100-sxm, 16 devices", "b200, 8 devices", "b200, 16 devices",
    ]  # fmt: skip
    fields = {item["field"]: item for item in found["differences"]}
    assert fields["cluster.count"]["values"]["b200, 16 devices"] == 16
    assert not fields["cluster.accelerator"]["chosen"]
    assert fields["layout.dp"]["chosen"]


def test_what_is_bad_is_a_row_with_an_error() -> None:
    bad = [{"name": "a", "tp": 3}, {"name": "b", "foo": 1}, {"name": "c", "model": "no-such"},
           {"name": "d", "count": "x"}, {"name": "e", "patch": {"layout": {"tpp": 1}}},
           {"name": "f", "plan": {"model": "gpt2"}}, {"name": "g", "plan": {"model": "gpt2"}, "tp": 2},
           {"name": "h", "strategy": "fastest"}, {"name": "i", "strategy": "truly_identical"}]  # fmt: skip
    found = call("compare", EIGHT | {"scenarios": [*bad, {"name": "good", "tp": 2}], "include_base": False})
    rows = {row["name"]: row for row in found["rows"]}
    for item in bad:
        row = rows[str(item["name"])]
        assert row["error"]
        assert row["step_s"] is None
        assert not row["fits"]
        assert row["plan"] is None
    assert "32 attention heads" in rows["a"]["error"]
    assert found["baseline"] == "good"
    assert rows["good"]["error"] is None
    only_bad = call("compare", EIGHT | {"scenarios": bad[:2], "include_base": False})
    assert [bool(row["error"]) for row in only_bad["rows"]] == [True, True]
    assert only_bad["baseline"] is None


def test_a_provider_that_is_not_there_is_the_error_of_its_row() -> None:
    found = call("compare", EIGHT | {"over": {"provider": ["AWS", "nobody"]}})
    assert [bool(row["error"]) for row in found["rows"]] == [False, True]


def test_what_does_not_fit_is_told_and_never_the_best() -> None:
    found = call(
        "compare", EIGHT | {"offload": "none", "over": {"model": [EIGHT["model"], "meta-llama/Llama-3.1-405B"]}}
    )
    small, large = found["rows"]
    assert small["fits"]
    assert not large["fits"]
    assert set(found["best"].values()) == {small["name"]}
    assert any("405B does not fit" in text for text in found["conclusions"])


def test_the_best_are_the_best_of_those_that_fit() -> None:
    found = call("compare", EIGHT | {"over": {"zero_stage": [0, 1, 2, 3]}})
    fitting = [row for row in found["rows"] if row["fits"]]
    assert found["best"]["time"] == max(fitting, key=lambda row: row["tokens_per_s"])["name"]
    assert found["best"]["memory"] == min(fitting, key=lambda row: row["per_device_bytes"])["name"]
    assert found["best"]["cost"] == min(fitting, key=lambda row: row["usd_per_million_tokens"])["name"]


def test_ratios_are_against_the_named_baseline() -> None:
    arguments = EIGHT | {"over": {"seq_len": [2048, 8192]}}
    for baseline in ("seq len 8192", 1, "1"):
        found = call("compare", arguments | {"baseline": baseline})
        first, second = found["rows"]
        assert found["baseline"] == "seq len 8192"
        assert second["speedup"] == 1
        assert first["speedup"] == pytest.approx(first["tokens_per_s"] / second["tokens_per_s"])
        assert first["memory_difference_bytes"] == first["per_device_bytes"] - second["per_device_bytes"]


@pytest.mark.parametrize(
    ("over", "name", "spellings"),
    [
        ({"zero_stage": [1, 2]}, "ZeRO-2", ["zero_stage 2", "layout.zero_stage=2", "ZERO STAGE: 2", "zero 2"]),
        ({"compile": [False, True]}, "with compile", ["compile true", "workload.compile = True"]),
        ({"seq_len": [2048, 8192]}, "seq len 8192", ["seq_len=8192.0", "seq-len 8192"]),
        ({"method": ["full", "lora"], "tp": [1, 2]}, "lora, tp 2", ["tp=2, lora", "method lora, layout.tp 2"]),
        ({"dataset_tokens": [5e8, 1e9]}, "1B tokens", ["dataset_tokens=1e9", "1b tokens"]),
    ],
)
def test_a_baseline_is_found_however_its_fields_are_spelled(
    over: dict[str, Any], name: str, spellings: list[str]
) -> None:
    for spelled in spellings:
        assert compare(CompareRequest(**EIGHT, over=over, baseline=spelled)).baseline == name, spelled
    for wrong in (f"{spellings[0]}7", "what is this"):
        with pytest.raises(PlanError, match="there is no row"):
            compare(CompareRequest(**EIGHT, over=over, baseline=wrong))


def test_overlapping_intervals_of_other_programs_are_not_told_apart() -> None:
    found = call("compare", EIGHT | {"over": {"count": [8, 64]}})
    near = call("compare", EIGHT | {"stage": "pretrain", "over": {"framework": ["megatron-lm", "nemo"]}})
    assert found["rows"][1]["apart"]
    row = near["rows"][1]
    assert row["speedup_low"] < 1.0 < row["speedup_high"]
    assert not row["apart"]
    assert any("cannot tell" in text for text in near["conclusions"])
    assert not any("cannot tell which" in text for text in found["conclusions"] if text.startswith("64 devices has"))


def test_one_switch_is_told_though_each_interval_holds_the_other() -> None:
    """The rest is the same in both, and so is how far it is off."""
    found = call("compare", EIGHT | {"dp": 8, "tp": 1, "pp": 1, "micro_batch": 1, "over": {"zero_stage": [2, 3]}})
    base, row = found["rows"]
    assert base["low_s"] < row["step_s"] < base["high_s"]
    assert row["speedup_low"] < row["speedup"] < row["speedup_high"] < 1.0
    assert row["apart"]
    assert not any("cannot tell" in text for text in found["conclusions"])


def test_the_base_is_a_row_where_scenarios_vary_it() -> None:
    varied = call("compare", EIGHT | {"scenarios": [{"count": 16}]})
    assert [row["name"] for row in varied["rows"]] == ["base", "16 devices"]
    open_base = call("compare", {"model": "gpt2", "scenarios": [{"accelerator": "h100"}, {"accelerator": "b200"}]})
    assert [row["name"] for row in open_base["rows"]] == ["h100", "b200"]
    same = call("compare", EIGHT | {"scenarios": [{"name": "h", "accelerator": "h100-sxm"}, {"accelerator": "b200"}]})
    assert [row["name"] for row in same["rows"]] == ["h", "b200"]


def test_sizes_that_follow_from_a_change_are_chosen_anew() -> None:
    found = call("compare", EIGHT | {"dp": 8, "scenarios": [{"count": 16}]})
    assert [row["layout"]["dp"] for row in found["rows"]] == [8, 16]
    assert any("layout.dp 8" in text for text in found["warnings"])


def test_strategies_are_scenarios_too() -> None:
    found = call(
        "compare", EIGHT | {"stage": "pretrain", "over": {"strategy": ["maximum_performance", "memory-optimized"]}}
    )
    fast, lean = found["rows"]
    assert fast["step_s"] <= lean["step_s"]
    assert lean["per_device_bytes"] <= fast["per_device_bytes"]


def test_serving_has_latencies() -> None:
    found = call("compare", SERVED | {"over": {"weight_dtype": ["bf16", "fp8"]}})
    assert found["kind"] == "inference"
    for row in found["rows"]:
        assert row.keys() >= SERVING_FIGURES
        alone = call("estimate_inference", SERVED | {"weight_dtype": row["name"]})
        assert row["tpot_s"] == alone["latency"]["tpot_s"]
        assert row["output_tokens_per_s"] == alone["throughput"]["output_tokens_per_s"]
        assert row["max_concurrency"] == alone["memory"]["max_concurrency"]
        assert row["usd_per_million_tokens"] == alone["cost"]["usd_per_million_tokens"]
    assert found["best"]["memory"] == "fp8"
    assert {plot["title"] for plot in found["plots"]} >= {"Speed", "Memory per device", "Time per token"}
    rates = call("compare", SERVED | {"over": {"request_rate": [1, 2]}})
    assert [row["error"] for row in rates["rows"]] == [None, None]


def test_plots_hold_what_the_rows_hold() -> None:
    found = call("compare", EIGHT | {"scenarios": [{"name": "bad", "tp": 3}, {"name": "lora", "method": "lora"}]})
    names = [row["name"] for row in found["rows"]]
    for plot in found["plots"]:
        for series in plot["series"]:
            assert series["x"] == names
            assert len(series["y"]) == len(names)
            assert series["y"][names.index("bad")] is None
    memory = next(plot for plot in found["plots"] if plot["kind"] == "stacked")
    row = found["rows"][names.index("lora")]
    stacked = sum(series["y"][names.index("lora")] for series in memory["series"])
    assert stacked == pytest.approx(row["per_device_bytes"] / 2**30)
    assert memory["limit"] == pytest.approx(row["capacity_bytes"] / 2**30)


@settings(max_examples=examples(12), deadline=None)
@given(
    st.sampled_from(["Qwen/Qwen2.5-0.5B", "gpt2"]),
    st.sampled_from([("method", ["full", "lora", "qlora"]), ("count", [1, 2, 4]), ("zero_stage", [0, 3]),
                     ("precision", ["bf16", "fp16"]), ("seq_len", [256, 1024]), ("recompute", ["none", "full"])]),
)  # fmt: skip
def test_any_field_that_was_varied_is_a_difference(model: str, field: tuple[str, list[Any]]) -> None:
    name, values = field
    found = call("compare", {"model": model, "accelerator": "h100-sxm", "count": 4, "over": {name: values}})
    able = [row for row in found["rows"] if row["error"] is None]
    assert len(found["rows"]) == len(values)
    if len(able) > 1:
        paths = {item["field"].rpartition(".")[2] for item in found["differences"]}
        assert name in paths
    for row in able:
        assert row["speedup"] == pytest.approx(row["tokens_per_s"] / able[0]["tokens_per_s"])


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "scenarios"),
    ({"scenarios": []}, "scenarios"),
    ({"over": {}}, "over"),
    ({"over": {"a": [1]}}, "over"),
    ({"over": {"tp": [1], "pp": [1], "cp": [1]}}, "over"),
    ({"over": {"tp": [1], "layout.tp": [2]}}, "over"),
    ({"over": {"tp": []}}, "over.tp"),
    ({"over": {"count": "1..200 step 1"}}, "over"),
    ({"scenarios": [{"count": n + 1} for n in range(65)]}, "scenarios"),
    ({"scenarios": [{"plan": {"model": "gpt2", "workload": {"kind": "inference"}}}, {"tp": 1}]}, "scenarios"),
    ({"over": {"tp": [1, 2]}, "baseline": "nope"}, "baseline"),
    ({"over": {"tp": [1, 2]}, "baseline": 7}, "baseline"),
    ({"over": {"tp": [1, 2]}, "baseline": -1}, "baseline"),
    ({"over": {"tp": [1, 2]}, "usd_per_device_hour": float("nan")}, "usd_per_device_hour"),
]


@pytest.mark.parametrize(("changes", "field"), WRONG, ids=range(len(WRONG)))
def test_a_request_that_cannot_be_names_the_field(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(PlanError) as caught:
        call("compare", EIGHT | changes)
    assert caught.value.field == field


def test_hostile_names_are_only_names() -> None:
    names = ["../../x", "\x00", "a" * 5000, "é\n", ""]
    found = call("compare", EIGHT | {"scenarios": [{"name": name, "tp": 2} for name in names], "include_base": False})
    assert len({row["name"] for row in found["rows"]}) == len(names)
    assert all(row["error"] is None and len(row["name"]) <= 130 for row in found["rows"])


def test_eight_scenarios_take_less_than_half_a_second() -> None:
    arguments = EIGHT | {"over": {"accelerator": ["h100-sxm", "b200"], "method": ["full", "lora", "qlora", "dora"]}}
    call("compare", arguments)
    with within(0.5):
        call("compare", arguments)


def test_the_row_that_stands_out_is_the_fastest_and_none_where_all_are_alike() -> None:
    request = CompareRequest.model_validate({**EIGHT, "over": {"accelerator": ["h100-sxm", "b200-sxm"]}})
    found = compare(request)
    assert (found.baseline, found.leader) == ("h100-sxm", "b200-sxm")
    assert found.conclusions[0].startswith("b200-sxm is the fastest")
    (table,) = [block for block in side_by_side(found) if isinstance(block, Table)]
    assert [table.rows[place][0] for place in table.strong] == ["b200-sxm"]
    alike = compare(CompareRequest.model_validate({**EIGHT, "over": {"provider": ["Nebius", "Lambda"]}}))
    assert alike.leader is None


@pytest.mark.parametrize("rate", [2, 4, 400])
def test_rows_that_do_not_keep_up_with_the_requests_are_told_and_not_the_best(rate: int) -> None:
    asked = SERVED | {"model": "meta-llama/Llama-3.1-70B", "count": 8, "concurrency": None, "request_rate": rate}
    over = {"accelerator": ["h100-sxm", "a100-sxm-80gb", "l40s"]}
    found = compare(CompareRequest.model_validate(asked | {"input_len": 2000, "output_len": 1000, "over": over}))
    rows = [row for row in found.rows if isinstance(row, ComparedServing)]
    late = [row.name for row in rows if row.keeps_up is False]
    assert late == [row.name for row in rows if (row.requests_per_s or 0.0) < 0.95 * rate]
    able = len(rows) - len(late)
    assert found.conclusions[0].startswith({0: "None keeps up", 1: "Only "}.get(able, late[0]))
    assert not able or not set(found.best.values()) & set(late)


def test_what_stands_alone_is_told_with_its_speed() -> None:
    """Beside what does not fit, or without any other, nothing is the fastest."""
    alone = call("compare", EIGHT | {"over": {"method": ["full"]}})
    assert alone["conclusions"][0].startswith("full fits: ")
    large = {"accelerator": "rtx-4090", "count": 1, "offload": "none", "over": {"method": ["full", "qlora"]}}
    one = call("compare", EIGHT | large)
    assert one["conclusions"][0] == "full does not fit."
    assert one["conclusions"][1].startswith("qlora fits: ")
