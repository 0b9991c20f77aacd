"""What is chosen where no framework is named has launch files, as far as something with files fits."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.plan.schema import Plan
from planner.training.launchable import unlaunched
from planner.training.planned import best_layout, plan_training
from planner.training.programs import has_program


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
