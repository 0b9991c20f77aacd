"""OpenRLHF 0.11: a Bash script that starts its PPO trainer on a Ray cluster, or one of the others with torchrun.

Words: fields.yaml.
"""

from __future__ import annotations

import shlex

from launchers.hf.adapters import target_modules, whole_alpha
from launchers.hf.write import learning_rate
from launchers.launch.duration import KEPT_NEWEST, save_steps
from launchers.launch.heading import bash_heading
from launchers.launch.placeholders import DATASET, MODEL, REWARD
from launchers.launch.training import TrainingLaunch
from launchers.pieces import File, Piece, Start
from launchers.rollouts import answer_tokens, engine_devices, samples_per_prompt
from launchers.shell.ray import ray_in_script
from launchers.shell.starting import script_command, torchrun_in_script
from launchers.tables import table
from launchers.yaml_text import Tree

PATH = "openrlhf.sh"


def render(launch: TrainingLaunch) -> Piece:
    """The script, its start on every node, and what the user must set."""
    words, training = table("openrlhf/fields"), launch.training
    trainer = words["trainers"][training.stage]
    needs = [f"environment: pip install {words['package']}, on every node"]
    if training.stage in ("ppo", "grpo"):
        before, start = ray_in_script(launch), f"python3 -m openrlhf.cli.{trainer}"
        options, programs = _reinforced(launch, needs), ("ray", "python3") if launch.nodes > 1 else ("python3",)
    else:
        before, start = [], f"exec torchrun {torchrun_in_script(launch)} -m openrlhf.cli.{trainer}"
        options, programs = _supervised(launch, needs), ("torchrun",)
    options = {**options, **_states(launch, needs), **_run(launch)}
    lines = [*bash_heading(launch, PATH), "export TOKENIZERS_PARALLELISM=false", *before]
    text = "\n".join([*lines, " \\\n    ".join([start, *map(_option, options, options.values())]), ""])
    file = File(PATH, "openrlhf", text, executable=True)
    return Piece(
        (file,), tuple(needs), Start(script_command(launch, PATH), programs=programs, on_ray="torchrun" not in programs)
    )


def _option(name: str, value: Tree) -> str:
    if value is True:
        return f"--{name}"
    values = value if isinstance(value, list) else [value]
    return shlex.join([f"--{name}", *(str(part) for part in values)])


def _supervised(launch: TrainingLaunch, needs: list[str]) -> dict[str, Tree]:
    training = launch.training
    content = table("openrlhf/fields")["data"]["pairs" if training.stage != "sft" else "sft"]
    if launch.site.dataset is None:
        needs.append(f"{PATH}: --data.dataset, a Hugging Face data set or a folder of one ({content})")
    options: dict[str, Tree] = {
        "model.model_name_or_path": _model(launch, "model.model_name_or_path", needs),
        "data.dataset": launch.site.dataset or DATASET,
        "data.apply_chat_template": True,
        "train.max_epochs": 1 if training.steps is not None else launch.whole_passes("OpenRLHF"),
        "adam.lr": learning_rate(launch),
    }
    if training.steps is not None:
        options["data.max_samples"] = training.steps * launch.global_batch
    if training.stage == "sft":
        options |= {"data.input_key": "messages", "data.multiturn": True}
    else:
        options |= {"data.chosen_key": "chosen", "data.rejected_key": "rejected"}
    if training.stage in ("dpo", "ipo"):
        options["model.beta"] = 0.1
    if training.stage == "ipo":
        options["model.ipo_enable"] = True
    if launch.recompute == "full":
        options["model.gradient_checkpointing_enable"] = True
    return options


def _reinforced(launch: TrainingLaunch, needs: list[str]) -> dict[str, Tree]:
    """All models and the engines share the devices; a step takes whole groups of answers, in one update."""
    training, words = launch.training, table("openrlhf/fields")
    size, tp = samples_per_prompt(launch), engine_devices(launch)
    prompts = launch.global_batch // size
    if launch.site.dataset is None:
        needs.append(f"{PATH}: --data.prompt_dataset, a Hugging Face data set with a column of prompts")
    needs.append(f"{PATH}: --reward.remote_url, a Python file with reward_func, or the address of a reward model")
    options: dict[str, Tree] = {
        "actor.model_name_or_path": _model(launch, "actor.model_name_or_path", needs),
        "reward.remote_url": REWARD + ".py",
        "data.prompt_dataset": launch.site.dataset or DATASET,
        "data.input_key": "prompt",
        "data.apply_chat_template": True,
        "algo.advantage.estimator": words["estimators"][training.stage],
        **words["penalties"][training.stage],
        "rollout.n_samples_per_prompt": size,
        "rollout.batch_size": prompts,
        "rollout.micro_batch_size": launch.micro_batch,
        "rollout.max_new_tokens": answer_tokens(launch),
        "train.num_episodes": 1 if training.steps is not None else launch.whole_passes("OpenRLHF"),
        "actor.adam.lr": learning_rate(launch),
    }
    if training.steps is not None:
        options["data.max_samples"] = training.steps * prompts
    roles = ("actor", "ref", "critic") if training.stage == "ppo" else ("actor", "ref")
    for role in roles:
        options |= {f"{role}.num_nodes": launch.nodes, f"{role}.num_gpus_per_node": launch.node_devices}
    options |= {
        "train.colocate_all": True,
        "vllm.num_engines": launch.devices // tp,
        "vllm.tensor_parallel_size": tp,
        "vllm.gpu_memory_utilization": training.engine_share,
        "vllm.sync_backend": "nccl",
        "vllm.enable_sleep": True,
        "ds.enable_sleep": True,
    }
    if launch.recompute == "full":
        options["actor.gradient_checkpointing_enable"] = True
    return options


def _model(launch: TrainingLaunch, option: str, needs: list[str]) -> str:
    if launch.model is None:
        needs.append(f"{PATH}: --{option}, a checkpoint of the planned architecture")
    return launch.model or MODEL


def _states(launch: TrainingLaunch, needs: list[str]) -> dict[str, Tree]:
    """DeepSpeed's part, and adapters."""
    training, layout = launch.training, launch.plan.layout
    options: dict[str, Tree] = {
        "ds.zero_stage": launch.zero_stage,
        "ds.param_dtype": training.precision,
        "ds.attn_implementation": table("openrlhf/fields")["attention"],
    }
    if training.packing or training.stage != "sft":
        options["ds.packing_samples"] = True
    if (layout.cp or 1) > 1:
        options["ds.ring_attn_size"] = layout.cp
    if layout.shard_group is not None and launch.zero_stage == 3 and layout.shard_group != launch.dp:
        options["ds.zpg"] = layout.shard_group
    if launch.offload == "optimizer":
        options["ds.adam_offload"] = True
    if training.fused_loss is True:
        options["ds.use_liger_kernel"] = True
    if launch.uses_adapters:
        targets = target_modules(launch, PATH, "ds.lora.target_modules", needs)
        options |= {"ds.lora.rank": training.lora.rank, "ds.lora.alpha": whole_alpha(launch, "OpenRLHF")}
        options |= {"ds.lora.dropout": training.lora.dropout}
        options["ds.lora.target_modules"] = ["all-linear"] if targets is None else targets
    if launch.quantisation:
        options["ds.load_in_4bit"] = True
    return options


def _run(launch: TrainingLaunch) -> dict[str, Tree]:
    """Batch, length of rows, and checkpoints, from the newest of which the run goes on."""
    return {
        "train.batch_size": launch.global_batch,
        "train.micro_batch_size": launch.micro_batch,
        "data.max_len": launch.seq_len,
        "ckpt.output_dir": f"saves/{launch.slug}/final",
        "ckpt.path": f"saves/{launch.slug}",
        "ckpt.save_steps": save_steps(launch),
        "ckpt.max_num": KEPT_NEWEST,
        "ckpt.load_enable": True,
    }
