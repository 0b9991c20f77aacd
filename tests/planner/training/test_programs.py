"""What is chosen where no framework is named has launch files, as far as something with files fits."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.plan.schema import Plan
from planner.results import BestParallelism, FitCheck
from planner.training.launchable import unlaunched
from planner.training.planned import best_layout, plan_training
from planner.training.programs import has_program
from tools.registry import find


def plan(model: str, accelerator: str, count: int, **workload: Any) -> Plan:
    cluster = {"accelerator": accelerator, "count": count}
    return Plan.parse({"model": model, "cluster": cluster, "workload": workload})


@pytest.mark.parametrize(
    ("asked", "framework"),
    [
        # Megatron-Bridge has recipes of Llama 3.1, and none of Mistral, of Llama 2 or of Gemma 3's 27B.
        (plan("llama-3.1-8b", "h100-sxm", 64, stage="pretrain"), "megatron-bridge"),
        (plan("mistral-7b", "h100-sxm", 64, stage="pretrain"), "megatron-lm"),
        (plan("llama-2-7b", "rtx-4090", 8, stage="sft"), "fsdp2"),
        (plan("gemma-3-27b", "h100-sxm", 8, stage="sft"), "deepspeed"),
    ],
)
def test_a_default_has_launch_files(asked: Plan, framework: str) -> None:
    planned = plan_training(asked)
    assert planned.fits
    assert unlaunched(asked, planned) == []
    assert planned.job.framework.name == framework
    job, layout = best_layout(asked)
    assert job.framework.name == framework
    assert layout.row(0) == planned.estimates.layouts.row(planned.index)


def test_a_framework_that_is_named_is_taken_without_files_and_says_so() -> None:
    asked = plan("mistral-7b", "h100-sxm", 64, stage="pretrain", framework="megatron-bridge")
    planned = plan_training(asked)
    assert planned.job.framework.name == "megatron-bridge"
    assert unlaunched(asked, planned)
    assert not has_program(asked, "megatron-bridge")
    assert has_program(asked, "megatron-lm")


def test_where_nobody_has_files_what_fits_stays() -> None:
    planned = plan_training(plan("llama-3.1-8b", "tpu-v5p", 16, stage="sft"))
    assert planned.fits
    assert planned.job.framework.name == "maxtext"


@pytest.mark.parametrize(("model", "count"), [("llama-3.1-70b", 8), ("qwen3-32b", 4)])
def test_one_replica_has_files_whatever_zero_stage_it_is_written_with(model: str, count: int) -> None:
    """Megatron has states in host memory with its distributed optimizer alone; on one replica that shards nothing."""
    found = find("best_parallelism").run({"model": model, "accelerator": "h100", "count": count})
    assert isinstance(found, BestParallelism)
    assert found.best.layout["dp"] == 1
    assert found.best.layout["offload"] == "optimizer"
    assert not [text for text in found.warnings if "launch files" in text]


def test_files_of_another_framework_are_offered_only_where_the_run_fits_there() -> None:
    """What fits nowhere else is on a framework whose program refuses the model."""
    asked = {"model": "gpt-oss-20b", "accelerator": "rtx-4090", "count": 4}
    found = find("check_fit").run(asked)
    assert isinstance(found, FitCheck)
    (told,) = [text for text in found.warnings if text.startswith("no launch files for this run with ")]
    other = told.split("; with ")[1].split(" ")[0]
    assert told.endswith(", but it does not fit there")
    there = find("check_fit").run(asked | {"framework": other})
    assert isinstance(there, FitCheck)
    assert not there.fits
