"""Configs of programs for which nothing is written are told by name, and unknown words stop the verdict."""

from __future__ import annotations

from typing import Any

import pytest

from launchers.reading.sets import read
from planner.files.importing import imported

NEOX = """
{
  "pipe-parallel-size": 2, "model-parallel-size": 2, "num-layers": 32, "hidden-size": 4096,
  "seq-length": 2048, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8,
  "checkpoint-activations": true, "zero_optimization": {"stage": 1}, "optimizer": {"type": "Adam"},
  "fp16": {"enabled": true}, "train-iters": 1000, "lr-decay-style": "cosine",
}
"""
NANOTRON = """
model:
  dtype: bfloat16
  model_config: {hidden_size: 2048, intermediate_size: 11008, num_attention_heads: 16, num_hidden_layers: 36,
                 num_key_value_heads: 4, vocab_size: 128256, tie_word_embeddings: true, hidden_act: silu}
optimizer: {zero_stage: 1, optimizer_factory: {name: adamW}}
parallelism: {dp: 2, tp: 2, pp: 1, tp_mode: REDUCE_SCATTER, recompute_layer: true}
tokens: {micro_batch_size: 3, batch_accumulation_per_replica: 4, sequence_length: 4096, train_steps: 100}
"""
PRIME = """
max_steps = 20
[deployment]
num_train_gpus = 2
[model]
name = "Qwen/Qwen3-0.6B"
[data]
seq_len = 1024
batch_size = 64
micro_batch_size = 1
[optim]
lr = 1e-5
"""
FOUNDRY = """
variables: {max_seq_len: 4096}
max_seq_len: ${variables.max_seq_len}
model: {name: hf_causal_lm, pretrained_model_name_or_path: meta-llama/Llama-3.1-8B}
train_loader: {name: finetuning, dataset: {hf_name: org/data}}
optimizer: {name: decoupled_adamw}
global_train_batch_size: 64
device_train_microbatch_size: 2
precision: amp_bf16
max_duration: 2ep
fsdp_config: {sharding_strategy: FULL_SHARD, activation_checkpointing: true}
"""
VERL = """python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.max_prompt_length=512 \\
  data.max_response_length=1024 actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct \\
  actor_rollout_ref.actor.ppo_mini_batch_size=256 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 \\
  actor_rollout_ref.rollout.n=5 actor_rollout_ref.actor.fsdp_config.param_offload=True \\
  actor_rollout_ref.rollout.gpu_memory_utilization=0.6 trainer.n_gpus_per_node=8 trainer.nnodes=2 $@
"""
RL = """
policy: {model_name: meta-llama/Llama-3.1-8B, train_global_batch_size: 32, train_micro_batch_size: 1,
         max_total_sequence_length: 1024, precision: bfloat16,
         dtensor_cfg: {enabled: true, tensor_parallel_size: 2, activation_checkpointing: true}}
sft: {max_num_epochs: 1}
cluster: {gpus_per_node: 8, num_nodes: 1}
"""
AUTOMODEL = """
step_scheduler: {global_batch_size: 64, local_batch_size: 8}
model: {pretrained_model_name_or_path: meta-llama/Llama-3.1-8B}
distributed: {strategy: fsdp2, tp_size: 2, cp_size: 1}
packed_sequence: {packed_sequence_size: 4096}
peft: {_target_: nemo_automodel.components._peft.lora.PeftConfig, dim: 8, alpha: 32}
"""
OPENRLHF = """read -r -d '' training_commands <<EOF
openrlhf.cli.train_ppo_ray --actor.num_nodes 1 --actor.num_gpus_per_node 8 --train.colocate_all --vllm.enable_sleep \\
  --vllm.gpu_memory_utilization 0.5 --algo.advantage.estimator group_norm --rollout.n_samples_per_prompt 8 \\
  --actor.model_name_or_path Qwen/Qwen2.5-7B-Instruct --train.batch_size 128 --train.micro_batch_size 4 \\
  --data.max_len 4096 --ds.zero_stage 3 --actor.gradient_checkpointing_enable
EOF
ray job submit -- python3 -m $training_commands
"""
SWIFT = """NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen3-30B-A3B-Instruct-2507 --expert_model_parallel_size 8 \\
  --micro_batch_size 1 --global_batch_size 16 --max_length 8192 --packing true --tuner_type lora --lora_rank 16
"""
STACK = """servingEngineSpec:
  modelSpec:
    - {name: llama, repository: vllm/vllm-openai, tag: v0.33.0, modelURL: meta-llama/Llama-3.1-70B, replicaCount: 2,
       requestGPU: 4, vllmConfig: {tensorParallelSize: 4, maxModelLen: 8192, extraArgs: [--kv-cache-dtype, fp8]}}
"""
VERL_SFT = """torchrun --nnodes=1 --nproc_per_node=8 -m verl.trainer.sft_trainer data.train_batch_size=64 \\
  data.micro_batch_size_per_gpu=2 data.max_length=4096 engine=fsdp model.path=Qwen/Qwen2.5-7B-Instruct
"""
PRIME_RL = """max_steps = 100
seq_len = 4096
[model]
name = "Qwen/Qwen3-8B"
[orchestrator]
batch_size = 256
group_size = 16
[deployment]
num_train_gpus = 4
num_infer_gpus = 4
"""
SLIME = """ray job submit -- python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 --colocate \\
  --hf-checkpoint Qwen/Qwen3-4B --ref-load /root/Qwen3-4B_torch_dist --rollout-batch-size 32 --n-samples-per-prompt 8 \\
  --rollout-max-context-len 9216 --rollout-max-response-len 8192 --num-rollout 3000 --global-batch-size 128 \\
  --tensor-model-parallel-size 2 --sequence-parallel --use-dynamic-batch-size --max-tokens-per-gpu 9216 \\
  --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 --advantage-estimator grpo \\
  --sglang-mem-fraction-static 0.7 --accumulate-allreduce-grads-in-fp32 --attention-backend flash
"""
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "neox.yml": (NEOX, "GPT-NeoX YAML", {
        "workload.framework": "megatron-deepspeed", "layout.pp": 2, "layout.tp": 2, "layout.zero_stage": 1,
        "layout.recompute": "full", "workload.precision": "fp16", "workload.seq_len": 2048, "workload.micro_batch": 4,
    }),
    "nano.yaml": (NANOTRON, "nanotron YAML", {
        "layout.tp": 2, "layout.dp": 2, "layout.recompute": "full", "workload.global_batch": 24, "cluster.count": 4,
        "layout.sequence_parallel": True,
    }),
    "sft.toml": (PRIME, "prime-rl TOML", {"model": "Qwen/Qwen3-0.6B", "cluster.count": 2, "workload.global_batch": 64}),
    "foundry.yaml": (FOUNDRY, "LLM Foundry YAML", {
        "workload.seq_len": 4096, "workload.stage": "sft", "layout.zero_stage": 3, "workload.micro_batch": 2,
    }),
    "grpo.sh": (VERL, "verl command line", {
        "workload.stage": "grpo", "workload.group_size": 5, "workload.global_batch": 1280, "cluster.count": 16,
        "layout.offload": "params", "workload.rollout": "colocated", "workload.engine_share": 0.6,
    }),
    "rlhf.sh": (OPENRLHF, "OpenRLHF command", {
        "workload.stage": "grpo", "workload.group_size": 8, "workload.micro_batch": 4, "layout.zero_stage": 3,
        "layout.recompute": "full", "workload.engine_share": 0.5, "workload.rollout": "colocated", "cluster.count": 8,
    }),
    "swift.sh": (SWIFT, "Megatron-SWIFT command", {
        "workload.method": "lora", "layout.ep": 8, "workload.seq_len": 8192, "cluster.count": 8, "layout.zero_stage": 1,
    }),
    "values.yaml": (STACK, "vLLM production stack values: vLLM command", {
        "layout.tp": 4, "workload.max_context": 8192, "workload.kv_dtype": "fp8", "cluster.count": 8,
    }),
    "sft.sh": (VERL_SFT, "verl SFT command", {
        "workload.stage": "sft", "workload.global_batch": 64, "workload.micro_batch": 2, "cluster.count": 8,
    }),
    "rl.toml": (PRIME_RL, "prime-rl TOML", {
        "workload.stage": "grpo", "workload.global_batch": 256, "workload.rollout": "separate", "cluster.count": 4,
        "layout.offload": "optimizer+activations", "layout.recompute": "full", "workload.compile": True,
    }),
    "slime.sh": (SLIME, "slime command", {
        "workload.framework": "slime", "workload.stage": "grpo", "workload.global_batch": 128, "workload.steps": 6000,
        "workload.micro_batch": 1, "workload.seq_len": 9216, "layout.tp": 2, "layout.zero_stage": 1,
        "layout.recompute": "full", "workload.engine_share": 0.7, "cluster.count": 8, "model": "Qwen/Qwen3-4B",
    }),
    "rl.yaml": (RL, "NeMo RL YAML", {"layout.tp": 2, "cluster.count": 8, "workload.stage": "sft"}),
    "auto.yaml": (AUTOMODEL, "NeMo AutoModel YAML", {
        "workload.method": "lora", "workload.lora.rank": 8, "layout.tp": 2,
    }),
}  # fmt: skip


def values(part: Any, prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in part.items():
        inner = isinstance(value, dict) and name != "model"
        found |= values(value, f"{prefix}{name}.") if inner else {f"{prefix}{name}": value}
    return found


@pytest.mark.parametrize("path", CASES)
def test_a_program_is_told_by_its_keys(path: str) -> None:
    text, title, expected = CASES[path]
    found = read({path: text})
    assert found.formats[path] == title
    told = {row.field: row.value for row in found.assumed} | values(found.plan)
    assert {name: told.get(name) for name in expected} == expected


def test_a_config_stands_on_the_one_that_its_defaults_name() -> None:
    run = "defaults: ../base.yaml\npolicy: {megatron_cfg: {enabled: true, tensor_model_parallel_size: 4}}\n"
    off = RL.replace("enabled: true, tensor", "enabled: false, tensor")
    layout = read({"base.yaml": off, "run.yaml": run}).plan["layout"]
    assert (layout["tp"], layout["zero_stage"]) == (4, 1)
    in_a_ring = read({"run.yaml": run, "base.yaml": off + "\ndefaults: run.yaml\n"})
    assert in_a_ring.plan["layout"]["tp"] == 4


@pytest.mark.parametrize(
    ("lines", "field", "value"),
    [
        ('optim_cpu_offload = false\nac_offloading = "None"', "layout.offload", "none"),
        ("fsdp_cpu_offload = true\noptim_cpu_offload = false", "layout.offload", "params+activations"),
        ("[trainer.model.ac]\nfreq = 2", "layout.recompute", None),
        ('ac = "None"', "layout.recompute", "none"),
        ('[orchestrator.algo]\ntype = "grpo"', "workload.stage", "grpo"),
        ('[[orchestrator.train.source]]\nalgo = {type = "opd"}', "workload.stage", None),
        ("full_offload = true\noptim_cpu_offload = false", "layout.offload", None),
        ("[trainer.model.lora]", "workload.method", "lora"),
    ],
)
def test_keys_that_say_a_field_together(lines: str, field: str, value: str | None) -> None:
    found = read({"rl.toml": f"{PRIME_RL}[trainer.model]\n{lines}\n"})
    assert values(found.plan).get(field) == value
    assert (field in found.blocked) == (value is None)


def test_a_switch_that_nothing_reads_is_no_size_of_one() -> None:
    megatron = "megatron_cfg: {enabled: true, fp8_cfg: {enabled: true}}, dtensor_cfg: {enabled: false"
    run = RL.replace("dtensor_cfg: {enabled: true", megatron)
    assert "workload.precision" in read({"rl.yaml": run}).blocked


def test_reduction_and_targets_of_automodel_are_read() -> None:
    named = AUTOMODEL.replace("dim: 8", 'dim: 8, target_modules: ["*.q_proj", "*.v_proj"]')
    low = named.replace("tp_size: 2", "tp_size: 2, mp_policy: {reduce_dtype: bfloat16}")
    assert values(read({"auto.yaml": named}).plan).get("workload.gradients") is None
    plan = values(read({"auto.yaml": low}).plan)
    assert (plan["workload.gradients"], plan["workload.lora.targets"]) == ("bf16", "q_proj,v_proj")


def test_a_megatron_run_of_verl_is_not_judged_as_fsdp() -> None:
    for words in ("--config-name=ppo_megatron_trainer.yaml", "model_engine=megatron"):
        found = read({"grpo.sh": VERL.replace("algorithm.adv", f"{words} algorithm.adv")})
        assert found.plan["workload"]["framework"] == "nemo-rl"
        assert any("Megatron-core" in text for text in found.warnings)


def test_a_script_without_training_is_not_judged() -> None:
    expand = "python expand.py --model_name_or_path meta-llama/Llama-3.1-8B --output_dir out --num_expand 8\n"
    assert "no argument of a training run" in read({"expand.sh": expand}).blocked["workload"]
    own = expand.replace("--num_expand 8", "--learning_rate 1e-4 --lora_r 8 --per_device_train_batch_size 1")
    assert read({"train.sh": own}).plan["workload"]["method"] == "lora"


def test_neox_is_no_deepspeed_file_and_asks_for_its_model() -> None:
    assert "vocabulary" in read({"neox.yml": NEOX}).blocked["model"]


def test_rows_of_answers_are_asked_for() -> None:
    """Several without padding are as long as their mean, which no file says, and at most as the longest; padded or
    packed by tokens they take what those do."""
    (row,) = read({"grpo.sh": VERL}).either
    assert (row.field, row.values, row.most) == ("workload.seq_len", (1536,), True)
    packed = read({"grpo.sh": VERL.rstrip() + " actor_rollout_ref.actor.use_dynamic_bsz=True\n"})
    told = {row.field: row.value for row in packed.assumed}
    assert told["workload.seq_len"] == 1536
    assert told["workload.micro_batch"] == 10


@pytest.mark.parametrize(
    ("key", "field"),
    [
        ("my_tensor_parallel_size: 4", "layout.tp"), ("extra_activation_checkpointing: true", "layout.recompute"),
        ("x_chunked_cross_entropy: true", "workload.fused_loss"), ("grpo_samples: 4", "workload.stage"),
    ],
)  # fmt: skip
def test_unknown_keys_of_what_decides_stop_the_verdict(key: str, field: str) -> None:
    config = "base_model: meta-llama/Llama-3.1-8B\nmicro_batch_size: 1\nsequence_len: 4096\nadapter: lora\n"
    assert field not in read({"axolotl.yml": config}).blocked
    assert "not known here" in read({"axolotl.yml": config + key}).blocked[field]
    assert "eval" not in str(read({"axolotl.yml": config + "my_eval_batch_size: 3"}).blocked)


def test_a_trainer_without_a_launch_is_not_taken_for_whole_replicas() -> None:
    trainer = "model_name_or_path: meta-llama/Llama-3.1-8B\nper_device_train_batch_size: 1\nnum_train_epochs: 1\n"
    row = next(row for row in read({"train.yaml": trainer}).either if row.field == "layout.zero_stage")
    assert (row.most, "accelerate" in row.why) == (True, True)
    assert "layout.zero_stage" not in read({"train.yaml": trainer}, {"cluster.count": 1}).blocked
    with_file = {"train.yaml": trainer, "ds.json": '{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}'}
    assert read(with_file).plan["layout"]["zero_stage"] == 3


def test_a_config_without_the_one_that_it_stands_on_is_not_judged() -> None:
    base = "policy: {model_name: Qwen/Qwen3-8B, train_global_batch_size: 64}\ngrpo: {num_prompts_per_step: 8}\n"
    over = "defaults: base.yaml\ndata: {shuffle: true}\n"
    middle = "defaults: middle.yaml\ncluster: {num_nodes: 2, gpus_per_node: 8}\n"
    assert "base.yaml" in read({"middle.yaml": over, "other.sh": "trl sft --model_name_or_path gpt2"}).refers
    assert "middle.yaml" in read({"top.yaml": middle}).blocked["workload"]
    plan = read({"base.yaml": base, "middle.yaml": over, "top.yaml": middle}).plan
    assert (plan["model"], plan["cluster"]["count"]) == ("Qwen/Qwen3-8B", 16)


def test_a_script_takes_in_what_it_sources() -> None:
    main = """
DIR="$(cd -- "$(dirname -- "$0")" && pwd)"
source "${DIR}/models/8b.sh"
python run.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 ${MODEL_ARGS[@]} \\
  --hf-checkpoint $BASE/Qwen3-8B --rollout-batch-size 16 --n-samples-per-prompt 8 --tensor-model-parallel-size 2
"""
    model = "MODEL_ARGS=(--num-layers 36 --hidden-size 4096 --ffn-hidden-size 12288 --num-attention-heads 32)"
    assert "models/8b.sh" in read({"run.sh": main}).refers
    reading = read({"run.sh": main, "models/8b.sh": model})
    assert not any("only where it runs" in why for why in reading.blocked.values())
    # The end of a path says the checkpoint, wherever its folder is.
    assert read({"run.sh": main.replace("${MODEL_ARGS[@]}", "")}).plan["model"] == "Qwen/Qwen3-8B"


def test_a_job_that_starts_nothing_known_is_not_judged() -> None:
    job = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gres=gpu:8\nsrun ./my_program --hidden 4096\n"
    assert "starts no program" in read({"job.sbatch": job}).blocked["workload"]


LEARNERS = """
python mason.py --num_nodes 2 --gpus 8 -- source setup.sh \\&\\& python open_instruct/grpo_fast.py --beta 0.0 \\
  --model_name_or_path allenai/OLMo-2-1124-13B --num_unique_prompts_rollout 48 --num_samples_per_prompt_rollout 16 \\
  --max_prompt_token_length 2048 --response_length 2048 --pack_length 8192 --deepspeed_stage 3 \\
  --per_device_train_batch_size 1 --num_learners_per_node 8 4 --vllm_num_engines 4
"""
TULU = """
python mason.py --num_nodes 4 --gpus 8 -- accelerate launch --num_processes 8 --use_deepspeed --zero_stage 3 \\
  open_instruct/dpo_tune_cache.py --model_name_or_path allenai/Llama-3.1-Tulu-3-8B-SFT --max_seq_length 2048 \\
  --per_device_train_batch_size 1 --gradient_accumulation_steps 4 --num_epochs 1 --loss_type dpo_norm --beta 5 \\
  --gradient_checkpointing --with_tracking
"""


def test_open_instruct_is_read_behind_what_submits_it() -> None:
    plan = read({"grpo.sh": LEARNERS}).plan
    assert plan["cluster"]["count"] == 12
    training = plan["workload"]
    assert (training["stage"], training["rollout"], training["global_batch"]) == ("grpo", "separate", 768)
    assert (training["group_size"], training["response_len"], plan["layout"]["zero_stage"]) == (16, 2048, 3)
    assumed = {row.field: row.value for row in read({"grpo.sh": LEARNERS}).assumed}
    assert (assumed["workload.seq_len"], assumed["workload.micro_batch"]) == (4096, 2)
    halves = read({"grpo.sh": LEARNERS.replace("--beta", "--num_mini_batches 2 --beta")}).plan
    assert halves["workload"]["global_batch"] == 384
    plan = read({"dpo.sh": TULU}).plan
    assert plan["cluster"]["count"] == 32
    assert (plan["workload"]["stage"], plan["workload"]["global_batch"], plan["workload"]["epochs"]) == ("dpo", 128, 1)


def test_a_trainer_of_open_instruct_that_is_not_known_is_asked_for() -> None:
    assert "workload.stage" in read({"a.sh": LEARNERS.replace("grpo_fast", "rejection")}).blocked


@pytest.mark.parametrize(
    "start",
    [
        "apptainer exec --nv --env CACHE=/tmp/vllm images/my-engine.sif /opt/entry.sh",
        "./serve.sh",
    ],
)
def test_a_server_in_a_wrapper_of_ones_own_is_told_by_its_options(start: str) -> None:
    text = f"#!/bin/bash\n{start} --model Qwen/Qwen3-32B --tensor-parallel-size 4 --gpu-memory-utilization 0.8\n"
    plan = read({"serve.sh": text}).plan
    assert plan["model"] == "Qwen/Qwen3-32B"
    assert (plan["workload"]["engine"], plan["layout"]["tp"]) == ("vllm", 4)


PYTHON = """
import os
from pathlib import Path
from transformers import AutoModelForCausalLM
from peft import LoraConfig
from trl import SFTConfig, SFTTrainer

ROOT = Path(__file__).parent
MODEL = ROOT / "models" / "gemma-2-2b-it"
SIZES = {"small": {"batch": 4}}

def adapters(r: int = 32, alpha=16):
    return LoraConfig(r=r, lora_alpha=alpha, target_modules=["q_proj"])

def settings(args, size="small", length=1024):
    return SFTConfig(output_dir=f"out/{size}", max_length=length, per_device_train_batch_size=SIZES[size]["batch"],
                     gradient_accumulation_steps=16 // 4, num_train_epochs=int(os.environ.get("EPOCHS", "2")),
                     gradient_checkpointing=args.checkpoint or True, bf16=True)

model = AutoModelForCausalLM.from_pretrained(MODEL)
trainer = SFTTrainer(model, args=settings(None, length=2048), peft_config=adapters(r=8))
"""


def test_values_of_a_python_script_are_followed_through_functions_and_arithmetic() -> None:
    plan = read({"train.py": PYTHON}).plan
    training = plan["workload"]
    assert plan["model"].endswith("models/gemma-2-2b-it")
    assert (training["lora"]["rank"], training["lora"]["alpha"]) == (8, 16.0)
    assert (training["seq_len"], training["micro_batch"], training["epochs"]) == (2048, 4, 2)


def test_a_parameter_with_several_values_is_not_known() -> None:
    twice = PYTHON + "\nother = settings(None, length=4096)\n"
    assert "workload.seq_len" in read({"train.py": twice}).blocked


BRANCHES = """
from dataclasses import dataclass
import torch
from peft import LoraConfig
from transformers import BitsAndBytesConfig
from trl import GRPOConfig, GRPOTrainer

@dataclass
class Config:
    model: str = "Qwen/Qwen2.5-1.5B-Instruct"
    packed: bool = False

cfg = Config()
loading = {"quantization_config": BitsAndBytesConfig(load_in_4bit=True)} if cfg.packed else {}
if cfg.packed:
    extra = BitsAndBytesConfig(load_in_8bit=True)
args = GRPOConfig(per_device_train_batch_size=8, num_generations=8, max_completion_length=256, bf16=True)
GRPOTrainer(model=cfg.model, args=args, peft_config=LoraConfig(r=8))
"""


def test_branches_that_known_values_do_not_take_are_passed_and_a_trainer_names_its_model() -> None:
    plan = read({"train.py": BRANCHES}).plan
    assert (plan["model"], plan["workload"]["method"]) == ("Qwen/Qwen2.5-1.5B-Instruct", "lora")
    packed = read({"train.py": BRANCHES.replace("packed: bool = False", "packed: bool = True")})
    assert packed.plan["workload"].get("method") != "lora"


TRAINER = """
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments
tokenizer = AutoTokenizer.from_pretrained("meta-llama/Llama-2-7b-hf")
model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf")
rows = data.map(lambda row: tokenizer(row["text"], truncation=True, max_length=128))
Trainer(model=model, args=TrainingArguments(per_device_train_batch_size=4, bf16=True), train_dataset=rows)
"""


def test_rows_of_a_trainer_are_as_long_as_the_tokenizer_cuts_them() -> None:
    assert read({"train.py": TRAINER}).plan["workload"]["seq_len"] == 128
    uncut = read({"train.py": TRAINER.replace(", truncation=True, max_length=128", "")})
    assert "at no length" in uncut.blocked["workload.seq_len"]


SECTIONS = """
model: {name: Qwen/Qwen3-8B, trust_remote_code: true}
peft_config: {r: 16, alpha: 32, target_modules: [q_proj, v_proj]}
training: {training_args: {per_device_train_batch_size: 2, gradient_accumulation_steps: 4, bf16: true}}
data: {max_seq_length: 2048}
evaluation: {per_device_train_batch_size: 64}
"""


def test_the_trainers_words_in_sections_of_ones_own_are_read() -> None:
    found = read({"own.yaml": SECTIONS})
    plan = found.plan
    assert (plan["model"], plan["workload"]["seq_len"], plan["workload"]["micro_batch"]) == ("Qwen/Qwen3-8B", 2048, 2)
    assert (plan["workload"]["lora"]["rank"], plan["workload"]["lora"]["targets"]) == (16, "q_proj,v_proj")
    assert any("layout of its own" in text for text in found.warnings)
    several = read(
        {"own.yaml": SECTIONS.replace("r: 16", "r: [16, 32]").replace("name: Qwen/Qwen3-8B", "name: [a/b, c/d]")}
    )
    assert {"model", "workload.lora.rank"} <= set(several.blocked)


def test_a_deepspeed_file_of_a_folder_made_at_run_time_is_asked_for_by_its_name() -> None:
    text = (
        'RUN="out/$(date +%s)"\nDS="$RUN/zero3.json"\ntorchrun --nproc_per_node 8 train.py --deepspeed "$DS" '
        "--model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 1 --bf16 true --max_length 2048\n"
    )
    assert "zero3.json" in read({"train.sh": text}).refers
    together = read({"train.sh": text, "zero3.json": '{"zero_optimization": {"stage": 3}}'})
    assert together.plan["layout"]["zero_stage"] == 3


def test_prompt_and_answer_of_swift_are_two_lengths() -> None:
    for start in ("swift rlhf", "megatron rlhf"):
        text = (
            f"NPROC_PER_NODE=8 {start} --rlhf_type grpo --model Qwen/Qwen3-8B --max_length 1024 --num_generations 8 "
            "--max_completion_length 512 --micro_batch_size 1 --global_batch_size 64 --gradient_accumulation_steps 1\n"
        )
        assert read({"grpo.sh": text}).plan["workload"]["seq_len"] == 1536


def test_rows_that_are_seldom_as_long_are_asked_about_where_they_have_no_room() -> None:
    grpo = """swift rlhf --rlhf_type grpo --model Qwen/Qwen3-8B --max_length 4096 --max_completion_length 28672 \\
      --num_generations 8 --per_device_train_batch_size 8 --gradient_accumulation_steps 1 --tuner_type full \\
      --use_vllm true --vllm_mode colocate"""
    devices = {"cluster.accelerator": "h100-sxm", "cluster.count": 8}
    (row,) = imported({"grpo.sh": f"NPROC_PER_NODE=8 {grpo} --deepspeed zero3"}, devices).missing
    assert row.field == "workload.seq_len"
    assert "GiB a device" in row.why
    said = devices | {"workload.seq_len": 32768}
    assert imported({"grpo.sh": f"NPROC_PER_NODE=8 {grpo} --deepspeed zero3"}, said).fits is False


def test_adapters_over_eight_bits_have_room_where_those_over_sixteen_have() -> None:
    config = "base_model: NousResearch/Llama-2-{size}-hf\nadapter: lora\nload_in_8bit: true\nsequence_len: 2048\n"
    config += "micro_batch_size: 1\nlora_r: 16\nlora_alpha: 32\nlora_target_linear: true\n"
    one = {"cluster.accelerator": "h100-sxm", "cluster.count": 1}
    assert imported({"lora.yml": config.format(size="7b")}, one).fits
    assert [row.field for row in imported({"lora.yml": config.format(size="70b")}, one).missing] == ["workload.method"]


def test_what_is_asked_says_what_hangs_on_it() -> None:
    devices = {"cluster.accelerator": "h100-sxm", "cluster.count": 8}
    trainer = "model_name_or_path: meta-llama/Llama-3.1-8B\nper_device_train_batch_size: 1\nmodel_max_length: 2048\n"
    (row,) = imported({"train.yaml": trainer}, devices).missing
    assert (row.field, "ZeRO-3 up to" in row.why) == ("layout.zero_stage", True)
    server = "llama-server -m Llama-3.3-70B-Instruct-Q4_K_M.gguf -c 8192 -ngl 60"
    home = {"cluster.accelerator": "rtx-3090", "cluster.count": 2}
    assert [row.field for row in imported({"serve.sh": server}, home).missing] == ["cluster.beside"]


@pytest.mark.parametrize(
    ("start", "experts"),
    [
        ("vllm serve {} --tensor-parallel-size 4", 1),
        ("vllm serve {} --tensor-parallel-size 4 --enable-expert-parallel", 4),
        ("python -m sglang.launch_server --model-path {} --tp 4", 1),
        ("python -m sglang.launch_server --model-path {} --tp 4 --moe-a2a-backend deepep", 4),
    ],
)
def test_experts_are_spread_where_the_server_is_told_to(start: str, experts: int) -> None:
    result = imported({"serve.sh": start.format("Qwen/Qwen3-30B-A3B")}, {"cluster.accelerator": "h100-sxm"})
    assert result.complete_plan is not None
    assert result.complete_plan["layout"]["ep"] == experts


@pytest.mark.parametrize("room", [2, 100, 1024, 1280, 32768])
def test_requests_that_nobody_said_fit_the_context(room: int) -> None:
    script = f"vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len {room}"
    plan = imported({"serve.sh": script}, {"cluster.accelerator": "h100-sxm"}).complete_plan
    assert plan is not None
    load = plan["workload"]
    assert load["input_len"] + load["output_len"] <= room
    assert min(load["input_len"], load["output_len"]) >= 1
    assert room < 1280 or (load["input_len"], load["output_len"]) == (1024, 256)


def test_a_loss_of_ones_own_has_no_verdict() -> None:
    config = """\
model: {_component_: torchtune.models.llama3_1.llama3_1_8b}
tokenizer: {_component_: torchtune.models.llama3.llama3_tokenizer, max_seq_len: 512}
checkpointer: {_component_: torchtune.training.FullModelHFCheckpointer, checkpoint_dir: /tmp/Meta-Llama-3.1-8B}
batch_size: 2
epochs: 1
gradient_accumulation_steps: 1
loss: {_component_: LOSS}
"""
    ours = {"cluster.accelerator": "h100-sxm", "cluster.count": 8}
    own = imported({"run.yaml": config.replace("LOSS", "first_loss.FIRSTLoss")}, ours)
    plain = imported({"run.yaml": config.replace("LOSS", "torch.nn.CrossEntropyLoss")}, ours)
    assert [row.field for row in own.missing] == ["workload.fused_loss"]
    assert not plain.missing


PREPARED = """
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, Trainer, TrainingArguments
packed = BitsAndBytesConfig(load_in_4bit=True)
model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf", quantization_config=packed)
model = get_peft_model(prepare_model_for_kbit_training(model), LoraConfig(r=8))
rows = data.map(lambda row: tokenizer(row["text"], truncation=True, max_length=128))
Trainer(model=model, args=TrainingArguments(per_device_train_batch_size=4, bf16=True), train_dataset=rows)
"""


def test_a_configuration_that_nothing_takes_packs_nothing() -> None:
    packed = read({"train.py": PREPARED}).plan["workload"]
    plain = read({"train.py": PREPARED.replace(", quantization_config=packed", "")}).plan["workload"]
    assert (packed["method"], packed.get("weights")) == ("qlora", None)
    # What prepares a model for packed weights holds all others in fp32.
    assert (plain["method"], plain["weights"]) == ("lora", "fp32")


PARSED = """
from dataclasses import dataclass, field
import transformers

@dataclass
class Arguments(transformers.TrainingArguments):
    optim: str = field(default="paged_adamw_32bit")
    gradient_accumulation_steps: int = field(default=4)
    model_max_length: int = field(default=512)

(arguments,) = transformers.HfArgumentParser(Arguments).parse_args_into_dataclasses()
model = transformers.AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf")
transformers.Trainer(model=model, args=arguments).train()
"""


@pytest.mark.parametrize(
    ("said", "optimizer", "accumulation"),
    [("", "paged_adamw", 4), (" --optim adamw_torch --gradient_accumulation_steps 2", "adamw", 2)],
)
def test_ones_own_class_of_arguments_has_its_own_defaults(said: str, optimizer: str, accumulation: int) -> None:
    run = f"torchrun --nproc_per_node 2 train.py --per_device_train_batch_size 1 --bf16 True{said}"
    plan = imported(
        {"run.sh": run, "train.py": PARSED}, {"cluster.accelerator": "h100-sxm", "layout.zero_stage": 0}
    ).plan
    assert plan["workload"]["optimizer"] == optimizer
    assert plan["workload"]["global_batch"] == 2 * accumulation
