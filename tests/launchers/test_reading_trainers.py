"""SkyRL, ROLL, AReaL and oat, whose words are those of others; ArcticTraining, OLMo and GPT-NeoX."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.errors import PlanError
from knowledge.models.catalogue import architecture
from launchers.reading.sets import read
from planner.files.importing import imported

SKYRL = """uv run --isolated --extra vllm -m skyrl.train.entrypoints.main_base data.train_data="['a']" \\
  trainer.policy.model.path=Qwen/Qwen2.5-7B-Instruct trainer.algorithm.advantage_estimator=rloo \\
  trainer.placement.policy_num_gpus_per_node=8 trainer.placement.policy_num_nodes=2 trainer.strategy=fsdp \\
  trainer.policy_mini_batch_size=64 trainer.micro_train_batch_size_per_gpu=1 trainer.max_prompt_length=512 \\
  generator.sampling_params.max_generate_length=1024 generator.n_samples_per_prompt=4 trainer.epochs=3 {more} $@
"""
ROLL = """
pretrain: Qwen/Qwen2.5-7B-Instruct
num_gpus_per_node: 8
prompt_length: 1024
response_length: 3072
num_return_sequences_in_group: 8
adv_estimator: reinforce
max_steps: 50
actor_train:
  model_args: {disable_gradient_checkpointing: false, dtype: bf16}
  training_args: {per_device_train_batch_size: 2, gradient_accumulation_steps: 8}
  strategy_args:
    strategy_name: megatron_train
    strategy_config: {tensor_model_parallel_size: 2, recompute_granularity: full}
  device_mapping: list(range(0,16))
actor_infer:
  strategy_args: {strategy_name: vllm, strategy_config: {gpu_memory_utilization: 0.6}}
  device_mapping: list(range(0,16))
"""
AREAL = """
total_train_epochs: 2
cluster: {n_nodes: 2, n_gpus_per_node: 8}
rollout: {backend: "sglang:d8"}
gconfig: {n_samples: 4, max_new_tokens: 1024}
actor:
  backend: "fsdp:d4c2"
  path: Qwen/Qwen2.5-1.5B-Instruct
  gradient_checkpointing: true
  dtype: bfloat16
  mb_spec: {max_tokens_per_mb: 4096}
  ppo_n_minibatches: 2
train_dataset: {batch_size: 64, max_length: 1024}
"""
OAT = """python train.py --critic_type drgrpo --gpus 8 --collocate --vllm_gpu_ratio 0.35 --bf16 \\
  --gradient-checkpointing --oracle math --pretrain Qwen/Qwen2.5-1.5B-Instruct --zero-stage {stage} --ref_offload \\
  --prompt_max_length 1024 --generate_max_length 3000 --num_samples 8 --train_batch_size 128 \\
  --train_batch_size_per_device 1
"""
ARCTIC = """
type: sft
micro_batch_size: 2
sequence_parallel_size: 2
model: {name_or_path: meta-llama/Llama-3.1-8B-Instruct, type: liger, attn_implementation: flash_attention_2}
deepspeed: {zero_optimization: {stage: 3, offload_optimizer: {device: cpu}}}
data: {sources: [org/data], max_length: 16_384}
"""
OLMO = """
model:
  {d_model: 4096, n_heads: 32, n_layers: 32, mlp_hidden_size: 22016, weight_tying: false, rope: true,
   include_bias: false, block_type: sequential, layer_norm_type: rms, activation_type: swiglu, flash_attention: true,
   max_sequence_length: 4096, vocab_size: 100278, embedding_size: 100352}
optimizer: {name: adamw}
global_train_batch_size: 1024
device_train_microbatch_size: 2
precision: amp_bf16
fsdp: {precision: mixed}
activation_checkpointing: one_in_four
max_duration: 1ep
"""
PYTHIA = """
{ "pipe-parallel-size": 1, "model-parallel-size": 2, "num-layers": 32, "hidden-size": 4096, "num-attention-heads": %d,
  "seq-length": 2048, "max-position-embeddings": 2048, "pos-emb": "rotary", "no-weight-tying": true,
  "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 2, "checkpoint-activations": true,
  "zero_optimization": {"stage": 1}, "optimizer": {"type": "Adam"}, "fp16": {"enabled": true}, "train-iters": 100,
  "tokenizer_type": "HFTokenizer", "vocab-file": "/data/20B_tokenizer.json" }
"""


def known(text: str, name: str) -> dict[str, Any]:
    reading = read({name: text}, {})
    return {row.field: row.value for row in (*reading.read, *reading.assumed)}


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("a.sh", SKYRL.format(more=""), {
            "model": "Qwen/Qwen2.5-7B-Instruct", "workload.stage": "grpo", "workload.global_batch": 256,
            "workload.micro_batch": 1, "workload.seq_len": 1536, "workload.rollout": "colocated", "cluster.count": 16,
            "workload.framework": "verl", "layout.zero_stage": 3, "workload.epochs": 3.0}),
        ("a.yaml", ROLL, {
            "workload.stage": "grpo", "workload.global_batch": 128, "workload.micro_batch": 2, "cluster.count": 16,
            "workload.seq_len": 4096, "layout.tp": 2, "layout.recompute": "full", "workload.framework": "nemo-rl",
            "workload.steps": 50}),
        ("a.yaml", AREAL, {
            "workload.stage": "grpo", "workload.rollout": "separate", "cluster.count": 8, "layout.cp": 2,
            "workload.global_batch": 128, "workload.seq_len": 2048, "workload.micro_batch": 2,
            "workload.group_size": 4, "workload.framework": "verl"}),
        ("a.sh", OAT.format(stage=3), {
            "workload.stage": "grpo", "workload.seq_len": 4024, "workload.global_batch": 128, "layout.zero_stage": 3,
            "workload.rollout": "colocated", "cluster.count": 8}),
        ("a.yaml", ARCTIC, {
            "workload.stage": "sft", "layout.cp": 2, "layout.zero_stage": 3, "layout.offload": "optimizer",
            "workload.fused_loss": True, "workload.seq_len": 16384, "accumulation": 1, "layout.recompute": "full"}),
        ("a.yaml", OLMO, {
            "workload.global_batch": 1024, "workload.micro_batch": 2, "layout.recompute": "block:8",
            "workload.seq_len": 4096, "layout.zero_stage": 3, "workload.framework": "fsdp1"}),
    ],
)  # fmt: skip
def test_what_a_file_says_is_what_its_program_would_do(name: str, text: str, wanted: dict[str, Any]) -> None:
    values = known(text, name)
    assert {field: values.get(field) for field in wanted} == wanted
    given = {"cluster.accelerator": "h100-sxm"} | ({} if "cluster.count" in values else {"cluster.count": 8})
    result = imported({name: text}, given)
    assert not result.missing
    assert result.fits is not None


def test_models_by_their_dimensions_have_the_parameters_of_the_published_ones() -> None:
    published = {(OLMO, "a.yaml"): "allenai/OLMo-2-1124-7B", (PYTHIA % 32, "a.yml"): "EleutherAI/pythia-6.9b"}
    for (text, name), checkpoint in published.items():
        counted = architecture(known(text, name)["model"]).parameters
        assert counted == pytest.approx(architecture(checkpoint).parameters, rel=2e-3)


def test_what_has_no_place_in_a_plan_is_asked_about() -> None:
    def asked(text: str, name: str = "a.sh") -> list[str]:
        result = imported({name: text}, {"cluster.accelerator": "h100-sxm", "cluster.count": 8})
        return [row.field for row in result.missing]

    own_critic = SKYRL.replace("=rloo", "=gae").format(more="trainer.placement.colocate_all=false")
    assert asked(own_critic) == ["workload.stage"]
    assert asked(OAT.format(stage=2)) == ["overrides.extra_models_gib"]
    assert asked(ARCTIC.replace("type: sft", "type: swiftkv"), "a.yaml") == ["workload.stage"]
    assert asked(PYTHIA % 36, "a.yml") == ["model"]
    assert asked(AREAL.replace("fsdp:d4c2", "megatron:(attn:d4t2|ffn:d2e4)"), "a.yaml") == [
        "layout.tp",
        "layout.pp",
        "layout.ep",
    ]
    ppo = """python3 -m openrlhf.cli.train_ppo_ray --actor_num_gpus_per_node 2 --critic_num_gpus_per_node 2 \\
      --actor_num_nodes 1 --pretrain OpenRLHF/Llama-3-8b-sft-mixture --colocate_actor_ref --bf16"""
    assert "workload.stage" in asked(ppo)
    process = """accelerate launch --config_file deepspeed_zero3.yaml examples/scripts/prm.py --num_train_epochs 1 \\
      --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 8 --max_length 2048 --bf16"""
    assert "workload.stage" in asked(process)
    megatron = """python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct \\
      actor_rollout_ref.actor.ppo_mini_batch_size=64 data.max_prompt_length=512 data.max_response_length=512 \\
      trainer.n_gpus_per_node=8 trainer.nnodes=1"""
    assert asked(megatron) == ["workload.micro_batch"]


def test_a_config_that_nothing_knows_and_that_names_a_known_one_stops_the_verdict() -> None:
    search = "train_settings: {tensor_parallel_sizes: auto, custom_config: base/a.yaml}\n"
    result = imported({"search.yaml": search, "a.yaml": OLMO}, {"cluster.accelerator": "h100-sxm", "cluster.count": 8})
    assert [row.field for row in result.missing] == ["workload"]
    assert "search.yaml" in result.missing[0].why


def test_adapters_in_pefts_own_words_are_no_full_training() -> None:
    text = """
model: Qwen/Qwen3-8B
per_device_train_batch_size: 2
gradient_accumulation_steps: 8
epochs: 10
learning_rate: 1.0e-5
r: 32
lora_alpha: 64
target_modules: [q_proj, v_proj]
max_seq_length: 2048
"""
    values = known(text, "a.yaml")
    assert (values["workload.method"], values["workload.lora.rank"], values["workload.epochs"]) == ("lora", 32, 10.0)
    assert values["workload.lora.targets"] == "q_proj,v_proj"
    some = read({"a.yaml": text + "layers_to_transform: [24, 25]\n"}, {})
    assert "workload.method" in some.blocked


_NEOX = (
    "{num_layers: 2, hidden_size: 1024, num_attention_heads: 8, seq_length: 512, pipe_parallel_size: 1, "
    "model_parallel_size: 1, no_weight_tying: true, use_bias_in_attn_linear: false%s}"
)


def test_the_gate_of_gpt_neox_1_is_eight_thirds_wide_and_its_config_alone_has_no_batch() -> None:
    found = read({"30B.yml": _NEOX % ", mlp_type: llama, activation: silu"})
    model = found.plan["model"]
    assert (model["mlp_gated"], model["intermediate_size"], model["mlp_bias"]) == (True, 2816, False)
    assert "workload.global_batch" in found.blocked
    whole = read({"30B.yml": _NEOX % ", train_micro_batch_size_per_gpu: 4, use_bnb_optimizer: true"})
    assert "workload.global_batch" not in whole.blocked
    assert whole.plan["workload"]["optimizer"] == "adamw_8bit"


def test_llamafactory_is_known_by_its_words_and_its_config_stands_first() -> None:
    command = (
        "torchrun --nproc_per_node 8 src/train.py --stage sft --finetuning_type lora "
        "--model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 1 --cutoff_len 4096 "
        "--sequence_parallel_size 4 --deepspeed ds.json --bf16\n"
    )
    files = {"run.sh": command, "train.py": "import os\n", "ds.json": '{"zero_optimization": {"stage": 3}}'}
    found = read(files)
    assert found.formats["run.sh"] == "LlamaFactory arguments"
    assert found.plan["workload"]["method"] == "lora"
    assert found.plan["layout"] | {"cp": 4, "zero_stage": 3} == found.plan["layout"]


def test_a_builder_of_torchtune_says_the_shape_whatever_its_folder_is_called() -> None:
    text = (
        "model: {_component_: torchtune.models.llama3_2.lora_llama3_2_1b}\nloss: {_component_: torch.nn.CE}\n"
        "checkpointer: {checkpoint_dir: /models/Llama-3-2-1b-Instruct}\nbatch_size: 1\ndtype: bf16\n"
        "tokenizer: {max_seq_len: 2048}\n"
    )
    assert read({"own.yaml": text}).plan["model"] == "Llama-3.2-1B-Instruct"


def test_a_run_of_mosaic_holds_its_config_and_its_devices() -> None:
    text = (
        "name: x\nimage: y\ncommand: composer train.py\ncompute: {gpus: 16}\nparameters:\n  max_seq_len: 4096\n"
        "  model: {name: hf_causal_lm, pretrained_model_name_or_path: meta-llama/Meta-Llama-3-8B}\n"
        "  global_train_batch_size: 64\n  device_train_microbatch_size: auto\n  precision: amp_bf16\n"
    )
    found = read({"mcli.yaml": text})
    assert (found.plan["model"], found.plan["cluster"]["count"]) == ("meta-llama/Meta-Llama-3-8B", 16)
    assert "--micro-batch" in found.blocked["workload.micro_batch"]


@pytest.mark.parametrize(("resources", "blocked"), [("agg_nodes: 2", False), ("prefill_nodes: 1", True)])
def test_a_recipe_of_srt_slurm_is_one_engine_or_two_pools(resources: str, blocked: bool) -> None:
    text = (
        "model: {path: Qwen/Qwen3-235B-A22B, container: c, precision: fp8}\n"
        f"resources: {{gpu_type: gb300, gpus_per_node: 4, {resources}}}\nbackend:\n  type: sglang\n"
        "  sglang_config: {aggregated: {tensor-parallel-size: 8, context-length: 9000}}\n"
        "benchmark: {isl: 8192, osl: 64}\n"
    )
    found = read({"recipe.yaml": text})
    assert found.plan["workload"]["input_len"] == 8192
    assert ("workload" in found.blocked) is blocked
    if not blocked:
        assert (found.plan["layout"]["tp"], found.plan["cluster"]["count"]) == (8, 8)


def test_what_a_mergekit_file_merges_is_no_training() -> None:
    with pytest.raises(PlanError, match="of no format"):
        read({"merge.yml": "base_model: Qwen/Qwen3-8B\nmerge_method: linear\nmodels: [{model: a}, {model: b}]\n"})


def test_a_source_that_takes_its_arguments_from_a_command_asks_for_it() -> None:
    source = (
        "import transformers\nfrom transformers import Trainer\n"
        "parser = transformers.HfArgumentParser(transformers.TrainingArguments)\nargs, = parser.parse_args()\n"
        'model = transformers.AutoModelForCausalLM.from_pretrained("Qwen/Qwen3-8B")\nTrainer(model=model, args=args)\n'
    )
    assert "command" in read({"train.py": source}).blocked["workload.micro_batch"]


def test_a_model_that_another_file_makes_may_have_adapters() -> None:
    source = (
        "from trl import SFTConfig, SFTTrainer\nfrom own import build\nmodel = build()\n"
        "args = SFTConfig(per_device_train_batch_size=1, max_length=512, bf16=True)\n"
        "SFTTrainer(model=model, args=args)\n"
    )
    assert "another file" in read({"train.py": source}).blocked["workload.method"]


def test_what_the_environment_may_say_is_what_the_file_says_otherwise() -> None:
    text = (
        "actor_rollout_ref: {model: {path: Qwen/Qwen3-8B}, actor: {ppo_mini_batch_size: 32}, rollout: {n: 8}}\n"
        "trainer: {n_gpus_per_node: '${oc.env:GPUS,8}', nnodes: 1}\nalgorithm: {adv_estimator: grpo}\n"
    )
    assert read({"ppo.yaml": text}).plan["cluster"]["count"] == 8


def test_how_many_nodes_a_range_is_is_told_by_the_devices() -> None:
    command = (
        "torchrun --nnodes 1:2 --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen3-8B --max_length 512 "
        "--per_device_train_batch_size 1 --bf16\n"
    )
    assert "nodes" in read({"run.sh": command}).blocked
    assert "nodes" not in read({"run.sh": command}, {"cluster.count": 16}).blocked


def test_a_template_is_told_from_a_config() -> None:
    with pytest.raises(PlanError, match="helm template"):
        read({"job.yaml": "{{- if .Values.on }}\nkind: Job\n{{- end }}\n"})


def test_a_job_that_writes_a_text_and_starts_nothing_known_trains_nothing() -> None:
    job = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gpus-per-node=8\nsrun all_reduce_perf -b 8M\n"
    found = read({"nccl.sbatch": job + "cat > summary.txt << EOF\nResults of $SLURM_JOB_ID\nEOF\n"})
    assert "starts no program" in found.blocked["workload"]
