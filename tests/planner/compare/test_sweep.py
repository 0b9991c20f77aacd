"""sweep: each point is the estimate of its own plan, a point that cannot be says why, and scaling is what it says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pace import within

from estimator.errors import PlanError
from planner.compare.values import MOST_POINTS, path_of, values_of
from tools import call

EIGHT: dict[str, Any] = {"model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm", "count": 8}
SMALL: dict[str, Any] = {"model": "gpt2", "accelerator": "h100-sxm", "count": 8}


def test_a_point_is_the_estimate_of_its_plan() -> None:
    found = call("sweep", EIGHT | {"field": "seq_len", "values": [2048, 8192]})
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    for point in found["points"]:
        alone = call("estimate_training", EIGHT | {"seq_len": point["values"]["workload.seq_len"]})
        assert point["step_s"] == alone["time"]["step_s"]
        assert (point["low_s"], point["high_s"]) == (alone["time"]["low_s"], alone["time"]["high_s"])
        assert point["tokens_per_s"] == pytest.approx(alone["throughput"]["tokens_per_s"])
        assert point["tokens_per_s_per_device"] == pytest.approx(point["tokens_per_s"] / 8)
        assert point["mfu"] == alone["throughput"]["mfu"]
        assert point["per_device_bytes"] == alone["memory"]["per_device_bytes"]
        assert point["fits"] == alone["memory"]["fits"]
        assert point["bottleneck"] == alone["bottleneck"]
        layout = alone["plan"]["layout"]
        assert {name: layout[name] for name in point["layout"]} == point["layout"]


def test_a_point_is_judged_as_a_verdict_is_and_says_what_that_takes() -> None:
    asked = {"model": "meta-llama/Llama-3.1-8B", "accelerator": "rtx-4090", "count": 8}
    points = call("sweep", asked | {"field": "seq_len", "values": [8192, 131072]})["points"]
    for point in points:
        verdict = call("check_fit", asked | {"seq_len": point["values"]["workload.seq_len"]})
        assert point["fits"] == verdict["fits"]
        assert point["layout"]["offload"] == verdict["plan"]["layout"]["offload"]
    assert "offload" not in points[0]["summary"]
    assert "offloaded" in points[1]["summary"]


def test_columns_are_the_points() -> None:
    found = call("sweep", SMALL | {"field": "tp", "values": [1, 2, 5]})
    assert found["fields"] == ["layout.tp"]
    assert found["columns"]["layout.tp"] == [1, 2, 5]
    for name, column in found["columns"].items():
        if name in found["points"][0]:
            assert column == [point[name] for point in found["points"]]
    assert found["scaling"] is None
    refused = found["points"][2]
    assert refused["step_s"] is None
    assert not refused["fits"]
    assert "does not divide" in refused["why"]


def test_strong_scaling_keeps_the_work_and_loses_efficiency() -> None:
    found = call("sweep", EIGHT | {"field": "count", "values": "8..64", "framework": "deepspeed", "zero_stage": 3})
    points = found["points"]
    assert [point["devices"] for point in points] == [8, 16, 32, 64]
    assert len({point["global_batch"] for point in points}) == 1
    assert found["scaling"] == "strong"
    assert points[0]["speedup"] == points[0]["scaling_efficiency"] == 1
    for point in points:
        assert point["speedup"] == pytest.approx(point["tokens_per_s"] / points[0]["tokens_per_s"])
        assert point["scaling_efficiency"] == pytest.approx(point["speedup"] * 8 / point["devices"])
    times = [point["step_s"] for point in points]
    assert times == sorted(times, reverse=True)
    assert found["best"] == points[-1]
    assert found["plan"]["cluster"]["count"] == 64


def test_weak_scaling_grows_the_batch_with_the_devices() -> None:
    weak = EIGHT | {"field": "devices", "values": [4, 8, 24], "scale_batch": True}
    given = call("sweep", weak | {"global_batch": 32})
    assert [point["global_batch"] for point in given["points"]] == [16, 32, 96]
    open_batch = call("sweep", weak)
    first = open_batch["points"][0]["global_batch"]
    assert [point["global_batch"] for point in open_batch["points"]] == [first, 2 * first, 6 * first]
    assert open_batch["scaling"] == "weak"


def test_an_open_batch_suits_every_number_of_devices() -> None:
    found = call("sweep", SMALL | {"field": "count", "values": [3, 7, 8]})
    assert len({point["global_batch"] for point in found["points"]}) == 1
    assert all(point["fits"] for point in found["points"])
    assert found["assumptions"][0]["field"] == "workload.global_batch"


def test_given_sizes_that_follow_from_the_swept_one_are_chosen_anew() -> None:
    found = call("sweep", EIGHT | {"framework": "megatron-lm", "dp": 4, "tp": 2, "field": "count", "values": [8, 16]})
    assert [(point["layout"]["tp"], point["layout"]["dp"] * point["layout"]["pp"]) for point in found["points"]] == [
        (2, 4), (2, 8),
    ]  # fmt: skip
    assert "layout.dp" in {item["field"] for item in found["assumptions"] if "swept" in item["why"]}


def test_two_fields_give_curves_with_their_own_first_points() -> None:
    found = call("sweep", EIGHT | {"field": "count", "values": [8, 16], "second_field": "precision",
                                   "second_values": ["bf16", "fp8"]})  # fmt: skip
    assert [tuple(point["values"].values()) for point in found["points"]] == [
        (8, "bf16"), (8, "fp8"), (16, "bf16"), (16, "fp8"),
    ]  # fmt: skip
    assert [point["speedup"] for point in found["points"][:2]] == [1, 1]


def test_a_name_that_is_unknown_is_one_point_of_others() -> None:
    values = ["h100-sxm", "h1000", "rtx-4090"]
    asked = EIGHT | {"framework": "deepspeed", "offload": "none"}
    found = call("sweep", asked | {"field": "accelerator", "values": values})
    good, unknown, small = found["points"]
    assert good["fits"]
    assert "no accelerator 'h1000'" in unknown["why"]
    assert "does not fit" in small["why"]
    assert small["per_device_bytes"] > 0
    assert found["best"] == good


def test_cost_is_the_price_over_the_tokens() -> None:
    asked = EIGHT | {"field": "count", "values": [8, 16]}
    own = call("sweep", asked | {"usd_per_device_hour": 2.0})
    for point in own["points"]:
        assert point["usd_per_hour"] == 2.0 * point["devices"]
        millions = point["tokens_per_s"] * 3600 / 1e6
        assert point["usd_per_million_tokens"] == pytest.approx(point["usd_per_hour"] / millions)
    book = call("sweep", asked)["points"][0]
    priced = call("estimate_cost", EIGHT | {"dataset_tokens": "1B"})
    known = [row for row in priced["by_provider"] if row["usd_per_hour"] and row["seller"] in ("hyperscaler", "cloud")]
    assert book["usd_per_hour"] == min(row["usd_per_hour"] for row in known)
    cheapest = call("sweep", asked | {"objective": "cost"})
    least = min(point["usd_per_million_tokens"] for point in cheapest["points"] if point["fits"])
    assert cheapest["best"]["usd_per_million_tokens"] == least


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"field": "coun"}, "field", "count"),
    ({"field": "name"}, "field", "no field"),
    ({"values": []}, "values", "has no values"),
    ({"values": 5}, "values", "valid: 4096,8192"),
    ({"values": {"start": 1}}, "values", "start and stop"),
    ({"values": {"start": 8, "stop": 1}}, "values", "beyond its stop"),
    ({"values": {"start": 1, "stop": 8, "factor": 1}}, "values", "does not grow"),
    ({"values": {"start": 0, "stop": 8}}, "values", "does not grow"),
    ({"values": {"start": 1, "stop": 8, "factor": 2, "step": 1}}, "values", "give one of them"),
    ({"values": "1..9999 step 1"}, "values", f"up to {MOST_POINTS}"),
    ({"values": "1..64 step 1", "second_field": "tp", "second_values": [1, 2, 4, 8]}, "second_values", "256 points"),
    ({"second_field": "count", "second_values": [1]}, "second_field", "swept already"),
    ({"second_field": "tp"}, "second_values", "goes with its values; valid: 4096,8192"),
    ({"second_values": [1]}, "second_field", "valid: count"),
    ({"field": "tp", "scale_batch": True}, "scale_batch", "count must be swept"),
    ({"model": "no-such"}, "model", "there is no model"),
    ({"accelerator": None}, "cluster.accelerator", "which accelerator"),
    ({"values": [True]}, "cluster.count", "got true"),
    ({"plan": {"workload": {"kind": "inference"}}, "global_batch": 8}, "workload.global_batch", "field of training"),
    ({"plan": {"workload": {"kind": "inference"}}, "scale_batch": True}, "scale_batch", "of training"),
    ({"field": "concurrency", "global_batch": 8}, "workload.global_batch", "the plan is for serving"),
]


@pytest.mark.parametrize(("changes", "field", "says"), WRONG, ids=range(len(WRONG)))
def test_what_cannot_be_swept_names_the_argument(changes: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(PlanError) as caught:
        call("sweep", SMALL | {"field": "count", "values": [1, 2]} | changes)
    assert caught.value.field == field
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1..64 doubling", [1, 2, 4, 8, 16, 32, 64]),
        ("8..100", [8, 16, 32, 64]),
        ("8 to 32 step 8", [8, 16, 24, 32]),
        ("1..100 x10", [1, 10, 100]),
        ("none, full", ["none", "full"]),
        ("1, 2, 2.5, true", [1, 2, 2.5]),
        ({"start": 1, "stop": 2, "step": 0.5}, [1, 1.5, 2]),
    ],
)
def test_values_in_words(text: Any, values: list[Any]) -> None:
    assert values_of(text, "values") == values


@pytest.mark.parametrize(
    ("name", "path"),
    [("count", "cluster.count"), ("devices", "cluster.count"), ("layout.tp", "layout.tp"), ("tp", "layout.tp"),
     ("zero-stage", "layout.zero_stage"), ("overrides.usable_gib", "overrides.usable_gib"), ("model", "model")],
)  # fmt: skip
def test_fields_by_flat_and_dotted_name(name: str, path: str) -> None:
    assert path_of(name, "field") == path


def test_thirty_points_are_quick() -> None:
    asked = {"model": "meta-llama/Llama-3.1-70B", "accelerator": "h100-sxm", "stage": "pretrain"}
    call("sweep", asked | {"field": "count", "values": [64]})
    lengths = [2048, 4096, 8192, 16384, 32768]
    with within(4):
        found = call(
            "sweep",
            asked | {"field": "count", "values": "16..512", "second_field": "seq_len", "second_values": lengths},
        )
    assert len(found["points"]) == 30


@pytest.mark.parametrize(
    ("field", "figure"),
    [
        ("framework", "tokens_per_s"),
        ("optimizer", "high_bytes"),
        ("recompute", "tokens_per_s"),
        ("zero_stage", "tokens_per_s"),
    ],
)
def test_all_values_of_a_field_stand_by_what_is_wanted(field: str, figure: str) -> None:
    objective = "memory" if figure == "high_bytes" else "throughput"
    found = call("sweep", EIGHT | {"method": "full", "field": field, "values": "all", "objective": objective})
    fitting = [point[figure] for point in found["points"] if point["fits"]]
    assert len(fitting) > 1
    assert fitting == sorted(fitting, reverse=objective == "throughput")
    assert found["best"] == found["points"][0]
    # What cannot be was named by nobody.
    assert all(point["step_s"] for point in found["points"])


def test_all_formats_are_those_that_the_engine_has() -> None:
    found = call("sweep", EIGHT | {"count": 1, "concurrency": 16, "field": "kv_dtype", "values": "all"})
    assert {point["values"]["workload.kv_dtype"] for point in found["points"]} == {"bf16", "fp16", "fp8"}


def test_all_values_of_a_number_are_not_known() -> None:
    with pytest.raises(PlanError, match="no list of values"):
        call("sweep", EIGHT | {"field": "seq_len", "values": "all"})
