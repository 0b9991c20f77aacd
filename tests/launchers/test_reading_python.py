"""Python that is read with what it is given: the options of a command, configs that it opens, its own functions."""

import pytest

from planner.files.importing import imported

DEVICES = {"cluster.accelerator": "h100-sxm", "cluster.count": 1}
TRAIN = """
import argparse, yaml
from transformers import AutoModelForCausalLM, TrainingArguments, Trainer
from peft import LoraConfig

def load_config(path):
    with open(path) as f:
        return yaml.safe_load(f)

def build(cfg):
    model = AutoModelForCausalLM.from_pretrained(cfg["model"]["name"])
    lora = LoraConfig(r=cfg.get("lora", {}).get("r", 64), lora_alpha=32)
    return model, cfg["training"]

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="configs/small.yaml")
    parser.add_argument("--model")
    parser.add_argument("--batch", type=int, default=2)
    args = parser.parse_args()
    cfg = load_config(args.config)
    if args.model is not None:
        cfg["model"]["name"] = args.model
    model, train = build(cfg)
    tokens = tokenize(max_length=train["max_length"])
    training = TrainingArguments(per_device_train_batch_size=args.batch, num_train_epochs=train.get("epochs", 3))
"""
SMALL = """
model: {name: Qwen/Qwen2.5-0.5B}
training: {max_length: 512, epochs: 2}
"""


def plan_of(**files: str):
    return imported({name.replace("_", "."): text for name, text in files.items()}, DEVICES)


def test_a_config_that_the_source_opens_says_its_values() -> None:
    result = plan_of(train_py=TRAIN, small_yaml=SMALL)
    assert result.fits
    assert not result.missing
    assert result.plan["model"] == "Qwen/Qwen2.5-0.5B"
    workload = result.plan["workload"]
    assert (workload["seq_len"], workload["micro_batch"], workload["epochs"], workload["lora"]["rank"]) == (
        512,
        2,
        2.0,
        64,
    )


def test_a_command_goes_over_the_defaults_of_the_source_that_it_starts() -> None:
    command = "python train.py --model Qwen/Qwen2.5-1.5B --batch 8\n"
    result = plan_of(run_sh=command, train_py=TRAIN, small_yaml=SMALL)
    assert result.plan["model"] == "Qwen/Qwen2.5-1.5B"
    assert result.plan["workload"]["micro_batch"] == 8


def test_a_config_that_is_not_given_is_named() -> None:
    result = plan_of(train_py=TRAIN)
    assert result.fits is None
    assert any("small.yaml" in path for path in result.refers)


def test_a_branch_that_may_be_taken_leaves_a_value_open() -> None:
    text = TRAIN.replace("if args.model is not None:", "if torch.cuda.device_count() > 1:")
    result = plan_of(train_py=text.replace('add_argument("--model")', 'add_argument("--model", default="x/y")'),
                     small_yaml=SMALL)  # fmt: skip
    assert "model" in {row.field for row in result.missing}


def test_functions_of_their_own_do_not_mix_their_names() -> None:
    text = TRAIN + "\ndef other():\n    cfg = {'model': {'name': 'a/b'}}\n    train = 3\n    return cfg\n"
    assert plan_of(train_py=text, small_yaml=SMALL).plan["workload"]["seq_len"] == 512


def test_one_process_over_several_devices_is_judged_on_one() -> None:
    text = """
from transformers import AutoModelForCausalLM, TrainingArguments
model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-70b-hf", device_map="auto")
tokenize(max_length=512)
TrainingArguments(per_device_train_batch_size=1, bf16=True)
"""
    eight = imported({"train.py": text}, {**DEVICES, "cluster.count": 8})
    assert eight.fits is None
    assert [row.field for row in eight.missing] == ["layout.dp"]
    one = imported({"train.py": text}, {"cluster.accelerator": "h100-sxm"})
    assert (one.plan["cluster"]["count"], one.fits) == (1, False)


def test_settings_of_fsdp_in_a_file_of_their_own() -> None:
    script = (
        "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen2.5-7B --fsdp 'full_shard auto_wrap' \\\n"
    )
    script += "  --fsdp_config fsdp.json --per_device_train_batch_size 1 --block_size 2048 --bf16 True\n"
    config = '{"_note": "x", "transformer_layer_cls_to_wrap": "Qwen2DecoderLayer", "activation_checkpointing": true}'
    result = imported({"run.sh": script, "fsdp.json": config}, {"cluster.accelerator": "h100-sxm"})
    assert result.plan["layout"]["recompute"] == "full"
    assert result.plan["layout"]["zero_stage"] == 3


def test_engines_that_python_starts() -> None:
    source = """
from vllm import LLM, SamplingParams
tp = 4
llm = LLM("meta-llama/Llama-3.1-70B-Instruct", tensor_parallel_size=tp, max_model_len=16384)
"""
    result = imported({"serve.py": source}, {"cluster.accelerator": "h100-sxm"})
    assert result.formats == {"serve.py": "Python script that starts vLLM"}
    assert (result.plan["layout"]["tp"], result.plan["workload"]["max_context"]) == (4, 16384)
    assert result.fits


RAY = """
import deepspeed, ray.train, torch
from ray.train import ScalingConfig
from ray.train.torch import TorchTrainer
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

def build(name, settings):
    model = AutoModelForCausalLM.from_pretrained(name)
    model.gradient_checkpointing_enable()
    return deepspeed.initialize(model=model, optimizer=torch.optim.AdamW(model.parameters()), config=settings)

def rows(tokenizer, length):
    return lambda row: tokenizer(row["text"], max_length=length, truncation=True)

def work(config):
    settings = dict(config["settings"])
    settings.update(MORE)
    engine = build(config["model"], settings)
    rows(tokenizer, config["length"])

def main():
    settings = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4,
                "zero_optimization": {"stage": 3}}
    config = {"model": "Qwen/Qwen3-8B", "length": 1024, "settings": settings}
    TorchTrainer(
        work, train_loop_config=config,
        scaling_config=ScalingConfig(num_workers=16, use_gpu=True, accelerator_type="A100-80G"),
    ).fit()
"""


def test_what_ray_train_starts_on_its_workers() -> None:
    result = imported({"train.py": RAY.replace("MORE", '{"bf16": {"enabled": True}}')}, {})
    assert result.formats == {"train.py": "Ray Train: Python script on DeepSpeed's engine"}
    assert not result.missing
    workload, layout = result.plan["workload"], result.plan["layout"]
    assert (workload["framework"], workload["precision"], workload["seq_len"]) == ("deepspeed", "bf16", 1024)
    assert (workload["micro_batch"], workload["global_batch"]) == (2, 2 * 4 * 16)
    assert (layout["zero_stage"], layout["recompute"]) == (3, "full")
    assert result.plan["cluster"] == {"accelerator": "a100-sxm-80gb", "count": 16}


def test_a_config_that_is_made_where_it_runs_leaves_open_what_it_may_say() -> None:
    result = imported({"train.py": RAY.replace("MORE", "precision_of(device)")}, {"cluster.accelerator": "h100-sxm"})
    assert result.fits is None
    assert [row.field for row in result.missing] == ["workload.precision"]


def test_workers_of_ray_train_hold_whole_copies_of_a_trainer() -> None:
    engine = 'build(config["model"], settings)'
    trainer = 'Trainer(build(config["model"], {}), TrainingArguments("out", per_device_train_batch_size=1, bf16=True))'
    source = RAY.replace("MORE", "{}").replace(engine, trainer)
    source = source.replace("return deepspeed.initialize", "return prepared")
    result = imported({"train.py": source}, {"cluster.accelerator": "h100-sxm"})
    assert result.formats == {"train.py": "Ray Train: Python script on the transformers Trainer"}
    assert not result.missing
    assert result.fits is False
    assert result.complete_plan is not None
    assert result.complete_plan["layout"]["zero_stage"] == 0
    assert result.complete_plan["cluster"]["count"] == 16


def test_arguments_that_only_a_mapping_says_are_no_defaults() -> None:
    for call in ("TrainingArguments(**settings)", "SFTConfig(per_device_train_batch_size=1, **load(path))"):
        source = f"model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-0.6B')\ntokenize(max_length=512)\n{call}\n"
        result = imported({"train.py": source + "SFTTrainer(model)\n"}, DEVICES)
        assert result.fits is None
        assert "workload" in {row.field for row in result.missing}
    known = "settings = {'per_device_train_batch_size': 1, 'bf16': True}\n" + source
    known = known.replace("**load(path)", "**settings")
    assert imported({"train.py": known + "SFTTrainer(model)\n"}, DEVICES).fits


def test_adapters_that_are_loaded_to_be_trained_are_no_full_training() -> None:
    source = "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-0.6B')\n"
    source += "model = PeftModel.from_pretrained(model, path, is_trainable={})\n"
    source += "DPOTrainer(model, args=DPOConfig(max_length=512, per_device_train_batch_size=1))\n"
    result = imported({"dpo.py": source.format("True")}, DEVICES)
    assert [row.field for row in result.missing] == ["workload.method"]
    beside = source.format("True") + "reference = PeftModel.from_pretrained(model, path, is_trainable=False)\n"
    assert imported({"dpo.py": beside}, DEVICES).fits is None
    assert imported({"dpo.py": source.format("False")}, DEVICES).fits


@pytest.mark.parametrize("arguments", ["UnslothTrainingArguments", "Seq2SeqTrainingArguments", "MyTrainingArguments"])
def test_arguments_of_any_trainer_are_read(arguments: str) -> None:
    source = "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-0.6B')\n"
    source += f"args = {arguments}(per_device_train_batch_size=3, gradient_accumulation_steps=5)\n"
    source += "rows = OwnDataset('x.json', tokenizer, max_len=512)\nTrainer(model=model, args=args)\n"
    plan = imported({"train.py": source}, DEVICES).plan
    assert plan["workload"]["micro_batch"] == 3
    assert plan["workload"]["seq_len"] == 512


def test_a_trainer_whose_arguments_are_made_elsewhere_gets_no_verdict() -> None:
    source = "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-0.6B')\n"
    source += "SFTTrainer(model=model, args=own.settings())\n"
    assert imported({"train.py": source}, DEVICES).fits is None
