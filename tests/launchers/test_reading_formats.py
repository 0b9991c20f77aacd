"""Files in the style of each program: values with their origin, what has no place in a Plan, contradictions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from launchers.reading.result import FilesReading
from launchers.reading.sets import read

LLAMAFACTORY = """\
model_name_or_path: meta-llama/Llama-3.1-8B
stage: dpo
pref_loss: sigmoid
finetuning_type: lora
quantization_bit: 4
double_quantization: false
lora_rank: 8
lora_target: q_proj,v_proj
cutoff_len: 2048
per_device_train_batch_size: 2
gradient_accumulation_steps: 4
bf16: true
deepspeed: configs/ds.json
learning_rate: 1e-4
made_up_key: 3
"""
DEEPSPEED = """\
{"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "bf16": {"enabled": "auto"},
 "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}
"""
SBATCH = """\
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gres=gpu:h100:8
GPUS=8
srun torchrun --nnodes $SLURM_NNODES --nproc_per_node $GPUS -m llamafactory.launcher sft.yaml
"""
MEGATRON = """\
#!/bin/bash
NODES=2
ARGS="--num-layers 12 --hidden-size 768 --num-attention-heads 12 --seq-length 1024 --max-position-embeddings 1024"
BATCH=(
    --micro-batch-size 4   # of one rank
    --global-batch-size $((NODES * 64))
    --vocab-size 50304
)
torchrun --nproc_per_node 8 --nnodes $NODES pretrain_gpt.py $ARGS ${BATCH[@]} --fp16 --tensor-model-parallel-size 2 \\
    --recompute-granularity full --recompute-method block --recompute-num-layers 3 --use-distributed-optimizer
"""
AXOLOTL = """\
base_model: NousResearch/Llama-3.2-1B
adapter: lora
lora_r: 32
lora_target_linear: true
datasets: [{path: a, type: alpaca}]
sequence_len: 4096
sample_packing: true
micro_batch_size: 2
gradient_accumulation_steps: 4
optimizer: adamw_bnb_8bit
bf16: auto
gradient_checkpointing: true
fsdp_version: 2
fsdp_config: {offload_params: true, reshard_after_forward: false}
plugins: [axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin]
"""
TITAN = """\
[model]
name = "llama3"
flavor = "8B"
converters = ["float8"]
[training]
local_batch_size = 2
seq_len = 8192
[parallelism]
tensor_parallel_degree = 2
data_parallel_replicate_degree = 2
[activation_checkpoint]
mode = "full"
"""
TUNE = """\
model: {_component_: torchtune.models.llama3_1.lora_llama3_1_8b, lora_rank: 8, lora_alpha: 16,
  lora_attn_modules: [q_proj, v_proj]}
checkpointer: {checkpoint_dir: /tmp/Meta-Llama-3.1-8B-Instruct/}
tokenizer: {max_seq_len: 2048}
dataset: {_component_: torchtune.datasets.alpaca_dataset, packed: true}
optimizer: {_component_: torch.optim.AdamW}
loss: {_component_: torchtune.modules.loss.CEWithChunkedOutputLoss}
batch_size: 2
gradient_accumulation_steps: 8
epochs: 1
dtype: bf16
enable_activation_checkpointing: true
"""


def values(found: FilesReading) -> dict[str, Any]:
    return {row.field: row.value for row in found.read}


def test_a_set_of_config_shards_and_job():
    found = read({"sft.yaml": LLAMAFACTORY, "ds.json": DEEPSPEED, "job.sbatch": SBATCH})
    assert found.plan == {
        "model": "meta-llama/Llama-3.1-8B",
        "workload": {
            "stage": "dpo", "method": "qlora", "seq_len": 2048, "micro_batch": 2, "global_batch": 128,
            "precision": "bf16", "lora": {"quantisation": "nf4-single", "rank": 8, "targets": "q_proj,v_proj"},
            "framework": "deepspeed",
        },
        "layout": {"zero_stage": 2, "offload": "optimizer", "dp": 16},
        "cluster": {"accelerator": "h100-sxm", "count": 16, "per_node": 8},
    }  # fmt: skip
    origins = {row.field: row.origin for row in found.read}
    assert origins["workload.lora.rank"] == "sft.yaml:7 lora_rank"
    assert origins["cluster.count"].startswith("job.sbatch:2 --nodes")
    assert not found.blocked
    unknown = [row.key for row in found.not_read if row.why == "not known here"]
    assert unknown == ["sft.yaml:15 made_up_key"]
    assert {row.field: row.value for row in found.assumed}["layout.recompute"] == "full"


def test_a_missing_deepspeed_file_leaves_the_stage_open():
    found = read({"sft.yaml": LLAMAFACTORY})
    assert "layout.zero_stage" in found.blocked
    assert list(found.refers) == ["configs/ds.json"]
    assert "global_batch" not in found.plan["workload"]
    assert "layout.zero_stage" not in read({"sft.yaml": LLAMAFACTORY}, {"layout.zero_stage": 3}).blocked


def test_devices_that_are_given_make_the_global_batch():
    found = read({"sft.yaml": LLAMAFACTORY, "ds.json": DEEPSPEED}, {"cluster.count": 4})
    assert found.plan["workload"]["global_batch"] == 2 * 4 * 4
    assert "cluster" not in found.plan


def test_contradictions_are_told_and_neither_is_taken():
    shards = DEEPSPEED.replace('gpu": "auto"', 'gpu": 3')
    found = read({"sft.yaml": LLAMAFACTORY, "ds.json": shards})
    assert "micro_batch" not in found.plan["workload"]
    assert "workload.micro_batch" in found.blocked
    assert any("micro_batch" in text and "2" in text and "3" in text for text in found.warnings)


def test_a_batch_that_is_not_the_product_is_told():
    shards = DEEPSPEED.replace('"train_batch_size": "auto"', '"train_batch_size": 100')
    found = read({"sft.yaml": LLAMAFACTORY, "ds.json": shards, "job.sbatch": SBATCH})
    assert any(text.startswith("workload.global_batch") and "128" in text for text in found.warnings)


def test_megatron_arguments_of_arrays_and_text():
    found = read({"train.sh": MEGATRON})
    read_values = values(found)
    assert read_values["workload.global_batch"] == 128
    assert read_values["layout.recompute"] == "block:3"
    assert (read_values["layout.tp"], read_values["layout.dp"], read_values["cluster.count"]) == (2, 8, 16)
    assert (read_values["layout.zero_stage"], read_values["workload.precision"]) == (1, "fp16")
    assert not found.blocked
    from knowledge.models.catalogue import architecture

    model = architecture(found.plan["model"])
    assert 0.9e8 < model.parameters() < 1.3e8 if callable(model.parameters) else 0.9e8 < model.parameters < 1.3e8
    Plan.parse(found.plan)


def test_arguments_that_depend_on_a_condition_are_not_taken_for_absent():
    text = 'if [ -n "$FP8" ]; then\nEXTRA=(--fp8-format hybrid)\nfi\n' + MEGATRON.replace(
        "--fp16", "--bf16 ${EXTRA[@]} --x 1"
    )
    found = read({"train.sh": text})
    assert "workload.precision" in found.blocked or "workload" in found.blocked
    assert values(found).get("workload.precision") is None


def test_axolotl():
    found = read({"a.yml": AXOLOTL}, {"cluster.count": 4})
    expected = {
        "workload.method": "lora", "workload.lora.targets": "all-linear", "workload.optimizer": "adamw_8bit",
        "layout.zero_stage": 2, "layout.offload": "params", "layout.recompute": "full", "workload.fused_loss": True,
        "workload.framework": "axolotl", "workload.global_batch": 32, "workload.packing": True,
    }  # fmt: skip
    read_values = values(found)
    assert {name: read_values.get(name) for name in expected} == expected


def test_torchtitan_toml():
    read_values = values(read({"t.toml": TITAN}, {"cluster.count": 16}))
    expected = {
        "model": "meta-llama/Llama-3.1-8B", "workload.precision": "fp8", "layout.tp": 2, "layout.dp": 8,
        "layout.shard_group": 4, "layout.recompute": "full", "workload.global_batch": 16,
    }  # fmt: skip
    assert {name: read_values.get(name) for name in expected} == expected


def test_torchtune_yaml():
    found = read({"t.yaml": TUNE})
    read_values = values(found)
    assert read_values["model"] == "Meta-Llama-3.1-8B-Instruct"
    assert read_values["workload.lora.targets"] == "q_proj,v_proj"
    assert (read_values["accumulation"], read_values["workload.fused_loss"]) == (8, True)
    assert not found.blocked


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("vllm serve meta-llama/Llama-3.1-8B -tp 2 --max-num-seqs=64 --kv-cache-dtype fp8 --enforce-eager",
         {"layout.tp": 2, "workload.max_batch": 64, "workload.kv_dtype": "fp8", "workload.cuda_graph": False}),
        ("python -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-8B --quantization awq",
         {"model": "Qwen/Qwen3-8B", "workload.weight_dtype": "awq", "workload.engine": "vllm"}),
        ("accelerate launch --num_processes 8 --num_machines 1 --use_deepspeed --zero_stage 3 train.py",
         {"cluster.count": 8, "layout.zero_stage": 3, "workload.framework": "deepspeed"}),
        ("FORCE_TORCHRUN=1 NNODES=2 NPROC_PER_NODE=4 llamafactory-cli train --stage sft --finetuning_type full "
         "--model_name_or_path a/b --cutoff_len 512 --per_device_train_batch_size 1",
         {"cluster.count": 8, "cluster.per_node": 4, "workload.method": "full", "workload.seq_len": 512}),
        ("trl dpo --model_name_or_path a/b --per_device_train_batch_size 2 --use_peft --lora_r 8",
         {"workload.stage": "dpo", "workload.method": "lora", "workload.lora.rank": 8}),
        ("tune run --nproc_per_node 4 lora_finetune_distributed --config my.yaml", {"cluster.count": 4}),
        ("torchrun --standalone --nproc_per_node 8 -m torchtitan.train --module llama3 --config llama3_8b "
         "--training.local_batch_size 1 --training.seq_len 4096 activation_checkpoint:full",
         {"workload.micro_batch": 1, "workload.seq_len": 4096, "layout.recompute": "full", "cluster.count": 8}),
    ],
)  # fmt: skip
def test_command_lines(command: str, expected: dict[str, Any]):
    read_values = values(read({"command": command}))
    assert {name: read_values.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("finetuning_type: oft", "workload.method"),
        ("quantization_bit: 8", "workload.method"),
        ("optim: shampoo", "workload.optimizer"),
        ("per_device_train_batch_size: two", "workload.micro_batch"),
        ("cutoff_len: -1", "workload.seq_len"),
        ("pref_loss: hinge", "workload.stage"),
        ("model_name_or_path: ${oc.env:MODEL}", "model"),
    ],
)
def test_words_without_a_counterpart_block_their_field(line: str, field: str):
    key = line.partition(":")[0]
    kept = [row for row in LLAMAFACTORY.splitlines() if not row.startswith(f"{key}:")]
    found = read({"sft.yaml": "\n".join([*kept, line]), "ds.json": DEEPSPEED})
    assert field in found.blocked
    assert field not in values(found)


@pytest.mark.parametrize("text", ["", "just words", "a: 1\nb: 2", "{", "\0", "[1, 2]", "apiVersion: v1\nkind: Pod"])
def test_what_is_no_config_is_refused(text: str):
    with pytest.raises(PlanError):
        read({"x.yaml": text})


names = st.sampled_from([line.split(":")[0] for line in LLAMAFACTORY.splitlines()])
anything = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.lists(st.integers())


@settings(max_examples=examples(60), deadline=None)
@given(st.dictionaries(names, anything))
def test_any_values_are_read_or_left(changes: dict[str, Any]):
    import json

    base = {"model_name_or_path": "a/b", "cutoff_len": 1024, "finetuning_type": "lora"}
    text = json.dumps(base | changes, allow_nan=False, default=str) if not _has_nan(changes) else None
    if text is None:
        return
    try:
        found = read({"sft.json": text})
    except PlanError:
        return
    Plan.parse({"model": "any"} | found.plan)


def _has_nan(changes: dict[str, Any]) -> bool:
    return any(
        isinstance(value, float) and (value != value or value in (float("inf"), float("-inf")))
        for value in changes.values()
    )


def test_gpt_neox_by_its_dimensions_in_braces() -> None:
    text = """{"pipe_parallel_size": 0, "model_parallel_size": 2, "num_layers": 12, "hidden_size": 768,
    "num_attention_heads": 12, "seq_length": 2048, "pos_emb": "rotary", "no_weight_tying": true,
    "train_micro_batch_size_per_gpu": 4, "checkpoint_activations": true, "zero_optimization": {"stage": 1},
    "fp16": {"enabled": true}}"""
    reading = read({"125M.yml": text})
    assert reading.formats == {"125M.yml": "GPT-NeoX YAML"}
    assert reading.plan["layout"] | {"pp": 1, "tp": 2} == reading.plan["layout"]
    # 50257 words for two devices in pieces of 128.
    assert reading.plan["model"]["vocab_size"] == 50432


def test_llm_foundry_by_its_dimensions() -> None:
    text = """
max_seq_len: 2048
model: {name: mpt_causal_lm, d_model: 768, n_heads: 12, n_layers: 12, expansion_ratio: 4, vocab_size: 50368}
global_train_batch_size: 256
device_train_microbatch_size: 16
max_duration: 4800ba
precision: amp_bf16
train_loader: {name: text}
fsdp_config: {sharding_strategy: FULL_SHARD}
"""
    model = read({"mpt.yaml": text}).plan["model"]
    assert (model["intermediate_size"], model["vocab_size"], model["tie_word_embeddings"]) == (3072, 50368, True)


def test_what_a_command_that_nobody_knows_hands_on_is_read() -> None:
    train = "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen2.5-7B --bf16 --max_steps 5"
    assert read({"go.sh": f"rjob submit --gpu=8 -- bash -c '{train}'\n"}).plan["model"] == "Qwen/Qwen2.5-7B"


def test_a_config_stands_on_all_that_it_names_and_the_last_one_wins() -> None:
    base = "policy: {model_name: Qwen/Qwen3-8B, train_global_batch_size: 64, train_micro_batch_size: 4}\n"
    base += "grpo: {num_generations_per_prompt: 8, num_prompts_per_step: 8}\n"
    files = {
        "own.yaml": "defaults:\n  - ../base/above.yaml\n  - ../models/other.yaml\ngrpo: {num_prompts_per_step: 16}\n",
        "above.yaml": "defaults: base.yaml\npolicy: {train_micro_batch_size: 2}\n",
        "base.yaml": base,
        "other.yaml": "policy:\n  model_name: Qwen/Qwen3-4B\n",
    }
    plan = read(files).plan
    assert plan["model"] == "Qwen/Qwen3-4B"
    assert plan["workload"]["micro_batch"] == 2


def test_a_source_that_cannot_be_parsed_is_as_if_it_were_not_given() -> None:
    command = "accelerate launch --num_processes 8 train.py --model_name_or_path Qwen/Qwen3-0.6B"
    files = {"run.sh": command + " --per_device_train_batch_size 1 --max_length 512 --bf16", "train.py": "def :"}
    found = read(files)
    assert found.plan["model"] == "Qwen/Qwen3-0.6B"
    assert any("not readable Python" in row for row in found.warnings)
    with pytest.raises(PlanError, match="not readable Python"):
        read({"train.py": "def :\n"})
