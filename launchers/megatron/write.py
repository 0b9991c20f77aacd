"""Megatron-LM core_v0.19.0: a Bash script that starts pretrain_gpt.py with the plan's arguments on a node.

The model is described by its dimensions, so that any architecture that the GPT model can build is trained.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from knowledge.models.catalogue import architecture
from launchers import File, Piece, Start
from launchers.job import Job, heading
from launchers.megatron.arguments import (
    Arguments,
    batch,
    check_experts,
    check_split,
    connections,
    experts,
    length,
    memory,
    parallelism,
    precision,
)
from launchers.megatron.model import model_arguments
from launchers.shell.starting import script_command, torchrun_in_script
from launchers.tables import table
from launchers.yaml_text import Tree

PATH = "megatron.sh"
_TOKENIZER = "SET_ME_TOKENIZER"
_DATA = "SET_ME_DATA"
_CHECKPOINT = "SET_ME_CHECKPOINT"


def render(job: Job) -> Piece:
    """The script, its start on every node, and what the user must set."""

    model = architecture(job.plan.model)
    check_split(job, model)
    check_experts(job, model)
    needs: list[str] = []
    comments: dict[str, str] = {}
    words = table("megatron")
    groups: dict[str, Arguments] = {
        "model": {"use_mcore_models": True, "transformer_impl": "transformer_engine"}
        | model_arguments(job, needs, PATH),
        "experts": experts(job, model),
        "parallelism": parallelism(job, model),
        "batch": batch(job) | length(job, "--train-iters", needs, PATH),
        "precision": precision(job),
        "memory": memory(job, model),
        "optimizer": dict(words["optimizers"][job.training.optimizer])
        | words["learning_rates"][job.training.stage]
        | {"lr_warmup_fraction": 0.01},
        "data": _data(job, needs, comments),
        "run": words["run"] | {"save": f"saves/{job.slug}"},
    }
    comments["lr"] = "a value to start from; yours to choose"
    comments["global_batch_size"] = f"{job.micro_batch} x {job.accumulation} x dp {job.dp}"
    lines = ["#!/bin/bash", *(f"# {line}" for line in heading(job, f"bash {PATH}")), "", "set -euo pipefail"]
    variable = connections(job)
    if variable:
        lines.append(f"export CUDA_DEVICE_MAX_CONNECTIONS={variable}")
    if job.zero_stage > 1:
        lines.append("unset CUDA_DEVICE_MAX_CONNECTIONS  # FSDP overlaps its collectives on several connections")
    needs.append("environment: MEGATRON_LM, the folder of a Megatron-LM checkout, tag core_v0.19.0")
    for name, arguments in groups.items():
        if arguments:
            lines += ["", f"{name.upper()}=(", *_lines(arguments, comments), ")"]
    parts = " ".join(f'"${{{name.upper()}[@]}}"' for name, arguments in groups.items() if arguments)
    lines += ["", f'exec torchrun {torchrun_in_script(job)} "${{MEGATRON_LM:-.}}/pretrain_gpt.py" {parts}', ""]
    text = "\n".join(lines)
    file = File(PATH, "megatron-lm", text, executable=True)
    return Piece((file,), tuple(needs), Start(script_command(job, PATH), programs=("torchrun",)))


def _data(job: Job, needs: list[str], comments: dict[str, str]) -> Arguments:
    """Data, tokenizer and, for fine-tuning, the checkpoint to start from."""
    sft = job.training.stage == "sft"
    arguments: Arguments = {}
    if sft:
        arguments |= {"sft": True, "tokenizer_type": "SFTTokenizer", "sft_tokenizer_prompt_format": "default"}
    else:
        arguments["tokenizer_type"] = "HuggingFaceTokenizer"
    arguments["tokenizer_model"] = job.model or _TOKENIZER
    if job.model is None:
        comments["tokenizer_model"] = "set this: a name or folder of a Hugging Face tokenizer"
        needs.append(f"{PATH}: --tokenizer-model, a name or folder of a Hugging Face tokenizer")
    arguments |= {"data_path": job.site.dataset or _DATA, "split": "99,1,0"}
    if job.site.dataset is None:
        what = "a JSON Lines file of messages" if sft else "the prefix of files made by tools/preprocess_data.py"
        comments["data_path"] = f"set this: {what}"
        needs.append(f"{PATH}: --data-path, {what}")
    if sft:
        arguments |= {"load": _CHECKPOINT, "finetune": True}
        comments["load"] = "set this: a Megatron checkpoint of the model"
        needs.append(f"{PATH}: --load, a Megatron checkpoint of the model")
    return arguments


def _lines(arguments: Mapping[str, Tree], comments: Mapping[str, str]) -> list[str]:
    """One option a line, as words of a Bash array in which nothing is expanded."""
    return [
        f"    {shlex.join(option(name, value))}" + (f"  # {comments[name]}" if name in comments else "")
        for name, value in arguments.items()
    ]


def option(name: str, value: Tree) -> list[str]:
    """An argument as words of a command line."""
    words = ["--" + name.replace("_", "-")]
    if value is True:
        return words
    if isinstance(value, list):
        return words + [str(part) for part in value]
    text = f"{value:.10g}" if isinstance(value, float) else str(value)
    # What starts with a dash would be read as an option of its own.
    return [f"{words[0]}={text}"] if text.startswith("-") else [*words, text]
