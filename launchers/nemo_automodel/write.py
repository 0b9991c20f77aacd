"""NeMo AutoModel 0.7 YAML of its fine-tuning recipe, started by torchrun. Words: fields.yaml."""

from __future__ import annotations

from launchers.devices import attention_of
from launchers.hf.adapters import checkpoint, target_modules, whole_alpha
from launchers.hf.write import learning_rate
from launchers.launch.duration import KEPT_NEWEST, save_steps
from launchers.launch.heading import heading
from launchers.launch.placeholders import DATASET
from launchers.launch.training import TrainingLaunch
from launchers.pieces import File, Piece, Start
from launchers.shell.starting import torchrun_options
from launchers.tables import table
from launchers.yaml_text import Tree, document

PATH = "automodel.yaml"
_PACKAGE = "nemo_automodel"


def render(launch: TrainingLaunch) -> Piece:
    """The YAML, its start on every node, and what the user must set."""
    words, needs = table("nemo_automodel/fields"), ["environment: pip install nemo-automodel==0.7.0"]
    comments = {"lr": "a value to start from; yours to choose"}
    training = launch.training
    sections: dict[str, dict[str, Tree]] = {
        "recipe": {"recipe": "TrainFinetuneRecipeForNextTokenPrediction"},
        "model": {"model": _model(launch, needs, comments), **_adapter(launch, needs), **_precision(launch)},
        "data": _data(launch, needs, comments),
        "batch": {"step_scheduler": _steps(launch)},
        "loss and optimizer": {
            "loss_fn": {"_target_": words["losses"][training.fused_loss is True]},
            "optimizer": {"_target_": words["optimizer_classes"][training.optimizer], "lr": learning_rate(launch)},
            "lr_scheduler": {"lr_decay_style": "cosine"},
            "clip_grad_norm": {"max_norm": 1.0},
        },
        "sharding and memory": {"distributed": _sharding(launch)},
        "run": {
            "dist_env": {"backend": "nccl", "timeout_minutes": 30},
            "checkpoint": {
                "enabled": True,
                "checkpoint_dir": f"saves/{launch.slug}",
                "model_save_format": "safetensors",
                "save_consolidated": "final",
                "max_recent_checkpoints": KEPT_NEWEST,
            },
        },
    }
    command = f"torchrun {torchrun_options(launch)} -m {_PACKAGE}.cli.app {PATH}"
    text = document(heading(launch, command), sections, comments)
    return Piece((File(PATH, "nemo-automodel", text),), tuple(needs), Start(command, programs=(_PACKAGE,)))


def _model(launch: TrainingLaunch, needs: list[str], comments: dict[str, str]) -> dict[str, Tree]:
    """Weights are kept in one type, from which the optimizer's states have theirs."""
    training, words = launch.training, table("nemo_automodel/fields")
    return {
        "_target_": f"{_PACKAGE}.NeMoAutoModelForCausalLM.from_pretrained",
        "pretrained_model_name_or_path": checkpoint(launch, PATH, "pretrained_model_name_or_path", needs, comments),
        "torch_dtype": "float32" if training.weights == "fp32" else "bfloat16",
        "attn_implementation": words["attention"][attention_of(launch)],
    }


def _adapter(launch: TrainingLaunch, needs: list[str]) -> dict[str, Tree]:
    if not launch.uses_adapters:
        return {}
    lora = launch.training.lora
    targets = target_modules(launch, PATH, "peft.target_modules", needs)
    modules: dict[str, Tree] = (
        {"match_all_linear": True} if targets is None else {"target_modules": [f"*.{name}" for name in targets]}
    )
    peft: dict[str, Tree] = {
        "_target_": f"{_PACKAGE}.components._peft.lora.PeftConfig",
        **modules,
        "dim": lora.rank,
        "alpha": whole_alpha(launch, "NeMo AutoModel"),
        "dropout": lora.dropout,
        "use_dora": launch.training.method == "dora",
    }
    if not launch.quantisation:
        return {"peft": peft}
    return {"peft": peft, "quantization": dict(table("nemo_automodel/fields")["quantisations"][launch.quantisation])}


def _precision(launch: TrainingLaunch) -> dict[str, Tree]:
    fields: dict[str, Tree] = {}
    if launch.training.precision == "fp8":
        fields["fp8"] = dict(table("nemo_automodel/fields")["fp8"])
    if launch.training.compile:
        fields["compile"] = {"enabled": True}
    return fields


def _data(launch: TrainingLaunch, needs: list[str], comments: dict[str, str]) -> dict[str, Tree]:
    """Chats by the tokenizer's template: packed into rows of seq_len, or each padded to it."""
    if launch.site.dataset is None:
        comments["path_or_dataset_id"] = "set this: a Hugging Face data set or a JSON file of chats"
        needs.append(f"{PATH}: dataset.path_or_dataset_id, your data (chats as lists of messages)")
    packing = launch.training.packing
    return {
        "dataset": {
            "_target_": f"{_PACKAGE}.components.datasets.llm.chat_dataset.ChatDataset",
            "path_or_dataset_id": launch.site.dataset or DATASET,
            "split": "train",
            "seq_length": launch.seq_len,
            "padding": "do_not_pad" if packing else "max_length",
            "truncation": "longest_first",
        },
        "packed_sequence": {"packed_sequence_size": launch.seq_len if packing else 0},
        "dataloader": {
            "_target_": "torchdata.stateful_dataloader.StatefulDataLoader",
            "collate_fn": f"{_PACKAGE}.components.datasets.utils.default_collater",
            "shuffle": True,
        },
    }


def _steps(launch: TrainingLaunch) -> dict[str, Tree]:
    length: dict[str, Tree] = (
        {"num_epochs": launch.whole_passes("NeMo AutoModel")}
        if launch.training.steps is None
        else {"max_steps": launch.training.steps}
    )
    return {
        "global_batch_size": launch.global_batch,
        "local_batch_size": launch.micro_batch,
        **length,
        "ckpt_every_steps": save_steps(launch),
    }


def _sharding(launch: TrainingLaunch) -> dict[str, Tree]:
    """FSDP2, or DDP where nothing is sharded; data parallelism takes the devices that are left."""
    layout = launch.plan.layout
    recompute: dict[str, Tree] = {"activation_checkpointing": launch.recompute == "full"}
    if launch.zero_stage == 0:
        return {"strategy": "ddp", **recompute}
    tp = layout.tp or 1
    group = launch.dp if layout.shard_group is None else layout.shard_group
    fields: dict[str, Tree] = {
        "strategy": "fsdp2",
        **({"dp_replicate_size": launch.dp // group} if group != launch.dp else {}),
        "tp_size": tp,
        "cp_size": layout.cp or 1,
        "pp_size": 1,
        **({"ep_size": layout.ep} if (layout.ep or 1) > 1 else {}),
        "sequence_parallel": tp > 1,
        **recompute,
    }
    fields["mp_policy"] = dict(table("nemo_automodel/fields")["mixed_precision"])
    if launch.zero_stage == 2:
        fields["reshard_after_forward"] = False
    if launch.offload == "params":
        fields["offload_policy"] = {"_target_": "torch.distributed.fsdp.CPUOffloadPolicy"}
    return fields
