"""What programs take where the files of others are silent, and older ways to say the same."""

from __future__ import annotations

import pytest

from launchers.reading.sets import read
from planner.files.importing import imported

_EIGHT = {"cluster.accelerator": "h100-sxm", "cluster.count": 8}


def test_what_gpt_neox_takes_where_its_file_is_silent():
    text = (
        '{"num_layers": 12, "hidden_size": 768, "num_attention_heads": 12, "pipe_parallel_size": 1, "seq_length": 512, '
        '"model_parallel_size": 1, "train_micro_batch_size_per_gpu": 4, "fp16": {"enabled": false}}'
    )
    found = imported({"a.yml": text}, _EIGHT)
    assert found.plan["workload"]["global_batch"] == 32
    assert {row.field: row.value for row in found.assumptions}["workload.precision"] == "fp32"


def test_a_cell_of_a_notebook_is_a_command():
    text = "!tune run --nproc_per_node 2 full_finetune_distributed --config llama3_1/8B_full\n"
    assert read({"a.sh": text}).plan["cluster"]["count"] == 2


def test_maxtext_of_a_model_by_its_dimensions():
    text = (
        "python3 -m MaxText.train MaxText/configs/base.yml ici_fsdp_parallelism=16 per_device_batch_size=2 "
        "base_num_decoder_layers=32 base_emb_dim=4096 base_mlp_dim=11008 base_num_query_heads=32 base_num_kv_heads=32"
    )
    plan = read({"a.sh": text}).plan
    assert plan["model"]["hidden_size"] == 4096
    assert plan["cluster"]["count"] == 16
    assert "model" in read({"a.sh": text + " num_experts=8"}).blocked


def test_windows_of_nanotrons_layers_are_kept():
    text = (
        "parallelism: {dp: 2, pp: 1, tp: 1, tp_mode: REDUCE_SCATTER}\noptimizer: {zero_stage: 0}\n"
        "tokens: {micro_batch_size: 3, sequence_length: 4096, batch_accumulation_per_replica: 1}\n"
        "model: {model_config: {is_qwen2_config: true, hidden_size: 256, intermediate_size: 768, num_hidden_layers: 12,"
        " num_attention_heads: 4, num_key_value_heads: 4, vocab_size: 128256, sliding_window_size: 20}}\n"
    )
    model = read({"a.yaml": text}).plan["model"]
    assert (model["sliding_window"], model["sliding_window_pattern"]) == (20, 0)


@pytest.mark.parametrize("script", ["../train_sft.py", "examples/train_sft.py"])
def test_openrlhf_before_it_was_a_package(script: str):
    words = "--max_len 2048 --train_batch_size 128 --micro_train_batch_size 2 --pretrain Qwen/Qwen3-8B --zero_stage 2"
    plan = read({"a.sh": f"deepspeed {script} {words} --flash_attn\n"}).plan
    assert plan["workload"]["stage"] == "sft"
    assert plan["workload"]["framework"] == "openrlhf"


def test_an_engine_on_the_device_that_trains_is_asked_about():
    words = "--model_name_or_path Qwen/Qwen3-0.6B --response_length 512 --deepspeed_stage 3 --actor_num_gpus_per_node 1"
    text = f"python open_instruct/grpo_vllm_thread_ray_gtrl.py {words}"
    assert read({"a.sh": text}).plan["workload"]["rollout"] == "separate"
    assert "workload.rollout" in read({"a.sh": f"{text} --single_gpu_mode"}).blocked


def test_a_quoted_array_of_all_is_one_word():
    command = (
        '(python -m exp.run_eval --model Qwen/Qwen3-8B --tensor-parallel-size 1)\necho "+ ${CMD[*]}"\n"${CMD[@]}"\n'
    )
    assert "workload" in read({"a.sh": f"CMD={command}"}).blocked
    inside = '(vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2)\nbash -c "${CMD[*]}"\n'
    assert read({"a.sh": f"CMD={inside}"}).plan["layout"]["tp"] == 2


@pytest.mark.parametrize("name", ["Qwen3.6-27B-UD-Q4_K_XL", "Qwen3.6-27B-MTP-heretic-Q4_K_M"])
def test_files_that_somebody_made_of_a_model(name: str):
    found = read({"a.sh": f"llama-server -m /models/{name}.gguf -c 8192 --cache-type-k q4_0 --cache-type-v q4_0\n"})
    assert found.plan["model"] == "Qwen/Qwen3.6-27B"
    assert found.plan["workload"]["weight_dtype"] == "q4_k_m"
    assert any(name[:11] in text or "Unsloth" in text for text in found.warnings)
    assert imported({"a.sh": "llama-server -m Qwen3.6-27B-Q4_K_M.gguf --cache-type-k q4_0\n"}, _EIGHT).fits is True
    moe = read({"a.sh": "llama-server -m Llama-3.2-8X3B-MOE-Dark-Champion-Q4_K_M.gguf\n"})
    assert "model" in moe.blocked


def test_adapters_of_a_command_that_trl_reads_itself():
    source = (
        "from transformers import HfArgumentParser\n"
        "from trl import ModelConfig, RewardConfig, RewardTrainer, get_peft_config\n"
        "parser = HfArgumentParser((RewardConfig, ModelConfig))\n"
        "training_args, model_args = parser.parse_args_into_dataclasses()\n"
        "trainer = RewardTrainer(model=model_args.model_name_or_path, args=training_args, "
        "peft_config=get_peft_config(model_args))\n"
    )
    words = "--model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 2 --max_length 2048 --load_in_4bit"
    for option, method in (("--use_peft --lora_r 32", "qlora"), ("", None)):
        found = read({"a.sh": f"python reward.py {words} {option}\n", "reward.py": source})
        assert found.plan["workload"].get("method") == method


_MEGATRON = (
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 1024 --num-attention-heads 16 "
    "--seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 4 --global-batch-size 256 --bf16 "
    "--vocab-size 50257 "
)
_TWO = ["sliding_attention", "full_attention"] * 2


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        ("--window-size '(127,0)'", {"sliding_window": 128, "sliding_window_pattern": 0}),
        ("--window-size '(127,0)' --window-attn-skip-freq 2", {"sliding_window": 128, "layer_types": _TWO}),
        ("--window-size 127 0 --window-attn-skip-freq '([1,0]*2)'", {"sliding_window": 128, "layer_types": _TWO}),
        ("--num-experts 8 --moe-layer-freq '([0]*1+[1]*3)'", {"moe_layer_freq": [0, 1, 1, 1]}),
        ("--num-experts 8 --moe-layer-freq 2", {"moe_layer_freq": [1, 0, 1, 0]}),
        ("--multi-latent-attention --q-lora-rank 256", {"q_lora_rank": 256, "kv_lora_rank": 512, "v_head_dim": 128}),
        ("--squared-relu", {"hidden_act": "relu2", "mlp_gated": False}),
        ("--softmax-type learnable", {"attention_sinks": True}),
    ],
)
def test_what_megatron_has_beyond_dimensions(words: str, fields: dict[str, object]):
    model = read({"a.sh": _MEGATRON + words}).plan["model"]
    assert {name: model[name] for name in fields} == fields


@pytest.mark.parametrize(
    "words",
    ["--window-size '(127,5)'", "--moe-layer-freq '[0]*5'", "--moe-layer-freq \"__import__('os')\"",
     "--window-size '(127,0)' --window-attn-skip-freq '[1]*9999999'", "--hybrid-override-pattern 'M-M*'"],
)  # fmt: skip
def test_layers_of_megatron_that_are_not_read_are_asked_about(words: str):
    assert "model" in read({"a.sh": f"{_MEGATRON} --num-experts 8 {words}"}).blocked
