"""import_config: what was read, completed by arguments, and the verdict."""

from __future__ import annotations

import pytest

from estimator.errors import PlanError
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
