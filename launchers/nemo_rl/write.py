"""NeMo RL 0.6 YAML over one of its examples, and the script of its start on a Ray cluster. Words: fields.yaml."""

from __future__ import annotations

from typing import Any

from launchers.hf.adapters import whole_alpha
from launchers.hf.write import learning_rate
from launchers.launch.duration import KEPT_NEWEST, save_steps
from launchers.launch.heading import bash_heading, heading
from launchers.launch.placeholders import DATASET, MODEL
from launchers.launch.training import TrainingLaunch
from launchers.megatron.arguments import is_sequence_parallel
from launchers.pieces import File, Piece, Start
from launchers.rollouts import answer_tokens, engine_devices, samples_per_prompt
from launchers.shell.quoting import quoted
from launchers.shell.ray import ray_in_script
from launchers.shell.starting import script_command
from launchers.tables import table
from launchers.trial import profiling
from launchers.yaml_text import Tree, document

PATH, SCRIPT = "nemo_rl.yaml", "nemo_rl.sh"


def render(launch: TrainingLaunch) -> Piece:
    """The YAML, the script with its start on every node, and what the user must set."""
    training, words = launch.training, table("nemo_rl/fields")["writing"]
    stage = words["stages"][training.stage]
    needs = [f"environment: NeMo RL {words['version']} at {words['home']}, as in its container, on every node"]
    comments = {"lr": "a value to start from; yours to choose"}
    if launch.model is None:
        needs.append(f"{PATH}: policy.model_name, a checkpoint of the planned architecture")
    if launch.site.dataset is None:
        needs.append(f"{PATH}: data.train.data_path, {stage['content']}")
    if training.stage == "grpo":
        needs.append(f"{PATH}: env and data.default.env_name, where answers are not graded as mathematics")
    sections: dict[str, dict[str, Tree]] = {
        "what it stands on": {"defaults": f"{words['home']}/examples/configs/{stage['base']}"},
        "length": {training.stage: _length(launch)},
        "policy": {"policy": _policy(launch)},
        # In place of the example's data.
        "data": {"data": _data(launch)},
        "run": {
            "checkpointing": {
                "enabled": True,
                "checkpoint_dir": f"saves/{launch.slug}",
                "metric_name": None,
                "keep_top_k": KEPT_NEWEST,
                "save_period": save_steps(launch),
            },
            "logger": {"log_dir": f"saves/{launch.slug}/logs", "wandb_enabled": False, "tensorboard_enabled": False},
            "cluster": {"gpus_per_node": launch.node_devices, "num_nodes": launch.nodes},
        },
    }
    head = heading(launch, f"bash {SCRIPT}")
    start = f"python3 {words['home']}/examples/run_{training.stage}.py --config {PATH}"
    profiled = [f"export {name}={quoted([value])}" for name, value in profiling.settings(launch).items()]
    lines = [*bash_heading(launch, SCRIPT), *profiled, *ray_in_script(launch), start, ""]
    files = (
        File(PATH, "nemo-rl", document(head, sections, comments)),
        File(SCRIPT, "nemo-rl", "\n".join(lines), executable=True),
    )
    programs = ("ray", "python3") if launch.nodes > 1 else ("python3",)
    return Piece(files, tuple(needs), Start(script_command(launch, SCRIPT), programs=programs, on_ray=True))


def _length(launch: TrainingLaunch) -> dict[str, Tree]:
    """Steps or passes; and no validation, for which there are no data. It stops at whichever comes first."""
    steps, words = launch.training.steps, table("nemo_rl/fields")["writing"]
    passes = words["endless"] if steps is not None else launch.whole_passes("NeMo RL")
    fields: dict[str, Tree] = {"max_num_epochs": passes, "max_num_steps": steps or words["endless"]}
    if launch.training.stage == "grpo":
        size = samples_per_prompt(launch)
        fields |= {"num_prompts_per_step": launch.global_batch // size, "num_generations_per_prompt": size}
    return {**fields, "val_period": 0, "val_at_start": False, "val_at_end": False}


def _policy(launch: TrainingLaunch) -> dict[str, Tree]:
    training = launch.training
    fields: dict[str, Tree] = {
        "model_name": launch.model or MODEL,
        "tokenizer": {"name": launch.model or MODEL, "chat_template": "default"},
        "train_global_batch_size": launch.global_batch,
        "train_micro_batch_size": launch.micro_batch,
        "max_total_sequence_length": launch.seq_len,
        "precision": "bfloat16",
        "make_sequence_length_divisible_by": (launch.plan.layout.tp or 1) * 2 * (launch.plan.layout.cp or 1),
        # Those of the other backend.
        "dtensor_cfg": {"enabled": False},
        "optimizer": None,
        "scheduler": None,
        "megatron_cfg": _megatron(launch),
    }
    if training.stage != "dpo":
        fields["sequence_packing"] = {"enabled": training.packing or training.stage == "grpo"}
    if training.stage == "grpo":
        fields["logprob_batch_size"] = launch.micro_batch
        fields["generation"] = {
            "backend": "vllm",
            "max_new_tokens": answer_tokens(launch),
            "vllm_cfg": {
                "tensor_parallel_size": engine_devices(launch),
                "gpu_memory_utilization": training.engine_share,
                "max_model_len": launch.seq_len,
            },
            "colocated": {"enabled": True},
        }
    return fields


def _megatron(launch: TrainingLaunch) -> dict[str, Tree]:
    training, layout, recompute = launch.training, launch.plan.layout, launch.recompute
    fields: dict[str, Tree] = {
        "enabled": True,
        "tensor_model_parallel_size": layout.tp or 1,
        "pipeline_model_parallel_size": layout.pp or 1,
        "context_parallel_size": layout.cp or 1,
        "expert_model_parallel_size": layout.ep or 1,
        "expert_tensor_parallel_size": layout.etp or 1,
        "sequence_parallel": is_sequence_parallel(launch),
        "activation_checkpointing": recompute != "none",
        "optimizer": {
            "optimizer": "adam",
            "lr": learning_rate(launch),
            "min_lr": 0.0,
            "use_distributed_optimizer": launch.zero_stage == 1,
            "optimizer_cpu_offload": launch.offload == "optimizer",
            "optimizer_offload_fraction": 1.0 if launch.offload == "optimizer" else 0.0,
        },
        "scheduler": {"lr_warmup_init": 0.0},
        "distributed_data_parallel_config": {
            "grad_reduce_in_fp32": training.gradients == "fp32",
            "overlap_grad_reduce": training.dp_overlap is not False,
            "overlap_param_gather": training.dp_overlap not in (False, "gradients") and launch.zero_stage == 1,
        },
    }
    if recompute != "none":
        fields["recompute_granularity"] = recompute
    if launch.uses_adapters:
        lora = training.lora
        peft: dict[str, Any] = {"enabled": True, "dim": lora.rank, "alpha": whole_alpha(launch, "NeMo RL")}
        fields["peft"] = {**peft, "dropout": lora.dropout}
    return fields


def _data(launch: TrainingLaunch) -> dict[str, Tree]:
    stage = table("nemo_rl/fields")["writing"]["stages"][launch.training.stage]
    train = {**stage["train"], "data_path": launch.site.dataset or DATASET + ".jsonl"}
    return {"_override_": True, "max_input_seq_length": launch.seq_len, **stage["data"], "train": train}
