"""Plans that a target cannot carry are refused, each for its own reason; every row of the rule tables is met here."""

from __future__ import annotations

import pytest
from launch_plans import complete, devices

from estimator.errors import PlanError
from launchers import render
from launchers.tables import table

ZERO_0 = {"layout.zero_stage": 0}

# Row id -> (targets, changes to the base plan).
REFUSED = {
    "pissa-zero3": (["llamafactory"], {"workload.method": "pissa", "layout.zero_stage": 3}),
    "pissa-stage": (["llamafactory"], {"workload": {"method": "pissa", "stage": "dpo"}}),
    "galore-adapters": (["llamafactory"], {"workload": {"optimizer": "galore", "method": "lora"}, **ZERO_0}),
    "galore-deepspeed": (["llamafactory"], {"workload.optimizer": "apollo"}),
    "fp8-quantized": (["llamafactory"], {"workload": {"precision": "fp8", "method": "qlora"}}),
    "muon-deepspeed": (["llamafactory", "deepspeed"], {"workload.optimizer": "muon", **ZERO_0}),
    "lomo-deepspeed": (["llamafactory"], {"workload": {"optimizer": "lomo", "global_batch": 8}}),
    "lomo-accumulation": (["llamafactory"], {"workload.optimizer": "lomo", **ZERO_0}),
    "fa3": (["llamafactory"], {"workload.attention": "flash3"}),
    "flash-fp32": (["llamafactory"], {"workload.precision": "fp32"}),
    "fp32-frozen-weights": (
        ["llamafactory"],
        {"workload": {"precision": "tf32", "attention": "sdpa", "method": "lora"}},
    ),
    "fused-loss-stage": (["llamafactory"], {"workload": {"fused_loss": True, "stage": "dpo"}}),
    "offload-activations-without-recompute": (
        ["llamafactory"],
        {"layout": {"offload": "activations", "recompute": "none"}},
    ),
    "offload-other-optimizer": (["deepspeed"], {"layout.offload": "optimizer", "workload.optimizer": "adamw_8bit"}),
    "offload-optimizer-stage": (["deepspeed"], {"layout": {"offload": "optimizer", "zero_stage": 0}}),
    "offload-params-stage": (["llamafactory"], {"layout": {"offload": "params", "zero_stage": 2}}),
    "offload-without-deepspeed": (["llamafactory"], {"layout": {"offload": "params", "zero_stage": 0}}),
    "deepspeed-activations": (["deepspeed"], {"layout.offload": "activations"}),
    "fp32-weights-frozen": (["llamafactory"], {"workload": {"weights": "fp32", "method": "freeze"}, **ZERO_0}),
    "fp32-weights-deepspeed": (["llamafactory"], {"workload.weights": "fp32"}),
    "bf16-weights-deepspeed": (["llamafactory"], {"workload.weights": "bf16"}),
    "bf16-weights-precision": (["llamafactory"], {"workload": {"weights": "bf16", "precision": "fp16"}, **ZERO_0}),
    "bf16-weights-adapters": (["llamafactory"], {"workload": {"weights": "bf16", "method": "lora"}, **ZERO_0}),
    "gptq-zero3": (
        ["llamafactory"],
        {"workload": {"method": "qlora", "lora": {"quantisation": "gptq"}}, "layout.zero_stage": 3},
    ),
    "tied-embeddings": (
        ["llamafactory"],
        {"model": "Qwen/Qwen2.5-0.5B", "workload": {"method": "lora", "lora": {"train_embeddings": True}}},
    ),
    "ppo-rollout": (["llamafactory"], {"workload": {"stage": "ppo", "rollout": "colocated"}}),
}

# Feature name -> changes; each is refused for every target in the row's `cannot`.
SPLIT = {"cluster.count": 16, "workload.global_batch": 32}
INEXPRESSIBLE = {
    "tensor parallelism": {**SPLIT, "layout.tp": 2},
    "pipeline parallelism": {**SPLIT, "layout.pp": 2},
    "virtual pipeline stages": {"layout.vpp": 2},
    "context parallelism": {**SPLIT, "layout.cp": 2},
    "expert parallelism": {"layout.ep": 8},
    "tensor parallelism inside experts": {"layout.etp": 2},
    "shard groups without ZeRO-3": {"layout.shard_group": 4},
    "whole replicas as shard groups of one": {"layout": {"shard_group": 1, "zero_stage": 3}},
    "partial recompute": {"layout.recompute": "selective"},
    "GRPO": {"workload.stage": "grpo"},
    "CUDA graphs": {"workload.cuda_graph": "layers"},
    "dropping of tokens beyond the capacity of experts": {"workload.moe_capacity": True},
    "this precision": {"workload.precision": "nvfp4"},
}


def test_all_rows_are_met():
    assert set(REFUSED) == {row["id"] for row in table("refusals")}
    assert set(INEXPRESSIBLE) == {feature["name"] for feature in table("expressibility")["features"]}


@pytest.mark.parametrize("row", table("refusals"), ids=lambda row: row["id"])
def test_refused_combination(row):
    targets, changes = REFUSED[row["id"]]
    with pytest.raises(PlanError) as raised:
        render(complete(changes), targets)
    assert str(raised.value).startswith(f"{row['field']}: {row['problem']}")
    assert raised.value.valid == [str(value) for value in row.get("valid", ())]
    assert row["source"]


@pytest.mark.parametrize("feature", table("expressibility")["features"], ids=lambda feature: feature["name"])
def test_inexpressible_feature_names_what_can(feature):
    for target in feature["cannot"]:
        with pytest.raises(PlanError) as raised:
            render(complete(INEXPRESSIBLE[feature["name"]]), [target])
        assert raised.value.field == feature["field"]
        for other in feature["targets"]:
            assert other in str(raised.value)


def test_the_same_plans_go_where_they_can():
    assert render(complete({"layout.recompute": "block:4"}), ["deepspeed"])
    assert render(complete({"workload.stage": "grpo"}), ["deepspeed"])
    assert render(complete({"model": "openai/gpt-oss-20b", "workload.attention": "flash3"}), ["llamafactory"])
    assert render(complete({"workload": {"method": "pissa", "stage": "orpo"}}), ["llamafactory"])
    assert render(complete({"workload.optimizer": "muon", **ZERO_0}), ["llamafactory"])
    assert render(complete({"workload.weights": "fp32", **ZERO_0}), ["llamafactory"])
    assert render(complete({"workload": {"weights": "fp32", "precision": "fp32"}}), ["deepspeed"])
    assert render(complete({"workload": {"stage": "ppo", "rollout": "trainer"}}), ["llamafactory"])
    assert render(complete({"workload.rollout": "separate"}), ["llamafactory"])
    embeddings = {"method": "lora", "lora": {"train_embeddings": True}}
    assert render(complete({"workload": embeddings}), ["llamafactory"])
    assert render(complete({"model": "Qwen/Qwen2.5-0.5B", "workload": embeddings}), ["deepspeed"])


@pytest.mark.parametrize("framework", ["megatron-lm", "fsdp2", "torchtitan"])
def test_other_frameworks_are_refused(framework):
    with pytest.raises(PlanError, match=r"workload\.framework.*hf-trainer"):
        render(complete({"workload.framework": framework}), ["llamafactory"])


def test_serving_plans_are_refused():
    with pytest.raises(PlanError, match=r"workload\.kind"):
        render(complete({"workload": None}).patch({"workload": {"kind": "inference"}}), ["llamafactory"])


@pytest.mark.parametrize(
    "field",
    [
        "workload.seq_len", "workload.micro_batch", "workload.global_batch", "cluster.count", "cluster.per_node",
        "layout.tp", "layout.pp", "layout.cp", "layout.ep", "layout.dp", "layout.zero_stage", "layout.recompute",
        "layout.offload",
    ],
)  # fmt: skip
def test_open_fields_are_named(field):
    with pytest.raises(PlanError) as raised:
        render(complete({field: None}), ["slurm"])
    assert raised.value.field == field


@pytest.mark.parametrize(
    ("changes", "field", "valid"),
    [
        ({"cluster.count": 16}, "layout.dp", ["16"]),
        ({"workload.global_batch": 33}, "workload.global_batch", ["32", "40"]),
        ({"workload.global_batch": 3}, "workload.global_batch", ["8"]),
        (devices(12), "cluster.count", ["8", "16"]),
        ({"layout": {"shard_group": 3, "zero_stage": 3}}, "layout.shard_group", ["1", "2", "4", "8"]),
    ],
)
def test_contradictions_are_named_with_what_would_do(changes, field, valid):
    with pytest.raises(PlanError) as raised:
        render(complete(changes), ["llamafactory"])
    assert raised.value.field == field
    assert raised.value.valid == valid
