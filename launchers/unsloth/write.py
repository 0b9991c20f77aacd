"""A Python script for Unsloth 2026.10 and TRL 0.24: one process per device, whole replicas of the model."""

from __future__ import annotations

from typing import Any

from knowledge.models.catalogue import architecture
from launchers.families import linear_layers_of
from launchers.hf import script
from launchers.hf.adapters import checkpoint
from launchers.hf.profiler import CALLBACK, callback
from launchers.hf.write import LAST_SAVED, batch_comment, learning_rate, length, optimizer, packages, saving
from launchers.launch.heading import heading
from launchers.launch.placeholders import REWARDS
from launchers.launch.training import TrainingLaunch
from launchers.pieces import File, Piece, Start
from launchers.python.calls import Symbol, call
from launchers.rollouts import answer_tokens, samples_per_prompt
from launchers.shell.starting import torchrun_options
from launchers.tables import table

PATH = "train_unsloth.py"


def render(launch: TrainingLaunch) -> Piece:
    """The script, its start by python or torchrun, and what the user must set."""
    stage = table("unsloth/fields")["stages"][launch.training.stage]
    needs: list[str] = []
    comments = {
        "gradient_accumulation_steps": batch_comment(launch),
        "learning_rate": "a value to start from; yours to choose",
    }
    body = call("model, tokenizer = FastLanguageModel.from_pretrained", _model(launch, needs, comments), comments)
    if launch.uses_adapters:
        body += call("model = FastLanguageModel.get_peft_model", _adapter(launch, needs), comments, "model")
    body += call("data = load_dataset", script.data(launch, PATH, stage["data"], needs, comments), comments)
    if launch.training.stage == "sft":
        body += script.AS_TEXTS
    body += call(f"arguments = {stage['config']}", _arguments(launch, comments), comments)
    wanted = ["unsloth", "trl==0.24.0", *(name for name in packages(launch) if name != "flash-attn")]
    rewards: list[str] = []
    if launch.training.stage == "grpo":
        rewards = [f"from {REWARDS} import reward  # set this: a module beside this file with your reward"]
        needs.append(f"{PATH}: {REWARDS}, a Python module with a function reward(prompts, completions, **columns)")
        wanted += ["vllm"] if launch.training.rollout == "colocated" else []
    needs.append(f"environment: pip install {' '.join(dict.fromkeys(wanted))}")
    command = f"python {PATH}" if launch.devices == 1 else f"torchrun {torchrun_options(launch)} {PATH}"
    profiler = callback(launch)
    lines = [
        *(f"# {line}" for line in heading(launch, command)),
        "import os",
        "",
        "from unsloth import FastLanguageModel  # before TRL and transformers, which it changes",
        "import torch",
        "from datasets import load_dataset",
        "from transformers.trainer_utils import get_last_checkpoint",
        f"from trl import {stage['config']}, {stage['trainer']}",
        *(["from transformers import TrainerCallback"] if profiler else []),
        *rewards,
        "",
        *(["", *profiler, "", ""] if profiler else []),
        *body,
        f"trainer = {stage['trainer']}(",
        "    model=model, args=arguments, train_dataset=data, processing_class=tokenizer"
        + (", reward_funcs=[reward]" if rewards else "")
        + (f", callbacks=[{CALLBACK}()]" if profiler else ""),
        ")",
        *script.GOING_ON,
    ]
    return Piece(
        (File(PATH, "unsloth", "\n".join(lines)),),
        tuple(needs),
        Start(command, programs=("unsloth",), last_saved=LAST_SAVED),
    )


def _model(launch: TrainingLaunch, needs: list[str], comments: dict[str, str]) -> dict[str, Any]:
    training = launch.training
    fields: dict[str, Any] = {
        "model_name": checkpoint(launch, PATH, "model_name", needs, comments),
        "max_seq_length": launch.seq_len,
        "dtype": Symbol("torch.float16" if training.precision == "fp16" else "torch.bfloat16"),
        "load_in_4bit": bool(launch.quantisation),
        "full_finetuning": not launch.uses_adapters,
        "use_gradient_checkpointing": _checkpointing(launch),
        # Else Unsloth loads its own upload of the model, packed by others.
        "use_exact_model_name": True,
    }
    if training.stage == "grpo" and training.rollout == "colocated":
        fields |= {"fast_inference": True, "gpu_memory_utilization": training.engine_share}
        if launch.uses_adapters:
            fields["max_lora_rank"] = training.lora.rank
    if training.weights == "fp32":
        fields["float32_mixed_precision"] = True
    return fields


def _checkpointing(launch: TrainingLaunch) -> bool | str:
    """Unsloth's own variant holds the kept inputs of layers in host memory."""
    return "unsloth" if launch.offload == "activations" else launch.recompute == "full"


def _all_linear(launch: TrainingLaunch) -> list[str]:
    """The layers of the families that Unsloth has kernels for, to which it brings the names of others with plain
    attention; latent attention has layers of its own."""
    latent = any(block.mixer == "mla" for block in architecture(launch.plan.model).blocks)
    layers = linear_layers_of(launch.model) if latent else None
    return ",".join(layers.values()).split(",") if layers else list(table("unsloth/fields")["all_linear"])


def _adapter(launch: TrainingLaunch, needs: list[str]) -> dict[str, Any]:
    rest = {"use_gradient_checkpointing": _checkpointing(launch), "max_seq_length": launch.seq_len}
    return script.adapter(launch, PATH, "Unsloth", _all_linear(launch), rest, needs)


def _arguments(launch: TrainingLaunch, comments: dict[str, str]) -> dict[str, Any]:
    """The Trainer's arguments. Packed rows are of pretraining and SFT alone."""
    words, training = table("hf/fields"), launch.training
    lengths: dict[str, Any] = {"max_length": launch.seq_len}
    if training.stage == "grpo":
        answer = answer_tokens(launch)
        lengths = {
            "max_prompt_length": launch.seq_len - answer,
            "max_completion_length": answer,
            "num_generations": samples_per_prompt(launch),
            "generation_batch_size": launch.global_batch,
        }
    elif training.stage in ("pretrain", "sft"):
        lengths["packing"] = training.packing
    else:
        lengths["max_prompt_length"] = max(1, launch.seq_len // 2)
        comments["max_prompt_length"] = "of max_length; yours to choose"
    return {
        "output_dir": f"saves/{launch.slug}",
        **table("unsloth/fields")["stages"][training.stage]["arguments"],
        **lengths,
        "per_device_train_batch_size": launch.micro_batch,
        "gradient_accumulation_steps": launch.accumulation,
        **({"fp16": True, "bf16": False} if training.precision == "fp16" else {"bf16": True}),
        **optimizer(launch),
        "learning_rate": learning_rate(launch),
        "gradient_checkpointing": launch.recompute == "full",
        **length(launch),
        **words["run"],
        **saving(launch),
        **words["reporting"],
    }
