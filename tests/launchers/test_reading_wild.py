"""What files of others leave to a question: how a run is started, how long rows are, files that stand elsewhere."""

from __future__ import annotations

import pytest

from launchers.reading.sets import read
from launchers.tables import table
from planner.files.importing import imported

_EIGHT = {"cluster.accelerator": "h100-sxm", "cluster.count": 8}
_MEGATRON = (
    "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 "
    "--micro-batch-size 4 --global-batch-size 256 --bf16 --tensor-model-parallel-size 2"
)


@pytest.mark.parametrize("path", [path for path in table("data/published") if "params" not in path])
def test_a_config_that_a_program_ships_is_known_by_its_name(path: str):
    command = "--config_file" if path.endswith(".yaml") else "--deepspeed"
    launch = f"accelerate launch {command} x/{path} train.py" if path.endswith(".yaml") else "torchrun train.py"
    tail = "" if path.endswith(".yaml") else f"--deepspeed x/{path}"
    text = f"{launch} --model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 1 --max_length 512 {tail}\n"
    found = read({"train.sh": text})
    assert not found.refers
    stage = table("data/published")[path].get("zero_optimization.stage")
    if stage is not None:
        assert found.plan["layout"]["zero_stage"] == stage
    if "autotp" not in path:
        assert "layout.zero_stage" not in found.blocked


def test_what_is_trained_on_whole_copies_without_room_may_be_sharded():
    source = (
        "from transformers import AutoModelForCausalLM, TrainingArguments\nfrom trl import SFTTrainer, SFTConfig\n"
        "args = SFTConfig(per_device_train_batch_size=1, max_length=4096, packing=True, bf16=True)\n"
        'SFTTrainer(model="meta-llama/Meta-Llama-3-8B", args=args)\n'
    )
    found = imported({"sft.py": source}, _EIGHT)
    assert found.fits is None
    assert [row.field for row in found.missing] == ["layout.zero_stage"]


def test_rows_that_are_not_packed_are_no_longer_than_the_data():
    text = (
        "base_model: meta-llama/Llama-3.1-8B\nadapter: lora\nlora_r: 16\nlora_alpha: 32\nsequence_len: 8192\n"
        "micro_batch_size: {}\ngradient_checkpointing: true\nsample_packing: {}\n"
        "datasets:\n  - path: x\n    type: alpaca\n"
    )
    packed = imported({"a.yml": text.format(64, "true")}, _EIGHT)
    loose = imported({"a.yml": text.format(64, "false")}, _EIGHT)
    assert packed.fits is False
    assert [row.field for row in loose.missing] == ["workload.seq_len"]
    assert imported({"a.yml": text.format(1, "false")}, _EIGHT).fits is True
    hopeless = imported(
        {"a.yml": text.format(64, "false").replace("8B", "405B").replace("adapter: lora\n", "")}, _EIGHT
    )
    assert hopeless.fits is False


def test_the_size_of_a_vocabulary_is_asked_for_only_where_it_decides():
    text = f"torchrun --nproc_per_node 8 pretrain_gpt.py {_MEGATRON} --tokenizer-type TokenizerFromFile\n"
    assert imported({"a.sh": text}, _EIGHT).fits is True
    wide = text.replace("--num-layers 24", "--num-layers 47").replace("--hidden-size 1024", "--hidden-size 8192")
    assert imported({"a.sh": wide}, _EIGHT).fits is False


@pytest.mark.parametrize("start", ["eval $CMD", "bash -c '$CMD'", 'bash -c "$CMD"'])
def test_commands_that_a_shell_makes_of_text(start: str):
    text = f'export CMD="torchrun --nproc_per_node 8 $HERE/pretrain_gpt.py {_MEGATRON} --vocab-size 50257"\n{start}\n'
    found = read({"a.sh": text})
    assert found.plan["layout"]["tp"] == 2
    assert not found.blocked


def test_a_script_that_converts_is_no_run():
    config = '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nlocal_batch_size = 1\nseq_len = 8192\nsteps = 10\n'
    convert = "torchrun --nproc_per_node 8 convert_checkpoint.py --job.config_file llama3.toml\n"
    assert "workload" in read({"convert.sh": convert, "llama3.toml": config}).blocked
    train = "torchrun --nproc_per_node 8 train.py --job.config_file llama3.toml\n"
    assert "workload" not in read({"train.sh": train, "llama3.toml": config}).blocked
    assert "workload" not in read({"train.sh": train + convert, "llama3.toml": config}).blocked


@pytest.mark.parametrize("key", ["dpo.beta", "orpo.alpha"])
def test_a_section_of_another_stage_leaves_the_stage_open(key: str):
    section, name = key.split(".")
    own = "base_model: Qwen/Qwen3-8B\nper_device_train_batch_size: 1\nlearning_rate: 1.0e-5\nmax_length: 512\n"
    text = f"{own}{section}:\n  {name}: 0.1\n"
    assert "workload.stage" in read({"a.yaml": text}).blocked


def test_verl_under_the_name_of_another_package():
    text = (
        "torchrun --standalone --nproc_per_node=4 -m mine.sft data.train_files=a.parquet data.max_length=2048 "
        "data.train_batch_size=128 data.micro_batch_size_per_gpu=4 "
        "model.partial_pretrain=models--Qwen--Qwen3-8B/snapshots/b968826d9c46\n"
    )
    found = imported({"a.sh": text}, {"cluster.accelerator": "h100-sxm"})
    assert found.plan["workload"]["framework"] == "verl"
    assert found.fits is not None


@pytest.mark.parametrize(("strategy", "stage"), [("FULL_SHARD", 3), ("SHARD_GRAD_OP", 2)])
def test_oumi(strategy: str, stage: int):
    text = (
        'model:\n  model_name: "Qwen/Qwen3-8B"\n  model_max_length: 2048\n  torch_dtype_str: "bfloat16"\n'
        "training:\n  trainer_type: TRL_SFT\n  per_device_train_batch_size: 2\n  gradient_accumulation_steps: 1\n"
        "  enable_gradient_checkpointing: True\n  optimizer: adamw_torch_fused\n"
        f"fsdp:\n  enable_fsdp: True\n  sharding_strategy: {strategy}\n"
    )
    plan = read({"train.yaml": text}).plan
    assert plan["layout"] == {"recompute": "full", "zero_stage": stage}
    assert plan["workload"]["weights"] == "bf16"


def test_layers_of_gpt_neox_that_are_no_attention_are_no_transformers():
    text = (
        '{{"num_layers": 12, "hidden_size": 768, "num_attention_heads": 12, "pipe_parallel_size": 1, '
        '"seq_length": 512, "model_parallel_size": 1, "train_micro_batch_size_per_gpu": 4, '
        '"attention_config": [[["{}"], 12]]}}'
    )
    assert "model" in read({"a.yml": text.format("flash")}).plan
    for kind in ("rwkv", "mamba"):
        assert kind in read({"a.yml": text.format(kind)}).blocked["model"]


def test_rows_that_are_not_packed_and_of_which_nothing_is_said_are_asked_for():
    text = (
        "step_scheduler:\n  global_batch_size: 64\n  local_batch_size: 8\ndistributed:\n  strategy: fsdp2\n"
        "  tp_size: 1\nmodel:\n  pretrained_model_name_or_path: Qwen/Qwen3-8B\npacked_sequence:\n"
        "  packed_sequence_size: {}\n"
    )
    assert [row.field for row in imported({"a.yaml": text.format(0)}, _EIGHT).missing] == ["workload.seq_len"]
    assert imported({"a.yaml": text.format(2048)}, _EIGHT).fits is not None


def test_a_stage_that_only_another_framework_has_is_asked_for_and_not_refused():
    text = (
        "NPROC_PER_NODE=4 megatron rlhf --rlhf_type {} --model Qwen/Qwen2.5-7B-Instruct --max_length 2048 "
        "--micro_batch_size 1 --global_batch_size 8 --tensor_model_parallel_size 4\n"
    )
    kto = imported({"a.sh": text.format("kto")}, {"cluster.accelerator": "h100-sxm"})
    assert kto.refused is None
    assert [row.field for row in kto.missing] == ["workload.stage"]
    assert imported({"a.sh": text.format("dpo")}, {"cluster.accelerator": "h100-sxm"}).fits is not None


@pytest.mark.parametrize("adapters", [False, True])
def test_a_yaml_of_megatron_bridge_leaves_what_its_recipe_says_to_a_question(adapters: bool):
    text = (
        "dataset:\n  seq_length: 4096\ntrain:\n  train_iters: 100\n  global_batch_size: 128\n  micro_batch_size: 2\n"
        "model:\n  tensor_model_parallel_size: 1\n  pipeline_model_parallel_size: 1\n  context_parallel_size: 1\n"
    )
    found = imported({"a.yaml": text + "peft:\n  dim: 8\n  alpha: 16\n" * adapters}, _EIGHT)
    assert found.plan["workload"]["framework"] == "megatron-bridge"
    asked = {"model", "workload.stage"} | ({"workload.method"} if adapters else set())
    assert {row.field for row in found.missing} == asked


_OWN = (
    "python {}.py --model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 2 --learning_rate 1e-4 --lora_r 64 "
)


def test_words_of_qloras_own_script():
    found = read({"run.sh": _OWN.format("qlora") + "--bits 4 --double_quant --quant_type nf4 --model_max_len 2048\n"})
    assert not found.blocked
    assert (found.plan["workload"]["method"], found.plan["workload"]["seq_len"]) == ("qlora", 2048)
    assert found.plan["workload"]["lora"]["quantisation"] == "nf4"


@pytest.mark.parametrize("word", ["--bits 3", "--w_bits 4", "--quant_type nf3 --bits 4", "--unfreeze_layers 2"])
def test_weights_that_are_packed_or_frozen_in_words_of_their_own_get_no_verdict(word: str):
    assert "workload.method" in read({"run.sh": _OWN.format("mine") + f"--max_length 512 {word}\n"}).blocked


def test_adapters_that_a_config_names_in_its_own_words_are_no_full_training():
    text = "model_name: Qwen/Qwen3-0.6B\nper_device_train_batch_size: 1\nlearning_rate: 1e-5\nmax_length: 512\n"
    assert imported({"a.yaml": text}, _EIGHT).fits
    assert "workload.method" in read({"a.yaml": text + "sft_adapter_path: outputs/sft\n"}).blocked


def test_a_script_of_its_own_has_no_length_of_trls():
    assert "workload.seq_len" in read({"run.sh": _OWN.format("mine") + "--dataset_name x\n"}).blocked
    assert not read({"run.sh": _OWN.format("mine") + "--dataset_name x --max_length 512\n"}).blocked


def test_embedding_or_head_alone_takes_no_more_than_both():
    text = "model_name_or_path: {}\nper_device_train_batch_size: 1\nuse_peft: true\nmax_length: 512\npacking: true\n"
    text += "lora_modules_to_save: [{}]\n"
    for module in ("embed_tokens", "lm_head"):
        small = imported({"a.yaml": text.format("Qwen/Qwen3-4B", module)}, _EIGHT)
        assert small.fits
        assert any("lora_modules_to_save" in warning for warning in small.warnings)
    large = imported({"a.yaml": text.format("meta-llama/Llama-3.1-70B", "lm_head")}, _EIGHT)
    assert large.fits is None
    assert not imported({"a.yaml": text.format("Qwen/Qwen3-4B", "score")}, _EIGHT).fits


_AWS = (
    "srun torchrun --nnodes 2 --nproc_per_node 8 train.py --max_context_width=4096 --hidden_width=4096 --num_layers=32 "
    "--num_heads=32 --num_key_value_heads=8 --intermediate_size=14336 --model_type={} --train_batch_size=2 {}\n"
)


def test_aws_example_of_fsdp_by_its_dimensions():
    result = imported(
        {"run.sh": _AWS.format("llama_v3", "--offload_activations=1")}, {"cluster.accelerator": "h100-sxm"}
    )
    assert result.fits
    plan = result.complete_plan
    assert plan is not None
    assert plan["model"]["num_key_value_heads"] == 8
    assert (plan["workload"]["framework"], plan["workload"]["global_batch"]) == ("fsdp2", 32)
    assert (plan["layout"]["zero_stage"], plan["layout"]["offload"], plan["layout"]["recompute"]) == (
        3,
        "activations",
        "full",
    )
    assert "model" in read({"run.sh": _AWS.format("mixtral", "")}).blocked
    both = read({"run.sh": _AWS.format("llama_v3", "--offload_activations=1 --cpu_offload=1")})
    assert "layout.offload" in both.blocked


def test_values_that_a_config_makes_of_others():
    text = (
        "policy: {{model_name: Qwen/Qwen3-8B, train_global_batch_size: '{}', train_micro_batch_size: 1}}\n"
        "grpo: {{num_prompts_per_step: 32, num_generations_per_prompt: 16}}\n"
    )
    prompts, answers = "${grpo.num_prompts_per_step}", "${grpo.num_generations_per_prompt}"
    for formula, number in (
        (f"${{mul:{prompts}, {answers}}}", 512),
        (f"${{div:${{mul:{prompts},{answers}}},4}}", 128),
        (f"${{max:{prompts}, {answers}}}", 32),
        (prompts, 32),
    ):
        assert read({"a.yaml": text.format(formula)}).plan["workload"]["global_batch"] == number
    for formula in ("${oc.env:BATCH}", "${mul:${nobody.knows}, 2}", f"${{div:{prompts}, 0}}"):
        assert "workload.global_batch" in read({"a.yaml": text.format(formula)}).blocked


def test_rows_of_a_device_are_no_more_than_its_share_of_the_batch():
    text = (
        "model: {name: hf_causal_lm, pretrained_model_name_or_path: mosaicml/mpt-7b}\nmax_seq_len: 2048\n"
        "train_loader: {name: finetuning, dataset: {hf_name: x}}\nmax_duration: 1ep\nprecision: amp_bf16\n"
        "device_train_microbatch_size: 8\nfsdp_config: {sharding_strategy: FULL_SHARD}\nglobal_train_batch_size: "
    )
    for batch, rows in ((48, 6), (64, 8), (128, 8)):
        result = imported({"a.yaml": f"{text}{batch}\n"}, _EIGHT)
        assert result.refused is None
        assert result.plan["workload"]["micro_batch"] == rows


def test_a_yaml_of_llamafactory_alone_is_judged_as_whole_copies_only_where_they_fit():
    text = (
        "model_name_or_path: Qwen/{}\nstage: sft\nfinetuning_type: full\ntemplate: qwen3\ncutoff_len: 1024\n"
        "per_device_train_batch_size: 1\nbf16: true\ndo_train: true\ndataset: x\n"
    )
    assert imported({"a.yaml": text.format("Qwen3-0.6B")}, _EIGHT).fits
    large = imported({"a.yaml": text.format("Qwen3-32B")}, _EIGHT)
    assert large.fits is None
    assert [row.field for row in large.missing] == ["layout.zero_stage"]
    assert "ZeRO-3" in large.missing[0].why
    started = {"a.yaml": text.format("Qwen3-32B"), "run.sh": "FORCE_TORCHRUN=1 llamafactory-cli train a.yaml\n"}
    assert imported(started, _EIGHT).fits is False


def test_towers_that_are_frozen_leave_the_method_of_the_language_model():
    start = "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen3-8B --train_type full --max_length 2048 --deepspeed zero3"
    for words, asks in (("--freeze_vit true --freeze_aligner true", False), ("--freeze_llm true", True)):
        assert ("workload.method" in read({"run.sh": f"{start} {words}\n"}).blocked) == asks


def test_a_script_is_read_as_its_first_node_runs_it():
    start = "python3 -m openrlhf.cli.train_sft --pretrain Qwen/Qwen3-8B --max_len 2048 --micro_train_batch_size 2"
    text = (
        'if [ "$MY_NODE_RANK" -eq 0 ]; then\n  python -m openrlhf.cli.serve_rm --mode rule &\n'
        f"else\n  ray start --address=x\nfi\nif [ $MY_NODE_RANK -eq 0 ]; then\n  {start}\nfi\n"
    )
    found = read({"run.sh": text})
    assert found.plan["workload"]["framework"] == "openrlhf"
    assert "workload.stage" not in found.blocked


def test_a_recipe_of_one_device_takes_one_whatever_its_job_has():
    recipe = "tune run lora_finetune_single_device --config llama3_2/1B_lora tokenizer.max_seq_len=2048 batch_size=1"
    text = f"#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:4\n{recipe} gradient_accumulation_steps=1\n"
    assert imported({"a.slurm": text}, {"cluster.accelerator": "h100-sxm"}).plan["cluster"]["count"] == 1


@pytest.mark.parametrize("tower", ["--video_tower LanguageBind/x", "--image_tower y", "--mm_projector_type mlp2x_gelu"])
def test_towers_beside_the_model_get_no_verdict(tower: str):
    assert "model" in read({"run.sh": _OWN.format("mine") + f"--max_length 512 {tower}\n"}).blocked


@pytest.mark.parametrize(("name", "stage"), [("reward_modeling", "rm"), ("run_dpo", "dpo"), ("train", "sft")])
def test_scripts_of_their_own_say_their_stage_and_adapters(name: str, stage: str):
    found = imported(
        {"run.sh": _OWN.format(name) + "--max_length 512 --use_lora True --bf16 True --gradient_checkpointing True\n"},
        _EIGHT,
    )
    assert found.complete_plan is not None
    workload = found.complete_plan["workload"]
    assert (workload["stage"], workload["method"]) == (stage, "lora")


def test_devices_of_a_maker_that_is_not_planned_for_are_asked_about():
    text = (
        "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen3-4B trainer.nnodes=1 "
        "trainer.n_gpus_per_node=8 trainer.device={}\n"
    )
    why = [row.why for row in imported({"a.sh": text.format("npu")}, {}).missing if row.field == "cluster.accelerator"]
    assert len(why) == 1
    assert "Ascend" in why[0]
    assert "cluster.accelerator" not in read({"a.sh": text.format("cuda")}).blocked


_NEOX = (
    '{"num_layers": 24, "hidden_size": 2048, "num_attention_heads": 16, "seq_length": 2048, "pos_emb": "rotary",\n'
    '"train_micro_batch_size_per_gpu": 2, "pipe_parallel_size": 1, "model_parallel_size": 2, "no_weight_tying": true,\n'
    '"norm": "rmsnorm", "bf16": {"enabled": true}, "zero_optimization": {"stage": 1}, "checkpoint_activations": true,\n'
)


def test_a_gate_of_gpt_neox_has_two_thirds_of_what_is_named_and_any_tokenizer():
    own = '"tokenizer_type": "SPMTokenizer", "vocab_file": "x", "activation": "swiglu", "intermediate_size": 12288}'
    models = [row.values for row in read({"a.yml": _NEOX + own}).either if row.field == "model"]
    assert [model["intermediate_size"] for model in models[0]] == [4096, 4096]
    assert models[0][0]["vocab_size"] < models[0][1]["vocab_size"]
    assert imported({"a.yml": _NEOX + own}, _EIGHT).fits
    engine = own.replace("}", ', "te_mha": true}')
    assert imported({"a.yml": _NEOX + engine}, _EIGHT).fits
    full = {**_EIGHT, "layout.recompute": "none", "workload.micro_batch": 64}
    assert "workload.precision" in [row.field for row in imported({"a.yml": _NEOX + engine}, full).missing]


def test_three_sizes_of_a_batch_say_how_many_devices_there_are():
    sizes = '"vocab_file": "20B_tokenizer.json", "train_batch_size": 96, "gradient_accumulation_steps": 3}'
    found = read({"a.yml": _NEOX + sizes})
    assert found.plan["cluster"]["count"] == 96 // (2 * 3) * 2
    assert read({"a.yml": _NEOX + sizes}, {"cluster.count": 8}).plan.get("cluster", {}).get("count") is None


@pytest.mark.parametrize("rows", [64, 8])
def test_rows_that_are_counted_of_all_devices_are_shared_out(rows: int):
    text = (
        "torchrun --nproc_per_node=$N -m verl.trainer.fsdp_sft_trainer model.partial_pretrain=Qwen/Qwen3-8B "
        f"data.micro_batch_size={rows}\n"
    )
    assert imported({"a.sh": text}, _EIGHT).complete_plan["workload"]["micro_batch"] == rows // 8  # type: ignore[index]
    asked = imported({"a.sh": text}, {"cluster.accelerator": "h100-sxm"}).missing
    assert {row.field for row in asked} == {"workload.micro_batch", "cluster.count"}


def test_rows_of_no_stated_length_are_no_longer_than_the_models_positions():
    text = (
        "model: {_component_: torchtune.models.%s, lora_rank: 8, lora_alpha: 16, lora_dropout: 0.0}\n"
        "tokenizer: {path: x}\nbatch_size: 2\nepochs: 1\ndtype: bf16\n"
        "dataset: {_component_: torchtune.datasets.alpaca_dataset, packed: false}\ngradient_accumulation_steps: 1\n"
        "optimizer: {_component_: torch.optim.AdamW}\nenable_activation_checkpointing: true\n"
        "checkpointer: {_component_: x, checkpoint_dir: /tmp/%s}\n"
        "loss: {_component_: torchtune.modules.loss.LinearCrossEntropyLoss}\n"
    )
    short = imported({"a.yaml": text % ("phi3.lora_phi3_mini", "Phi-3-mini-4k-instruct")}, _EIGHT)
    assert short.fits
    assert short.complete_plan is not None
    assert short.complete_plan["workload"]["seq_len"] == 4096
    long = imported({"a.yaml": text % ("llama3_1.lora_llama3_1_8b", "Llama-3.1-8B")}, _EIGHT)
    assert [row.field for row in long.missing] == ["workload.seq_len"]
    assert "131072 positions" in long.missing[0].why


def test_what_short_rows_have_no_room_for_needs_no_length():
    text = (
        "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/{} algorithm.adv_estimator=grpo "
        "data.max_prompt_length=1024 data.max_response_length=2048 actor_rollout_ref.actor.ppo_mini_batch_size=16 "
        "actor_rollout_ref.rollout.n=8 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 trainer.nnodes=1 "
        "actor_rollout_ref.rollout.gpu_memory_utilization=0.5 trainer.n_gpus_per_node=2\n"
    )
    device = {"cluster.accelerator": "h100-sxm"}
    assert imported({"a.sh": text.format("Qwen2.5-7B-Instruct")}, device).fits is False
    assert imported({"a.sh": text.format("Qwen2.5-0.5B-Instruct")}, device).fits


@pytest.mark.parametrize("words", ["reward_model.enable=True", "reward_model.enable=False", ""])
def test_a_reward_model_beside_grpo_is_asked_about(words: str):
    text = (
        "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen3-0.6B algorithm.adv_estimator=grpo "
        "data.max_prompt_length=512 data.max_response_length=512 actor_rollout_ref.actor.ppo_mini_batch_size=16 "
        "actor_rollout_ref.rollout.n=8 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 "
    )
    asked = {row.field for row in imported({"a.sh": f"{text}{words}\n"}, _EIGHT).missing}
    assert asked == ({"overrides.extra_models_gib"} if "True" in words else set())


@pytest.mark.parametrize(("words", "open_"), [("", True), ("--flash_attn", False), ("--packing_samples", False)])
def test_attention_of_openrlhf_without_a_word_is_either(words: str, open_: bool):
    start = "deepspeed --module openrlhf.cli.train_sft --pretrain Qwen/Qwen3-8B --max_len 2048 --bf16"
    found = read({"a.sh": f"{start} --train_batch_size 128 --micro_train_batch_size 2 {words}\n"})
    assert any(row.field == "workload.attention" for row in found.either) == open_


def test_a_model_of_nanotron_that_is_no_llama_is_asked_about():
    text = (
        "parallelism: {dp: 4, tp: 1, pp: 1, tp_mode: REDUCE_SCATTER}\ntokens: {micro_batch_size: 2, "
        "sequence_length: 512, train_steps: 10, batch_accumulation_per_replica: 1}\n"
        "optimizer: {zero_stage: 0}\nmodel:\n  model_config: {"
        "hidden_size: 1024, num_hidden_layers: 8, num_attention_heads: 16, intermediate_size: 4096, "
        "vocab_size: 32000%s}\n"
    )
    assert "model" not in read({"a.yaml": text % ", num_key_value_heads: 4, is_llama_config: true"}).blocked
    assert "model" in read({"a.yaml": text % ", activation_function: gelu, scale_embedding: true"}).blocked


@pytest.mark.parametrize(("loader", "stage"), [("finetuning", "sft"), ("text", "pretrain")])
def test_the_loader_of_llm_foundry_says_the_stage_and_peft_the_method(loader: str, stage: str):
    text = (
        "model: {name: hf_causal_lm, pretrained_model_name_or_path: Qwen/Qwen3-0.6B, peft_config: {r: 16, "
        f"lora_alpha: 32, use_dora: true}}}}\ntrain_loader: {{name: {loader}}}\nglobal_train_batch_size: 64\n"
        "max_seq_len: 2048\n"
        "device_train_microbatch_size: 4\nprecision: amp_bf16\nfsdp_config: {sharding_strategy: FULL_SHARD}\n"
        "optimizer: {name: decoupled_adamw}\n"
    )
    workload = imported({"a.yaml": text}, _EIGHT).complete_plan["workload"]  # type: ignore[index]
    assert (workload["stage"], workload["method"], workload["lora"]["rank"]) == (stage, "dora", 16)


def test_names_of_a_script_are_told_through_text_and_tests():
    source = (
        "from peft import LoraConfig\nfrom transformers import TrainingArguments, Trainer, AutoModelForCausalLM\n"
        'name = "Qwen/Qwen-7B"\nis_chat = "chat" in name.lower()\npacked = False\n'
        'config = LoraConfig(r=8, modules_to_save=None if packed or is_chat else ["wte", "lm_head"])\n'
        "packing = GPTQConfig(bits=4) if lora and packed else None\n"
        "model = AutoModelForCausalLM.from_pretrained(name, quantization_config=packing)\n"
        "Trainer(model=model, args=TrainingArguments(per_device_train_batch_size=1))\n"
    )
    found = read({"a.py": source}).plan["workload"]
    assert (found["method"], found["lora"]["train_embeddings"]) == ("lora", True)


def test_words_of_a_rows_length_in_another_programs_way_stop_the_verdict():
    assert "workload.seq_len" in read({"run.sh": _OWN.format("mine") + "--max_token_length 4096\n"}).blocked
    start = "accelerate launch open_instruct/reward_modeling.py --model_name_or_path Qwen/Qwen3-8B"
    found = read({"run.sh": f"{start} --max_token_length 4096 --per_device_train_batch_size 1\n"})
    assert found.plan["workload"]["seq_len"] == 4096


def test_layers_of_gpt_neox_are_experts_where_its_config_says_how_many():
    own = '"vocab_file": "20B_tokenizer.json", "moe_num_experts": 8, "moe_top_k": 2, "moe_expert_parallel_size": 4%s}'
    found = read({"a.yml": _NEOX + own % ""}).plan
    assert (found["model"]["num_experts"], found["model"]["num_experts_per_tok"], found["layout"]["ep"]) == (8, 2, 4)
    assert "model" in read({"a.yml": _NEOX + own % ', "moe_expert_interval": 2'}).blocked


def test_the_older_trainers_of_open_instruct_count_rows_of_each_learner():
    start = (
        "python open_instruct/ppo_vllm_thread_ray_gtrl.py --model_name_or_path Qwen/Qwen3-0.6B --reward_model_path x"
    )
    rows = "--local_mini_batch_size 8 --per_device_train_batch_size 2 --actor_num_gpus_per_node 7 --deepspeed_stage 3"
    found = imported({"a.sh": f"{start} {rows}\n"}, {"cluster.accelerator": "h100-sxm"})
    assert found.fits
    assert found.complete_plan is not None
    workload = found.complete_plan["workload"]
    assert (workload["stage"], workload["global_batch"], workload["micro_batch"]) == ("ppo", 56, 2)


@pytest.mark.parametrize(("layers", "attention"), [("local", "eager"), ("transformer_engine", None)])
def test_megatrons_own_yaml_has_its_arguments_in_sections(layers: str, attention: str | None):
    text = (
        "language_model: {num_layers: 24, hidden_size: 1024, num_attention_heads: 16, add_bias_linear: false}\n"
        "model_parallel: {tensor_model_parallel_size: 2, bf16: true, fp16: false}\nmicro_batch_size: 2\n"
        f"global_batch_size: 64\nseq_length: 2048\nmax_position_embeddings: 2048\ntransformer_impl: {layers}\n"
        "squared_relu: false\nswiglu: true\nvocab_size: 32000\ntokenizer_type: NullTokenizer\n"
    )
    found = read({"a.yaml": text}).plan
    assert (found["model"]["mlp_gated"], found["model"]["mlp_bias"], found["layout"]["tp"]) == (True, False, 2)
    assert found["workload"].get("attention") == attention


def test_a_trainer_of_lightning_is_read_by_its_modules():
    text = (
        "trainer: {strategy: {class_path: llm_training.lightning.DeepSpeedStrategy, init_args: {stage: 3}}, precision: "
        "bf16-true, max_epochs: 2, accumulate_grad_batches: 4}\nmodel:\n  class_path: llm_training.lms.CLM\n"
        "  init_args.config: {model: {model_config: {hf_path: Qwen/Qwen3-8B, enable_gradient_checkpointing: true}}}\n"
        "data:\n  class_path: llm_training.data.InstructionTuningDataModule\n"
        "  init_args.config: {batch_size: 2, max_length: 4096, packing_method: GROUP_BY_LENGTH}\n"
    )
    plan = imported({"a.yaml": text}, _EIGHT).complete_plan
    assert plan is not None
    assert (plan["workload"]["stage"], plan["workload"]["global_batch"], plan["layout"]["zero_stage"]) == ("sft", 64, 3)
