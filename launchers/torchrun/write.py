"""torchrun of the user's own training script: the plan's values are its arguments, and what they do is its business."""

from __future__ import annotations

import shlex

from launchers.launch.duration import run_steps, save_steps
from launchers.launch.heading import bash_heading
from launchers.launch.placeholders import DATASET, MODEL
from launchers.launch.training import TrainingLaunch
from launchers.megatron.write import option
from launchers.pieces import File, Piece, Start
from launchers.shell.starting import script_command, torchrun_in_script
from launchers.trial import profiling
from launchers.yaml_text import Tree

PATH = "torchrun.sh"


def render(launch: TrainingLaunch) -> Piece:
    """The script, its start on every node, and what the user must bring."""
    needs = [
        "train.py: your training script, which takes the arguments in torchrun.sh (TRAIN_SCRIPT names another), saves "
        "every --save_steps to --output_dir, and goes on from the newest checkpoint there"
    ]
    groups = {"plan": _plan(launch, needs), "layout": _layout(launch), "profiler": profiling.settings(launch)}
    lines = [*bash_heading(launch, PATH), ""]
    command = [f'exec torchrun {torchrun_in_script(launch)} "${{TRAIN_SCRIPT:-train.py}}"']
    command += [shlex.join(option(name, value)) for group in groups.values() for name, value in group.items()]
    text = "\n".join([*lines, " \\\n    ".join(command), ""])
    start = Start(script_command(launch, PATH), programs=("torchrun",))
    return Piece((File(PATH, "torchrun", text, executable=True),), tuple(needs), start)


def _plan(launch: TrainingLaunch, needs: list[str]) -> dict[str, Tree]:
    """What is trained, on what, and how."""
    training = launch.training
    arguments: dict[str, Tree] = {
        "model": launch.model or MODEL,
        "dataset": launch.site.dataset or DATASET,
        "stage": training.stage,
        "method": training.method,
    }
    if launch.model is None:
        needs.append(f"{PATH}: --model, the folder of the model")
    if launch.site.dataset is None:
        needs.append(f"{PATH}: --dataset, your data")
    if launch.uses_adapters:
        lora = training.lora
        arguments |= {
            "lora_rank": lora.rank,
            "lora_alpha": float(lora.alpha),
            "lora_targets": lora.targets,
            "lora_dropout": float(lora.dropout),
        }
        if lora.train_embeddings:
            arguments["train_embeddings"] = True
    if launch.quantisation:
        arguments["quantisation"] = launch.quantisation
    arguments |= {
        "seq_len": launch.seq_len,
        "micro_batch": launch.micro_batch,
        "accumulation": launch.accumulation,
        "global_batch": launch.global_batch,
    }
    known = run_steps(launch)
    arguments |= {"epochs": float(training.epochs)} if known is None else {"steps": known}
    arguments |= {
        "precision": training.precision,
        "weights": training.weights,
        **({} if training.gradients == "auto" else {"gradients": training.gradients}),
        "optimizer": training.optimizer,
        "attention": training.attention,
    }
    if training.stage in ("ppo", "grpo") and training.response_len is not None:
        arguments["response_len"] = training.response_len
    if training.stage == "grpo":
        arguments["group_size"] = training.group_size
    arguments |= {"output_dir": f"saves/{launch.slug}", "save_steps": save_steps(launch)}
    for name in ("packing", "compile", "optimizer_in_backward", "tiled_mlp"):
        if getattr(training, name):
            arguments[name] = True
    for name in ("fused_loss", "dp_overlap", "tp_overlap", "moe_overlap", "moe_capacity"):
        if getattr(training, name) is True:
            arguments[name] = True
    for name in ("cuda_graph", "moe_dispatcher"):
        if getattr(training, name) != "auto":
            arguments[name] = getattr(training, name)
    return arguments


def _layout(launch: TrainingLaunch) -> dict[str, Tree]:
    """How it is split: the library that holds the shards, and every size that is not one."""
    layout = launch.plan.layout
    framework = launch.training.framework
    if framework == "auto":
        framework = "deepspeed" if "deepspeed" in launch.targets else "ddp"
    arguments: dict[str, Tree] = {"framework": framework, "dp": launch.dp, "zero_stage": launch.zero_stage}
    for name in ("tp", "pp", "vpp", "cp", "ep", "etp"):
        size = getattr(layout, name)
        if size and size > 1:
            arguments[name] = size
    if (layout.tp or 1) > 1 and layout.sequence_parallel is not False:
        arguments["sequence_parallel"] = True
    if layout.schedule and (layout.pp or 1) > 1:
        arguments["schedule"] = layout.schedule
    if layout.shard_group is not None and layout.shard_group != launch.dp:
        arguments["shard_group"] = layout.shard_group
    arguments |= {"recompute": launch.recompute, "offload": launch.offload}
    if "deepspeed" in launch.targets:
        arguments["deepspeed"] = "deepspeed.json"
    return arguments
