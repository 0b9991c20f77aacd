"""verl 0.9: a Bash script that starts its PPO or GRPO trainer on a Ray cluster, or its SFT trainer with torchrun.

Both take Hydra's KEY=VALUE words over the trainer's own YAML. Words: fields.yaml.
"""

from __future__ import annotations

import shlex

from launchers.hf.adapters import target_modules, whole_alpha
from launchers.hf.write import learning_rate
from launchers.launch.duration import KEPT_NEWEST, run_steps, save_steps
from launchers.launch.heading import bash_heading
from launchers.launch.placeholders import DATASET, MODEL, REWARD
from launchers.launch.training import TrainingLaunch
from launchers.megatron_bridge.write import hydra
from launchers.pieces import File, Piece, Start
from launchers.rollouts import answer_tokens, engine_devices, samples_per_prompt
from launchers.shell.ray import ray_in_script
from launchers.shell.starting import script_command, torchrun_in_script
from launchers.tables import table
from launchers.trial import profiling
from launchers.yaml_text import Tree

PATH = "verl.sh"
_ACTOR, _ROLLOUT, _REF = "actor_rollout_ref.actor", "actor_rollout_ref.rollout", "actor_rollout_ref.ref"
# As many passes as a run of a number of steps may want.
_ENDLESS = 100_000


def render(launch: TrainingLaunch) -> Piece:
    """The script, its start on every node, and what the user must set."""
    needs = [f"environment: pip install {table('verl/fields')['package']} vllm flash-attn, on every node"]
    if launch.training.stage == "sft":
        before, start = [], f"exec torchrun {torchrun_in_script(launch)} -m verl.trainer.sft_trainer"
        fields = _sft(launch, needs)
        programs = ("torchrun",)
    else:
        before, start = ray_in_script(launch), "python3 -m verl.trainer.main_ppo"
        fields = _reinforced(launch, needs)
        programs = ("ray", "python3") if launch.nodes > 1 else ("python3",)
    fields |= profiling.settings(launch)
    lines = [*bash_heading(launch, PATH), "export HYDRA_FULL_ERROR=1", *before]
    words = [start, *(shlex.quote(f"{key}={hydra(value)}") for key, value in fields.items())]
    text = "\n".join([*lines, " \\\n    ".join(words), ""])
    file = File(PATH, "verl", text, executable=True)
    return Piece(
        (file,), tuple(needs), Start(script_command(launch, PATH), programs=programs, on_ray="torchrun" not in programs)
    )


def _reinforced(launch: TrainingLaunch, needs: list[str]) -> dict[str, Tree]:
    """A step takes whole groups of answers to its prompts, in one mini-batch: one update a step."""
    training, words = launch.training, table("verl/fields")
    answer, size = answer_tokens(launch), samples_per_prompt(launch)
    prompts = launch.global_batch // size
    # Rows are packed up to the planned number of tokens; ranks that split a sequence pool theirs.
    tokens = launch.micro_batch * launch.seq_len // (launch.plan.layout.cp or 1)
    if launch.site.dataset is None:
        needs.append(f"{PATH}: data.train_files, a parquet file with the columns prompt, data_source and reward_model")
    needs.append(f"{PATH}: reward.custom_reward_function.path, a Python file with compute_score")
    fields: dict[str, Tree] = {
        "algorithm.adv_estimator": words["estimators"][training.stage],
        "algorithm.use_kl_in_reward": training.stage == "ppo",
        "data.train_files": [launch.site.dataset or DATASET + ".parquet"],
        "data.val_files": [launch.site.dataset or DATASET + ".parquet"],
        "data.train_batch_size": prompts,
        "data.max_prompt_length": launch.seq_len - answer,
        "data.max_response_length": answer,
        "data.filter_overlong_prompts": True,
        **_model(launch, "actor_rollout_ref.model", needs),
        f"{_ACTOR}.optim.lr": learning_rate(launch),
        f"{_ACTOR}.ppo_mini_batch_size": prompts,
        f"{_ACTOR}.use_dynamic_bsz": True,
        f"{_ACTOR}.ppo_max_token_len_per_gpu": tokens,
        f"{_ACTOR}.use_kl_loss": training.stage == "grpo",
        f"{_ACTOR}.ulysses_sequence_parallel_size": launch.plan.layout.cp,
        **_engine(launch, f"{_ACTOR}.fsdp_config"),
        f"{_REF}.fsdp_config.fsdp_size": launch.plan.layout.shard_group or -1,
        f"{_ROLLOUT}.name": "vllm",
        f"{_ROLLOUT}.n": size,
        f"{_ROLLOUT}.tensor_model_parallel_size": engine_devices(launch),
        f"{_ROLLOUT}.gpu_memory_utilization": training.engine_share,
    }
    if training.stage == "ppo":
        fields |= _model(launch, "critic.model", [])
        fields |= {"critic.ppo_max_token_len_per_gpu": tokens, "critic.optim.lr": 1e-5}
        fields |= {"critic.ulysses_sequence_parallel_size": launch.plan.layout.cp, **_engine(launch, "critic.fsdp")}
    fields |= {"reward.custom_reward_function.path": REWARD + ".py", "trainer.val_before_train": False}
    fields |= {"trainer.max_actor_ckpt_to_keep": KEPT_NEWEST, "trainer.max_critic_ckpt_to_keep": KEPT_NEWEST}
    return fields | _run(launch)


def _sft(launch: TrainingLaunch, needs: list[str]) -> dict[str, Tree]:
    if launch.site.dataset is None:
        needs.append(f"{PATH}: data.train_files, a parquet file with a column messages")
    return {
        "data.train_files": launch.site.dataset or DATASET + ".parquet",
        "data.train_batch_size": launch.global_batch,
        "data.micro_batch_size_per_gpu": launch.micro_batch,
        "data.use_dynamic_bsz": False,
        "data.max_length": launch.seq_len,
        "data.truncation": "right",
        **_model(launch, "model", needs),
        "optim.lr": learning_rate(launch),
        "engine.ulysses_sequence_parallel_size": launch.plan.layout.cp,
        **_engine(launch, "engine"),
        "trainer.max_ckpt_to_keep": KEPT_NEWEST,
        **_run(launch),
    }


def _model(launch: TrainingLaunch, section: str, needs: list[str]) -> dict[str, Tree]:
    training = launch.training
    fields: dict[str, Tree] = {
        f"{section}.path": launch.model or MODEL,
        f"{section}.enable_gradient_checkpointing": launch.recompute == "full",
        # Without padding attention has to tell rows apart, which FlashAttention alone does.
        f"{section}.use_remove_padding": training.packing or training.stage != "sft",
    }
    if launch.model is None:
        needs.append(f"{PATH}: {section}.path, a checkpoint of the planned architecture")
    if training.fused_loss is True:
        fields[f"{section}.use_fused_kernels"] = True
    if launch.uses_adapters:
        targets = target_modules(launch, PATH, f"{section}.target_modules", needs)
        fields |= {f"{section}.lora_rank": training.lora.rank, f"{section}.lora_alpha": whole_alpha(launch, "verl")}
        fields[f"{section}.target_modules"] = "all-linear" if targets is None else targets
    return fields


def _engine(launch: TrainingLaunch, section: str) -> dict[str, Tree]:
    """FSDP's types, shard group, and what goes to the host."""
    words, training = table("verl/fields"), launch.training
    return {
        f"{section}.dtype": words["dtypes"][training.precision],
        f"{section}.model_dtype": "bfloat16" if training.weights == "bf16" else "fp32",
        f"{section}.fsdp_size": launch.plan.layout.shard_group or -1,
        f"{section}.param_offload": launch.offload == "params",
        f"{section}.optimizer_offload": launch.offload in ("params", "optimizer"),
    }


def _run(launch: TrainingLaunch) -> dict[str, Tree]:
    """Devices, length, and checkpoints, from the newest of which the run goes on."""
    steps = run_steps(launch) if launch.training.steps is not None else None
    length: dict[str, Tree] = {"trainer.total_epochs": _ENDLESS, "trainer.total_training_steps": steps}
    if steps is None:
        length = {"trainer.total_epochs": launch.whole_passes("verl")}
    return {
        "trainer.nnodes": launch.nodes,
        "trainer.n_gpus_per_node": launch.node_devices,
        **length,
        "trainer.save_freq": save_steps(launch),
        "trainer.test_freq": -1,
        "trainer.resume_mode": "auto",
        "trainer.default_local_dir": f"saves/{launch.slug}",
        "trainer.logger": ["console"],
        "trainer.project_name": "shardwise",
        "trainer.experiment_name": launch.slug,
    }
