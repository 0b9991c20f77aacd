"""What a command or config says in words of the field is used, left with a reason, or asked about."""

from __future__ import annotations

import json

import pytest

from launchers.reading.sets import read
from planner.files.importing import imported

_EIGHT = {"cluster.accelerator": "h100-sxm", "cluster.count": 8}
_TRAINER = (
    "from transformers import AutoModelForCausalLM, {classes}\n{more}"
    "script_args, training_args = {parser}((ScriptArguments, {classes})).parse_args_into_dataclasses()\n"
    "model = AutoModelForCausalLM.from_pretrained(training_args.model_name_or_path)\n"
    "trainer = {trainer}\ntrainer.train()\n"
)
_OPTIONS = (
    "--model_name_or_path Qwen/Qwen2.5-0.5B --per_device_train_batch_size 2 --gradient_accumulation_steps 4 "
    "--max_seq_length 2048 --bf16 True"
)


def _workload(files: dict[str, str]) -> dict[str, object]:
    return read(files).plan.get("workload", {})


@pytest.mark.parametrize("parser", ["HfArgumentParser", "TrlParser", "H4ArgumentParser"])
def test_a_parser_of_dataclasses_takes_the_words_of_its_command(parser: str):
    source = (
        f"from trl import SFTConfig, SFTTrainer, {parser}\n"
        f"args, training_args = {parser}((ScriptArguments, SFTConfig)).parse_args_and_config()\n"
        "trainer = SFTTrainer(model=args.model_name_or_path, args=training_args)\ntrainer.train()\n"
    )
    for dashes in ("", "-- "):
        script = f"accelerate launch --num_processes 4 {dashes}sft.py {_OPTIONS}\n"
        found = read({"sft.py": source, "run.sh": script})
        assert found.plan["workload"]["micro_batch"] == 2
        assert found.plan["workload"]["global_batch"] == 2 * 4 * 4
        assert found.plan["workload"]["seq_len"] == 2048


def test_a_config_that_a_parser_is_given_stands_below_the_words_of_the_command():
    source = (
        "from trl import DPOConfig, DPOTrainer\nfrom alignment import H4ArgumentParser\n"
        "parser = H4ArgumentParser((ModelArguments, DPOConfig))\nmodel_args, training_args = parser.parse()\n"
        "model = model_args.model_name_or_path\nif adapters(model): model = load(model)\n"
        "trainer = DPOTrainer(model, args=training_args, max_length=training_args.max_length)\ntrainer.train()\n"
    )
    config = (
        "model_name_or_path: Qwen/Qwen2.5-0.5B\nper_device_train_batch_size: 4\ngradient_accumulation_steps: 2\n"
        "max_length: 1024\nlearning_rate: 1.0e-6\nbf16: true\n"
    )
    script = "deepspeed --num_gpus 8 run_dpo.py dpo.yaml --per_device_train_batch_size=1\n"
    found = read({"run.sh": script, "run_dpo.py": source, "dpo.yaml": config})
    assert found.plan["workload"]["micro_batch"] == 1
    assert found.plan["workload"]["global_batch"] == 16
    assert found.plan["workload"]["seq_len"] == 1024
    assert found.plan["workload"]["stage"] == "dpo"


@pytest.mark.parametrize(
    ("option", "field"),
    [
        ("--max_seq_length 1024", "workload.seq_len"),
        ("--grad_accum 8", "workload.global_batch"),
        ("--tp_size 2", "layout.tp"),
    ],
)
def test_words_of_a_command_that_a_source_does_not_take_are_asked_about(option: str, field: str):
    source = (
        "from transformers import Trainer, TrainingArguments, AutoModelForCausalLM\n"
        'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")\n'
        'args = TrainingArguments("out", per_device_train_batch_size=1, bf16=True)\n'
        "rows = tokenize(text, max_length=512)\nTrainer(model=model, args=args).train()\n"
    )
    assert imported({"train.py": source, "run.sh": "torchrun --nproc_per_node 8 train.py\n"}, _EIGHT).fits
    said = imported({"train.py": source, "run.sh": f"torchrun --nproc_per_node 8 train.py {option}\n"}, _EIGHT)
    assert said.fits is None
    assert field in [row.field for row in said.missing]


def test_beginnings_of_words_are_the_words():
    script = f"torchrun --nproc_per_node 2 train.py {_OPTIONS}\n"
    short = script.replace("per_device_train_batch_size", "per_device_train_batch")
    assert _workload({"a.sh": short}) == _workload({"a.sh": script})


def test_the_trainers_own_arguments_keep_activations_under_any_trainer():
    script = f"torchrun --nproc_per_node 2 train.py {_OPTIONS}\n"
    plain = _TRAINER.format(
        classes="TrainingArguments", more="", parser="HfArgumentParser", trainer="SFTTrainer(args=training_args)"
    )
    plain = plain.replace("from transformers", "from trl import SFTTrainer\nfrom transformers")
    found = read({"run.sh": script, "train.py": plain})
    assert found.plan["layout"]["recompute"] == "none"
    own = plain.replace("TrainingArguments", "SFTConfig")
    # Since TRL 0.22 they are computed again.
    either = {row.field: row.values for row in read({"run.sh": script, "train.py": own}).either}
    assert either["layout.recompute"] == ("none", "full")


def test_a_class_of_ones_own_is_no_model_by_the_name_of_its_weights():
    source = (
        "from transformers import Trainer, TrainingArguments\nfrom {module} import {name}\n"
        'model = {name}.from_pretrained("Qwen/Qwen2.5-0.5B")\n'
        'args = TrainingArguments("out", per_device_train_batch_size=1, bf16=True)\n'
        "rows = tokenize(text, max_length=512)\nTrainer(model=model, args=args).train()\n"
    )
    known = imported({"a.py": source.format(module="transformers", name="Qwen2ForCausalLM")}, _EIGHT)
    own = imported({"a.py": source.format(module="model.blocks", name="BlockModelForCausalLM")}, _EIGHT)
    assert known.fits
    assert [row.field for row in own.missing] == ["model"]


def test_a_config_with_two_words_of_a_program_and_six_of_another_is_of_the_other():
    text = (
        "base_model: Qwen/Qwen2.5-0.5B\nrun_name: a\nepochs: 1\nlearning_rate: 1.0e-5\nmax_seq_len: 2048\n"
        "per_device_batch_size: 2\ngrad_accum: 16\nlora_rank: 16\nlora_alpha: 32\n"
    )
    found = read({"sft.yaml": text}, {"cluster.count": 8})
    assert found.formats["sft.yaml"] == "settings of a program of one's own"
    assert found.plan["workload"]["method"] == "lora"
    assert found.plan["workload"]["global_batch"] == 2 * 16 * 8


def test_a_config_that_only_another_branch_names_shards_nothing():
    script = (
        'KIND="plain"\nif [ "$KIND" == "zero" ]; then\n'
        f"  torchrun --nproc_per_node 8 train.py {_OPTIONS} --deepspeed ds.json\nelse\n"
        f"  torchrun --nproc_per_node 8 train.py {_OPTIONS}\nfi\n"
    )
    sharded = {"a.sh": script.replace('"plain"', '"zero"'), "ds.json": '{"zero_optimization": {"stage": 2}}'}
    assert read(sharded).plan["layout"]["zero_stage"] == 2
    assert "zero_stage" not in read(sharded | {"a.sh": script}).plan.get("layout", {})
    # A config that the command names may name it, too.
    config = "stage: sft\nmodel_name_or_path: Qwen/Qwen2.5-0.5B\nfinetuning_type: full\ndeepspeed: conf/ds.json\n"
    named = {"a.sh": "ls ds.json\nllamafactory-cli train a.yaml\n", "a.yaml": config, "ds.json": sharded["ds.json"]}
    assert read(named).plan["layout"]["zero_stage"] == 2


def test_conversations_of_several_turns_are_no_part_of_a_mini_batch():
    words = (
        "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2.5-0.5B "
        "data.train_batch_size=64 data.max_prompt_length=512 data.max_response_length=512 trainer.n_gpus_per_node=8 "
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 trainer.nnodes=1 "
        "actor_rollout_ref.actor.ppo_mini_batch_size=64 {}\n"
    )
    turns = read({"a.sh": words.format("actor_rollout_ref.rollout.n_agent=4 actor_rollout_ref.rollout.n=1")})
    samples = read({"a.sh": words.format("actor_rollout_ref.rollout.n=4")})
    assert turns.plan["workload"]["group_size"] == samples.plan["workload"]["group_size"] == 4
    assert turns.plan["workload"]["global_batch"] == 64
    assert samples.plan["workload"]["global_batch"] == 256
    uneven = read({"a.sh": words.format("actor_rollout_ref.rollout.n_agent=5 actor_rollout_ref.rollout.n=1")})
    assert "workload.global_batch" in uneven.blocked


def test_verls_sft_takes_the_world_that_torchrun_makes_and_asks_for_a_config_of_ones_own():
    words = (
        "torchrun --nnodes=1 --nproc_per_node=4 -m verl.trainer.fsdp_sft_trainer {} data.train_files=a.parquet "
        "data.train_batch_size=8 data.micro_batch_size_per_gpu=1 data.max_length=512 "
        "model.partial_pretrain=Qwen/Qwen2.5-0.5B trainer.n_gpus_per_node=1\n"
    )
    assert read({"a.sh": words.format("")}).plan["cluster"]["count"] == 4
    assert "workload" in read({"a.sh": words.format("--config-name mine.yaml")}).blocked


def test_ms_swift_takes_a_config_below_its_words():
    config = (
        "model: Qwen/Qwen2.5-0.5B\ntrain_type: lora\nlora_rank: 64\nper_device_train_batch_size: 1\n"
        "gradient_accumulation_steps: 4\nmax_length: 2048\n"
    )
    script = "NPROC_PER_NODE=2 swift sft --config conf/a.yaml --lora_rank 16\n"
    found = read({"a.sh": script, "a.yaml": config})
    assert found.plan["workload"]["lora"]["rank"] == 16
    assert found.plan["workload"]["global_batch"] == 8
    assert "workload" in read({"a.sh": script}).blocked


def test_places_in_arrays_are_words_of_them():
    script = (
        'models=("Qwen/Qwen2.5-0.5B")\nfor i in "${!models[@]}"; do\n  name=${models[$i]}\n'
        "  torchrun --nproc_per_node 8 train.py --model_name_or_path ${name} --per_device_train_batch_size 1\ndone\n"
    )
    assert read({"a.sh": script}).plan["model"] == "Qwen/Qwen2.5-0.5B"


def test_folders_below_a_models_name_are_of_that_model():
    def model(path: str) -> object:
        script = f"torchrun --nproc_per_node 8 train.py --model_name_or_path {path} --per_device_train_batch_size 1 "
        found = imported({"a.sh": script + "--max_length 512 --bf16 True\n"}, _EIGHT)
        return found.complete_plan["model"] if found.complete_plan else None

    assert model("out/Qwen2.5-0.5B-sft/checkpoint-500") == "Qwen/Qwen2.5-0.5B"
    assert model("out/Qwen2.5-0.5B/1e-5-length512") == "Qwen/Qwen2.5-0.5B"
    assert model("Qwen2.5-0.5B/other-13b") is None


def test_a_config_of_a_script_of_ones_own_says_no_precision_that_it_does_not_name():
    text = (
        "model_name_or_path: Qwen/Qwen2.5-0.5B\nmax_seq_length: 1024\nper_device_train_batch_size: 2\nuse_lora: true\n"
        "gradient_accumulation_steps: 4\nlearning_rate: 2.0e-5\nlora_r: 16\nlora_alpha: 32\n{}"
    )
    open_one = read({"sft.yaml": text.format("")}, {"cluster.count": 8})
    assert {row.field: row.values for row in open_one.either}["workload.precision"] == ("bf16", "fp32")
    told = read({"sft.yaml": text.format("bf16: true\n")}, {"cluster.count": 8})
    assert told.plan["workload"]["precision"] == "bf16"


def test_rows_are_as_long_as_a_tokenizers_settings_say():
    text = (
        "model:\n  name: Qwen/Qwen2.5-0.5B\ntokenizer_config:\n  max_length: 512\nbatch_size: 1\nlr: 1.0e-5\n"
        "num_train_epochs: 1\ngradient_accumulation_steps: 2\n"
    )
    assert read({"a.yaml": text}).plan["workload"]["seq_len"] == 512


_SETTINGS = "model_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: 4\nlearning_rate: 1e-4\nuse_peft: true\n"
_LENGTH = "max_length: 4096\n"


def test_what_a_program_of_ones_own_leaves_out_is_open_and_what_decides_is_asked():
    """Words that TRL's parser would refuse are of another program, whose defaults nobody knows."""
    fields = {"workload.precision", "layout.recompute"}
    for more in ("", "my_own_word: 3\n"):
        read_once = read({"train.yaml": f"{_SETTINGS}{_LENGTH}lora_r: 8\n{more}"})
        assert fields <= {row.field for row in read_once.either}
    assert "workload.seq_len" in read({"a.yaml": f"{_SETTINGS}own: 1\n"}).blocked
    text = f"{_SETTINGS}{_LENGTH}bf16: true\nlora_r: 8\npacking: true\nown: 1\n"
    asked = imported({"a.yaml": text}, _EIGHT)
    assert {row.field for row in asked.missing} == {"layout.recompute", "layout.zero_stage"}
    assert imported({"a.yaml": text + "gradient_checkpointing: true\n"}, _EIGHT).fits


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ("align:\n  method: dpo\n", "workload.stage"), ("max_prompt_length: 512\n", "workload.stage"),
        ("algorithm_name: grpo\n", "workload.rollout"), ("token_budget: 1450\n", "workload.micro_batch"),
        ("tokens_per_batch: 16384\n", "workload.micro_batch"),
    ],
)  # fmt: skip
def test_words_of_another_stage_or_batch_stop_settings_of_ones_own(words: str, field: str):
    settings = "base_model: Qwen/Qwen2.5-7B\nbatch_size: 2\nmax_seq_len: 1024\nlr: 1e-4\ngrad_accum: 8\nepochs: 1\n"
    assert field not in read({"a.yaml": settings}).blocked
    assert field in read({"a.yaml": settings + words}).blocked


def test_a_checkpoint_of_packed_weights_is_not_trained_as_a_whole():
    text = "base_model: {}\nsequence_len: 2048\nmicro_batch_size: 1\nsample_packing: true\n"
    blocked = {
        name: "workload.method" in read({"a.yml": text.format(name)}).blocked
        for name in ("Qwen/Qwen3-8B", "openai/gpt-oss-20b", "./Qwen3-8B-w4a16", "x/Llama-3.1-8B-AWQ")
    }
    assert blocked == dict(zip(blocked, (False, False, True, True), strict=True))


_LOADED = (
    "import torch\nfrom transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
    'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B"{})\n{}'
    'args = TrainingArguments("out", per_device_train_batch_size=1{})\n'
    "rows = tokenize(text, max_length=512)\nTrainer(model=model, args=args).train()\n"
)


def test_a_script_is_judged_as_it_loads_its_model_and_has_it_recompute():
    half = read({"a.py": _LOADED.format(", torch_dtype=torch.float16", "", ", fp16=False")}).plan["workload"]
    assert (half["precision"], half["weights"]) == ("fp16", "bf16")
    plain = read({"a.py": _LOADED.format("", "", "")})
    assert {row.field: row.values for row in plain.either}["workload.precision"] == ("bf16", "fp32")
    assert plain.plan["layout"]["recompute"] == "none"
    for call in ("model.gradient_checkpointing_enable()\n", "model = prepare_model_for_kbit_training(model)\n"):
        assert read({"a.py": _LOADED.format("", call, "")}).plan["layout"]["recompute"] == "full"
    where = ", bf16=torch.cuda.is_available() and torch.cuda.is_bf16_supported()"
    usual = {row.field: row.value for row in read({"a.py": _LOADED.format("", "", where)}).assumed}
    assert usual["workload.precision"] == "bf16"


def test_a_notebook_is_one_process():
    cells = [{"cell_type": "code", "source": _LOADED.format("", "", ", bf16=True")}]
    notebook = {"a.ipynb": json.dumps({"cells": cells, "nbformat": 4, "metadata": {}})}
    assert read(notebook).plan["cluster"]["count"] == 1
    assert "cluster" not in read({"a.py": _LOADED.format("", "", ", bf16=True")}).plan
    assert [row.field for row in imported(notebook, _EIGHT).missing] == ["layout.dp"]


def test_a_model_that_is_made_elsewhere_has_a_method_that_is_not_known():
    source = (
        "from trl import DPOConfig, DPOTrainer\nfrom transformers import AutoModelForCausalLM\n"
        '{}reference = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")\n'
        "args = DPOConfig(per_device_train_batch_size=1, max_length=512, bf16=True)\n"
        "DPOTrainer(model=model, ref_model=reference, args=args).train()\n"
    )
    makes = 'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B").to("cuda")\n'
    assert "workload.method" not in read({"a.py": source.format(makes)}).blocked
    own = f"def load():\n    {makes}    return model\nmodel = load()\n"
    assert "workload.method" not in read({"a.py": source.format(own)}).blocked
    assert "workload.method" in read({"a.py": source.format("model = Wrapped().get_model()\n")}).blocked


@pytest.mark.parametrize(("old", "offload"), [("cpu_offload", "optimizer"), ("cpu_offload_params", "params")])
def test_switches_of_older_deepspeed_send_to_the_host(old: str, offload: str):
    zero = {"stage": 3 if offload == "params" else 2, "cpu_offload": True, old: True}
    text = json.dumps({"zero_optimization": zero, "bfloat16": {"enabled": True}, "train_batch_size": 16})
    plan = read({"ds.json": text}).plan
    assert (plan["layout"]["offload"], plan["workload"]["precision"]) == (offload, "bf16")


def test_adapters_that_verl_goes_on_with_are_asked_about():
    start = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen3-8B "
    assert "workload.method" not in read({"run.sh": start}).blocked
    assert "workload.method" in read({"run.sh": f"{start} +actor_rollout_ref.model.lora_adapter_path=/sft"}).blocked


def test_a_program_of_ones_own_names_its_adapters_as_it_likes():
    command = (
        "python finetune.py --model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 2 --learning_rate 1e-4 "
    )
    command += "--max_seq_length 1024 --fp16 --lora_rank 8 --lora_alpha 32\n"
    workload = read({"run.sh": command}).plan["workload"]
    assert (workload["method"], workload["lora"]["rank"]) == ("lora", 8)
    settings = f"{_SETTINGS.replace('use_peft: true', 'lora_rank: 16')}{_LENGTH}load_in_4bit: true\n"
    assert read({"a.yaml": settings}).plan["workload"]["method"] == "qlora"


def test_a_notebook_is_as_long_as_its_cells_and_a_tokenizer_has_any_name():
    cell = {"cell_type": "code", "source": _LOADED.format("", "", ", bf16=True").replace("tokenize(text", "tok(text")}
    cell["source"] = cell["source"].replace("max_length=512", "truncation=True, max_length=512")
    shown = {"outputs": [{"data": {"image/png": "A" * 300_000}}]}
    text = json.dumps({"cells": [cell | shown], "nbformat": 4, "metadata": {}})
    assert read({"a.ipynb": text}).plan["workload"]["seq_len"] == 512


def test_unsloth_loads_what_a_packed_checkpoint_was_made_of_where_it_is_told_to():
    source = (
        "from unsloth import FastLanguageModel\nfrom trl import SFTTrainer\n"
        'model, tok = FastLanguageModel.from_pretrained("unsloth/Meta-Llama-3.1-8B-bnb-4bit", max_seq_length=2048{})\n'
        "model = FastLanguageModel.get_peft_model(model, r=16)\nSFTTrainer(model=model).train()\n"
    )
    methods = [
        read({"a.py": source.format(word)}).plan["workload"].get("method")
        for word in (", load_in_4bit=False", ", load_in_4bit=True")
    ]
    assert methods == ["lora", "qlora"]


def test_a_config_is_of_the_stage_that_its_file_is_named_after():
    text = f"{_SETTINGS}{_LENGTH}lora_r: 8\n"
    stages = [read({name: text}).plan["workload"].get("stage") for name in ("dpo_tldr.yaml", "model.yaml")]
    assert stages == ["dpo", None]


def test_a_source_that_trains_in_several_stages_is_no_one_run():
    source = (
        "from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer\n"
        "warm = SFTConfig(per_device_train_batch_size=1, max_length=512, bf16=True)\n"
        'SFTTrainer(model="Qwen/Qwen2.5-0.5B", args=warm).train()\n'
    )
    more = "GRPOTrainer(model='out', args=GRPOConfig(num_generations=8)).train()\n"
    assert "workload.stage" not in read({"a.py": source}).blocked
    assert "workload.stage" in read({"a.py": source + more}).blocked
