"""Megatron-LM core_v0.19.0: a Bash script that starts pretrain_gpt.py with the plan's arguments on a node.

The model is described by its dimensions, so that any architecture that the GPT model can build is trained.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from knowledge.models.catalogue import architecture
from launchers.launch.heading import bash_heading
from launchers.launch.placeholders import CHECKPOINT, DATASET, TOKENIZER
from launchers.launch.training import TrainingLaunch
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
    saving,
)
from launchers.megatron.model import model_arguments
from launchers.pieces import File, Piece, Start
from launchers.shell.starting import script_command, torchrun_in_script
from launchers.tables import table
from launchers.trial import profiling
from launchers.trial.synthetic import is_own
from launchers.yaml_text import Tree

PATH = "megatron.sh"


def render(launch: TrainingLaunch) -> Piece:
    """The script, its start on every node, and what the user must set."""
    model = architecture(launch.plan.model)
    check_split(launch, model)
    check_experts(launch, model)
    needs: list[str] = []
    comments: dict[str, str] = {}
    words = table("megatron/fields")
    of_model = model_arguments(launch, needs, PATH)
    groups: dict[str, Arguments] = {
        "model": {"use_mcore_models": True, "transformer_impl": "transformer_engine"} | of_model,
        "experts": {name: value for name, value in experts(launch, model).items() if name not in of_model},
        "parallelism": parallelism(launch, model),
        "batch": batch(launch) | length(launch, "--train-iters", needs, PATH),
        "precision": precision(launch),
        "memory": memory(launch, model),
        "optimizer": dict(words["optimizers"][launch.training.optimizer])
        | words["learning_rates"][launch.training.stage]
        | {"lr_warmup_fraction": 0.01},
        "data": _data(launch, needs, comments),
        "run": words["run"] | words["waits"] | saving(launch),
        "profiler": profiling.settings(launch),
    }
    comments["lr"] = "a value to start from; yours to choose"
    comments["global_batch_size"] = f"{launch.micro_batch} x {launch.accumulation} x dp {launch.dp}"
    lines = bash_heading(launch, PATH)
    variable = connections(launch)
    if variable:
        lines.append(f"export CUDA_DEVICE_MAX_CONNECTIONS={variable}")
    if launch.zero_stage > 1:
        lines.append("unset CUDA_DEVICE_MAX_CONNECTIONS  # FSDP overlaps its collectives on several connections")
    needs.append("environment: MEGATRON_LM, the folder of a Megatron-LM checkout, tag core_v0.19.0")
    for name, arguments in groups.items():
        if arguments:
            lines += ["", f"{name.upper()}=(", *_lines(arguments, comments), ")"]
    parts = " ".join(f'"${{{name.upper()}[@]}}"' for name, arguments in groups.items() if arguments)
    lines += ["", f'exec torchrun {torchrun_in_script(launch)} "${{MEGATRON_LM:-.}}/pretrain_gpt.py" {parts}', ""]
    text = "\n".join(lines)
    file = File(PATH, "megatron-lm", text, executable=True)
    return Piece((file,), tuple(needs), Start(script_command(launch, PATH), programs=("torchrun",)))


def _data(launch: TrainingLaunch, needs: list[str], comments: dict[str, str]) -> Arguments:
    """Data, tokenizer and, for fine-tuning, the checkpoint to start from."""
    sft = launch.training.stage == "sft"
    arguments: Arguments = {}
    if sft:
        arguments |= {"sft": True, "tokenizer_type": "SFTTokenizer", "sft_tokenizer_prompt_format": "default"}
    else:
        arguments["tokenizer_type"] = "HuggingFaceTokenizer"
    arguments["tokenizer_model"] = launch.model or TOKENIZER
    if launch.model is None:
        comments["tokenizer_model"] = "set this: a name or folder of a Hugging Face tokenizer"
        needs.append(f"{PATH}: --tokenizer-model, a name or folder of a Hugging Face tokenizer")
    if is_own(launch):
        return arguments | {"mock_data": True}
    arguments |= {"data_path": launch.site.dataset or DATASET, "split": "99,1,0"}
    if launch.site.dataset is None:
        what = "a JSON Lines file of messages" if sft else "the prefix of files made by tools/preprocess_data.py"
        comments["data_path"] = f"set this: {what}"
        needs.append(f"{PATH}: --data-path, {what}")
    if sft:
        # Loaded where there is none of the run's own yet (checkpointing.py, load_checkpoint).
        arguments["pretrained_checkpoint"] = CHECKPOINT
        comments["pretrained_checkpoint"] = "set this: a Megatron checkpoint of the model"
        needs.append(f"{PATH}: --pretrained-checkpoint, a Megatron checkpoint of the model")
    return arguments


def _lines(arguments: Mapping[str, Tree], comments: Mapping[str, str]) -> list[str]:
    """One option a line, as words of a Bash array in which nothing is expanded."""
    return [
        f"    {' '.join(map(_word, option(name, value)))}" + (f"  # {comments[name]}" if name in comments else "")
        for name, value in arguments.items()
    ]


def _word(text: str) -> str:
    """A word of a Bash array; commas stand in quotes, as ShellCheck takes them for separators (SC2054)."""
    return f"'{text}'" if "," in text and shlex.quote(text) == text else shlex.quote(text)


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
