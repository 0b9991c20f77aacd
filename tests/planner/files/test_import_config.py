"""import_config: what was read, completed by arguments, and the verdict."""

from __future__ import annotations

import json

import pytest

from estimator.errors import PlanError
from planner.files.importing import imported
from tools import call

YAML = """\
model_name_or_path: meta-llama/Llama-3.1-8B
stage: sft
finetuning_type: full
cutoff_len: 4096
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
bf16: true
max_steps: 1000
deepspeed: ds.json
"""
ZERO3 = '{"zero_optimization": {"stage": 3}}'


def test_what_is_missing_is_said_and_what_was_read_is_shown():
    result = call("import_config", {"text": YAML})
    assert {row["field"] for row in result["missing"]} == {"layout.zero_stage", "cluster.accelerator", "cluster.count"}
    assert result["fits"] is None
    assert result["plan"]["workload"]["seq_len"] == 4096


def test_the_verdict_is_that_of_the_same_plan():
    result = call("import_config", {"files": {"a.yaml": YAML, "ds.json": ZERO3}, "accelerator": "h100-sxm", "count": 8})
    assert result["missing"] == []
    assert result["plan"]["workload"]["global_batch"] == 64
    direct = call("estimate_training", {"plan": result["complete_plan"]})
    assert result["fits"] is direct["memory"]["fits"] is True
    assert result["step_s"] == pytest.approx(direct["time"]["step_s"])
    assert result["hours"] == pytest.approx(direct["run"]["hours"])
    assert result["usd"] > 0


def test_too_little_memory_does_not_fit():
    arguments = {"files": {"a.yaml": YAML, "ds.json": '{"zero_optimization": {"stage": 0}}'}}
    result = call("import_config", arguments | {"accelerator": "rtx-4090", "count": 2})
    assert result["fits"] is False
    assert result["headroom_bytes"] < 0


def test_arguments_win_and_an_impossible_plan_is_refused():
    files = {"a.yaml": YAML, "ds.json": ZERO3}
    result = call("import_config", {"files": files, "accelerator": "h100-sxm", "count": 8, "seq_len": 1024})
    assert result["plan"]["workload"]["seq_len"] == 1024
    assert result["complete_plan"]["workload"]["seq_len"] == 1024
    refused = call("import_config", {"files": files, "accelerator": "h100-sxm", "count": 8, "tp": 3})
    assert refused["refused"]
    assert refused["fits"] is None


def test_a_folder_is_read_as_the_model_it_is_named_after():
    text = YAML.replace("meta-llama/Llama-3.1-8B", "/data/models/Llama-3.1-8B")
    result = call("import_config", {"files": {"a.yaml": text, "ds.json": ZERO3}, "accelerator": "h100-sxm", "count": 8})
    assert result["fits"] is True
    assert [row["value"] for row in result["assumptions"] if row["field"] == "model"] == ["meta-llama/Llama-3.1-8B"]


def test_serving():
    command = "vllm serve meta-llama/Llama-3.1-8B --tensor-parallel-size 2 --max-model-len 8192"
    result = call("import_config", {"text": command, "accelerator": "h100-sxm"})
    assert result["fits"] is True
    assert result["complete_plan"]["layout"]["tp"] == 2
    assert result["tokens_per_s"] > 0


@pytest.mark.parametrize("arguments", [{}, {"text": "x", "files": {"a": "b"}}, {"text": "hello"}, {"files": {}}])
def test_no_files_are_refused(arguments: dict):
    with pytest.raises(PlanError):
        call("import_config", arguments)


def test_what_no_estimate_has_is_missing_and_not_refused():
    text = "base_model: Qwen/Qwen3-8B\nmicro_batch_size: 1\ntensor_parallel_size: 2\nsequence_len: 512\n"
    result = call(
        "import_config", {"text": text, "accelerator": "h100-sxm", "count": 8, "framework": "torchtune", "pp": 2}
    )
    assert result["refused"] is None
    assert result["fits"] is None
    assert result["missing"][0]["field"].startswith("layout.")


GRPO = """\
model_name_or_path: Qwen/Qwen2.5-0.5B
num_generations: 8
max_prompt_length: 512
max_completion_length: 512
per_device_train_batch_size: 8
gradient_accumulation_steps: 1
bf16: true
gradient_checkpointing: true
use_vllm: true
"""


def test_a_verdict_that_differs_between_versions_of_a_program_is_asked_for():
    files = {"grpo.yaml": GRPO, "ds.json": ZERO3}
    either = call("import_config", {"files": files, "accelerator": "h100-sxm", "count": 8})
    assert either["fits"] is True
    assert any("the verdict is the same" in text for text in either["warnings"])
    separate = call(
        "import_config",
        {"files": files, "accelerator": "h100-sxm", "count": 8, "plan": {"workload": {"rollout": "separate"}}},
    )
    assert either["low_bytes"] == separate["low_bytes"]
    told = {"workload": {"rollout": "colocated"}}
    colocated = call("import_config", {"files": files, "accelerator": "h100-sxm", "count": 8, "plan": told})
    assert colocated["per_device_bytes"] == pytest.approx(either["per_device_bytes"])
    for size, device in (("Qwen2.5-7B", "h100-sxm"), ("Qwen2.5-3B", "a100-sxm-40gb")):
        text = {"grpo.yaml": GRPO.replace("Qwen2.5-0.5B", size), "ds.json": ZERO3}
        verdicts = set()
        for rollout in ("colocated", "separate"):
            plan = {"workload": {"rollout": rollout}}
            verdicts.add(
                call("import_config", {"files": text, "accelerator": device, "count": 8, "plan": plan})["fits"]
            )
        asked = call("import_config", {"files": text, "accelerator": device, "count": 8})
        assert (asked["fits"] is None) == (len(verdicts) > 1)
        assert {row["field"] for row in asked["missing"]} == ({"workload.rollout"} if len(verdicts) > 1 else set())


VERL = """\
python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.max_prompt_length=512 \\
  data.max_response_length=1024 \\
  actor_rollout_ref.model.path=Qwen/Qwen2.5-7B actor_rollout_ref.actor.ppo_mini_batch_size=64 \\
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 actor_rollout_ref.rollout.n=8 trainer.n_gpus_per_node=8 \\
  actor_rollout_ref.rollout.gpu_memory_utilization=0.5 trainer.nnodes=1
"""


def test_rows_of_unknown_length_have_a_verdict_where_the_longest_fit():
    fits = call("import_config", {"text": VERL, "accelerator": "h200"})
    assert fits["fits"] is True
    assert any("at most 1536 tokens" in text for text in fits["warnings"])
    tight = VERL.replace("per_gpu=4", "per_gpu=64")
    asked = call("import_config", {"text": tight, "accelerator": "h100-sxm"})
    assert asked["fits"] is None
    assert {row["field"] for row in asked["missing"]} == {"workload.seq_len"}
    told = call("import_config", {"text": tight, "accelerator": "h100-sxm", "plan": {"workload": {"seq_len": 1536}}})
    assert told["fits"] is False


def test_the_config_of_a_model_alone_is_the_model():
    config = {"model_type": "qwen3", "hidden_size": 2048, "num_hidden_layers": 28, "num_attention_heads": 16,
              "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 6144, "vocab_size": 151936,
              "tie_word_embeddings": True}  # fmt: skip
    lacking = call("import_config", {"text": json.dumps(config)})
    assert {"cluster.accelerator", "cluster.count"} <= {row["field"] for row in lacking["missing"]}
    told = {"accelerator": "rtx-3060-12gb", "count": 1, "method": "lora", "seq_len": 512, "global_batch": 8}
    plan = {"workload": {"kind": "training", **{name: told[name] for name in ("method", "seq_len", "global_batch")}},
            "model": lacking["plan"]["model"], "cluster": {"accelerator": told["accelerator"], "count": 1}}  # fmt: skip
    assert call("estimate_training", {"plan": plan})["memory"]["fits"] is True


def test_what_a_person_must_do_about_a_checkpoint_is_told_with_the_model():
    gated = call("describe_model", {"model": "meta-llama/Llama-3.1-8B"})["notes"]
    assert {note.partition(":")[0] for note in gated} >= {"licence", "chat template", "released 2024-07-23"}
    own = call("describe_model", {"model": "moonshotai/Kimi-K2-Thinking"})["notes"]
    assert any("trust_remote_code" in note for note in own)
    assert any("not gated" in note for note in own)
    unknown = call("describe_model", {"model": "stabilityai/stablelm-2-12b"})["notes"]
    assert any("gated is not known" in note for note in unknown)


def test_rows_of_open_length_are_told_how_long_they_may_be() -> None:
    text = "swift sft --model Qwen/Qwen3-8B --train_type lora --per_device_train_batch_size 16 --max_length 4096 "
    text += "--gradient_accumulation_steps 1"
    device = {"cluster.accelerator": "h100-sxm", "cluster.count": 1}
    (row,) = imported({"run.sh": text}, device).missing
    most = int(row.why.split("it fits while they are up to ")[1].split(":")[0].replace(",", ""))
    assert 64 < most < 4096
    assert imported({"run.sh": text}, {**device, "workload.seq_len": most}).fits
    assert not imported({"run.sh": text}, {**device, "workload.seq_len": most + 256}).fits
