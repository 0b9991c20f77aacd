"""Settings, options and loops of training programs that nobody knows, read by the words of the field in them."""

from __future__ import annotations

import pytest

from estimator.errors import PlanError
from planner.files.importing import ImportedConfig, imported

_DEVICES = {"cluster.accelerator": "h100-sxm", "cluster.count": 8}
_SETTINGS = """
model:
  base_model: meta-llama/Llama-3.2-1B
data:
  maxSeqLen: 2048
training:
  batch-size: 4
  grad_accum_steps: 2
  epochs: 3
  lr: 2e-5
  mixed_precision: bf16
  gradient_checkpointing: true
optimizer:
  name: AdamW
"""
_OWN_MODEL = """
max_seq_len: 1024
model: {d_model: 512, n_layers: 8, vocab_size: 50257, attn: [{kind: gqa, kwargs: {n_heads: 8, n_kv_heads: 4}}]}
training: {batch_size: 16, gradient_accumulation_steps: 8, max_steps: 50000, mixed_precision: bf16, lr: 3e-4}
"""
_LOOP = """
import argparse
import torch
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--model_name", default="Qwen/Qwen2.5-0.5B")
parser.add_argument("--batch_size", type=int, default=4)
parser.add_argument("--max_len", type=int, default=512)
args = parser.parse_args()
model = AutoModelForCausalLM.from_pretrained(args.model_name, torch_dtype=torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
loader = DataLoader(rows, batch_size=args.batch_size, shuffle=True)
test_loader = DataLoader(others, batch_size=64)
for batch in loader:
    loss = model(**batch).loss
    loss.backward()
    optimizer.step()
"""


def _read(text: str, name: str = "settings.yaml", **more: str) -> ImportedConfig:
    return imported({name: text, **more}, _DEVICES)


def _asked(result: ImportedConfig) -> set[str]:
    return {row.field for row in result.missing}


def test_words_of_the_field_in_any_sections_are_a_run() -> None:
    result = _read(_SETTINGS)
    workload = result.plan["workload"]
    assert not result.missing
    assert result.fits
    assert (workload["seq_len"], workload["global_batch"], workload["epochs"]) == (2048, 64, 3.0)
    assert (workload["precision"], workload["optimizer"]) == ("bf16", "adamw")
    assert result.plan["layout"]["recompute"] == "full"


def test_a_model_of_its_own_dimensions_has_a_verdict_that_holds_for_each_kind_of_mlp() -> None:
    result = _read(_OWN_MODEL)
    assert result.fits
    assert result.implied["workload"]["stage"] == "pretrain"
    assert any("gate" in text for text in result.warnings)


@pytest.mark.parametrize("word", ["batch-size", "base_model", "maxSeqLen"])
def test_what_is_not_said_is_asked_for(word: str) -> None:
    field = {"batch-size": "workload.micro_batch", "base_model": "model", "maxSeqLen": "workload.seq_len"}[word]
    text = "".join(line for line in _SETTINGS.splitlines(keepends=True) if word not in line)
    text = text.replace("model:\n", "") if word == "base_model" else text.replace("data:\n", "")
    if word == "batch-size":
        with pytest.raises(PlanError):
            _read(text)
        return
    assert _asked(_read(text)) == {field}


def test_what_does_not_fit_at_the_most_is_asked_about_and_not_refused() -> None:
    result = _read(_SETTINGS.replace("Llama-3.2-1B", "Llama-3.1-8B"))
    assert result.fits is None
    assert "layout.zero_stage" in _asked(result)


@pytest.mark.parametrize(
    ("key", "field"),
    [
        ("num_labels: 3", "workload.stage"),
        ("ppo_epochs: 4", "workload.rollout"),
        ("vision_tower: siglip", "model"),
        ("teacher_model: meta-llama/Llama-3.1-70B", "workload.method"),
        ("num_experts: 8", "model"),
        ("freeze_layers: 10", "workload.method"),
        ("training_mode: knowledge_distillation", "workload.stage"),
    ],
)
def test_words_of_what_no_plan_is_stop_the_verdict(key: str, field: str) -> None:
    assert field in _asked(_read(f"{_SETTINGS}{key}\n"))


def test_other_parts_of_the_file_say_nothing_of_the_training() -> None:
    more = "evaluation: {batch_size: 64, max_length: 512, reward: 1}\ninference: {model: gpt2, batch_size: 1}\n"
    assert _read(_SETTINGS + more).plan == _read(_SETTINGS).plan


def test_two_sections_that_differ_leave_it_open() -> None:
    assert "workload.seq_len" in _asked(_read(f"{_SETTINGS}packing_settings: {{max_length: 4096}}\n"))


def test_adapters_of_a_section_are_trained() -> None:
    result = _read(f"{_SETTINGS}lora: {{r: 16, lora_alpha: 32, target_modules: [q_proj, v_proj]}}\n")
    assert result.plan["workload"]["method"] == "lora"
    assert result.plan["workload"]["lora"] == {"rank": 16, "alpha": 32.0, "targets": "q_proj,v_proj"}


def test_options_of_a_command_win_over_the_config_that_it_names() -> None:
    script = "torchrun --nproc_per_node 8 train_mine.py --config settings.yaml --max_length 512 --batch_size 2\n"
    result = imported({"run.sh": script, "settings.yaml": _SETTINGS}, {"cluster.accelerator": "h100-sxm"})
    assert result.plan["workload"]["seq_len"] == 512
    assert (result.plan["cluster"]["count"], result.plan["workload"]["global_batch"]) == (8, 32)


def test_options_of_an_unknown_script_leave_its_defaults_open() -> None:
    script = "torchrun --nproc_per_node 8 train_mine.py --model_name gpt2 --batch_size 4 --epochs 1 --lr 1e-4"
    assert _asked(_read(script, "run.sh")) == {"workload.global_batch", "workload.seq_len"}
    whole = f"{script} --seq_len 512 --gradient_accumulation_steps 2\n"
    result = _read(whole, "run.sh")
    assert result.fits
    assert result.plan["workload"]["global_batch"] == 64


def test_a_loop_is_read_by_its_arguments_and_loaders() -> None:
    result = imported({"train.py": _LOOP}, {**_DEVICES, "cluster.count": 1})
    assert result.fits
    assert result.plan["model"] == "Qwen/Qwen2.5-0.5B"
    assert (result.plan["workload"]["seq_len"], result.plan["workload"]["global_batch"]) == (512, 4)
    command = imported({"run.sh": "python train.py --batch_size 16\n", "train.py": _LOOP}, _DEVICES)
    assert command.implied["workload"]["micro_batch"] == 16


def test_a_source_that_only_evaluates_or_classifies_has_no_verdict() -> None:
    trainer = (
        "from transformers import Trainer, TrainingArguments, AutoModelForCausalLM\n"
        'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")\n'
        "args = TrainingArguments(per_device_train_batch_size=4, bf16=True)\n"
        "tokenizer(text, max_length=512)\n"
        "trainer = Trainer(model=model, args=args)\n"
    )
    assert _read(f"{trainer}trainer.train()\n", "train.py").fits
    assert _asked(_read(f"{trainer}trainer.evaluate()\n", "train.py")) == {"workload"}
    heads = trainer.replace("ForCausalLM", "ForSequenceClassification")
    assert _asked(_read(f"{heads}trainer.train()\n", "train.py")) == {"workload.stage"}


def test_settings_beside_a_known_program_are_of_something_else() -> None:
    script = (
        "torchrun --nproc_per_node 8 sft.py --model_name_or_path Qwen/Qwen2.5-0.5B --per_device_train_batch_size 1 "
        "--max_length 512 --bf16 true\n"
    )
    alone, beside = _read(script, "run.sh"), _read(script, "run.sh", **{"results.yaml": _SETTINGS})
    assert beside.plan == alone.plan
    assert any("results.yaml" in text for text in beside.warnings)


def test_a_flat_name_may_say_its_section() -> None:
    flat = "train_batch_size: 2\nmodel_max_len: 256\ntrain_epochs: 1\nlr: 1e-4\nmodel_name: gpt2\n"
    assert _read(flat).plan["workload"]["seq_len"] == 256


def test_what_is_none_takes_no_branch_that_asks_for_it() -> None:
    source = _LOOP.replace(
        "optimizer =", "cut = args.max_len\nif cut is None:\n    cut = tokenizer.model_max_length\noptimizer =", 1
    )
    source = source.replace('"--max_len", type=int, default=512', '"--longest", type=int, default=512')
    source = source.replace("cut = args.max_len", "max_len = args.longest").replace("cut", "max_len")
    result = imported({"train.py": source}, {**_DEVICES, "cluster.count": 1})
    assert result.plan["workload"]["seq_len"] == 512


@pytest.mark.parametrize("word", ["parallelism: {dp: 1, tp: 1}", "trainer: {devices: 8}"])
def test_one_word_of_a_program_does_not_make_it_that_program(word: str) -> None:
    assert _read(f"{_SETTINGS}{word}\n").formats == _read(_SETTINGS).formats


def test_a_batch_beside_a_rate_is_no_config_of_deepspeed() -> None:
    settings = _read("train_batch_size: 2\nmax_len: 256\nepochs: 1\nlr: 1e-4\nmodel_name: gpt2\n", "a.json.yaml")
    assert "DeepSpeed" not in "".join(settings.formats.values())


def test_what_has_a_learning_rate_is_no_server() -> None:
    text = "model: Qwen/Qwen3-1.7B\ntrain_batch_size: 128\nlearning_rate: 1e-6\ngpu_memory_utilization: 0.6\n"
    with pytest.raises(PlanError):
        _read(f"{text}ppo_micro_batch_size_per_gpu: 2\n")


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ("rm: {adapter: my/rm}", "workload.rollout"),
        ("technique: {freeze_base: true}", "workload.method"),
        ("defaults: [{override /technique: reward_model}, _self_]", "workload"),
        ("train: {peft_method: adalora}", "workload.method"),
    ],
)
def test_sections_with_the_trainers_words_are_stopped_by_the_same_words(more: str, field: str) -> None:
    trainer = (
        "model: {name: Qwen/Qwen2.5-0.5B}\ntraining: {per_device_train_batch_size: 2, gradient_accumulation_steps: 8, "
        "bf16: true, max_length: 512}\n"
    )
    assert not _read(trainer).missing
    assert field in _asked(_read(f"{trainer}{more}\n"))


def test_steps_that_add_up_are_an_accumulation_whatever_they_are_called() -> None:
    for word in ("acc_steps", "grad_accum_every", "steps_to_accumulate", "gradient_accumulation_passes"):
        assert _read(_SETTINGS.replace("grad_accum_steps", word)).plan["workload"]["global_batch"] == 64


def test_weights_that_are_packed_in_another_way_leave_the_method_open() -> None:
    source = (
        "from transformers import Trainer, TrainingArguments, AutoModelForCausalLM, QuantoConfig\n"
        'config = QuantoConfig(weights="int4")\n'
        'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B", quantization_config=config)\n'
        "tokenizer(text, max_length=512)\n"
        "trainer = Trainer(model=model, args=TrainingArguments(per_device_train_batch_size=4, bf16=True))\n"
        "trainer.train()\n"
    )
    assert _asked(_read(source, "train.py")) == {"workload.method"}


@pytest.mark.parametrize(
    "words", ["use_peft: true, load_4bit: true", "use_qlora: true", "use_lora: true, use_4bit: true"]
)
@pytest.mark.parametrize("trainer", [True, False])
def test_weights_of_four_bits_with_adapters_are_qlora_in_any_words(words: str, trainer: bool) -> None:
    text = _SETTINGS.replace("batch-size", "per_device_train_batch_size") if trainer else _SETTINGS
    result = _read(f"{text}tuning: {{{words}, lora_r: 8, bnb_4bit_use_double_quant: true}}\n")
    assert result.plan["workload"]["method"] == "qlora"
    told = {**result.implied["workload"].get("lora", {}), **result.plan["workload"]["lora"]}
    assert told["quantisation"] == "nf4"


def test_options_of_a_source_that_says_nothing_stand_over_its_config() -> None:
    script = "torchrun --nproc_per_node 8 train_mine.py --config settings.yaml --max_length 512\n"
    files = {"run.sh": script, "settings.yaml": _SETTINGS, "train_mine.py": "from mine import main\nmain()\n"}
    assert imported(files, {"cluster.accelerator": "h100-sxm"}).plan["workload"]["seq_len"] == 512


@pytest.mark.parametrize("size", ["-1", "0", "2.5", ".nan", "1e309", "[1, 2]", '"${x}"'])
def test_sizes_that_are_none_are_asked_for(size: str) -> None:
    assert "workload.micro_batch" in _asked(_read(_SETTINGS.replace("batch-size: 4", f"batch-size: {size}")))
    assert "model" in _asked(_read(_OWN_MODEL.replace("d_model: 512", f"d_model: {size}")))
