"""Plans that a target cannot carry are refused, each for its own reason; every row of the rule tables is met here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from launch_plans import complete, devices

from estimator.errors import PlanError
from launchers.render import render
from launchers.rules import targets_that_say
from launchers.tables import table
from launchers.targets import TARGETS

ZERO_0 = {"layout.zero_stage": 0}
# By target: `base`, changes that make the base plan one for it, and by row id what meets the row.
MET: dict[str, dict[str, Any]] = {
    target: yaml.safe_load((Path(__file__).parent / "refused" / f"{target}.yaml").read_text()) for target in TARGETS
}
ROWS = [(target, row) for target in TARGETS for row in table(f"{TARGETS[target].folder}/refusals")["refusals"]]

# Feature name -> changes; each is refused for every target of its kind that does not say it.
SPLIT = {"cluster.count": 16, "workload.global_batch": 32}
INEXPRESSIBLE = {
    "tensor parallelism": {**SPLIT, "layout.tp": 2},
    "pipeline parallelism": {**SPLIT, "layout.pp": 2},
    "virtual pipeline stages": {"layout.vpp": 2},
    "context parallelism": {**SPLIT, "layout.cp": 2},
    "expert parallelism": {"layout.ep": 8},
    "tensor parallelism inside experts": {"layout.etp": 2},
    "recompute of named parts of a layer": {"layout": {"recompute": "selective", "recompute_modules": ["mlp"]}},
    "shard groups without ZeRO-3": {"layout.shard_group": 4},
    "whole replicas as shard groups of one": {"layout": {"shard_group": 1, "zero_stage": 3}},
    "images in the data": {"model": "Qwen/Qwen3-VL-8B-Instruct", "workload.images": 1, "workload.visual_tokens": 1026},
    "a data type of gradients": {"workload.gradients": "fp32"},
    "an MLP in tiles": {"workload.tiled_mlp": True},
    "states and activations in host memory together": {"layout.offload": "params+activations"},
    "weights updated within the backward pass": {"workload.optimizer_in_backward": True},
    "partial recompute": {"layout.recompute": "selective"},
    "GRPO": {"workload.stage": "grpo"},
    "CUDA graphs": {"workload.cuda_graph": "layers"},
    "the FlashAttention of 2022": {"workload.attention": "flash1"},
    "attention in 8 bits": {"workload.fp8_attention": True},
    "a run in 4 bits that ends in 8 bits": {"workload.fp8_healing": 0.4},
    "dropping of tokens beyond the experts' capacity": {"workload.moe_capacity": True},
    "this precision": {"workload.precision": "nvfp4"},
    "layers spread over unlike devices of one machine": {"cluster.count": 1, "cluster.beside": ["rtx-3090"]},
    "experts in host memory": {
        "model": "Qwen/Qwen3-30B-A3B",
        "cluster.count": 1,
        "workload.host_experts": 4,
    },
    "tensor parallelism of a served model": {"layout.tp": 2},
    "pipeline stages of a served model": {"layout.pp": 2},
    "data-parallel attention of a served model": {"layout.dp": 2},
    "experts of a served model on several devices": {"model": "Qwen/Qwen3-30B-A3B", "layout.ep": 8},
    "weights of 8-bit floats": {"workload.weight_dtype": "fp8"},
    "weights of 8-bit integers": {"workload.weight_dtype": "int8"},
    "weights of 4-bit integers": {"workload.weight_dtype": "awq"},
    "weights of 4-bit floats": {"workload.weight_dtype": "nvfp4"},
    "experts of 4-bit floats": {"workload.weight_dtype": "mxfp4"},
    "weights of 32 bits": {"workload.weight_dtype": "fp32"},
    "weights of a GGUF file": {"workload.weight_dtype": "q4_k_m"},
    "weights of an EXL2 file": {"workload.weight_dtype": "exl2"},
    "a cache of 8-bit floats": {"workload.kv_dtype": "fp8"},
    "a cache of 8-bit integers": {"workload.kv_dtype": "int8"},
    "a cache of 4-bit floats": {"workload.kv_dtype": "fp4"},
    "a cache in a named 16-bit type": {"workload.kv_dtype": "bf16"},
    "drafted tokens": {"workload.speculative_tokens": 2},
    "a method of drafting": {"workload.draft_method": "ngram"},
    "prompts read in steps of their own": {"workload.chunked_prefill": False},
    "prompts read in pieces during generation": {"workload.chunked_prefill": True},
    "several steps between checks for new requests": {"workload.admission_steps": 4},
    "generation without CUDA graphs": {"workload.cuda_graph": False},
    "a share of the device's memory": {"workload.memory_share": 0.5},
    "a limit of requests in one step": {"workload.max_batch": 64},
    "a limit of tokens in one step": {"workload.max_batched_tokens": 4096},
}


def test_all_rows_are_met():
    for target, met in MET.items():
        assert set(met["refusals"]) == {row["id"] for row in table(f"{TARGETS[target].folder}/refusals")["refusals"]}, (
            target
        )
    assert set(INEXPRESSIBLE) == {feature["name"] for feature in table("data/features")}


@pytest.mark.parametrize(("target", "row"), ROWS, ids=lambda value: value if isinstance(value, str) else value["id"])
def test_refused_combination(target, row):
    met = MET[target]["refusals"][row["id"]]
    with pytest.raises(PlanError) as raised:
        render(complete(MET[target]["base"]).patch(met["changes"]), met.get("targets", [target]))
    assert str(raised.value).startswith(f"{row['field']}: {row['problem']}")
    if row["field"] == "layout.shard_group" and "valid" not in row:
        # One group of all replicas.
        assert [value.isdigit() for value in raised.value.valid] == [True]
    else:
        assert raised.value.valid == [str(value) for value in row.get("valid", ())]
    assert row["source"]


@pytest.mark.parametrize("feature", table("data/features"), ids=lambda feature: feature["name"])
def test_inexpressible_feature_names_what_can(feature):
    kind = feature.get("kind", "training")
    for target, row in TARGETS.items():
        own = table(f"{TARGETS[target].folder}/refusals")
        if row.role in ("scheduler", "place") or kind not in row.kinds:
            continue
        if feature["name"] in {*own.get("says", ()), *own.get("elsewhere", ())}:
            continue
        base = MET[target].get("several", MET[target]["base"])
        with pytest.raises(PlanError) as raised:
            render(complete(base).patch(INEXPRESSIBLE[feature["name"]]), [target])
        assert raised.value.field == feature["field"], target
        if feature["name"] not in str(raised.value):  # the target has its own reason, and it comes first
            assert any(row["problem"] in str(raised.value) for row in own["refusals"]), target
            continue
        for other in targets_that_say(feature["name"], kind):
            assert other in str(raised.value)


def test_images_limit_what_llamafactory_scales_them_to():
    seeing = {"model": "Qwen/Qwen3-VL-8B-Instruct", "workload.images": 2, "workload.visual_tokens": 1200}
    plan = complete(seeing | {"workload.image_size": "768x800", "workload.vision": "trained"})
    rendered = render(plan, ["llamafactory", "deepspeed"])
    text = next(file.text for file in rendered.files if file.target == "llamafactory")
    fields = yaml.safe_load(text)
    assert fields["image_max_pixels"] == 768 * 800
    assert fields["freeze_vision_tower"] is False
    assert fields["template"] == "qwen3_vl_nothink"


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


@pytest.mark.parametrize("framework", ["megatron-lm", "axolotl", "torchtitan"])
def test_other_frameworks_are_refused(framework):
    with pytest.raises(PlanError, match=r"workload\.framework.*hf-trainer"):
        render(complete({"workload.framework": framework}), ["llamafactory"])


def test_serving_plans_are_refused():
    with pytest.raises(PlanError, match="llamafactory has no files for serving"):
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


def test_what_was_asked_for_is_refused_in_its_own_name():
    """TRL's files refer to accelerate's, which refuse the same."""
    plan = complete({"cluster.accelerator": "gaudi3", "workload.framework": "optimum-habana"})
    with pytest.raises(PlanError, match="not started by trl files"):
        render(plan, ["trl"])
