"""Words of programs that nobody knows: what they say of adapters, teachers and packed weights stops the verdict, what a
wrapper or a template hides is read."""

from __future__ import annotations

import pytest

from estimator.errors import PlanError
from launchers.reading.sets import read
from planner.files.importing import imported

_EIGHT = {"cluster.accelerator": "h100-sxm", "cluster.count": 8}
_TRAINER = "--model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 1 --max_length 512 --bf16"
_MEGATRON = (
    "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 "
    "--micro-batch-size 4 --global-batch-size 256 --bf16 --tensor-model-parallel-size 2 "
    "--tokenizer-type GPT2BPETokenizer"
)
_TUNE = (
    "model:\n  _component_: torchtune.models.llama3.llama3_8b\n{}batch_size: 2\nepochs: 1\n"
    "checkpointer:\n  checkpoint_dir: {{{{model_dir}}}}/llama\n"
)


@pytest.mark.parametrize(
    "words", ["--tuner_type lora", "--train_type lora", "--quantization_bit 4", "--use_peft_scheme x"]
)
def test_words_of_adapters_that_nobody_knows_leave_the_method_open(words: str):
    assert "workload.method" not in read({"a.sh": f"torchrun train.py {_TRAINER}\n"}).blocked
    assert "workload.method" in read({"a.sh": f"torchrun train.py {_TRAINER} {words}\n"}).blocked


def test_weights_that_are_packed_without_adapters_are_no_full_training():
    found = read({"a.yaml": "model:\n  name_or_path: Qwen/Qwen3-8B\n  load_in_4bit: true\n"
                            "training:\n  per_device_train_batch_size: 1\n  max_length: 512\n"})  # fmt: skip
    assert found.plan["model"] == "Qwen/Qwen3-8B"
    assert "packs weights" in found.blocked["workload.method"]


def test_a_completion_alone_is_of_no_stage():
    text = "a:\n  model_name: Qwen/Qwen3-8B\nb:\n  per_device_train_batch_size: 8\n  max_prompt_length: 256\n"
    assert "workload.stage" in read({"a.yaml": f"{text}  max_completion_length: 128\n"}).blocked


def test_a_teacher_beside_the_model_stops_the_verdict():
    assert imported({"a.sh": f"torchrun pretrain_gpt.py {_MEGATRON}\n"}, _EIGHT).fits is True
    taught = imported({"a.sh": f"torchrun pretrain_gpt.py {_MEGATRON} --kd --load-teacher x\n"}, _EIGHT)
    assert [row.field for row in taught.missing] == ["workload.stage"]


def test_a_micro_batch_with_underscores_alone_is_not_megatrons():
    found = read({"a.sh": "python finetune.py --base_model Qwen/Qwen3-8B --micro_batch_size 1 --cutoff_len 512\n"})
    assert found.plan.get("workload", {}).get("framework") != "megatron-lm"


@pytest.mark.parametrize("wrapper", ["./launch.sh", "singularity exec -B /data /images/torch_v2 /opt/launch.sh"])
def test_a_wrapper_that_is_not_given_runs_the_source_behind_it(wrapper: str):
    found = read({"a.sh": f"srun --ntasks-per-node=8 {wrapper} /x/pretrain_gpt.py {_MEGATRON}\n"})
    assert found.plan["workload"]["micro_batch"] == 4
    assert any("launch.sh: is not given" in text for text in found.warnings)


def test_what_a_container_is_called_is_not_its_program():
    found = read({"a.sh": "docker run -d --name vllm --gpus all vllm/vllm-openai:latest --model Qwen/Qwen3-8B\n"})
    assert found.plan["model"] == "Qwen/Qwen3-8B"


def test_where_a_program_is_says_which_it_is():
    found = read({"a.sh": "torchrun --nproc_per_node 2 $(which swift) sft --model Qwen/Qwen3-8B --train_type lora\n"})
    assert found.plan["workload"] == {"stage": "sft", "method": "lora", "framework": "ms-swift"}


@pytest.mark.parametrize(("change", "value"), [("X//_", "350000"), ("X/_/9", "3509000"), ("X/3?", None)])
def test_texts_in_a_variable_are_swapped_as_bash_does(change: str, value: str | None):
    text = f"X=350_000\nN=${{{change}}}\ntorchrun pretrain_gpt.py {_MEGATRON} --train-iters $N\n"
    assert read({"a.sh": text}).plan["workload"].get("steps") == (int(value) if value else None)


@pytest.mark.parametrize("rows", ["tokenizer:\n  max_seq_len: 2048\n", "dataset:\n  max_seq_len: 2048\n"])
def test_a_place_that_somebody_fills_in_is_as_unknown_as_a_variable(rows: str):
    found = read({"lora_single_device.yaml": _TUNE.format(rows)})
    assert found.plan["workload"]["seq_len"] == 2048
    open_batch = _TUNE.format(rows).replace("batch_size: 2", "batch_size: {{ rows }}")
    assert "workload.micro_batch" in read({"lora_single_device.yaml": open_batch}).blocked


@pytest.mark.parametrize(
    ("module", "config", "field"),
    [
        ("utils.ckpt_conversion.to_huggingface", "base.yml", "workload"),
        ("sft_trainer", "sft-vision-chartqa.yml", "workload"),
        ("rl.train_rl", "base.yml", "workload.stage"),
    ],
)
def test_a_module_of_maxtext_trains_or_not(module: str, config: str, field: str):
    words = "model_name=gemma2-2b per_device_batch_size=1 max_target_length=1024"
    found = read({"a.sh": f"python3 -m MaxText.{module} src/MaxText/configs/{config} {words}\n"})
    assert field in found.blocked
    plain = read({"a.sh": f"python3 -m MaxText.train src/MaxText/configs/base.yml {words}\n"})
    assert not plain.blocked


def test_a_source_that_starts_another_program_hands_its_words_on():
    config = (
        "base_model: Qwen/Qwen3-8B\nsequence_len: 2048\nmicro_batch_size: 1\ndatasets:\n  - path: x\n    type: alpaca\n"
    )
    source = "from axolotl.cli.train import do_cli\nimport fire\nfire.Fire(do_cli)\n"
    found = read({"a.sh": "torchrun go.py base.yaml --micro_batch_size 4\n", "go.py": source, "base.yaml": config})
    assert found.plan["workload"]["micro_batch"] == 4


def test_settings_of_fsdp_change_nothing_where_it_is_off():
    text = "model_name_or_path: Qwen/Qwen3-8B\nper_device_train_batch_size: 1\nfsdp: {}\nfsdp_config:\n  xla: false\n"
    assert "layout.zero_stage" not in read({"a.yaml": text.format("[]")}).blocked
    assert read({"a.yaml": text.format("full_shard")}).plan["layout"]["zero_stage"] == 3


@pytest.mark.parametrize(
    ("condition", "taken"),
    [
        ('[[ "$A" == x ]] || [[ "$B" == y ]]', True),
        ('[[ "$A" == y ]] || [[ "$B" == y ]]', True),
        ('[[ "$A" == y ]] || [[ "$B" == x ]]', False),
        ('[[ "$A" == x ]] && [[ "$B" == x ]]', False),
        ('[[ "$A" == x ]] && [ $B = y ]', True),
        ('[[ "$A" == x ]] && [ $C = y ]', None),
        ('[[ "$A" == x ]] && ! [[ "$B" == y ]]', None),
        ('[[ "$A" == x ]] && ([[ "$B" == x ]] || [[ "$B" == z ]])', None),
        ('[[ "$A" == x ]] && grep -q a b', None),
    ],
)
def test_conditions_of_several_tests_are_decided(condition: str, taken: bool | None):
    text = f"A=x\nB=y\nN=8\nif {condition}; then\n  N=9\nfi\ntorchrun pretrain_gpt.py {_MEGATRON} --train-iters $N\n"
    assert read({"a.sh": text}).plan["workload"].get("steps") == {True: 9, False: 8, None: None}[taken]


def test_engines_beside_verls_training_are_on_devices_of_their_own():
    words = (
        "actor_rollout_ref.model.path=Qwen/Qwen3-8B actor_rollout_ref.actor.ppo_mini_batch_size=32 trainer.nnodes=2 "
        "trainer.n_gpus_per_node=8 actor_rollout_ref.rollout.n=8 algorithm.adv_estimator=grpo"
    )
    asynchronous = "actor_rollout_ref.hybrid_engine=False rollout.nnodes=2 rollout.n_gpus_per_node=8"
    for more, rollout in ("", "colocated"), (asynchronous, "separate"):
        found = read({"a.sh": f"python -m verl.trainer.main_ppo {words} {more}\n"})
        assert (found.plan["workload"]["rollout"], found.plan["cluster"]["count"]) == (rollout, 16)


@pytest.mark.parametrize(("kind", "precision"), [('"type": "bfloat16", ', "bf16"), ("", "fp16")])
def test_the_half_of_gpt_neox_is_the_type_that_it_names(kind: str, precision: str):
    text = '"num-layers": 12, "hidden-size": 768, "num-attention-heads": 12, "seq-length": 2048, "pos-emb": "alibi"'
    config = f'{{{text}, "train_micro_batch_size_per_gpu": 4, "fp16": {{{kind}"enabled": true}}}}'
    found = read({"small.yml": config})
    assert found.plan["workload"]["precision"] == precision
    assert found.plan["model"]["position_embedding"] == "alibi"


def test_unsloth_under_deepspeed_is_asked_about():
    config = "model_name_or_path: Qwen/Qwen3-8B\nstage: sft\nfinetuning_type: full\ndeepspeed: ds_z3.json\n"
    zero = {"ds_z3.json": '{"zero_optimization": {"stage": 3}}'}
    assert "layout.zero_stage" not in read({"a.yaml": config, **zero}).blocked
    assert "layout.zero_stage" in read({"a.yaml": f"{config}use_unsloth: true\n", **zero}).blocked


def test_merging_after_a_training_of_open_instruct_is_no_training():
    train = (
        "accelerate launch open_instruct/dpo_tune.py --model_name_or_path Qwen/Qwen3-8B --use_lora --use_qlora "
        "--learning_rate 1e-4 --max_seq_length 1024 --per_device_train_batch_size 1\n"
    )
    merge = "python open_instruct/merge_lora.py --base_model_name_or_path Qwen/Qwen3-8B --qlora\n"
    found = read({"a.sh": train + merge})
    assert found.plan["workload"]["method"] == "qlora"
    assert "workload.stage" not in found.blocked


@pytest.mark.parametrize(("name", "text"), [("values-a.yaml", "vllm:\n  model: x\n"),
                                            ("a.yaml", "image:\n  repository: vllm/vllm-openai\n")])  # fmt: skip
def test_values_of_a_chart_say_what_to_give(name: str, text: str):
    with pytest.raises(PlanError, match="helm template"):
        imported({name: text}, {})
