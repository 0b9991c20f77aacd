"""What an answer's figures rest on is told part by part, and what was not measured is not passed off as measured."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.evidence import DEFAULT, memory_backing, time_backing
from knowledge.jobs.training import job_of
from knowledge.machines.catalogue import accelerators
from tools import call

PLAN: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm", "count": 16, "framework": "megatron-bridge",
    "tp": 2, "pp": 1, "cp": 1, "micro_batch": 1, "seq_len": 4096, "global_batch": 64, "zero_stage": 1,
}  # fmt: skip


def evidence(**changes: Any) -> dict[str, dict[str, Any]]:
    """The rows of an estimate's evidence by part."""
    found = call("estimate_training", {name: value for name, value in (PLAN | changes).items() if value is not None})
    rows = {row["part"]: row for row in found["evidence"]}
    assert len(rows) == len(found["evidence"])
    return rows


def test_every_part_of_a_measured_plan_is_traced() -> None:
    rows = evidence()
    assert list(rows) == ["framework", "device", "matmul", "attention", "scaleup", "network", "memory"]
    assert rows["framework"]["measured"] == "megatron-bridge"
    assert rows["framework"]["versions"]
    assert rows["device"]["measured"] == "Hopper"
    assert rows["matmul"]["measured"] == "bf16 matmuls on Hopper"
    assert rows["attention"]["measured"].endswith("on Hopper")
    assert rows["scaleup"]["measured"].startswith("NVLink")
    for part in ("framework", "device"):
        assert rows[part]["runs"] > 0
    for part in ("matmul", "attention", "scaleup", "network"):
        assert rows[part]["points"] > 0
    for row in rows.values():
        assert row["stands_for"] is row["borrowed"] is None
        assert row["sources"] or not row["runs"]
        assert all(source in row["basis"] for source in row["sources"])
    for part in ("matmul", "attention"):
        assert 0 < rows[part]["error"] < 0.5


def test_eight_bits_rest_on_a_surface_of_their_own() -> None:
    assert evidence(precision="fp8")["matmul"]["measured"] == "fp8 matmuls on Hopper"


def test_one_device_has_no_links_and_eager_attention_no_kernel() -> None:
    alone = evidence(count=1, tp=1, framework="hf-trainer", zero_stage=0, attention="eager")
    assert list(alone) == ["framework", "device", "matmul", "memory"]
    node = evidence(count=8)
    assert "network" not in node
    assert "scaleup" in node


def test_scans_are_told_beside_attention() -> None:
    plan = {"model": "nvidia/Nemotron-H-8B-Base-8K", "accelerator": "h100-sxm", "count": 8, "framework": "fsdp2"}
    rows = {row["part"]: row for row in call("estimate_training", plan)["evidence"]}
    assert rows["scan"]["measured"] == "mamba2"
    assert "attention" in rows


def test_what_stands_in_is_named() -> None:
    rows = evidence(
        accelerator="rtx-4090", count=1, tp=1, framework="torchtune", model="gpt2", zero_stage=0, seq_len=512
    )
    assert rows["framework"]["stands_for"] == "torchtune" != rows["framework"]["measured"]
    assert "in place of torchtune" in rows["framework"]["basis"]
    assert rows["matmul"]["points"] == 0
    assert rows["matmul"]["borrowed"]
    assert rows["matmul"]["borrowed"] in rows["matmul"]["basis"]
    assert rows["matmul"]["error"] is None


def named(plan: dict[str, Any]) -> None:
    """Fails where a row claims measurements that there are not."""
    try:
        job = job_of(Plan.parse({"model": "gpt2"}).patch(plan))
    except PlanError:
        return
    for row in (*time_backing(job), memory_backing(job)):
        assert row.measured
        assert row.measured == DEFAULT or row.runs or row.points or row.borrowed or row.part == "memory", row
        assert row.measured != DEFAULT or row.stands_for, row
        assert not (row.error and not row.points), row
    assert (time_backing(job)[0].stands_for is None) == job.calibration.time_measured
    assert time_backing(job)[0].runs == job.calibration.framework.runs or time_backing(job)[0].stands_for


@pytest.mark.parametrize("vendor", sorted({device.vendor for device in accelerators()}))
def test_every_accelerator_says_what_stands_behind_it(vendor: str) -> None:
    for device in accelerators():
        if device.vendor == vendor:
            named({"cluster": {"accelerator": device.id, "count": 2}})


@pytest.mark.parametrize("framework", ["ddp", "mlx", "neuronx", "maxtext", "primus", "nemo", "axolotl", "unsloth"])
def test_every_framework_says_what_stands_behind_it(framework: str) -> None:
    named({"cluster": {"accelerator": "a100-sxm-80gb", "count": 16}, "workload": {"framework": framework}})


@pytest.mark.parametrize("framework", ["auto", "megatron-lm", "fsdp2", "deepspeed", "hf-trainer", "nemo-automodel"])
def test_the_attention_of_2022_is_estimated_though_no_program_starts_it(framework: str) -> None:
    stage = "pretrain" if framework == "megatron-lm" else "sft"
    rows = evidence(
        framework=framework, attention="flash1", accelerator="a100-sxm-80gb", stage=stage, tp=None, zero_stage=None
    )
    assert "attention" in rows
