"""What nobody measured says so beside its verdict, over the whole catalogue, and comes first nowhere without that."""

from __future__ import annotations

from typing import Any

import pytest
from samples import part

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.fitted.training import frameworks_known
from knowledge.jobs.training import job_of
from knowledge.machines.catalogue import accelerators
from pages.results.estimate import fit_verdict
from planner.results import TrainingEstimate
from tools import call

_SMALL = {"model": "Qwen/Qwen2.5-0.5B", "seq_len": 1024, "global_batch": 8}
_DEVICES = [device.id for device in accelerators()][:: part(5, 1)]


def first_lines(request: dict[str, Any]) -> tuple[str, list[str]]:
    """(What is read first, what no run was measured of) for a plan; nothing where it is refused."""
    try:
        result = TrainingEstimate.model_validate(call("estimate_training", request))
    except PlanError:
        return "", []
    job = job_of(Plan.model_validate(result.plan))
    headline, calibration = fit_verdict(result), job.calibration
    missing = [] if calibration.device_measured else [f"{calibration.node} runs"]
    missing += [] if calibration.time_measured else [f"{job.framework.name} speeds"]
    return f"{headline.text} {headline.more}", missing


@pytest.mark.parametrize("device", _DEVICES)
def test_a_device_that_nobody_measured_says_so(device: str) -> None:
    for count, method in ((1, "lora"), (8, "full"), (8, "lora")):
        text, missing = first_lines(_SMALL | {"accelerator": device, "count": count, "method": method})
        assert all(what in text for what in missing), (text, missing)


@pytest.mark.parametrize("framework", frameworks_known())
def test_a_framework_that_nobody_measured_says_so(framework: str) -> None:
    said = 0
    for device in ("h100-sxm", "rtx-4090", "mi300x", "tpu-v5e", "trainium2", "gaudi3", "apple-m3-max"):
        for stage in ("pretrain", "sft", "grpo"):
            asked = {"framework": framework, "accelerator": device, "count": 8, "stage": stage}
            text, missing = first_lines(_SMALL | asked)
            assert all(what in text for what in missing), (asked, text, missing)
            said += bool(text)
    assert said


@pytest.mark.parametrize("sort", ["cost", "time", "balanced"])
@pytest.mark.parametrize(("model", "method"), [("Qwen/Qwen3-8B", "lora"), ("meta-llama/Llama-3.1-70B", "full")])
def test_nothing_unmeasured_is_recommended_first(model: str, method: str, sort: str) -> None:
    """Of the whole catalogue; where only unmeasured devices are asked about, that is said before all options."""
    asked = {"model": model, "method": method, "stage": "sft", "seq_len": 4096, "dataset_tokens": 1e8, "sort": sort}
    found = call("recommend_cluster", asked)
    assert found["options"][0]["measured"]
    others = call("recommend_cluster", asked | {"accelerators": ["l40s", "l4"]})
    first = others["options"][0]
    assert not first["measured"]
    assert any("runs measured" in text for text in others["warnings"]), others["warnings"]
