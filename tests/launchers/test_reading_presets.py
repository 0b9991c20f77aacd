"""Commands that name a config of the program's own, and values that follow from others or from silence."""

from __future__ import annotations

from typing import Any

import pytest

from knowledge.models.catalogue import architecture
from launchers.reading.result import FilesReading
from launchers.reading.sets import read
from launchers.tables import table
from planner.files.importing import imported

TITAN = "torchrun --nproc_per_node=8 -m torchtitan.train"
TUNE = "tune run --nproc_per_node 4 full_finetune_distributed --config"


def known(found: FilesReading) -> dict[str, Any]:
    """What was read or is assumed of the program, by field."""
    return {row.field: row.value for row in found.assumed} | {row.field: row.value for row in found.read}


def assert_known(text: str, expected: dict[str, Any], name: str = "job") -> FilesReading:
    found = read({name: text})
    values = known(found)
    assert {field: values.get(field) for field in expected} == expected
    return found


@pytest.mark.parametrize("preset", sorted(table("torchtitan/presets")["presets"]))
def test_every_preset_of_torchtitan_is_a_run(preset: str):
    found = read({"job": f"{TITAN} --config {preset}"})
    values = known(found)
    assert not found.blocked
    assert values["workload.framework"] == "torchtitan"
    assert architecture(values["model"]).layers
    assert values["workload.global_batch"] == values["workload.micro_batch"] * values["layout.dp"]


def test_every_config_of_torchtune_is_a_run():
    for config in table("torchtune/configs")["configs"]:
        found = read({"job": f"{TUNE} {config}"})
        values = known(found)
        # Rows that are not packed may be of any length where a config names none: it is asked for.
        blocked = set(found.blocked) - {"workload.seq_len"} - ({"workload.precision"} if "qat" in config else set())
        assert not blocked, config
        assert architecture(values["model"]).layers
        assert values["workload.method"] in config or values["workload.method"] == "full" or "dora" in config


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"{TITAN} --module llama3 --config llama3_70b --training.local_batch_size 2",
            {"model": "meta-llama/Llama-3.1-70B", "workload.micro_batch": 2, "workload.seq_len": 8192, "layout.tp": 8,
             "layout.recompute": "full", "workload.precision": "bf16"},
        ),
        (
            f"{TITAN} --config llama3_8b_mxfp8 activation_checkpoint:full",
            {"workload.precision": "mxfp8", "workload.compile": True, "layout.recompute": "full"},
        ),
        (
            f"{TITAN} --config llama3_8b --training.max_context_length 4096",
            {"workload.seq_len": 4096, "workload.micro_batch": 2},
        ),
        (
            f"{TITAN} --config qwen3_14b --training.num_tokens_per_microbatch_per_dp_rank 8192",
            {"workload.seq_len": 4096, "workload.micro_batch": 2, "workload.global_batch": 16},
        ),
        (
            f"{TITAN} --config llama3_8b --parallelism.pipeline_parallel_degree 2 --training.local_batch_size 8",
            {"workload.micro_batch": 1, "workload.global_batch": 32, "layout.pp": 2},
        ),
        (
            "NGPU=4 MODULE=qwen3 CONFIG=qwen3_32b ./run_train.sh --training.steps 50",
            {"model": "Qwen/Qwen3-32B", "per_node": 4, "workload.steps": 50, "workload.micro_batch": 2},
        ),
        (
            f"{TUNE} llama3_1/8B_full batch_size=3 tokenizer.max_seq_len=2048",
            {"model": "Meta-Llama-3.1-8B-Instruct", "workload.micro_batch": 3, "workload.seq_len": 2048,
             "workload.method": "full", "workload.optimizer": "adamw", "layout.zero_stage": 3},
        ),
        (
            "tune run lora_finetune_single_device --config llama3/8B_qlora_single_device",
            {"model": "Meta-Llama-3-8B-Instruct", "workload.method": "qlora", "workload.lora.rank": 8,
             "accumulation": 8, "cluster.count": 1},
        ),
        ("uv run --with x torchrun --nproc_per_node=2 -m torchtitan.train --config qwen3_32b", {"cluster.count": 2}),
        (
            "ray job submit -- vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2 --enable-chunked-prefill true",
            {"model": "Qwen/Qwen3-8B", "layout.tp": 2, "workload.chunked_prefill": True},
        ),
        (
            "deepspeed --num_gpus 4 main.py --model_name_or_path facebook/opt-1.3b --per_device_train_batch_size 2 "
            "--max_seq_len 512 --zero_stage 2 --deepspeed",
            {"workload.seq_len": 512, "layout.zero_stage": 2, "workload.framework": "deepspeed",
             "workload.precision": "bf16"},
        ),
    ],
)  # fmt: skip
def test_commands(text: str, expected: dict[str, Any]):
    assert_known(text, expected)


def test_a_config_beside_the_command_wins_over_a_published_one():
    own = "model: {_component_: torchtune.models.llama3_1.llama3_1_8b}\nbatch_size: 7\n"
    found = read({"job": f"{TUNE} llama3_1/8B_full", "8B_full": own})
    assert known(found)["workload.micro_batch"] == 7


@pytest.mark.parametrize("command", [f"{TITAN} --config my_own", f"{TUNE} my/own"])
def test_configs_of_ones_own_are_asked_for(command: str):
    result = imported({"job": command}, {"cluster.accelerator": "h100-sxm"})
    assert result.missing
    assert result.fits is None


V1 = "model: Qwen/Qwen3-4B\ntrain_dataset: d.yaml\ndist_config: {name: fsdp2}\n"
AXOLOTL = "base_model: Qwen/Qwen3-4B\nsequence_len: 512\nmicro_batch_size: 1\nadapter: lora\nlora_r: 8\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            V1,
            {"workload.method": "full", "workload.precision": "bf16", "workload.seq_len": 2048, "accumulation": 1,
             "layout.recompute": "full", "workload.packing": False, "workload.optimizer": "adamw"},
        ),
        (V1 + "batching_strategy: padding_free\noptim_config: {name: muon}\n",
         {"workload.packing": True, "workload.optimizer": "muon"}),
        (V1 + "peft_config: {name: freeze}\nenable_activation_checkpointing: false\n",
         {"workload.method": "freeze", "layout.recompute": "none"}),
        (V1 + "peft_config: {name: lora}\nquant_config: {name: bnb, quantization_bit: 4}\n",
         {"workload.method": "qlora", "workload.lora.rank": 8, "workload.lora.alpha": 16}),
        (
            "model_name_or_path: Qwen/Qwen3-4B\nstage: sft\ntemplate: x\n",
            {"workload.method": "lora", "workload.precision": "bf16"},
        ),
        (
            "model_name_or_path: Qwen/Qwen3-4B\nstage: sft\nfinetuning_type: full\n",
            {"workload.method": "full", "workload.precision": "fp32"},
        ),
        (
            AXOLOTL + "lora_target_linear: true\nlora_target_modules: [q_proj, v_proj]\n",
            {"workload.lora.targets": "all-linear"},
        ),
        (
            AXOLOTL + "activation_offloading: true\nfsdp_version: 2\nfsdp_config: {offload_params: true}\n",
            {"layout.offload": "params"},
        ),
        (
            "distributed_type: MULTI_GPU\nnum_processes: 4\nmixed_precision: bf16\n"
            "parallelism_config: {parallelism_config_sp_size: 2}\n",
            {"layout.cp": 2},
        ),
    ],
)  # fmt: skip
def test_configs(text: str, expected: dict[str, Any]):
    assert_known(text, expected, "config.yaml")


def test_a_second_thing_on_the_host_is_told():
    text = AXOLOTL + "activation_offloading: true\nfsdp_version: 2\nfsdp_config: {offload_params: true}\n"
    assert any("activations go to the host besides" in told for told in read({"config.yaml": text}).warnings)


def test_every_second_layer_of_torchtitan():
    text = '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nsteps = 5\n'
    assert_known(text, {"layout.recompute": "block:16"}, "train.toml")
    staged = text + "[parallelism]\npipeline_parallel_degree = 2\n"
    assert "layout.recompute" in read({"train.toml": staged}).blocked


def test_tensors_are_split_where_a_plan_asks():
    text = "base_model: Qwen/Qwen3-8B\nsequence_len: 4096\nmicro_batch_size: 1\nfsdp_version: 2\n"
    given = {"cluster.accelerator": "h100-sxm", "cluster.count": 8}
    split = imported({"c.yaml": text + "tensor_parallel_size: 2\ncontext_parallel_size: 2\n"}, given)
    assert split.complete_plan is not None
    assert {name: split.complete_plan["layout"][name] for name in ("tp", "cp", "dp")} == {"tp": 2, "cp": 2, "dp": 2}
    assert split.complete_plan["layout"]["sequence_parallel"] is False
    whole = imported({"c.yaml": text}, given)
    assert whole.complete_plan is not None
    assert whole.complete_plan["layout"]["tp"] == 1
    old = imported({"c.yaml": text + "tensor_parallel_size: 2\n"}, {**given, "workload.software_version": "0.9"})
    assert [row.field for row in old.missing] == ["layout.tp"]
    plain = imported({"c.yaml": f"{V1}cp_size: 2\n"}, given)
    assert plain.complete_plan is not None
    assert (plain.complete_plan["workload"]["framework"], plain.complete_plan["layout"]["cp"]) == ("fsdp2", 2)
    refused = imported({"c.yaml": text + "tensor_parallel_size: 2\n"}, {**given, "layout.sequence_parallel": True})
    assert refused.refused is not None
    assert "whole sequences" in refused.refused
