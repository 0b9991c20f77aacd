"""What answers say of memory: of stages and moments, of the host, and of what the user set."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from conversations import turns, verdict

from knowledge.figures import gib
from pages.answers import memory
from pages.rendering.markdown import render
from planner.partial import flat, nested
from planner.results import MemoryEstimate
from tools import call

FIT: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm", "count": 8, "framework": "deepspeed",
    "zero_stage": 2, "recompute": "full", "offload": "none", "micro_batch": 1,
}  # fmt: skip
PIPED = FIT | {"framework": "megatron-lm", "pp": 4, "tp": 2, "zero_stage": 0, "recompute": "none"}


def told(found: dict[str, Any]) -> str:
    return render(memory.training(MemoryEstimate.model_validate(found)))


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    return call("estimate_training", FIT)["memory"]


def test_what_is_not_there_at_the_peak_is_named(plain: dict[str, Any]) -> None:
    found = copy.deepcopy(plain)
    found["components"]["gradients"], found["own_peaks"]["gradients"] = 0.0, 15 * 2.0**30
    found["components"]["weights"] = found["own_peaks"]["weights"]
    assert "gradients (15.0 GiB)" in told(found).partition("Not part of the peak: ")[2]
    found["own_peaks"] = found["components"]
    assert "Not there" not in told(found)


def test_every_pipeline_stage_is_told_and_which_decides() -> None:
    found = call("estimate_training", PIPED)["memory"]
    text = told(found)
    for stage in found["stages"]:
        assert f"{gib(stage['per_device_bytes'])} (stage {stage['stage']})" in text
    assert f"Stage {found['fullest_stage']} decides." in text
    found["stages"] = found["stages"] * 3
    assert f"to {gib(found['per_device_bytes'])}. Stage" in told(found)


def test_without_a_pipeline_no_stage_is_told(plain: dict[str, Any]) -> None:
    assert "stage" not in told(plain).lower()


def test_host_memory_is_told_with_its_phase_and_a_capacity_only_where_one_is_known(plain: dict[str, Any]) -> None:
    found = copy.deepcopy(plain)
    found["host"] |= {"phase": "loading", "per_node_bytes": 2.0**40}
    assert "1,024 GiB per node while the weights are loaded, of " in told(found)
    found["host"]["capacity_bytes"] = None
    assert "while the weights are loaded. A checkpoint takes" in told(found)


def test_what_fails_outside_training_is_in_the_verdict() -> None:
    done = turns("Full fine-tune Llama-3.1-405B on 32 H100 with deepspeed zero 3, params offload, 1k context")[0]
    first = verdict(done["answer"])
    assert re.match(
        r"\*\*It fits the GPUs, but host memory runs out: it takes [\d,.]+ GiB per node while a checkpoint is saved, "
        r"such a node usually has [\d,.]+ GiB\.",
        first,
    )
    # Once is enough.
    assert first.count("host memory") == 1
    assert "host memory runs out" in done["answer"].partition("Watch out")[2]
    assert done["ungrounded"] == []


def test_what_the_user_sets_is_used_said_and_kept() -> None:
    first, second, third = turns(
        "Llama-3.1-8B full fine-tune on 8 H100 with deepspeed, keep 5 GB free", "assume 70 GB usable", "on 8 H200"
    )
    assert first["plan"]["overrides"] == {"reserve_gib": 5}
    assert "- 5.0 GiB of it stays free" in first["answer"]
    assert "'5 GB' read as 5 GiB per device" in first["answer"]
    assert second["plan"]["overrides"] == {"reserve_gib": 5, "usable_gib": 70}
    assert "of 65.0 GiB per device.**" in second["answer"]
    assert "- a device can allocate 70.0 GiB (" in second["answer"]
    assert third["plan"]["overrides"] == {"reserve_gib": 5}
    assert "70 GiB usable were said of the device before" in third["answer"]
    assert [done["ungrounded"] for done in (first, second, third)] == [[], [], []]


def test_figures_without_a_flat_name_reach_the_tools() -> None:
    plan = {"model": "gpt2", "overrides": {"usable_gib": 60, "weights_gib": 3}}
    assert flat(plan) == {"model": "gpt2", "usable_gib": 60, "overrides": {"weights_gib": 3}}
    assert nested(flat(plan)) == plan
    found = call("estimate_training", FIT | {"overrides": {"weights_gib": 3}})["memory"]
    assert f"weights: 3.0 GiB (estimated: {gib(found['overridden'][0]['estimated_bytes'])})" in told(found)


@pytest.mark.parametrize(
    ("text", "method"),
    [
        ("Llama-3.1-8B on 8 H100, dropout 0.05", "lora"),
        ("fine-tune Llama-3.1-8B on 8 H100, gptq", "qlora"),
        ("LoRA of Llama-3.1-8B on 8 H100 with gptq weights", "qlora"),
        ("DoRA of Llama-3.1-8B on 8 H100 with dropout 0.1", "dora"),
    ],
)
def test_what_adapters_alone_have_means_adapters(text: str, method: str) -> None:
    assert turns(text)[0]["plan"]["workload"]["method"] == method


def test_full_fine_tuning_after_adapters_stays_full() -> None:
    plans = [done["plan"]["workload"] for done in turns(
        "LoRA of Llama-3.1-8B on 8 H100, dropout 0.1", "full fine-tuning instead", "8k context")]  # fmt: skip
    assert [plan["method"] for plan in plans] == ["lora", "full", "full"]
