"""What LlamaFactory's file says of weights, adapters and their packing; and that no field of a run is left unsaid."""

from __future__ import annotations

import pytest
import yaml
from launch_plans import complete

from estimator.plan.schema import Lora, Training
from launchers.render import render


def llamafactory(changes, **arguments) -> dict:
    rendered = render(complete(changes), ["llamafactory"], **arguments)
    return yaml.safe_load(next(file.text for file in rendered.files if file.target == "llamafactory"))


def needs_of(changes) -> str:
    return " ".join(render(complete(changes), ["llamafactory"]).needs_from_user)


@pytest.mark.parametrize(
    ("quantisation", "double", "package"),
    [("nf4", True, "bitsandbytes"), ("nf4-single", False, "bitsandbytes"), ("gptq", None, "gptqmodel optimum")],
)
def test_every_quantisation_has_its_words(quantisation, double, package):
    changes = {"workload": {"method": "qlora", "lora": {"quantisation": quantisation}}, "layout.zero_stage": 0}
    config = llamafactory(changes)
    assert config.get("double_quantization") is double
    assert ("quantization_bit" in config) == ("quantization_method" in config) == (double is not None)
    assert package in needs_of(changes)
    assert package not in needs_of(changes | {"workload.method": "lora"})


def test_gptq_asks_for_a_checkpoint_that_is_packed_so():
    changes = {"workload": {"method": "qlora", "lora": {"quantisation": "gptq"}}, "layout.zero_stage": 0}
    assert llamafactory(changes)["model_name_or_path"].startswith("SET_ME")
    assert "GPTQ checkpoint of meta-llama/Llama-3.1-8B" in needs_of(changes)
    packed = "someone/Llama-3.1-8B-GPTQ-Int4"
    assert llamafactory(changes, model_id=packed)["model_name_or_path"] == packed


@pytest.mark.parametrize(
    ("weights", "precision", "said"),
    [
        ("auto", "bf16", {"bf16": True}),
        ("fp32", "bf16", {"bf16": True}),
        ("fp32", "fp32", {"bf16": False, "fp16": False}),
        ("bf16", "bf16", {"bf16": False, "pure_bf16": True}),
    ],
)
def test_what_weights_are_held_in_has_its_words(weights, precision, said):
    changes = {"workload": {"weights": weights, "precision": precision, "attention": "sdpa"}, "layout.zero_stage": 0}
    config = llamafactory(changes)
    assert said.items() <= config.items()
    assert ("pure_bf16" in config) == (weights == "bf16")


def test_dropout_and_embeddings_are_said_only_where_they_are_asked_for():
    assert not {"lora_dropout", "additional_target"} & llamafactory({"workload.method": "lora"}).keys()
    lora = {"method": "dora", "lora": {"dropout": 0.05, "train_embeddings": True}}
    config = llamafactory({"workload": lora})
    assert config["lora_dropout"] == 0.05
    assert config["additional_target"] == "embed_tokens,lm_head"
    other = {"model": "EleutherAI/pythia-6.9b", "workload": lora}
    assert llamafactory(other)["additional_target"] == "embed_in,embed_out"
    assert "additional_target" not in needs_of(other)
    unknown = {"model": "tiiuae/falcon-mamba-7b", "workload": lora}
    assert "additional_target" in needs_of(unknown)


# Fields that name no setting of a file: what is planned with, where it runs, what only other stages use, what goes with
# splits that the file cannot say, and what is refused (test_launch_refusals.py).
UNSAID = {"kind", "framework", "software_version", "dataset_tokens", "engine_share", "group_size", "rollout", "lora"}
UNSAID |= {"dataset_samples", "sample_tokens", "steps", "gradients", "optimizer_in_backward", "tiled_mlp"}
UNSAID |= {"dp_overlap", "tp_overlap", "moe_dispatcher", "moe_overlap", "cuda_graph", "moe_capacity", "response_len"}
UNSAID |= {"fp8_attention", "fp8_healing"}
# How many images there are is the data's, and how many tokens they come to follows.
UNSAID |= {"images", "visual_tokens"}
SEEING = {"model": "Qwen/Qwen3-VL-8B-Instruct", "workload.images": 1, "workload.video_frames": 8}
SEEING |= {"workload.visual_tokens": 3000}
OTHERS = {
    "stage": "orpo", "method": "freeze", "precision": "fp16", "weights": "bf16", "optimizer": "lion", "seq_len": 512,
    "packing": False, "micro_batch": 2, "global_batch": 64, "attention": "sdpa", "fused_loss": True, "compile": True,
    "epochs": 3.0, "rank": 4, "alpha": 7, "targets": "mlp", "dropout": 0.1, "quantisation": "nf4-single",
    "train_embeddings": True, "image_size": "768x768", "video_frames": 16, "vision": "trained",
}  # fmt: skip


@pytest.mark.parametrize("field", [*Training.model_fields, *Lora.model_fields])
def test_every_field_of_a_run_is_in_its_files(field):
    if field in UNSAID:
        return
    base = {"layout.zero_stage": 0}
    path = f"workload.{field}"
    if field in Lora.model_fields:
        base, path = {"workload.method": "qlora", **base}, f"workload.lora.{field}"
    if field in ("image_size", "video_frames", "vision"):
        base |= SEEING
    assert llamafactory({**base, path: OTHERS[field]}) != llamafactory(base)


def test_checkpoints_that_do_not_train_as_they_are_stored_are_told() -> None:
    """transformers refuses to train MXFP4 and FP8 weights; LlamaFactory unpacks them, TRL and Axolotl do not."""

    def needs(model: str, target: str) -> str:
        changes = {
            "model": model,
            "workload.method": "lora",
            "layout.zero_stage": 0,
            "workload.framework": "hf-trainer",
        }
        rendered = render(complete(changes), ["accelerate", target] if target == "trl" else [target])
        return " ".join(rendered.needs_from_user)

    assert "unsloth/gpt-oss-20b-BF16" in needs("openai/gpt-oss-20b", "trl")
    assert "stored in fp8_block" in needs("deepseek-ai/DeepSeek-V3", "trl")
    assert "stored in" not in needs("openai/gpt-oss-20b", "llamafactory")
    assert "stored in" not in needs("Qwen/Qwen3-8B", "trl")
