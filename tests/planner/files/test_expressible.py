"""What the search chose gives way to what launch files can say; what the user gave never does."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.fitted.training import framework_tables, frameworks_known
from launchers.choice import frameworks_started, usual_targets
from launchers.pieces import Rendered
from launchers.render import render
from launchers.tables import table
from planner.clusters.configure import ConfigureRequest, auto_configure
from planner.estimates import PlanEstimate, estimate_plan, warnings_of
from planner.files.expressible import expressible
from planner.files.render import RenderRequest, render_configs
from planner.training.pinned import quick_estimate
from planner.training.planned import Planned, plan_training
from tools.registry import find

BASE: dict[str, Any] = {"model": "llama-3.1-8b", "accelerator": "h100", "count": 8}


def rendered(**changes: Any) -> dict[str, Any]:
    return find("render_configs")(BASE | changes)


def changes_said(found: dict[str, Any]) -> dict[str, Any]:
    return {
        row["field"]: row["value"] for row in found["assumptions"] if row["why"].startswith("what the files can say")
    }


def test_a_target_brings_its_framework() -> None:
    found = rendered(targets=["torchtitan"])
    assert found["plan"]["workload"]["framework"] == "torchtitan"
    assert changes_said(found)["workload.framework"] == "torchtitan"


def test_usual_files_change_nothing() -> None:
    assert changes_said(rendered()) == {}
    assert changes_said(rendered(engine="vllm", concurrency=8, count=1)) == {}


def test_a_chosen_recompute_gives_way() -> None:
    estimated = find("estimate_training")(BASE | {"framework": "fsdp2", "seq_len": 8192})
    found = rendered(framework="fsdp2", seq_len=8192)
    said = changes_said(found)
    chosen = estimated["plan"]["layout"]["recompute"]
    assert ("layout.recompute" in said) == (chosen not in ("none", "full"))
    assert found["plan"]["layout"]["recompute"] in ("none", "full")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"framework": "deepspeed", "targets": ["torchtitan"]}, "workload.framework"),
        ({"framework": "fsdp2", "recompute": "block:3"}, "layout.recompute"),
        ({"method": "lora", "targets": ["megatron-lm"]}, "workload.method"),
        ({"pp": 2, "targets": ["llamafactory"]}, "layout.pp"),
    ],
)
def test_what_was_given_is_refused(given: dict[str, Any], field: str) -> None:
    with pytest.raises(PlanError) as caught:
        rendered(**given)
    assert caught.value.field == field


@pytest.mark.parametrize("accelerator", ["mi100", "v100-sxm-32gb", "t4", "arc-b580", "h100-sxm"])
@pytest.mark.parametrize("workload", [{"stage": "sft"}, {"stage": "dpo", "method": "lora"}])
def test_without_a_framework_some_program_is_written(accelerator: str, workload: dict[str, Any]):
    plan = {
        "model": "Qwen/Qwen3-8B",
        "workload": workload | {"dataset_tokens": 1e8},
        "cluster": {"accelerator": accelerator, "count": 8},
    }
    assert render_configs(RenderRequest.model_validate({"plan": plan})).files


def test_a_layout_that_the_usual_program_cannot_say_is_written_by_another() -> None:
    """Axolotl refuses four-bit weights under FSDP2 in preference training, and without shards it finds no room."""
    assert rendered(model="glm-4.5-air", stage="dpo", method="qlora")["files"]


@pytest.mark.parametrize(
    "wanted",
    [
        {"model": "Qwen/Qwen3-8B", "stage": "grpo", "dataset_samples": 5000},
        {"model": "Qwen/Qwen3-30B-A3B", "stage": "dpo", "dataset_tokens": 2e8},
        {"model": "openai/gpt-oss-120b", "dataset_tokens": 1e8},
    ],
)
def test_what_is_configured_is_written_as_it_is(wanted: dict[str, Any]):
    found = auto_configure(ConfigureRequest.model_validate(wanted))
    assert found.launch_targets
    assert render_configs(RenderRequest.model_validate({"plan": found.plan})).files


def test_shard_groups_that_the_search_chose_give_way():
    plan = {
        "model": "meta-llama/Llama-3.1-8B",
        "workload": {"framework": "torchtune", "steps": 1000, "seq_len": 4096, "global_batch": 64},
        "cluster": {"accelerator": "h100-sxm", "count": 16},
    }
    assert render_configs(RenderRequest.model_validate({"plan": plan, "targets": ["torchtune"]})).files


@pytest.mark.parametrize(
    "plan",
    [
        {"model": "llama-3.1-8b", "cluster": {"accelerator": "h100-sxm", "count": 8}},
        {"model": "mixtral-8x7b", "cluster": {"accelerator": "b200", "count": 16}, "workload": {"framework": "fsdp2"}},
        {"model": "qwen2.5-7b", "cluster": {"accelerator": "a100", "count": 4}, "goal": {"objective": "memory"}},
        {"model": "llama-3.1-70b", "cluster": {"accelerator": "l40s", "count": 4}},
    ],
    ids=lambda plan: plan["model"],
)  # fmt: skip
def test_a_layout_alone_is_settled_as_the_search_settles_it(plan: dict[str, Any]) -> None:
    whole, alone = plan_training(Plan.parse(plan)), quick_estimate(Plan.parse(plan))
    assert alone.settled_plan == whole.settled_plan
    assert (alone.fits, alone.score) == (whole.fits, whole.score)


def test_the_framework_whose_files_say_a_plan_is_the_fastest_on_the_devices_of_all_that_do() -> None:
    """What is left out of the search for it loses nothing: each framework by itself."""
    plan = Plan.parse({"model": "deepseek-v3", "cluster": {"accelerator": "gb200", "count": 64}})

    def written(estimate: PlanEstimate) -> Rendered:
        assert isinstance(estimate, Planned)
        return render(estimate.settled_plan, usual_targets(estimate.settled_plan))

    scores: dict[str, float] = {}
    for name in frameworks_started():
        with suppress(PlanError):
            estimate = quick_estimate(plan.patch({"workload.framework": name}))
            if estimate.fits_on_device:
                written(estimate)
                scores[name] = estimate.score
    taken = expressible(plan, written, quick_estimate)
    assert len(scores) > 1
    assert taken.estimate.plan.training.framework == min(scores, key=lambda name: scores[name])
    assert taken.estimate.score == min(scores.values())


@pytest.mark.parametrize("accelerator", ["trainium2", "gaudi3", "h100-sxm", "mi300x", "tpu-v6e"])
def test_a_framework_that_no_target_starts_is_said_first(accelerator: str) -> None:
    plan = Plan.parse({"model": "llama-3.1-8b", "cluster": {"accelerator": accelerator, "count": 16}})
    estimate = estimate_plan(plan)
    assert isinstance(estimate, Planned)
    name = estimate.settled_plan.training.framework
    no_files = f"Shardwise writes no launch files for {name}"
    said = [text for text in warnings_of(estimate)[:1] if text.startswith(no_files)]
    assert bool(said) == (name not in frameworks_started())


@pytest.mark.parametrize(
    ("accelerator", "changes"),
    [
        ("tpu-v6e", {"stage": "sft"}), ("tpu-v6e", {"stage": "pretrain"}), ("tpu-v5p", {"method": "lora"}),
        ("gaudi3", {"stage": "dpo"}), ("gaudi3", {"stage": "sft"}), ("trainium2", {"stage": "dpo"}),
        ("h100-sxm", {"stage": "ppo"}), ("apple-m4-max", {"stage": "sft"}),
    ],
)  # fmt: skip
def test_that_no_files_are_written_on_a_device_is_said_where_none_are(
    accelerator: str, changes: dict[str, Any]
) -> None:
    count = 1 if accelerator.startswith("apple") else 8
    arguments = {"model": "llama-3.2-1b", "accelerator": accelerator, "count": count, "seq_len": 512, **changes}
    warnings = find("check_fit")(arguments)["warnings"]
    said = any(text.startswith("Shardwise writes no launch files for such a run") for text in warnings)
    try:
        find("render_configs")(arguments)
    except PlanError:
        assert said
    else:
        assert not said


def test_what_a_program_has_not_is_why_it_has_no_files() -> None:
    """One sequence over eight devices has no batch for eight copies only because the program splits none."""
    arguments = {"model": "qwen3-8b", "accelerator": "h100-sxm", "count": 8, "framework": "deepspeed"}
    warnings = find("check_fit")(arguments | {"seq_len": 2_097_152, "global_batch": 1})["warnings"]
    said = [text for text in warnings if text.startswith("Shardwise writes no launch files for such a run")]
    assert said
    assert "context parallelism" in said[0]


def test_frameworks_that_no_target_starts_are_listed() -> None:
    assert set(framework_tables()["unstarted"]) == set(frameworks_known()) - set(frameworks_started())


@pytest.mark.parametrize("accelerator", ["trainium2", "gaudi3", "h100-sxm", "mi300x", "tpu-v6e", "apple-m4-max"])
def test_frameworks_that_a_refusal_names_are_those_that_run_on_the_device(accelerator: str) -> None:
    asked = Plan.parse({"model": "gpt2", "cluster": {"accelerator": accelerator, "count": 1}})
    estimate = estimate_plan(asked)
    assert isinstance(estimate, Planned)
    plan = estimate.settled_plan
    of_deepspeed = table("deepspeed/refusals")["frameworks"]
    for target, started in (("slurm", ["auto", *frameworks_started()]), ("deepspeed", of_deepspeed)):
        with pytest.raises(PlanError, match="llmboost") as raised:
            render(plan.patch({"workload.framework": "llmboost"}), [target])
        able = [name for name in started[1:] if _runs(asked, name)]
        assert raised.value.valid == (["auto", *able] if able else [])


def _runs(plan: Plan, framework: str) -> bool:
    """Whether the estimator takes the framework for the plan's device."""
    try:
        quick_estimate(plan.patch({"workload.framework": framework}))
    except PlanError as refused:
        return "devices, not on" not in refused.problem
    return True
