"""A Python script for Unsloth 2026.10 and TRL 0.24: one process per device, whole replicas of the model.

Every value from the plan goes in as a Python literal, so that no name becomes code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from launchers import File, Piece, Start
from launchers.hf.adapters import checkpoint, embedding_modules, target_modules, whole_alpha
from launchers.hf.write import batch_comment, learning_rate, length, optimizer, packages
from launchers.job import Job, heading
from launchers.shell.starting import torchrun_options
from launchers.tables import table

PATH = "train_unsloth.py"
_DATASET = "SET_ME_DATASET"
_TEXTS = """
def as_text(rows):
    return {"text": [tokenizer.apply_chat_template(chat, tokenize=False) for chat in rows["messages"]]}


data = data.map(as_text, batched=True)
"""


def render(job: Job) -> Piece:
    """The script, its start by python or torchrun, and what the user must set."""
    stage = table("unsloth")["stages"][job.training.stage]
    needs: list[str] = []
    comments = {
        "gradient_accumulation_steps": batch_comment(job),
        "learning_rate": "a value to start from; yours to choose",
    }
    body = _call("model, tokenizer = FastLanguageModel.from_pretrained", _model(job, needs, comments), comments)
    if job.uses_adapters:
        body += _call("model = FastLanguageModel.get_peft_model", _adapter(job, needs), comments, "model")
    body += _call("data = load_dataset", _data(job, needs, comments), comments)
    if job.training.stage == "sft":
        body += _TEXTS.rstrip("\n").split("\n")
    body += _call(f"arguments = {stage['config']}", _arguments(job, comments), comments)
    wanted = ["unsloth", "trl==0.24.0", *(name for name in packages(job) if name != "flash-attn")]
    needs.append(f"environment: pip install {' '.join(dict.fromkeys(wanted))}")
    command = f"python {PATH}" if job.devices == 1 else f"torchrun {torchrun_options(job)} {PATH}"
    lines = [
        *(f"# {line}" for line in heading(job, command)),
        "from unsloth import FastLanguageModel  # before TRL and transformers, which it changes",
        "import torch",
        "from datasets import load_dataset",
        f"from trl import {stage['config']}, {stage['trainer']}",
        "",
        *body,
        f"trainer = {stage['trainer']}(",
        "    model=model, args=arguments, train_dataset=data, processing_class=tokenizer",
        ")",
        "trainer.train()",
        "trainer.save_model()",
        "",
    ]
    return Piece((File(PATH, "unsloth", "\n".join(lines)),), tuple(needs), Start(command, programs=("unsloth",)))


class _Type(str):
    """The name of one of torch's number types, which stands in the script without quotes."""


def _call(function: str, arguments: Mapping[str, Any], comments: Mapping[str, str], first: str = "") -> list[str]:
    """`function(first, name=value, …)` as lines, an argument each, whose values are Python literals."""
    lines = [f"{function}(", *([f"    {first},"] if first else [])]
    for name, value in arguments.items():
        literal = f"torch.{value}" if isinstance(value, _Type) else repr(value)
        lines.append(f"    {name}={literal}," + (f"  # {comments[name]}" if name in comments else ""))
    return [*lines, ")"]


def _model(job: Job, needs: list[str], comments: dict[str, str]) -> dict[str, Any]:
    training = job.training
    fields: dict[str, Any] = {
        "model_name": checkpoint(job, PATH, "model_name", needs, comments),
        "max_seq_length": job.seq_len,
        "dtype": _Type("float16" if training.precision == "fp16" else "bfloat16"),
        "load_in_4bit": bool(job.quantisation),
        "full_finetuning": not job.uses_adapters,
        "use_gradient_checkpointing": _checkpointing(job),
        # Else Unsloth loads its own upload of the model, packed by others.
        "use_exact_model_name": True,
    }
    if training.weights == "fp32":
        fields["float32_mixed_precision"] = True
    return fields


def _checkpointing(job: Job) -> bool | str:
    """Unsloth's own variant holds the kept inputs of layers in host memory."""
    return "unsloth" if job.offload == "activations" else job.recompute == "full"


def _adapter(job: Job, needs: list[str]) -> dict[str, Any]:
    lora = job.training.lora
    targets = target_modules(job, PATH, "target_modules", needs) or list(table("unsloth")["all_linear"])
    fields: dict[str, Any] = {
        "r": lora.rank,
        "lora_alpha": whole_alpha(job, "Unsloth"),
        "lora_dropout": lora.dropout,
        "target_modules": targets,
        "bias": "none",
        "use_gradient_checkpointing": _checkpointing(job),
        "max_seq_length": job.seq_len,
    }
    if lora.train_embeddings:
        fields["modules_to_save"] = embedding_modules(job, PATH, "modules_to_save", needs)
    return fields


def _data(job: Job, needs: list[str], comments: dict[str, str]) -> dict[str, Any]:
    if job.site.dataset is None:
        content = table("unsloth")["stages"][job.training.stage]["data"]
        comments["path"] = f"set this: a Hugging Face data set or a folder of one ({content})"
        needs.append(f"{PATH}: path of load_dataset, your data ({content})")
    return {"path": job.site.dataset or _DATASET, "split": "train"}


def _arguments(job: Job, comments: dict[str, str]) -> dict[str, Any]:
    """The Trainer's arguments. Packed rows are of pretraining and SFT alone."""
    words, training = table("hf_arguments"), job.training
    lengths: dict[str, Any] = {"max_length": job.seq_len}
    if training.stage in ("pretrain", "sft"):
        lengths["packing"] = training.packing
    else:
        lengths["max_prompt_length"] = max(1, job.seq_len // 2)
        comments["max_prompt_length"] = "of max_length; yours to choose"
    return {
        "output_dir": f"saves/{job.slug}",
        **table("unsloth")["stages"][training.stage]["arguments"],
        **lengths,
        "per_device_train_batch_size": job.micro_batch,
        "gradient_accumulation_steps": job.accumulation,
        **({"fp16": True, "bf16": False} if training.precision == "fp16" else {"bf16": True}),
        **optimizer(job),
        "learning_rate": learning_rate(job),
        "gradient_checkpointing": job.recompute == "full",
        **length(job),
        **words["run"],
        **words["reporting"],
    }
