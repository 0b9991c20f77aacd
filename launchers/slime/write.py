"""slime 0.3: a Bash script of its trainer on a Ray cluster, with Megatron-LM's arguments. Words: fields.yaml."""

from __future__ import annotations

import shlex

from knowledge.models.catalogue import architecture
from launchers.launch.duration import run_steps, save_steps
from launchers.launch.heading import bash_heading
from launchers.launch.placeholders import CHECKPOINT, DATASET, MODEL
from launchers.launch.training import TrainingLaunch
from launchers.megatron.arguments import (
    Arguments,
    check_experts,
    check_split,
    experts,
    memory,
    parallelism,
    precision,
    saving,
)
from launchers.megatron.model import model_arguments
from launchers.megatron.write import option
from launchers.pieces import File, Piece, Start
from launchers.rollouts import answer_tokens, engine_devices, samples_per_prompt
from launchers.shell.ray import ray_in_script
from launchers.shell.starting import script_command
from launchers.tables import table
from launchers.trial import profiling

PATH = "slime.sh"


def render(launch: TrainingLaunch) -> Piece:
    """The script, its start on every node, and what the user must set."""
    model, words = architecture(launch.plan.model), table("slime/fields")
    check_split(launch, model)
    check_experts(launch, model)
    needs = [f"environment: slime {words['version']} and its Megatron-LM, as in its container, on every node"]
    of_model = model_arguments(launch, needs, PATH)
    arguments: Arguments = {
        "actor_num_nodes": launch.nodes,
        "actor_num_gpus_per_node": launch.node_devices,
        **of_model,
        **{name: value for name, value in experts(launch, model).items() if name not in of_model},
        **_stage(launch, needs),
        **_checkpoints(launch, needs),
        **parallelism(launch, model),
        **_batch(launch, needs),
        **precision(launch),
        **memory(launch, model),
        **_optimizer(launch),
        **words["run"],
        **profiling.settings(launch),
    }
    # It sets these itself (_set_default_megatron_args), and has no argument of this name.
    for name in ("use_distributed_optimizer", "bf16", "save_retain_interval"):
        arguments.pop(name, None)
    script = "train.py" if launch.training.stage == "grpo" else "train_async.py"
    lines = bash_heading(launch, PATH)
    lines += [f'export PYTHONPATH="{words["megatron"]}:${{PYTHONPATH:-}}" CUDA_DEVICE_MAX_CONNECTIONS=1']
    lines += ray_in_script(launch)
    start = [f"python3 {words['home']}/{script}", *(shlex.join(option(*row)) for row in arguments.items())]
    text = "\n".join([*lines, " \\\n    ".join(start), ""])
    programs = ("ray", "python3") if launch.nodes > 1 else ("python3",)
    file = File(PATH, "slime", text, executable=True)
    return Piece((file,), tuple(needs), Start(script_command(launch, PATH), programs=programs, on_ray=True))


def _stage(launch: TrainingLaunch, needs: list[str]) -> Arguments:
    """Samples and where they are from: engines on the training's devices, or demonstrations."""
    training, words = launch.training, table("slime/fields")
    if launch.site.dataset is None:
        needs.append(f"{PATH}: --prompt-data, a JSONL file with columns prompt and label, or messages for SFT")
    fields: Arguments = {"prompt_data": launch.site.dataset or DATASET + ".jsonl"}
    if training.stage == "sft":
        return fields | {"input_key": "messages", "rollout_batch_size": launch.global_batch, **words["sft"]}
    size = samples_per_prompt(launch)
    needs.append(f"{PATH}: --rm-type, or --custom-rm-path with a function of your own, which grades answers")
    fields |= {"input_key": "prompt", "label_key": "label", "apply_chat_template": True, "rm_type": "deepscaler"}
    fields |= {"rollout_batch_size": launch.global_batch // size, "n_samples_per_prompt": size}
    fields |= {"rollout_max_response_len": answer_tokens(launch), "rollout_temperature": 1}
    fields |= {"colocate": True, "num_gpus_per_node": launch.node_devices, **words["grpo"]}
    fields |= {"rollout_num_gpus_per_engine": engine_devices(launch)}
    return fields | {"sglang_mem_fraction_static": training.engine_share}


def _checkpoints(launch: TrainingLaunch, needs: list[str]) -> Arguments:
    """The model's own, and the run's, from the newest of which it goes on."""
    if launch.model is None:
        needs.append(f"{PATH}: --hf-checkpoint, a checkpoint of the planned architecture")
    needs.append(f"{PATH}: --ref-load, the checkpoint as tools/convert_hf_to_torch_dist.py converts it")
    return {
        "hf_checkpoint": launch.model or MODEL,
        "ref_load": CHECKPOINT,
        **saving(launch),
        "save_interval": save_steps(launch),
    }


def _batch(launch: TrainingLaunch, needs: list[str]) -> Arguments:
    """Rows are packed up to the planned number of tokens; ranks that split a sequence pool theirs."""
    steps = run_steps(launch)
    tokens = launch.micro_batch * launch.seq_len // (launch.plan.layout.cp or 1)
    length: Arguments = {"num_rollout": steps} if steps is not None else {"num_epoch": launch.whole_passes("slime")}
    return {
        **length,
        "global_batch_size": launch.global_batch,
        "rollout_max_context_len": launch.seq_len,
        "use_dynamic_batch_size": True,
        "max_tokens_per_gpu": tokens,
        "balance_data": True,
    }


def _optimizer(launch: TrainingLaunch) -> Arguments:
    words = table("megatron/fields")
    rate = table("hf/fields")["learning_rates"]["full"][launch.training.stage]
    return dict(words["optimizers"][launch.training.optimizer]) | {"lr": rate, "lr_decay_style": "constant"}
