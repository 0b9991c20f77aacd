"""Axolotl 0.19 YAML. The words for each plan value are in axolotl/fields.yaml and hf/fields.yaml.

Axolotl ignores keys that it does not know, and does not check that the product of its group sizes is the world.
"""

from __future__ import annotations

from knowledge.models.catalogue import architecture
from launchers.devices import attention_of
from launchers.families import layer_class_of
from launchers.hf.adapters import checkpoint, embedding_modules, modules_named, target_modules, whole_alpha
from launchers.hf.sharding import backend_of
from launchers.hf.write import (
    LAST_SAVED,
    attention_word,
    batch_comment,
    learning_rate,
    length,
    optimizer,
    packages,
    saving,
)
from launchers.launch.heading import heading
from launchers.launch.placeholders import DATASET, ENGINE_HOST, REWARDS
from launchers.launch.training import TrainingLaunch
from launchers.pieces import File, Piece, Start
from launchers.rollouts import answer_tokens, samples_per_prompt
from launchers.shell.starting import torchrun_options
from launchers.tables import table
from launchers.trial import profiling
from launchers.yaml_text import Tree, document

PATH = "axolotl.yaml"


def render(launch: TrainingLaunch) -> Piece:
    """The YAML, its launch by torchrun, and what the user must set."""
    words, training = table("axolotl/fields"), launch.training
    needs: list[str] = []
    comments = {
        "gradient_accumulation_steps": batch_comment(launch),
        "learning_rate": "a value to start from; yours to choose",
    }
    steps = length(launch)
    sections: dict[str, dict[str, Tree]] = {
        "model": {
            "base_model": checkpoint(launch, PATH, "base_model", needs, comments),
            "attn_implementation": attention_word(launch, attention_of(launch), words["attention"]),
        },
        "method": words["stages"][training.stage]["fields"] | _adapter(launch, needs),
        "data": _data(launch, needs, comments),
        "generation": _generation(launch, needs, comments) if training.stage == "grpo" else {},
        "batch": {"micro_batch_size": launch.micro_batch, "gradient_accumulation_steps": launch.accumulation},
        "precision and optimizer": {
            **words["precisions"][training.precision],
            **_optimizer(launch),
            "learning_rate": learning_rate(launch),
        },
        "memory and speed": _memory_and_speed(launch),
        "sharding": _sharding(launch, comments),
        "run": {
            "output_dir": f"saves/{launch.slug}",
            "num_epochs": steps.pop("num_train_epochs"),
            **steps,
            **words["run"],
            **saving(launch),
            **words["warmups"]["simpo" if training.stage == "simpo" else "others"],
            **({"ddp_timeout": table("hf/fields")["reporting"]["ddp_timeout"]} if launch.devices > 1 else {}),
        },
        "profiler": profiling.settings(launch),
    }
    wanted = ["axolotl==0.19.0", *packages(launch, "axolotl")]
    if training.fused_loss is True:
        wanted.append("cut-cross-entropy")
    if (launch.plan.layout.cp or 1) > 1:
        wanted.append("ring-flash-attn")
    if training.stage == "grpo" and training.rollout in ("colocated", "separate"):
        wanted.append("vllm")
    needs.append(f"environment: pip install {' '.join(dict.fromkeys(wanted))}")
    command = f"axolotl train {PATH} --launcher torchrun -- {torchrun_options(launch)}"
    text = document(heading(launch, command), {title: fields for title, fields in sections.items() if fields}, comments)
    return Piece(
        (File(PATH, "axolotl", text),), tuple(needs), Start(command, programs=("axolotl",), last_saved=LAST_SAVED)
    )


def _adapter(launch: TrainingLaunch, needs: list[str]) -> dict[str, Tree]:
    words, lora = table("axolotl/fields"), launch.training.lora
    fields: dict[str, Tree] = {**words["methods"][launch.training.method]}
    if not launch.uses_adapters:
        return fields
    if launch.quantisation:
        fields |= words["quantisations"][launch.quantisation]
    targets = target_modules(launch, PATH, "lora_target_modules", needs)
    packed = words["experts"].get(launch.quantisation) if architecture(launch.plan.model).experts else None
    if packed:
        fields |= packed
        targets = targets or modules_named(["attention", "mlp"], launch, PATH, "lora_target_modules", needs)
    fields |= {"lora_r": lora.rank, "lora_alpha": whole_alpha(launch, "Axolotl"), "lora_dropout": lora.dropout}
    fields |= {"lora_target_linear": True} if targets is None else {"lora_target_modules": targets}
    if lora.train_embeddings:
        fields["lora_modules_to_save"] = embedding_modules(launch, PATH, "lora_modules_to_save", needs)
    return fields


def _data(launch: TrainingLaunch, needs: list[str], comments: dict[str, str]) -> dict[str, Tree]:
    """Rows of sequence_len tokens: packed, or each sample padded to the longest of its batch."""
    words, stage = table("axolotl/fields"), launch.training.stage
    if launch.site.dataset is None:
        content = words["data"][stage]
        comments["path"] = f"set this: a Hugging Face data set or a file ({content})"
        needs.append(f"{PATH}: datasets path, your data ({content})")
    fields: dict[str, Tree] = {
        "datasets": [{"path": launch.site.dataset or DATASET, "type": words["stages"][stage]["type"]}],
        "sequence_len": launch.seq_len,
    }
    if stage in ("sft", "pretrain"):
        fields |= {"sample_packing": launch.training.packing, "pad_to_sequence_len": launch.training.packing}
    if stage != "pretrain":
        fields["chat_template"] = "tokenizer_default"
    return fields | {"dataset_prepared_path": "last_run_prepared"}


def _generation(launch: TrainingLaunch, needs: list[str], comments: dict[str, str]) -> dict[str, Tree]:
    """GRPO's groups, rewards and the engine that generates: the batch counts samples, not prompts."""
    rollout = launch.training.rollout
    fields: dict[str, Tree] = {
        "beta": table("axolotl/fields")["beta"],
        "num_generations": samples_per_prompt(launch),
        "generation_batch_size": launch.global_batch,
        "max_completion_length": answer_tokens(launch),
        "reward_funcs": [f"{REWARDS}.reward"],
        "use_vllm": rollout in ("colocated", "separate"),
    }
    comments["reward_funcs"] = "set this: functions of a Python module beside this file"
    needs.append(f"{PATH}: trl.reward_funcs and datasets type, a Python module with your rewards and the transform")
    if not fields["use_vllm"]:
        return {"trl": fields}
    if rollout == "colocated":
        engine: dict[str, Tree] = {"gpu_memory_utilization": launch.training.engine_share, "tensor_parallel_size": 1}
        return {"trl": fields | {"vllm_mode": "colocate", "vllm_enable_sleep_mode": False}, "vllm": engine}
    comments["vllm_server_host"] = "set this: where `axolotl vllm-serve` runs on other devices"
    needs.append(f"{PATH}: trl.vllm_server_host, the address of `axolotl vllm-serve` on other devices")
    server: dict[str, Tree] = {"vllm_mode": "server", "vllm_server_host": ENGINE_HOST, "vllm_server_port": 8000}
    return {"trl": fields | server}


def _optimizer(launch: TrainingLaunch) -> dict[str, Tree]:
    words, name = table("axolotl/fields"), launch.training.optimizer
    if name in words["optimizers"]:
        return {"optimizer": words["optimizers"][name]}
    if backend_of(launch.plan) == "fsdp2" and name in words["sharded_optimizers"]:
        return {"optimizer": words["sharded_optimizers"][name]}
    fields: dict[str, Tree] = {**optimizer(launch)}
    if "optim_target_modules" in fields:
        fields["optim_target_modules"] = "all_linear"
    return {"optimizer": fields.pop("optim"), **fields}


def _memory_and_speed(launch: TrainingLaunch) -> dict[str, Tree]:
    """Checkpointing under FSDP is FSDP's own: the Trainer refuses both at once. Cut cross-entropy, which computes the
    loss without full logits, is on when its plugin is."""
    recomputes = launch.recompute == "full"
    fields: dict[str, Tree] = {"gradient_checkpointing": recomputes and backend_of(launch.plan) != "fsdp2"}
    if fields["gradient_checkpointing"]:
        fields["gradient_checkpointing_kwargs"] = {"use_reentrant": False}
    if launch.offload == "activations":
        fields["activation_offloading"] = True
    if launch.training.fused_loss is True:
        fields["plugins"] = ["axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin"]
    if launch.training.tiled_mlp:
        fields["tiled_mlp"] = True
    if launch.training.compile:
        fields["torch_compile"] = True
    return fields


def _sharding(launch: TrainingLaunch, comments: dict[str, str]) -> dict[str, Tree]:
    """FSDP2 or the DeepSpeed file, and the sizes of groups where there is more than one kind."""
    backend, layout = backend_of(launch.plan), launch.plan.layout
    if backend == "deepspeed":
        return {"deepspeed": "deepspeed.json"}
    tp, cp = layout.tp or 1, layout.cp or 1
    group = launch.dp if layout.shard_group is None else layout.shard_group
    if backend != "fsdp2":
        return {}
    layer = layer_class_of(launch.model)
    shards: dict[str, Tree] = {
        "reshard_after_forward": launch.zero_stage == 3,
        "offload_params": launch.offload == "params",
        "activation_checkpointing": launch.recompute == "full",
        # Four-bit weights that only the first rank has packed do not fit the shards of the others.
        "cpu_ram_efficient_loading": launch.quantisation not in ("nf4", "nf4-single"),
        "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        **({"transformer_layer_cls_to_wrap": layer} if layer else {}),
        "state_dict_type": "SHARDED_STATE_DICT",
        "final_state_dict_type": "FULL_STATE_DICT",
    }
    if not layer:
        comments["auto_wrap_policy"] = "layer classes: the model's own _no_split_modules"
    fields: dict[str, Tree] = {"fsdp_version": 2, "fsdp_config": shards}
    if tp > 1 or cp > 1 or group != launch.dp:
        sizes = {"dp_replicate": launch.dp // group, "dp_shard": group, "tensor_parallel": tp, "context_parallel": cp}
        fields |= {f"{name}_size": size for name, size in sizes.items() if size > 1}
    return fields
