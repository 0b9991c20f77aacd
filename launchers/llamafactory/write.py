"""LlamaFactory 0.9.5 training YAML. The words for each plan value are in llamafactory/fields.yaml.

The YAML does not carry the number of devices: the launch command does, and per_device_train_batch_size x
gradient_accumulation_steps x devices is the plan's global batch only with it.
"""

from __future__ import annotations

from estimator.plan.schema import image_sides
from launchers.accelerate.write import accelerate_launch
from launchers.devices import attention_of
from launchers.families import is_known_to_liger, template_of
from launchers.hf.adapters import checkpoint, embedding_modules, target_modules, whole_alpha
from launchers.hf.write import LAST_SAVED, learning_rate, length, packages, saving
from launchers.launch.heading import heading
from launchers.launch.placeholders import DATASET
from launchers.launch.training import TrainingLaunch
from launchers.pieces import File, Piece, Start
from launchers.shell.quoting import MASTER_ADDR, MASTER_PORT, NODE_RANK
from launchers.tables import table
from launchers.trial import profiling
from launchers.yaml_text import Value, document

PATH = "llamafactory.yaml"
_REWARD_MODEL = "SET_ME_REWARD_MODEL"


def render(launch: TrainingLaunch) -> Piece:
    """The YAML, the torchrun launch through llamafactory-cli, and what the user must set."""
    words, common = table("llamafactory/fields"), table("hf/fields")
    training = launch.training
    needs: list[str] = []
    comments: dict[str, str] = {}
    method = _method(launch, needs, comments)
    sections = {
        "model": _model(launch, needs, comments),
        "method": method,
        "data": _data(launch, needs, comments),
        "output": {"output_dir": f"saves/{launch.slug}"},
        "batch": {
            "per_device_train_batch_size": launch.micro_batch,
            "gradient_accumulation_steps": launch.accumulation,
        },
        "precision and optimizer": {
            **(words["precisions"] | common["precisions"])[training.precision],
            **words["weights"][training.weights],
            **(words["optimizers"].get(training.optimizer) or {"optim": common["optimizers"][training.optimizer]}),
            **({f"{training.optimizer}_layerwise": True} if training.optimizer_in_backward else {}),
            "learning_rate": learning_rate(launch),
        },
        "memory and speed": _memory_and_speed(launch),
        "run": {**length(launch), **common["run"], **saving(launch), **words["run"], **common["reporting"]},
        "profiler": profiling.settings(launch),
    }
    _remark(launch, needs, comments)
    comments["learning_rate"] = "a value to start from; yours to choose"
    wanted = packages(launch, "llamafactory")
    if training.fused_loss is True:
        wanted.append("liger-kernel")
        if not is_known_to_liger(launch.model):
            needs.append(f"{PATH}: enable_liger_kernel, check that Liger knows this model (others run unfused)")
    if wanted:
        needs.append(f"environment: pip install {' '.join(dict.fromkeys(wanted))}")
    command = _command(launch)
    text = document(heading(launch, command), {title: fields for title, fields in sections.items() if fields}, comments)
    # Reward models and PPO in full start over (hparams/parser.py, can_resume_from_checkpoint).
    resumes = training.stage not in ("rm", "ppo") or launch.uses_adapters
    start = Start(command, programs=("llamafactory",), last_saved=LAST_SAVED, resumes=resumes)
    return Piece((File(PATH, "llamafactory", text),), tuple(needs), start)


def _method(launch: TrainingLaunch, needs: list[str], comments: dict[str, str]) -> dict[str, Value]:
    words, training = table("llamafactory/fields"), launch.training
    method: dict[str, Value] = {
        **words["stages"][training.stage],
        "do_train": True,
        **words["methods"][training.method],
    }
    if launch.uses_adapters:
        method |= _adapter(launch, needs)
    if training.weights == "bf16":
        comments["pure_bf16"] = "keeps the checkpoint's own type, which has to be bfloat16"
    if training.stage == "ppo":
        method |= {"reward_model": _REWARD_MODEL, "reward_model_type": "lora" if launch.uses_adapters else "full"}
        comments["reward_model"] = "set this: " + (
            "path of a LoRA reward model on the same base" if launch.uses_adapters else "path of a full reward model"
        )
        needs.append(f"{PATH}: reward_model, the reward model that PPO scores with")
        if training.response_len is not None:
            method["max_new_tokens"] = training.response_len
    return method


def _remark(launch: TrainingLaunch, needs: list[str], comments: dict[str, str]) -> None:
    """Says beside the values what follows from several of them."""
    comments["gradient_accumulation_steps"] = (
        f"{launch.micro_batch} x {launch.accumulation} x {launch.devices} devices = {launch.global_batch} per step"
    )
    group = launch.plan.layout.shard_group
    if "deepspeed" in launch.targets and group not in (None, launch.dp):
        comments["deepspeed"] = (
            f"shard groups of {group}: weights are gathered inside a group (hpZ), states are split over all {launch.dp}"
        )
    if launch.training.optimizer == "badam":
        comments["badam_switch_interval"] = (
            "steps until the next layer's turn: all are trained after this many for each"
        )
        if "deepspeed" not in launch.targets:
            needs.append(
                "environment: let the process see one device (CUDA_VISIBLE_DEVICES); it would take all it sees"
            )


def _model(launch: TrainingLaunch, needs: list[str], comments: dict[str, str]) -> dict[str, Value]:
    words = table("llamafactory/fields")
    fields: dict[str, Value] = {
        "model_name_or_path": checkpoint(launch, PATH, "model_name_or_path", needs, comments),
        "flash_attn": words["attention"][attention_of(launch)],
    }
    if launch.training.stage == "pretrain":
        fields["train_from_scratch"] = False
        comments["train_from_scratch"] = "true starts from random weights instead of the checkpoint"
    return fields


def _data(launch: TrainingLaunch, needs: list[str], comments: dict[str, str]) -> dict[str, Value]:
    """Data fields. With `packing: true` DataArguments.__post_init__ takes one token off `cutoff_len`, which the packing
    of SFT adds back as padding (data/processor/supervised.py), so a row has seq_len tokens. Pretraining packs by
    default and to exactly `cutoff_len`, but only when `packing` is left out."""
    stage = launch.training.stage
    # PPO cuts prompts only; what is generated comes on top (data/processor/unsupervised.py).
    generated = launch.training.response_len or 0 if stage == "ppo" else 0
    fields: dict[str, Value] = {"dataset": launch.site.dataset or DATASET, "cutoff_len": launch.seq_len - generated}
    if launch.synthetic:
        fields["dataset_dir"] = launch.site.dataset
    if launch.site.dataset is None:
        content = table("llamafactory/fields")["data"][stage]
        comments["dataset"] = f"set this: a name in data/dataset_info.json ({content})"
        needs.append(f"{PATH}: dataset, the name of your data in data/dataset_info.json ({content})")
    elif not launch.synthetic:
        name = launch.site.dataset
        needs.append(
            f"{PATH}: an entry {name} in data/dataset_info.json, which says where the data are and their columns"
        )
    template = template_of(launch.model)
    if template:
        fields["template"] = template
    elif stage != "pretrain":
        needs.append(f"{PATH}: template, the chat format of this model (without it the tokenizer's own is used)")
    if stage == "sft":
        fields["packing"] = launch.training.packing
    elif stage == "pretrain":
        if launch.training.packing:
            comments["cutoff_len"] = "pretraining packs to this length by default"
        else:
            fields["packing"] = False
    else:
        fields["packing"] = False
        if launch.training.packing:
            comments["packing"] = "LlamaFactory packs only in pretraining and SFT; samples are padded here"
    return fields | _images(launch) | {"preprocessing_num_workers": 16, "dataloader_num_workers": 4}


def _images(launch: TrainingLaunch) -> dict[str, Value]:
    """What limits images and frames, which ProcessorArguments would scale down to 768x768 and to 256x256, and whether
    what reads them is trained."""
    training = launch.training
    if not training.visual_tokens:
        return {}
    width, height = image_sides(training.image_size)
    frozen = training.vision == "frozen"
    fields: dict[str, Value] = {"freeze_vision_tower": frozen, "freeze_multi_modal_projector": frozen}
    if training.images:
        fields["image_max_pixels"] = width * height
    if training.video_frames:
        fields |= {"video_max_pixels": width * height, "video_maxlen": training.video_frames}
    return fields


def _adapter(launch: TrainingLaunch, needs: list[str]) -> dict[str, Value]:
    """How frozen weights are packed, rank, scale, targets, dropout, and modules that are trained in full besides.
    LlamaFactory's alpha is a whole number."""
    lora = launch.training.lora
    fields: dict[str, Value] = (
        dict(table("llamafactory/fields")["quantisations"][launch.quantisation]) if launch.quantisation else {}
    )
    targets = target_modules(launch, PATH, "lora_target", needs)
    fields |= {
        "lora_rank": lora.rank,
        "lora_alpha": whole_alpha(launch, "LlamaFactory"),
        "lora_target": "all" if targets is None else ",".join(targets),
    }
    if lora.dropout:
        fields["lora_dropout"] = lora.dropout
    if lora.train_embeddings:
        fields["additional_target"] = ",".join(embedding_modules(launch, PATH, "additional_target", needs))
    return fields


def _memory_and_speed(launch: TrainingLaunch) -> dict[str, Value]:
    """Checkpointing is LlamaFactory's default; use_unsloth_gc is its own variant that keeps the inputs of the layers in
    host memory and needs no Unsloth. A fused loss left to `auto` is off, as in LlamaFactory."""
    fields: dict[str, Value] = {
        "disable_gradient_checkpointing": launch.recompute == "none",
        "enable_liger_kernel": launch.training.fused_loss is True,
    }
    if launch.offload == "activations":
        fields["use_unsloth_gc"] = True
    if launch.training.compile:
        fields["torch_compile"] = True
    if "deepspeed" in launch.targets:
        fields["deepspeed"] = "deepspeed.json"
    return fields


def _command(launch: TrainingLaunch) -> str:
    """Under FSDP accelerate starts the processes, with the file that says the shards. Else llamafactory-cli starts
    torchrun itself and takes the world from the environment (launcher.py). FORCE_TORCHRUN is set even for one device:
    without it DeepSpeed is refused and all visible devices would be used. BAdam on one device is refused with it, as a
    run of torchrun counts as distributed (hparams/parser.py)."""
    if "accelerate" in launch.targets:
        return accelerate_launch(launch, "-m", "llamafactory.launcher", PATH)
    if launch.training.optimizer == "badam" and "deepspeed" not in launch.targets:
        return f"llamafactory-cli train {PATH}"
    words = ["FORCE_TORCHRUN=1"]
    if launch.nodes > 1:
        words += [
            f"NNODES={launch.nodes}",
            f"NODE_RANK={NODE_RANK}",
            f"MASTER_ADDR={MASTER_ADDR}",
            f"MASTER_PORT={MASTER_PORT}",
        ]
    words.append(f"NPROC_PER_NODE={launch.node_devices}")
    return " ".join([*words, "llamafactory-cli", "train", PATH])
