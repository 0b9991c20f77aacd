"""What scripts may rely on: the keys of the results, plans in any form, and nothing assumed in silence."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples
from tool_calls import FLAT, NESTED, PLANNING, leaves, result, steady

from estimator.errors import PlanError
from estimator.plan.schema import Cluster, Goal, Layout, Lora, Overrides, Plan, Training
from estimator.training.memory import COMPONENTS as MEMORY_COMPONENTS
from estimator.training.schedule import COMPONENTS as TIME_COMPONENTS
from planner.requests import FLAT_PATHS
from tools import call

MEMORY = {
    "per_device_bytes", "low_bytes", "high_bytes", "capacity_bytes", "fits", "components", "own_peaks", "stages",
    "fullest_stage", "decided_by", "peak", "overridden", "host", "save",
}  # fmt: skip
KEYS: dict[str, set[str]] = {
    "estimate_training": {
        "plan", "assumptions", "memory", "time", "throughput", "bottleneck", "limits", "roofline", "warnings",
        "evidence",
    },
    "check_fit": {
        "plan", "assumptions", "fits", "headroom_bytes", "largest_micro_batch", "largest_seq_len", "remedies",
    },
    "best_parallelism": {"plan", "assumptions", "best", "alternatives", "pareto", "candidates", "feasible", "seconds"},
    "estimate_cost": {"plan", "assumptions", "hours", "usd", "usd_per_million_tokens", "kwh", "co2_kg", "by_provider"},
    "render_configs": {"plan", "assumptions", "files", "launch_command", "needs_from_user"},
    "write_configs": {"plan", "assumptions", "files", "launch_command", "needs_from_user"},
}  # fmt: skip


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("tool", PLANNING)
def test_results_have_the_promised_keys_and_are_plain_json(tool: str) -> None:
    found = result(tool)
    assert found.keys() >= KEYS[tool]
    text = json.dumps(found, allow_nan=False)
    assert json.loads(text) == found


def test_an_estimate_has_the_promised_figures() -> None:
    found = result("estimate_training")
    assert found["memory"].keys() >= MEMORY
    assert found["memory"]["components"].keys() == set(MEMORY_COMPONENTS)
    assert found["time"].keys() >= {"step_s", "low_s", "high_s", "components"}
    assert found["time"]["components"].keys() == set(TIME_COMPONENTS)
    assert found["throughput"].keys() >= {
        "tokens_per_s", "tokens_per_s_per_device", "samples_per_s", "model_tflops_per_device", "mfu", "hfu",
    }  # fmt: skip


def test_the_figures_of_an_estimate_agree_with_each_other() -> None:
    found = result("estimate_training")
    memory, time, speed, run = found["memory"], found["time"], found["throughput"], found["run"]
    assert sum(memory["components"].values()) == pytest.approx(memory["per_device_bytes"])
    assert memory["low_bytes"] <= memory["per_device_bytes"] <= memory["high_bytes"]
    assert memory["fits"] == (memory["high_bytes"] <= memory["capacity_bytes"])
    assert memory["per_device_bytes"] == max(stage["per_device_bytes"] for stage in memory["stages"])
    assert sum(time["components"].values()) == pytest.approx(time["step_s"])
    assert time["low_s"] <= time["step_s"] <= time["high_s"]
    assert speed["tokens_per_s"] == pytest.approx(64 * 4096 / time["step_s"])
    assert speed["tokens_per_s_per_device"] == pytest.approx(speed["tokens_per_s"] / 8)
    assert speed["samples_per_s"] == pytest.approx(64 / time["step_s"])
    assert speed["mfu"] == pytest.approx(speed["model_tflops_per_device"] * 1e12 / 989.5e12, rel=0.01)
    assert 0 < speed["mfu"] <= speed["hfu"] < 1
    assert run["tokens"] == 1e9
    assert run["steps"] == math.ceil(1e9 / (64 * 4096))
    assert run["hours"] == pytest.approx(run["steps"] * time["step_s"] / 3600)
    assert run["low_hours"] < run["hours"] < run["high_hours"]
    for part in found["evidence"]:
        assert part["figure"] in ("time", "memory")
        assert part["basis"]
        assert part["spread"] > 0
    assert time["high_s"] == pytest.approx(time["step_s"] * (1 + found["evidence"][0]["spread"]))


@pytest.mark.parametrize("tool", PLANNING)
def test_every_value_that_was_not_given_is_an_assumption(tool: str) -> None:
    found = result(tool)
    given_fields = leaves(Plan.parse(NESTED).given())
    # What a run without adapters, generated samples and experts on one node has no use for.
    unused = {"workload.kind", "workload.rollout", "workload.engine_share", "workload.group_size"}
    unused |= {f"workload.{name}" for name in ("tp_overlap", "moe_dispatcher", "moe_overlap", "moe_capacity")}
    # Sequences are text alone.
    unused |= {f"workload.{name}" for name in ("images", "image_size", "video_frames", "vision")}
    # Matmuls are in 16 bits.
    unused.add("workload.fp8_attention")
    unused |= {"cluster.interconnect", *(f"workload.lora.{name}" for name in Lora.model_fields)}
    named = [assumption["field"] for assumption in found["assumptions"]]
    assert len(named) == len(set(named)), sorted(named)
    assert leaves(found["plan"]).keys() - given_fields.keys() - unused - set(named) == set()
    assert not set(named) & (given_fields.keys() - {"model", "cluster.accelerator"})
    for assumption in found["assumptions"]:
        assert assumption["why"]
        if assumption["field"] in leaves(found["plan"]):
            assert leaves(found["plan"])[assumption["field"]] == assumption["value"], assumption


def test_adapters_and_several_nodes_are_assumed_in_words_too() -> None:
    found = call("estimate_training", FLAT | {"method": "lora", "count": 16})
    named = {assumption["field"]: assumption["value"] for assumption in found["assumptions"]}
    assert named["workload.lora.rank"] == 16
    assert named["workload.lora.targets"] == "all-linear"
    assert named["cluster.interconnect"].startswith("ib-ndr-400")
    assert named["workload.lora.dropout"] == 0
    assert named["workload.lora.train_embeddings"] is False
    assert "workload.lora.quantisation" not in named
    given_rank = call("estimate_training", FLAT | {"method": "lora", "lora_rank": 16})
    assert "workload.lora.rank" not in {assumption["field"] for assumption in given_rank["assumptions"]}


# What is asked for, what is then assumed besides, and a field that is not.
ASSUMED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"method": "qlora"}, {"workload.lora.quantisation": "nf4"}, "workload.rollout"),
    ({"method": "qlora", "quantisation": "gptq"}, {}, "workload.lora.quantisation"),
    ({"stage": "grpo"}, {"workload.rollout": "colocated", "workload.group_size": 8}, "workload.lora.quantisation"),
    ({"stage": "grpo", "framework": "deepspeed"}, {"workload.rollout": "colocated"}, "workload.lora.quantisation"),
    (
        {"stage": "grpo", "framework": "deepspeed", "rollout": "trainer"},
        {"workload.group_size": 8},
        "workload.engine_share",
    ),
    ({"stage": "ppo", "rollout": "colocated"}, {"workload.engine_share": 0.3}, "workload.group_size"),
    ({"weights": "bf16", "framework": "hf-trainer"}, {}, "workload.weights"),
    ({"framework": "megatron-lm", "method": "full"}, {"workload.dp_overlap": "auto"}, "workload.moe_dispatcher"),
    ({"framework": "megatron-lm", "method": "full", "tp": 1}, {"workload.cuda_graph": "auto"}, "workload.tp_overlap"),
    ({"framework": "megatron-lm", "method": "full", "cuda_graph": "none"}, {}, "workload.cuda_graph"),
    (
        {"model": "Qwen/Qwen3-30B-A3B", "framework": "deepspeed", "moe_capacity": True},
        {"workload.moe_dispatcher": "auto", "workload.moe_overlap": "auto"},
        "workload.moe_capacity",
    ),
]


@pytest.mark.parametrize(("changes", "assumed", "given"), ASSUMED, ids=range(len(ASSUMED)))
def test_what_a_stage_or_method_has_a_use_for_is_assumed(
    changes: dict[str, Any], assumed: dict[str, Any], given: str
) -> None:
    found = call("estimate_training", FLAT | {"method": "lora"} | changes)["assumptions"]
    named = {assumption["field"]: assumption["value"] for assumption in found}
    assert len(named) == len(found)
    assert assumed.items() <= named.items()
    assert given not in named


def test_a_null_is_not_a_value_that_was_given() -> None:
    found = call("estimate_training", {"plan": NESTED | {"layout": {"tp": None}, "goal": None}})
    assert "layout.tp" in {assumption["field"] for assumption in found["assumptions"]}
    assert steady(found) == steady(result("estimate_training"))


def test_a_name_read_as_another_is_said() -> None:
    found = call("estimate_training", FLAT | {"model": "llama 3.1 8b instruct", "accelerator": "H100 80GB"})
    said = {assumption["field"]: assumption for assumption in found["assumptions"]}
    assert said["cluster.accelerator"]["value"] == "h100-sxm"
    assert found["plan"]["cluster"]["accelerator"] == "h100-sxm"


@pytest.mark.parametrize("tool", ["estimate_training", "check_fit", "best_parallelism", "estimate_cost"])
def test_flat_nested_and_mixed_arguments_say_the_same(tool: str) -> None:
    wanted = steady(result(tool))
    assert steady(call(tool, {"plan": NESTED})) == wanted
    assert steady(call(tool, {"plan": {"workload": NESTED["workload"]}, "count": 8, "accelerator": "h100-sxm",
                              "model": "meta-llama/Llama-3.1-8B"})) == wanted  # fmt: skip
    dotted = {"model": NESTED["model"], "cluster.count": 8, "cluster.accelerator": "h100-sxm", "workload.seq_len": 4096,
              "workload.global_batch": 64, "workload.dataset_tokens": "1B"}  # fmt: skip
    assert steady(call(tool, {"plan": dotted})) == wanted


def test_a_flat_argument_wins_over_the_plan() -> None:
    found = call("estimate_training", {"plan": NESTED | {"layout": {"zero_stage": 1}}, "zero_stage": 3, "count": 4})
    assert found["plan"]["layout"]["zero_stage"] == 3
    assert found["plan"]["cluster"]["count"] == 4


FLAT_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "count": st.sampled_from([1, 2, 8, 16]),
    "accelerator": st.sampled_from(["h100-sxm", "a100-sxm-80gb", "b200"]),
    "seq_len": st.sampled_from([512, 2048, 8192]),
    "method": st.sampled_from(["full", "lora", "qlora"]),
    "stage": st.sampled_from(["sft", "dpo", "pretrain"]),
    "recompute": st.sampled_from(["none", "full"]),
    "micro_batch": st.sampled_from([1, 2]),
    "objective": st.sampled_from(["throughput", "memory"]),
    "dataset_tokens": st.sampled_from([1e8, 2e9]),
    "lora_rank": st.sampled_from([8, 64]),
    "reserve_gib": st.sampled_from([0, 2.5]),
    "overrides": st.sampled_from([{}, {"weights_gib": 3}, {"usable_gib": 60, "logits_and_loss_gib": 1}]),
}


@settings(max_examples=examples(12))
@given(st.fixed_dictionaries({}, optional=FLAT_VALUES))
def test_any_flat_argument_is_the_field_it_stands_for(flat: dict[str, Any]) -> None:
    flat = {"model": "Qwen/Qwen2.5-0.5B", "accelerator": "h100-sxm"} | flat
    plan = Plan.parse({"model": "x"}).patch({FLAT_PATHS[name]: value for name, value in flat.items()})
    assert steady(call("estimate_training", flat)) == steady(call("estimate_training", {"plan": plan.given()}))


def test_every_plan_field_has_one_flat_name() -> None:
    sections = {"workload": Training, "workload.lora": Lora, "cluster": Cluster, "layout": Layout, "goal": Goal}
    fields = {f"{section}.{name}" for section, model in sections.items() for name in model.model_fields}
    whole = {"model", "name", "overrides"} | {f"overrides.{name}_gib" for name in ("usable", "reserve", "host")}
    assert set(FLAT_PATHS.values()) == (fields - {"workload.kind", "workload.lora"}) | whole
    assert {f"overrides.{name}" for name in Overrides.model_fields} >= whole - {"model", "name", "overrides"}
    assert len(set(FLAT_PATHS.values())) == len(FLAT_PATHS)


@pytest.mark.parametrize("count", [8, 16])
def test_a_complete_plan_put_back_is_the_same_estimate(count: int) -> None:
    first = call("estimate_training", FLAT | {"count": count})
    again = call("estimate_training", {"plan": first["plan"]})
    assert again["memory"] == first["memory"]
    assert again["time"] == first["time"]
    assert again["plan"] == first["plan"]
    assert not again["layout_chosen"]


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"model": None}, "model", "is required"),
    ({"accelerator": None}, "cluster.accelerator", "which accelerator"),
    ({"tpp": 8}, "tpp", "valid: tp"),
    ({"count": True}, "count", "got true"),
    ({"count": "many"}, "count", "got 'many'"),
    ({"count": 0}, "cluster.count", "greater than or equal to 1"),
    ({"model": "llama-3.1-9b"}, "model", "meta-llama/Llama-3.1-8B"),
    ({"accelerator": "h1000"}, "cluster.accelerator", "h100"),
    ({"framework": "megatron"}, "framework", "megatron-lm"),
    ({"interconnect": "carrier pigeon"}, "cluster.interconnect", "valid: auto"),
    ({"precision": "fp8", "accelerator": "v100-sxm-32gb"}, "workload.precision", "valid: fp16"),
    ({"tp": 3}, "layout.tp", "valid: 1 2 4 8 16 32"),
    ({"plan": "gpt2"}, "plan", "there is no scenario 'gpt2'"),
    ({"overrides": {"weigths_gib": 3}}, "overrides.weigths_gib", "weights_gib"),
    ({"overrides": {"weights_gib": True}}, "overrides.weights_gib", "got true"),
    ({"overrides": [60]}, "overrides", "got [60]"),
    ({"usable_gib": 0}, "overrides.usable_gib", "greater than 0"),
    ({"reserve_gib": -1}, "overrides.reserve_gib", "greater than or equal to 0"),
    ({"plan": {"cluster": {"per_node": True}}}, "cluster.per_node", "got true"),
    ({"plan": {"layout": {"tpp": 1}}}, "layout.tpp", "valid: tp"),
    ({"global_batch": 100, "framework": "hf-trainer"}, "workload.global_batch", "valid: 96 104"),
    ({"dataset_tokens": float("nan")}, "dataset_tokens", "finite"),
    ({"dataset_tokens": 10**5000}, "dataset_tokens", "too large"),
]


def test_a_serving_plan_is_not_taken_for_training() -> None:
    serving = {"plan": {"workload": {"kind": "inference"}}}
    with pytest.raises(PlanError, match=r"workload\.kind.*valid: training"):
        call("estimate_training", FLAT | serving | {"seq_len": None, "global_batch": None, "dataset_tokens": None})


@pytest.mark.parametrize(("changes", "field", "says"), WRONG, ids=range(len(WRONG)))
@pytest.mark.parametrize("tool", ["estimate_training", "write_configs"])
def test_bad_arguments_name_the_field_and_what_is_valid(
    tool: str, changes: dict[str, Any], field: str, says: str, tmp_path: Path
) -> None:
    with pytest.raises(PlanError) as caught:
        call(tool, FLAT | changes)
    assert caught.value.field == field
    assert says in str(caught.value)
    assert "http" not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments", [["model"], "model", 3])
def test_arguments_have_to_be_a_mapping(arguments: Any) -> None:
    with pytest.raises(PlanError, match=r"^arguments: must be a mapping"):
        call("describe_model", arguments)


def test_the_largest_counts_are_answered_or_refused_by_name() -> None:
    for tool in ("estimate_training", "check_fit"):
        found = call(tool, {"model": "gpt2", "accelerator": "h100-sxm", "count": 1_000_000, "framework": "deepspeed"})
        assert found["plan"]["layout"]["dp"] == 1_000_000
