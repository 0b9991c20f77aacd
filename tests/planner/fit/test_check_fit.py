"""check_fit and best_parallelism: what they say of other plans is what those plans really give."""

from __future__ import annotations

from typing import Any

import pytest
from tool_calls import FLAT, result, steady

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.fitted.training import framework
from planner.fit.training import fit_of
from planner.training.planned import plan_to_fit, plan_training
from tools import call

TIGHT: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-70B", "accelerator": "h100-sxm", "count": 16, "seq_len": 4096, "global_batch": 64,
    "framework": "megatron-lm", "tp": 4, "pp": 2, "vpp": 1, "zero_stage": 1, "recompute": "none", "offload": "none",
    "micro_batch": 2,
}  # fmt: skip
SMALL: dict[str, Any] = {
    "model": "Qwen/Qwen2.5-0.5B", "accelerator": "a100-sxm-40gb", "count": 4, "seq_len": 2048, "global_batch": 32,
    "framework": "deepspeed", "zero_stage": 2, "recompute": "none", "micro_batch": 2,
}  # fmt: skip
# A small vocabulary, so that the first stage, which holds the activations of most micro-batches, is the fullest.
PIPED: dict[str, Any] = {
    "model": "huggyllama/llama-7b", "accelerator": "h100-sxm", "count": 8, "seq_len": 2048, "global_batch": 32,
    "framework": "megatron-lm", "tp": 2, "pp": 4, "vpp": 1, "zero_stage": 0, "recompute": "none", "micro_batch": 1,
    "offload": "none",
}  # fmt: skip


def patched(found: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    return Plan.parse(found["plan"]).patch(changes).given()


@pytest.mark.parametrize("arguments", [TIGHT, SMALL, FLAT, {"model": "gpt2", "accelerator": "4090"}], ids=range(4))
def test_a_remedy_really_gives_its_memory(arguments: dict[str, Any]) -> None:
    found = call("check_fit", arguments)
    now = found["memory"]["per_device_bytes"]
    before = call("estimate_training", {"plan": found["plan"]})
    assert found["remedies"] or found["memory"]["fits"]
    for remedy in found["remedies"]:
        plan = patched(found, remedy["patch"])
        after = call("estimate_training", {"plan": plan})
        assert after["memory"]["per_device_bytes"] == remedy["per_device_bytes"] < now, remedy
        assert after["memory"]["fits"] == remedy["fits"]
        per_token = [estimate["throughput"]["tokens_per_s"] for estimate in (after, before)]
        assert remedy["slowdown"] == pytest.approx(per_token[1] / per_token[0])
        assert remedy["saves_bytes"] == now - remedy["per_device_bytes"]
        assert remedy["why"]
    order = [(not remedy["fits"], remedy["slowdown"]) for remedy in found["remedies"]]
    assert order == sorted(order)


def test_a_plan_that_is_too_large_says_so_and_offers_ways_out() -> None:
    found = call("check_fit", TIGHT)
    assert not found["fits"]
    assert found["headroom_bytes"] < 0
    assert found["largest_micro_batch"] is None
    ways = {tuple(remedy["patch"]) for remedy in found["remedies"]}
    assert ("workload.micro_batch",) in ways
    assert any("workload.method" in way for way in ways)
    assert ("layout.recompute",) in ways
    assert any("cluster.count" in way for way in ways)
    assert any(remedy["fits"] for remedy in found["remedies"])


def test_a_given_layout_that_does_not_fit_is_set_against_the_best_that_does() -> None:
    arguments = FLAT | {"framework": "deepspeed"}
    found = call("check_fit", arguments | {"zero_stage": 0, "recompute": "none", "offload": "none", "micro_batch": 8})
    assert not found["fits"]
    other = next(remedy for remedy in found["remedies"] if remedy["what"].startswith("another layout"))
    assert other["fits"]
    best = call("estimate_training", arguments)
    after = call("estimate_training", {"plan": patched(found, other["patch"])})
    assert after["plan"]["layout"] == best["plan"]["layout"]
    assert after["time"]["step_s"] == pytest.approx(best["time"]["step_s"])


def moves(remedy: dict[str, Any]) -> bool:
    """To a framework with a layout of its own: 'unsloth: DP 1, …', 'QLoRA …, on unsloth'."""
    name = remedy["patch"].get("workload.framework")
    return name is not None and name in remedy["what"]


@pytest.mark.parametrize(("framework", "through"), [("hf-trainer", "fsdp2"), ("ms-swift", "deepspeed")])
def test_a_framework_that_shards_through_another_does_where_copies_do_not_fit(framework: str, through: str) -> None:
    large = {"model": "llama-3-70b", "accelerator": "h100-sxm", "count": 8, "method": "lora", "seq_len": 2048}
    for tool in ("check_fit", "estimate_training"):
        found = call(tool, large | {"framework": framework})
        assert found.get("fits", found.get("memory", {}).get("fits"))
        assert found["plan"]["workload"]["framework"] == through
        assert any(through == each["value"] and framework in each["why"] for each in found["assumptions"])
    assert not call("check_fit", large | {"framework": framework, "zero_stage": 0})["fits"]
    small = call("check_fit", large | {"framework": framework, "model": "llama-3.2-1b"})
    assert small["plan"]["workload"]["framework"] == framework


def test_gpt_oss_in_4_bits_on_a_t4_has_the_way_that_its_notebook_takes() -> None:
    """unslothai/notebooks, gpt-oss-(20B)-Fine-tuning: 12.98 GiB reserved on a T4 with adapters on attention alone, and
    the optimizer that Unsloth sets (models/rl.py)."""
    small = {"model": "gpt-oss-20b", "accelerator": "t4", "count": 1, "method": "qlora", "framework": "unsloth",
             "seq_len": 1024, "global_batch": 4, "micro_batch": 1}  # fmt: skip
    found = call("check_fit", small)
    assert not found["fits"]
    assert found["plan"]["workload"]["optimizer"] == "adamw_8bit"
    (way,) = [remedy for remedy in found["remedies"] if "workload.lora.targets" in remedy["patch"]]
    assert way["fits"]
    assert way["per_device_bytes"] == pytest.approx(12.975 * 2**30 + 0.45 * 2**30, rel=0.05)
    assert call("check_fit", small | {"optimizer": "adamw"})["plan"]["workload"]["optimizer"] == "adamw"
    # Of frameworks on which nothing fits the nearest is told.
    given = {name: value for name, value in small.items() if name != "framework"}
    assert call("check_fit", given)["memory"]["high_bytes"] <= found["memory"]["high_bytes"]


@pytest.mark.parametrize("method", ["full", "lora"])
def test_another_method_is_told_with_the_framework_that_has_room_for_it(method: str) -> None:
    """bitsandbytes leaves fused experts in 16 bits (48 GiB on hf-trainer); Unsloth's 4 bits fit a card of 24 GB."""
    run = {"model": "gpt-oss-20b", "accelerator": "rtx-4090", "count": 1, "method": method, "stage": "sft"}
    found = call("check_fit", run)
    assert not found["fits"]
    (way,) = [each for each in found["remedies"] if each["patch"].get("workload.method") == "qlora" and each["fits"]]
    framework = way["patch"]["workload.framework"]
    assert way["what"].endswith(f"on {framework}")
    assert way["per_device_bytes"] == pytest.approx(
        call("check_fit", run | {"method": "qlora", "framework": framework})["memory"]["per_device_bytes"], rel=0.1
    )


def test_what_a_host_has_no_room_for_does_not_fit() -> None:
    """hiyouga/LlamaFactory issue 6755: a 32B in full on one H100 NVL, all states on a host of 744 GB, which ran out."""
    run = {"model": "qwen2.5-32b", "accelerator": "h100-nvl", "count": 1, "framework": "deepspeed", "method": "full",
           "seq_len": 4096, "micro_batch": 1, "global_batch": 1, "zero_stage": 3, "offload": "params"}  # fmt: skip
    short, enough = (call("check_fit", run | {"overrides": {"host_gib": size}}) for size in (744e9 / 2**30, 1000))
    assert not short["fits"]
    assert short["memory"]["fits"]
    assert short["largest_micro_batch"] is None
    assert enough["fits"]


@pytest.mark.parametrize(
    ("model", "device", "count", "workload"),
    [
        ("llama-3.1-8b", "rtx-4090", 1, {"seq_len": 2048}),
        ("llama-3.1-70b", "h100-sxm", 1, {}),
        ("llama-3.1-405b", "h100-sxm", 1, {"method": "qlora"}),
        ("qwen3-8b", "h100-sxm", 8, {"framework": "fsdp2", "seq_len": 2**21, "global_batch": 1}),
        (
            "qwen3-8b",
            "h100-sxm",
            8,
            {"framework": "fsdp2", "seq_len": 2_097_152, "fused_loss": True, "tiled_mlp": True},
        ),
        ("qwen2.5-32b", "a100-sxm-80gb", 2, {}),
    ],
)
def test_what_does_not_fit_takes_as_much_whoever_asks(
    model: str, device: str, count: int, workload: dict[str, Any]
) -> None:
    plan = Plan.parse({"model": model, "cluster": {"accelerator": device, "count": count}, "workload": workload})
    verdict, estimated = fit_of(plan), plan_training(plan)
    assert not verdict.fits
    assert verdict.memory.per_device_bytes == pytest.approx(float(estimated.estimates.memory.total[estimated.index]))


def test_two_changes_together_where_none_alone_is_enough() -> None:
    """From a little too long to far too long: somewhere one change is not enough and two are."""
    arguments = {"model": "Qwen/Qwen2.5-7B", "accelerator": "rtx-4090", "count": 1, "micro_batch": 1, "method": "lora",
                 "framework": "ddp", "recompute": "none", "offload": "none"}  # fmt: skip
    pairs = 0
    for length in (4096, 8192, 16384, 32768):
        found = call("check_fit", arguments | {"seq_len": length})
        fitting = [remedy for remedy in found["remedies"] if remedy["fits"] and not moves(remedy)]
        together = [remedy for remedy in fitting if ", and " in remedy["what"]]
        assert not together or len(together) == len(fitting)
        for remedy in together:
            after = call("estimate_training", {"plan": patched(found, remedy["patch"])})
            assert after["memory"]["fits"]
            assert after["memory"]["per_device_bytes"] == remedy["per_device_bytes"]
        pairs += len(together)
    assert pairs


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (
            {"model": "llama-3.1-8b", "accelerator": "rtx-3060-12gb", "count": 1, "method": "qlora", "seq_len": 131072},
            {"framework": "hf-trainer", "offload": "none"},
        ),
        (
            {
                "model": "mistral-7b-v0.3", "accelerator": "4090", "count": 1, "stage": "dpo", "method": "lora",
                "seq_len": 400000,
            },
            {},
        ),
    ],
    ids=["named", "open"],
)  # fmt: skip
def test_the_longest_sequence_that_fits_is_named_where_nothing_else_fits_on_the_devices(
    arguments: dict[str, Any], named: dict[str, Any]
) -> None:
    found = call("check_fit", arguments | named)
    assert not found["fits"]
    here = [way for way in found["remedies"] if way["fits"] and "cluster.count" not in way["patch"]]
    assert [way["patch"].get("workload.seq_len") for way in here] == [found["largest_seq_len"]]
    longest = call("find_limit", {"goal": "seq_len", **arguments})["value"]
    assert longest == found["largest_seq_len"] < arguments["seq_len"]
    assert f"{longest:,}" in here[0]["what"]


def test_headroom_can_be_given_up_for_speed() -> None:
    slow = FLAT | {"model": "Qwen/Qwen2.5-0.5B", "framework": "deepspeed", "zero_stage": 3, "recompute": "full",
                   "micro_batch": 1, "offload": "optimizer"}  # fmt: skip
    found = call("check_fit", slow)
    assert found["fits"]
    ways = {name for remedy in found["relaxations"] for name in remedy["patch"]}
    assert {"layout.recompute", "workload.micro_batch"} <= ways
    for remedy in found["relaxations"]:
        assert remedy["fits"]
        assert remedy["slowdown"] < 1
        after = call("estimate_training", {"plan": patched(found, remedy["patch"])})
        assert after["memory"]["fits"]
        assert after["time"]["step_s"] == pytest.approx(remedy["slowdown"] * call(
            "estimate_training", {"plan": found["plan"]})["time"]["step_s"])  # fmt: skip
    assert [remedy["slowdown"] for remedy in found["relaxations"]] == sorted(
        remedy["slowdown"] for remedy in found["relaxations"]
    )
    assert call("check_fit", TIGHT)["relaxations"] == []


@pytest.mark.parametrize("arguments", [SMALL, PIPED, FLAT], ids=["data", "pipeline", "searched"])
def test_the_largest_micro_batch_fits_and_one_more_does_not(arguments: dict[str, Any]) -> None:
    found = call("check_fit", arguments)
    largest, layout = found["largest_micro_batch"], found["plan"]["layout"]
    workload = found["plan"]["workload"]
    rounds = workload["global_batch"] // (workload["micro_batch"] * layout["dp"])
    assert largest >= workload["micro_batch"]
    for size, fits in ((largest, True), (largest + 1, False)):
        changes = {"workload.micro_batch": size, "workload.global_batch": size * layout["dp"] * rounds}
        assert call("estimate_training", {"plan": patched(found, changes)})["memory"]["fits"] == fits


@pytest.mark.parametrize("arguments", [SMALL, PIPED], ids=["data", "pipeline"])
def test_the_longest_sequence_fits_and_a_longer_one_does_not(arguments: dict[str, Any]) -> None:
    found = call("check_fit", arguments)
    longest = found["largest_seq_len"]
    assert longest >= arguments["seq_len"]
    assert longest % 1024 == 0
    for length, fits in ((longest, True), (longest + 1024, False)):
        changes = {"workload.seq_len": length}
        assert call("estimate_training", {"plan": patched(found, changes)})["memory"]["fits"] == fits


def test_headroom_is_capacity_less_the_upper_end() -> None:
    found = result("check_fit")
    memory = found["memory"]
    assert found["headroom_bytes"] == memory["capacity_bytes"] - memory["high_bytes"]
    assert found["fits"] == (found["headroom_bytes"] >= 0) == memory["fits"]


def test_doubling_the_devices_fills_nodes_first() -> None:
    found = call("check_fit", {"model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm", "count": 2,
                               "framework": "deepspeed", "offload": "none"})  # fmt: skip
    remedy = next(remedy for remedy in found["remedies"] if "cluster.count" in remedy["patch"])
    after = call("estimate_training", {"plan": patched(found, remedy["patch"])})
    assert after["plan"]["cluster"] == found["plan"]["cluster"] | {"count": 4, "per_node": 4}


@pytest.mark.parametrize(
    "arguments",
    [
        FLAT,
        {"model": "meta-llama/Llama-3.1-70B", "accelerator": "h100-sxm", "count": 64, "stage": "pretrain"},
        {"model": "mistralai/Mixtral-8x7B-v0.1", "accelerator": "mi300x", "count": 16, "framework": "megatron-lm"},
        {"model": "Qwen/Qwen2.5-7B", "accelerator": "a100-sxm-80gb", "count": 32, "framework": "fsdp2"},
    ],
    ids=range(4),
)
def test_the_best_layout_passes_check_fit_and_each_choice_is_what_it_says(arguments: dict[str, Any]) -> None:
    found = call("best_parallelism", arguments)
    assert 1 <= found["feasible"] <= found["candidates"]
    fit = call("check_fit", {"plan": found["plan"]})
    assert fit["fits"]
    assert fit["memory"]["per_device_bytes"] == found["best"]["per_device_bytes"]
    for choice in (found["best"], *found["alternatives"], *found["pareto"]):
        changes = {"layout": choice["layout"], "workload.micro_batch": choice["micro_batch"],
                   "workload.framework": choice["framework"]}  # fmt: skip
        estimate = call("estimate_training", {"plan": patched(found, changes)})
        assert estimate["time"]["step_s"] == choice["step_s"] >= found["best"]["step_s"] * (1 - 1e-9)
        assert estimate["memory"]["per_device_bytes"] == choice["per_device_bytes"]
        assert choice["headroom_bytes"] == estimate["memory"]["capacity_bytes"] - estimate["memory"]["high_bytes"]
        assert choice["headroom_bytes"] >= 0
        unsaid = {"shard_group": None, "recompute_modules": None}
        assert estimate["plan"]["layout"] == unsaid | choice["layout"]
        sizes = [choice["layout"][name] for name in ("tp", "pp", "cp", "dp")]
        assert sizes[0] * sizes[1] * sizes[2] * sizes[3] == found["plan"]["cluster"]["count"]


def test_the_number_of_alternatives_is_asked_for() -> None:
    two = call("best_parallelism", FLAT | {"top": 2})
    assert len(two["alternatives"]) == 2
    assert two["alternatives"] == result("best_parallelism")["alternatives"][:2]
    assert two["rejected"]
    assert all(row["rule"] and row["layout"] for row in two["rejected"])


def test_the_goal_decides_what_is_best() -> None:
    arguments = FLAT | {"framework": "megatron-lm", "count": 16}
    fast = call("best_parallelism", arguments)["best"]
    small = call("best_parallelism", arguments | {"objective": "memory"})["best"]
    assert small["per_device_bytes"] < fast["per_device_bytes"]
    assert fast["step_s"] < small["step_s"]


def test_estimate_training_takes_the_layout_that_best_parallelism_finds() -> None:
    arguments = FLAT | {"framework": "megatron-lm"}
    best = call("best_parallelism", arguments)
    assert call("estimate_training", arguments)["plan"] == best["plan"]


def test_the_same_call_gives_the_same_answer() -> None:
    assert steady(call("best_parallelism", FLAT)) == steady(result("best_parallelism"))


@pytest.mark.parametrize(
    "given",
    [{"offload": "params"}, {"offload": "activations"}, {"zero_stage": 3}, {"tp": 8, "zero_stage": 3}, {"pp": 2},
     {"method": "qlora"}, {"stage": "pretrain", "zero_stage": 2}],
    ids=str,
)  # fmt: skip
def test_a_framework_left_open_is_one_that_can_do_what_is_asked(given: dict[str, Any]) -> None:
    found = call("best_parallelism", FLAT | given)
    plan = found["plan"]
    assert "workload.framework" in {assumption["field"] for assumption in found["assumptions"]}
    for name, value in given.items():
        assert (plan["layout"] | plan["workload"])[name] == value
    # Naming the framework that was chosen gives the same layout.
    named = call("best_parallelism", FLAT | given | {"framework": plan["workload"]["framework"]})
    assert named["best"] == found["best"]


def test_the_search_over_frameworks_takes_the_faster_one() -> None:
    arguments = FLAT | {"model": "meta-llama/Llama-3.1-70B", "count": 32}
    found = call("best_parallelism", arguments)
    for name in ("deepspeed", "megatron-bridge"):
        other = call("best_parallelism", arguments | {"framework": name})
        assert not other["feasible"] or other["best"]["step_s"] >= found["best"]["step_s"]


def test_what_does_not_fit_is_tried_on_every_framework_with_everything_free() -> None:
    """70B in full on eight devices: Megatron-LM has it nowhere, others have with states in host memory."""
    asked = {"model": "meta-llama/Llama-3.1-70B", "accelerator": "h100-sxm", "count": 8, "framework": "megatron-lm"}
    found = call("check_fit", asked | {"offload": "none"})
    assert not found["fits"]
    ways = [remedy for remedy in found["remedies"] if moves(remedy)]
    assert ways
    for remedy in ways:
        after = call("estimate_training", {"plan": patched(found, remedy["patch"])})
        assert after["memory"]["fits"]
        assert after["memory"]["host"]["fits"] is not False
        assert after["memory"]["per_device_bytes"] == remedy["per_device_bytes"]
        assert after["plan"]["workload"]["framework"] == remedy["patch"]["workload.framework"]


@pytest.mark.parametrize(
    ("workload", "field"),
    [
        ({"framework": "megatron-lm", "stage": "dpo"}, "workload.stage"),
        ({"framework": "megatron-lm", "method": "qlora"}, "workload.method"),
        ({"framework": "torchtitan", "stage": "grpo"}, "workload.stage"),
    ],
)
def test_what_a_framework_does_not_train_is_refused_and_another_is_chosen(workload: dict[str, Any], field: str) -> None:
    device = {"model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm", "count": 8}
    with pytest.raises(PlanError) as refused:
        call("estimate_training", device | workload)
    assert refused.value.field == field
    assert refused.value.valid
    chosen = call("estimate_training", device | workload | {"framework": "auto", "tp": 2})
    limits = framework(chosen["plan"]["workload"]["framework"]).limits
    assert workload.get("stage", "sft") in limits.stages
    assert workload.get("method", "full") in limits.methods


@pytest.mark.parametrize("model", ["google/gemma-3-27b-pt", "mistralai/Mixtral-8x7B-v0.1", "meta-llama/Llama-3.1-8B"])
@pytest.mark.parametrize("device", ["rtx-4090", "rtx-3090", "rtx-5090", "t4"])
@pytest.mark.parametrize("method", ["full", "lora", "qlora"])
def test_nobody_is_moved_to_a_framework_without_the_model_or_the_device(model: str, device: str, method: str) -> None:
    """Nor, on one device, to what models are split over many with where something else fits."""
    workload = {"stage": "sft", "method": method, "seq_len": 1024}
    plan = Plan.parse({"model": model, "workload": workload, "cluster": {"accelerator": device, "count": 1}})
    planned = plan_to_fit(plan)
    limits = planned.job.framework.limits
    assert planned.job.architecture.family in (limits.models or [planned.job.architecture.family])
    assert planned.job.machine.accelerator.family not in limits.old_devices
    if planned.fits and planned.beyond_usual:
        assert not limits.searches_splits, planned.job.framework.name


def test_reinforcement_on_one_small_card_is_by_an_engine_beside_the_trainer() -> None:
    """Unsloth's own page (unsloth.ai/blog/r1-reasoning): GRPO with QLoRA of models up to 15B from 15 GB on."""
    workload = {"stage": "grpo", "method": "qlora", "seq_len": 1024}
    plan = {"model": "Qwen/Qwen2.5-7B", "workload": workload, "cluster": {"accelerator": "rtx-4090", "count": 1}}
    planned = plan_to_fit(Plan.parse(plan))
    assert planned.fits
    batch = {"workload.global_batch": 256, "workload.framework": "unsloth", "workload.seq_len": 4096}
    moved = plan_to_fit(Plan.parse(plan).patch(batch))
    assert moved.fits
    assert moved.job.training.rollout == "colocated"
    kept = plan_to_fit(Plan.parse(plan).patch(batch | {"workload.rollout": "trainer"}))
    assert not kept.fits


def test_a_full_fine_tuning_of_8b_fits_one_card_as_torchtune_publishes_it() -> None:
    """recipes/configs/llama3_1/8B_full_single_device.yaml: PagedAdamW8bit within the backward; README: 18.9 GiB."""
    small = {"model": "llama-3.1-8b", "cluster": {"accelerator": "rtx-4090", "count": 1}}
    ways = [row for row in fit_of(Plan.parse(small)).remedies if row.what.startswith("torchtune")]
    assert ways
    assert ways[0].patch["workload.optimizer"] == "paged_adamw_8bit"
    named = plan_to_fit(Plan.parse(small).patch({"workload.optimizer": "paged_adamw_8bit"}))
    assert named.fits
    assert named.job.training.optimizer_in_backward


def test_lomo_takes_a_whole_step_at_once() -> None:
    """It applies each gradient as soon as it is there (Lv et al. 2023), so that none are summed over micro-batches."""
    cluster = {"accelerator": "rtx-5090", "count": 1}
    workload = {"framework": "hf-trainer", "optimizer": "lomo"}
    planned = plan_training(Plan.parse({"model": "qwen3-4b", "cluster": cluster, "workload": workload}))
    assert planned.job.global_batch == planned.plan.training.micro_batch == 1
    accumulated = workload | {"micro_batch": 2, "global_batch": 16}
    with pytest.raises(PlanError, match="not all of the 16 sequences"):
        plan_training(Plan.parse({"model": "qwen3-4b", "cluster": cluster, "workload": accumulated}))


def test_bitsandbytes_in_torchtune_are_of_one_device() -> None:
    workload = {"framework": "torchtune", "optimizer": "paged_adamw_8bit"}
    plan = {"model": "llama-3.1-8b", "workload": workload, "cluster": {"accelerator": "rtx-4090", "count": 2}}
    with pytest.raises(PlanError, match="torchtune has paged_adamw_8bit on one device alone"):
        plan_to_fit(Plan.parse(plan))
