"""Axolotl 0.19 YAML. The words for each plan value are in data/axolotl.yaml and data/hf_arguments.yaml.

Axolotl ignores keys that it does not know, and does not check that the product of its group sizes is the world.
"""

from __future__ import annotations

from launchers import File, Piece, Start
from launchers.families import layer_class_of
from launchers.hf.adapters import checkpoint, embedding_modules, target_modules, whole_alpha
from launchers.hf.sharding import backend_of
from launchers.hf.write import batch_comment, learning_rate, length, optimizer, packages
from launchers.job import Job, heading
from launchers.shell.starting import torchrun_options
from launchers.tables import table
from launchers.yaml_text import Tree, document

PATH = "axolotl.yaml"
_DATASET = "SET_ME_DATASET"


def render(job: Job) -> Piece:
    """The YAML, its launch by torchrun, and what the user must set."""
    words, training = table("axolotl"), job.training
    needs: list[str] = []
    comments = {
        "gradient_accumulation_steps": batch_comment(job),
        "learning_rate": "a value to start from; yours to choose",
    }
    steps = length(job)
    sections: dict[str, dict[str, Tree]] = {
        "model": {
            "base_model": checkpoint(job, PATH, "base_model", needs, comments),
            "attn_implementation": words["attention"][training.attention],
        },
        "method": words["stages"][training.stage]["fields"] | _adapter(job, needs),
        "data": _data(job, needs, comments),
        "batch": {"micro_batch_size": job.micro_batch, "gradient_accumulation_steps": job.accumulation},
        "precision and optimizer": {
            **words["precisions"][training.precision],
            **_optimizer(job),
            "learning_rate": learning_rate(job),
        },
        "memory and speed": _memory_and_speed(job),
        "sharding": _sharding(job, comments),
        "run": {
            "output_dir": f"saves/{job.slug}",
            "num_epochs": steps.pop("num_train_epochs"),
            **steps,
            **words["run"],
            **words["warmups"]["simpo" if training.stage == "simpo" else "others"],
            **({"ddp_timeout": table("hf_arguments")["reporting"]["ddp_timeout"]} if job.devices > 1 else {}),
        },
    }
    wanted = ["axolotl==0.19.0", *packages(job, "axolotl")]
    if training.fused_loss is True:
        wanted.append("cut-cross-entropy")
    if (job.plan.layout.cp or 1) > 1:
        wanted.append("ring-flash-attn")
    needs.append(f"environment: pip install {' '.join(dict.fromkeys(wanted))}")
    command = f"axolotl train {PATH} --launcher torchrun -- {torchrun_options(job)}"
    text = document(heading(job, command), {title: fields for title, fields in sections.items() if fields}, comments)
    return Piece((File(PATH, "axolotl", text),), tuple(needs), Start(command, programs=("axolotl",)))


def _adapter(job: Job, needs: list[str]) -> dict[str, Tree]:
    words, lora = table("axolotl"), job.training.lora
    fields: dict[str, Tree] = {**words["methods"][job.training.method]}
    if not job.uses_adapters:
        return fields
    if job.quantisation:
        fields |= words["quantisations"][job.quantisation]
    targets = target_modules(job, PATH, "lora_target_modules", needs)
    fields |= {"lora_r": lora.rank, "lora_alpha": whole_alpha(job, "Axolotl"), "lora_dropout": lora.dropout}
    fields |= {"lora_target_linear": True} if targets is None else {"lora_target_modules": targets}
    if lora.train_embeddings:
        fields["lora_modules_to_save"] = embedding_modules(job, PATH, "lora_modules_to_save", needs)
    return fields


def _data(job: Job, needs: list[str], comments: dict[str, str]) -> dict[str, Tree]:
    """Rows of sequence_len tokens: packed, or each sample padded to the longest of its batch."""
    words, stage = table("axolotl"), job.training.stage
    if job.site.dataset is None:
        content = words["data"][stage]
        comments["path"] = f"set this: a Hugging Face data set or a file ({content})"
        needs.append(f"{PATH}: datasets path, your data ({content})")
    fields: dict[str, Tree] = {
        "datasets": [{"path": job.site.dataset or _DATASET, "type": words["stages"][stage]["type"]}],
        "sequence_len": job.seq_len,
    }
    if stage in ("sft", "pretrain"):
        fields |= {"sample_packing": job.training.packing, "pad_to_sequence_len": job.training.packing}
    if stage != "pretrain":
        fields["chat_template"] = "tokenizer_default"
    return fields | {"dataset_prepared_path": "last_run_prepared"}


def _optimizer(job: Job) -> dict[str, Tree]:
    words, name = table("axolotl"), job.training.optimizer
    if name in words["optimizers"]:
        return {"optimizer": words["optimizers"][name]}
    if backend_of(job.plan) == "fsdp2" and name in words["sharded_optimizers"]:
        return {"optimizer": words["sharded_optimizers"][name]}
    fields: dict[str, Tree] = {**optimizer(job)}
    if "optim_target_modules" in fields:
        fields["optim_target_modules"] = "all_linear"
    return {"optimizer": fields.pop("optim"), **fields}


def _memory_and_speed(job: Job) -> dict[str, Tree]:
    """Checkpointing under FSDP is FSDP's own: the Trainer refuses both at once. Cut cross-entropy, which computes the
    loss without full logits, is on when its plugin is."""
    recomputes = job.recompute == "full"
    fields: dict[str, Tree] = {"gradient_checkpointing": recomputes and backend_of(job.plan) != "fsdp2"}
    if fields["gradient_checkpointing"]:
        fields["gradient_checkpointing_kwargs"] = {"use_reentrant": False}
    if job.offload == "activations":
        fields["activation_offloading"] = True
    if job.training.fused_loss is True:
        fields["plugins"] = ["axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin"]
    if job.training.compile:
        fields["torch_compile"] = True
    return fields


def _sharding(job: Job, comments: dict[str, str]) -> dict[str, Tree]:
    """FSDP2 or the DeepSpeed file, and the sizes of groups where there is more than one kind."""
    backend, layout = backend_of(job.plan), job.plan.layout
    if backend == "deepspeed":
        return {"deepspeed": "deepspeed.json"}
    tp, cp = layout.tp or 1, layout.cp or 1
    group = job.dp if layout.shard_group is None else layout.shard_group
    if backend != "fsdp2":
        return {}
    layer = layer_class_of(job.model)
    shards: dict[str, Tree] = {
        "reshard_after_forward": job.zero_stage == 3,
        "offload_params": job.offload == "params",
        "activation_checkpointing": job.recompute == "full",
        # Four-bit weights that only the first rank has packed do not fit the shards of the others.
        "cpu_ram_efficient_loading": job.quantisation not in ("nf4", "nf4-single"),
        "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        **({"transformer_layer_cls_to_wrap": layer} if layer else {}),
        "state_dict_type": "SHARDED_STATE_DICT",
        "final_state_dict_type": "FULL_STATE_DICT",
    }
    if not layer:
        comments["auto_wrap_policy"] = "layer classes: the model's own _no_split_modules"
    fields: dict[str, Tree] = {"fsdp_version": 2, "fsdp_config": shards}
    if tp > 1 or cp > 1 or group != job.dp:
        sizes = {"dp_replicate": job.dp // group, "dp_shard": group, "tensor_parallel": tp, "context_parallel": cp}
        fields |= {f"{name}_size": size for name, size in sizes.items() if size > 1}
    return fields
