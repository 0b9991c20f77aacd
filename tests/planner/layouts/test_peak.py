"""peak_throughput: each row is the best estimate of its plan, rated against what measured runs reach."""

from __future__ import annotations

import json
from typing import Any

import pytest

from estimator.errors import PlanError
from measure.history.reached import main_accelerators
from tools import call

MODEL = "Qwen/Qwen2.5-7B"


def test_a_row_is_the_estimate_of_its_plan_and_rated_by_its_quartiles() -> None:
    found = call("peak_throughput", {"model": MODEL, "accelerators": ["h100", "mi300x"], "precisions": ["bf16", "fp8"]})
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert len(found["rows"]) == 4
    for row in found["rows"]:
        arguments = {"model": MODEL, "accelerator": row["accelerator"], "count": row["devices"], "stage": "pretrain"}
        alone = call("estimate_training", arguments | {"precision": row["precision"]})
        assert row["step_s"] == alone["time"]["step_s"]
        assert row["mfu"] == alone["throughput"]["mfu"]
        assert row["mfu"] == pytest.approx(row["model_tflops_per_device"] / row["peak_tflops_per_device"])
        assert row["tokens_per_day"] == pytest.approx(row["tokens_per_s"] * 86400)
        assert row["tokens_per_s"] == pytest.approx(row["tokens_per_s_per_device"] * row["devices"])
        assert row["low_tokens_per_s_per_device"] < row["tokens_per_s_per_device"] < row["high_tokens_per_s_per_device"]
        lower, upper = row["measured_mfu_lower"], row["measured_mfu_upper"]
        assert row["rating"] == ("good" if row["mfu"] >= upper else "average" if row["mfu"] >= lower else "poor")
    speeds = [row["tokens_per_s_per_device"] for row in found["rows"]]
    assert speeds == sorted(speeds, reverse=True)


def test_the_usual_table_has_the_accelerators_that_were_measured() -> None:
    found = call("peak_throughput", {"model": MODEL})
    assert {row["accelerator"] for row in found["rows"]} == {device.id for device in main_accelerators()}
    assert {row["vendor"] for row in found["rows"]} >= {"NVIDIA", "AMD", "Google"}
    assert found["seconds"] < 4
    assert all(row["precision"] != "fp8" for row in found["rows"] if row["accelerator"].startswith("a100"))
    assert len(found["plots"]) == 2


def test_a_cluster_grows_until_the_model_fits() -> None:
    (row,) = call("peak_throughput", {"model": "meta-llama/Llama-3.1-70B", "accelerators": ["h100"],
                                      "precisions": ["bf16"]})["rows"]  # fmt: skip
    assert row["fits"]
    assert row["devices"] % 8 == 0
    half = call("check_fit", {"model": "meta-llama/Llama-3.1-70B", "accelerator": "h100", "count": row["devices"] // 2,
                              "stage": "pretrain", "offload": "none", "framework": row["framework"]})  # fmt: skip
    assert not half["fits"]
    (given,) = call("peak_throughput", {"model": "meta-llama/Llama-3.1-70B", "accelerator": "h100", "count": 8,
                                        "precision": "bf16"})["rows"]  # fmt: skip
    assert not given["fits"]
    assert "does not fit on 8 devices" in given["error"]
    assert given["rating"] is None


def test_what_a_device_lacks_is_an_error_of_its_row_alone() -> None:
    found = call("peak_throughput", {"model": MODEL, "accelerators": ["a100-sxm-80gb", "h100"], "precisions": ["fp8"]})
    good, bad = found["rows"]
    assert good["accelerator"] == "h100-sxm"
    assert "no fp8 matmuls" in bad["error"]
    assert bad["tokens_per_s"] is None


def test_adapters_are_not_rated() -> None:
    rows = call("peak_throughput", {"model": MODEL, "accelerator": "h100", "method": "lora", "count": 8})["rows"]
    assert all(row["fits"] and row["rating"] is None for row in rows)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"model": None}, "model"),
    ({"model": "no-such"}, "model"),
    ({"accelerators": []}, "accelerators"),
    ({"accelerators": ["no such"]}, "accelerators"),
    ({"precisions": []}, "precisions"),
    ({"precisions": ["int3"]}, "precisions.0"),
    ({"accelerators": ["a100-sxm-80gb"], "precisions": ["fp8"]}, "precisions"),
    ({"models": [f"m{n}" for n in range(200)]}, "models"),
    ({"accelerators": ["h100"], "tp": 3}, "layout.tp"),
    ({"plan": {"workload": {"kind": "inference"}}}, "workload.kind"),
]


@pytest.mark.parametrize(("changes", "field"), WRONG, ids=range(len(WRONG)))
def test_a_request_that_cannot_be_names_the_field(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(PlanError) as caught:
        call("peak_throughput", {"model": MODEL} | changes)
    assert caught.value.field == field
