"""What would make a run faster: every patch gives the gain that it promises, and a plain estimate looks for none."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.plan.schema import Plan
from tools import call

SLOW: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm", "count": 16, "framework": "megatron-lm", "tp": 8,
    "pp": 2, "recompute": "full", "micro_batch": 1, "global_batch": 64, "seq_len": 4096, "stage": "pretrain",
}  # fmt: skip


def asked(changes: dict[str, Any]) -> dict[str, Any]:
    return call("estimate_training", SLOW | changes | {"improvements": True})


def test_a_plain_estimate_tells_limits_and_looks_for_nothing() -> None:
    found = call("estimate_training", SLOW)
    assert found["improvements"] is None
    assert found["bottleneck"] == found["limits"][0]["limit"]
    assert sum(part["seconds"] for part in found["limits"]) == pytest.approx(found["time"]["step_s"])
    assert sum(part["share"] for part in found["limits"]) == pytest.approx(1)
    assert found["roofline"].keys() >= {
        "arithmetic_intensity_flop_per_byte", "ridge_flop_per_byte", "attainable_flops", "achieved_flops", "bound",
    }  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"framework": "deepspeed", "tp": None, "pp": None, "zero_stage": 3, "stage": "sft"},
        {"accelerator": "mi300x", "framework": "primus"},
        {"accelerator": "rtx-4090", "count": 1, "method": "qlora", "stage": "sft", "framework": "hf-trainer",
         "tp": None, "pp": None},
        {"model": "Qwen/Qwen3-30B-A3B", "count": 64, "tp": 4},
    ],
    ids=range(5),
)  # fmt: skip
def test_each_patch_gives_what_it_promises(changes: dict[str, Any]) -> None:
    found = asked(changes)
    told = found["improvements"]
    assert len(told) <= 6
    assert [row["gain"] for row in told] == sorted((row["gain"] for row in told), reverse=True)
    base = Plan.parse(found["plan"])
    for row in told:
        assert row["gain"] > 0.01
        assert row["fits"]
        assert row["step_s_before"] == found["time"]["step_s"]
        assert row["kind"] in ("setting", "framework", "training", "hardware")
        again = call("estimate_training", {"plan": base.patch(row["patch"]).given()})
        assert again["time"]["step_s"] == pytest.approx(row["step_s"]), row["what"]
        assert again["memory"]["fits"]
        assert again["memory"]["per_device_bytes"] == pytest.approx(row["per_device_bytes"])
        rate = again["throughput"]["tokens_per_s"]
        assert rate / found["throughput"]["tokens_per_s"] == pytest.approx(1 + row["gain"])
        assert row["speedup"] == pytest.approx(1 + row["gain"])


def test_a_wasteful_plan_is_told_what_it_wastes() -> None:
    told = {row["what"] for row in asked({})["improvements"]}
    assert "no recompute" in told
    assert any(what.startswith("tensor parallelism over") for what in told)
    assert any(what.startswith("the best layout: ") for what in told)


def test_eight_bits_are_offered_as_another_training() -> None:
    open_layout = {"tp": None, "pp": None, "recompute": None, "micro_batch": None, "framework": "megatron-bridge"}
    told = {row["what"]: row for row in asked(open_layout)["improvements"]}
    assert told["fp8 matmuls"]["kind"] == "training"


def test_what_cannot_be_had_is_not_offered() -> None:
    eager = {"accelerator": "a100-sxm-80gb", "attention": "eager"}
    told = asked(eager)["improvements"]
    assert not [row for row in told if "fp8" in row["what"]]
    assert [row for row in told if row["what"] == "flash attention"]


def test_a_faster_network_is_hardware() -> None:
    slow = {"framework": "deepspeed", "tp": None, "pp": None, "zero_stage": 3, "interconnect": "ethernet-10x1"}
    told = {row["kind"]: row for row in asked(slow)["improvements"]}
    assert told["hardware"]["patch"] == {"cluster.interconnect": "ethernet-20x1"}
