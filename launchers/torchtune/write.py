"""torchtune 0.6.1 YAML of a recipe; torchtune/fields.yaml lists the recipes and the models that it has builders for.

Recipes keep weights, gradients and moments in `dtype`. The YAML does not carry the number of devices: the launch does.
"""

from __future__ import annotations

import re
from typing import Any

from estimator.errors import PlanError
from launchers.hf.write import batch_comment, learning_rate
from launchers.launch.duration import duration
from launchers.launch.heading import bash_heading, heading
from launchers.launch.names import last_part, slug
from launchers.launch.placeholders import DATASET
from launchers.launch.training import TrainingLaunch
from launchers.pieces import File, Piece, Start
from launchers.shell.quoting import quoted
from launchers.shell.starting import script_command, torchrun_in_script
from launchers.tables import table
from launchers.trial import profiling
from launchers.yaml_text import Tree, document

PATH, SCRIPT = "torchtune.yaml", "torchtune.sh"
_MODELS = "torchtune.models."


def render(launch: TrainingLaunch) -> Piece:
    """The YAML, `tune run` of its recipe, and what the user must set."""
    model, recipe = _model_of(launch), _recipe(launch)
    tp = launch.plan.layout.tp or 1
    if tp > 1 and ("tp" not in model or "full_finetune" not in recipe):
        problem = "torchtune has tensor parallelism for full fine-tuning of Llama 3 models only"
        raise PlanError("layout.tp", problem, [1])
    needs: list[str] = []
    comments = {
        "gradient_accumulation_steps": batch_comment(launch),
        "lr": "a value to start from; yours to choose",
    }
    folder = f"saves/{launch.slug}"
    checkpoint = _checkpoint(launch, model, folder, needs, comments)
    sections: dict[str, dict[str, Tree]] = {
        "model": {
            "model": _builder(launch, model),
            "tokenizer": _tokenizer(launch, model, checkpoint["checkpoint_dir"]),
        },
        "checkpoints": {"output_dir": folder, "checkpointer": checkpoint, "resume_from_checkpoint": False},
        "data": _data(launch, needs, comments),
        "batch": {
            "batch_size": launch.micro_batch,
            "gradient_accumulation_steps": launch.accumulation,
            **_length(launch, comments),
        },
        "precision and optimizer": _optimizer(launch, recipe, tp),
        "memory and speed": _memory_and_speed(launch, recipe, tp),
        "run": {
            "device": "cuda",
            "metric_logger": {
                "_component_": "torchtune.training.metric_logging.DiskLogger",
                "log_dir": f"{folder}/logs",
            },
            "log_every_n_steps": 10,
            "log_peak_memory_stats": True,
            **profiling.settings(launch),
        },
    }
    if recipe == "full_dpo_distributed":
        sections["checkpoints"]["ref_checkpointer"] = checkpoint
    if launch.uses_adapters:
        sections["checkpoints"]["save_adapter_weights_only"] = False
    needs.append(f"environment: pip install {' '.join(_packages(launch))}")
    head = heading(launch, f"bash {SCRIPT}")
    script = File(SCRIPT, "torchtune", "\n".join(_script(launch, recipe, folder)), executable=True)
    files = (File(PATH, "torchtune", document(head, sections, comments)), script)
    return Piece(files, (*needs, *_lost(launch)), Start(script_command(launch, SCRIPT), programs=("torchtune",)))


def _script(launch: TrainingLaunch, recipe: str, folder: str) -> list[str]:
    options = f"{torchrun_in_script(launch)} " if recipe.endswith("distributed") else ""
    return [
        *bash_heading(launch, SCRIPT),
        "",
        "# Recipes save after each epoch; where one has, the run goes on from there.",
        "resume=False",
        f"if [[ -e {folder}/recipe_state/recipe_state.pt ]]; then resume=True; fi",
        f'exec tune run {options}{recipe} --config {PATH} resume_from_checkpoint="$resume"',
        "",
    ]


def _lost(launch: TrainingLaunch) -> list[str]:
    """That torchtune 0.6.1 saves after an epoch only, where an epoch is long."""
    run = duration(launch)
    if run is None:
        return []
    epochs = 1 if launch.training.steps is not None else max(1.0, launch.training.epochs)
    hours = run.expected_s / 3600 / epochs
    return [f"{PATH}: torchtune saves after each epoch only, here every {hours:.2g} h"] if hours > 1 else []


def _model_of(launch: TrainingLaunch) -> dict[str, Any]:
    name = last_part(launch.model or "").lower()
    for pattern, model in table("torchtune/fields")["models"]:
        if re.match(pattern, name):
            return model
    raise PlanError(
        "model",
        f"torchtune has no builder for {name or 'an inline model'}",
        ["Llama 2 to 3.3", "Qwen 2 and 2.5", "Mistral 7B", "Gemma 1 and 2", "Phi 3 mini", "Phi 4"],
    )


def _recipe(launch: TrainingLaunch) -> str:
    kinds = table("torchtune/fields")["recipes"]["dpo" if launch.training.stage == "dpo" else "finetune"]
    recipes = kinds["adapters" if launch.uses_adapters else "full"]
    count = "one" if launch.devices == 1 else "several"
    if count not in recipes:
        raise PlanError("workload.method", "torchtune's full DPO runs on two or more devices", ["lora", "qlora"])
    return recipes[count]


def _builder(launch: TrainingLaunch, model: dict[str, Any]) -> dict[str, Tree]:
    """The model's builder with the adapters. Its four-bit weights are torchao's NF4 with double quantisation."""
    module, _, name = model["builder"].rpartition(".")
    if not launch.uses_adapters:
        return {"_component_": f"{_MODELS}{module}.{name}"}
    if launch.training.method == "dora" and not model.get("dora", True):
        raise PlanError("workload.method", f"torchtune has no DoRA for {name}", ["lora", "qlora"])
    lora = launch.training.lora
    attention, mlp = _targets(launch)
    return {
        "_component_": f"{_MODELS}{module}.lora_{name}",
        "lora_attn_modules": attention,
        "apply_lora_to_mlp": mlp,
        "lora_rank": lora.rank,
        "lora_alpha": lora.alpha,
        "lora_dropout": lora.dropout,
        **({"use_dora": True} if launch.training.method == "dora" else {}),
        **({"quantize_base": True} if launch.quantisation else {}),
    }


def _targets(launch: TrainingLaunch) -> tuple[list[str], bool]:
    """Attention projections with adapters, and whether those of the MLP have them. Raises PlanError."""
    words = table("torchtune/fields")
    names, mlp_names = words["attention_modules"], words["mlp_modules"]
    attention: dict[str, None] = {}
    mlp: set[str] = set()
    for word in (part.strip() for part in launch.training.lora.targets.split(",") if part.strip()):
        if word in ("all-linear", "all", "attention"):
            attention |= dict.fromkeys(names.values())
        if word in ("all-linear", "all", "mlp"):
            mlp |= set(mlp_names)
        elif word in names:
            attention[names[word]] = None
        elif word in mlp_names:
            mlp.add(word)
        elif word != "attention":
            raise PlanError(
                "workload.lora.targets", f"torchtune has no adapters for {word!r}", ["all-linear", "attention", "mlp"]
            )
    if not attention or len(mlp) not in (0, len(mlp_names)):
        problem = "torchtune takes attention projections, and with them all of the MLP's or none"
        raise PlanError("workload.lora.targets", problem, ["all-linear", "attention"])
    return list(attention), bool(mlp)


def _tokenizer(launch: TrainingLaunch, model: dict[str, Any], folder: Tree) -> dict[str, Tree]:
    """max_seq_len cuts samples, and is the length that packed rows have."""
    row = table("torchtune/fields")["tokenizers"][model["tokenizer"]]
    files = {key: f"{folder}/{file}" for key, file in row["files"].items()}
    return {"_component_": f"{_MODELS}{row['component']}", **files, "max_seq_len": launch.seq_len}


def _checkpoint(
    launch: TrainingLaunch, model: dict[str, Any], folder: str, needs: list[str], comments: dict[str, str]
) -> dict[str, Tree]:
    """Where the model lies: a folder that the plan names, or one that `tune download` fills."""
    name = launch.model or ""
    if name.startswith(("/", "./", "../")):
        place = name
    else:
        place = f"checkpoints/{slug(last_part(name))}"
        words = ["tune", "download", name, "--output-dir", place, "--ignore-patterns", "original/consolidated*"]
        needs.append(f"model: {quoted(words)}")
    count = model.get("files")
    if count == 1:
        files: Tree = ["model.safetensors"]
    elif count is None:
        files = {"filename_format": "model-{}-of-{}.safetensors", "max_filename": "SET_ME"}
        comments["max_filename"] = "set this: the number of files, with five digits"
        needs.append(f"{PATH}: max_filename, the number of the checkpoint's files")
    else:
        files = {"filename_format": "model-{}-of-{}.safetensors", "max_filename": f"{count:05d}"}
    return {
        "_component_": "torchtune.training.FullModelHFCheckpointer",
        "checkpoint_dir": place,
        "checkpoint_files": files,
        "recipe_checkpoint": None,
        "output_dir": folder,
        "model_type": model["type"],
    }


def _data(launch: TrainingLaunch, needs: list[str], comments: dict[str, str]) -> dict[str, Tree]:
    stage = launch.training.stage
    row = table("torchtune/fields")["datasets"][stage]
    if launch.site.dataset is None:
        comments["source"] = f"set this: a Hugging Face data set ({row['content']})"
        needs.append(f"{PATH}: dataset source, your data ({row['content']})")
    fields: dict[str, Tree] = {"_component_": row["component"], "source": launch.site.dataset or DATASET}
    if launch.synthetic:
        fields |= {"source": "json", "data_files": "synthetic/train.jsonl"}
    fields |= row["fields"]
    if stage != "dpo":
        fields["packed"] = launch.training.packing
    return {"dataset": fields | {"split": "train"}, "seed": None, "shuffle": True}


def _length(launch: TrainingLaunch, comments: dict[str, str]) -> dict[str, Tree]:
    """Whole passes over the data, or the plan's optimizer steps as those of one."""
    training = launch.training
    if training.steps is not None:
        comments["max_steps_per_epoch"] = "the run's steps; the data has to hold as many"
        return {"epochs": 1, "max_steps_per_epoch": training.steps}
    return {"epochs": launch.whole_passes("torchtune"), "max_steps_per_epoch": None}


def _optimizer(launch: TrainingLaunch, recipe: str, tp: int) -> dict[str, Tree]:
    """torch's fused AdamW, which neither tensor parallelism nor states on the host take."""
    words, name = table("torchtune/fields"), launch.training.optimizer
    optimizer: dict[str, Tree] = {"_component_": words["optimizers"][name], "lr": learning_rate(launch)}
    if name == "adamw":
        optimizer["fused"] = tp == 1 and launch.offload != "params"
    plain, within = launch.training.fused_loss is False, launch.training.optimizer_in_backward
    loss: dict[str, Tree] = {"_component_": words["losses"]["plain" if plain else "chunked"]}
    if launch.training.stage == "dpo":
        loss = {"_component_": "torchtune.rlhf.loss.DPOLoss", "beta": 0.1, "label_smoothing": 0}
    fields: dict[str, Tree] = {"dtype": words["precisions"][launch.training.precision], "optimizer": optimizer}
    if recipe == "full_finetune_single_device" or within:
        fields["optimizer_in_bwd"] = within
    return fields | {
        "lr_scheduler": {
            "_component_": "torchtune.training.lr_schedulers.get_cosine_schedule_with_warmup",
            "num_warmup_steps": 100,
        },
        "loss": loss,
        # A norm over all gradients needs all of them.
        **({} if "lora_dpo" in recipe else {"clip_grad_norm": None if within else 1.0}),
    }


def _memory_and_speed(launch: TrainingLaunch, recipe: str, tp: int) -> dict[str, Tree]:
    fields: dict[str, Tree] = {
        "enable_activation_checkpointing": launch.recompute == "full",
        "enable_activation_offloading": launch.offload == "activations",
        "compile": launch.training.compile,
    }
    if recipe.endswith("distributed"):
        fields |= {"fsdp_reshard_after_forward": launch.zero_stage == 3, "fsdp_cpu_offload": launch.offload == "params"}
    if tp > 1:
        plan = {"_component_": f"{_MODELS}llama3.base_llama_tp_plan"}
        fields |= {"tensor_parallel_dim": tp, "tensor_parallel_plan": plan}
    return fields


def _packages(launch: TrainingLaunch) -> list[str]:
    component = table("torchtune/fields")["optimizers"][launch.training.optimizer]
    return ["torchtune==0.6.1", "torchao==0.10.0", *(["bitsandbytes"] if "bitsandbytes" in component else [])]
