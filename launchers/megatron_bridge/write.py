"""Megatron-Bridge v0.6.0: a Bash script that starts one of its library recipes with the plan's values over it.

scripts/training/run_recipe.py runs in the world that torchrun makes and takes ConfigContainer paths as KEY=VALUE.
"""

from __future__ import annotations

import re
import shlex

from estimator.errors import PlanError
from knowledge.models.catalogue import architecture
from knowledge.models.known import architecture_row
from launchers.launch.duration import KEPT_NEWEST
from launchers.launch.heading import bash_heading
from launchers.launch.placeholders import CHECKPOINT, DATASET
from launchers.launch.training import TrainingLaunch
from launchers.megatron import arguments as megatron
from launchers.megatron.model_fields import mtp_layers
from launchers.pieces import File, Piece, Start
from launchers.shell.starting import script_command, torchrun_in_script
from launchers.tables import table
from launchers.trial import profiling
from launchers.trial.synthetic import is_own
from launchers.yaml_text import Tree

PATH = "megatron_bridge.sh"
# Text that Hydra takes as it stands and for no number, truth or null.
_PLAIN = re.compile(r"(?i)(?!(true|false|null|nan|inf)$)[a-z][\w/.-]*")


def render(launch: TrainingLaunch) -> Piece:
    """The script, its start on every node, and what the user must set."""
    model = architecture(launch.plan.model)
    stem, mode = _recipe(launch, architecture_row(model.id)), _mode(launch)
    megatron.check_split(launch, model)
    megatron.check_experts(launch, model)
    needs: list[str] = []
    words, core = table("megatron_bridge/fields"), table("megatron/fields")
    arguments: dict[str, Tree] = (
        megatron.parallelism(launch, model)
        | megatron.batch(launch)
        | megatron.length(launch, "train.train_iters", needs, PATH)
        | megatron.memory(launch, model)
        | _experts(launch)
        | dict(core["optimizers"][launch.training.optimizer])
        | core["learning_rates"]["adapters" if launch.uses_adapters else launch.training.stage]
    )
    arguments.pop("num_layers_per_virtual_pipeline_stage", None)
    if not launch.plan.layout.recompute_modules:
        arguments.pop("recompute_modules", None)
    fields = words["defaults"] | dict(map(_placed, arguments, arguments.values()))
    if (launch.plan.layout.vpp or 1) > 1 and "pipeline_model_parallel_layout" not in arguments:
        fields["model.virtual_pipeline_model_parallel_size"] = launch.plan.layout.vpp
    if launch.training.fused_loss is False:
        fields["model.cross_entropy_loss_fusion"] = False
    if mtp_layers(launch):
        # The recipes have them, and they were not planned with.
        fields["model.mtp_num_layers"] = None
        needs.append(f"{PATH}: model.mtp_num_layers, to train the model's own MTP layers, which were not planned with")
    fields["mixed_precision"] = _precision(launch)
    fields |= _adapter(launch) | _data(launch, needs) | _saving(launch) | profiling.settings(launch)
    dataset = "local-jsonl" if mode != "pretrain" else "mock" if is_own(launch) else "megatron-indexed"
    lines = [*bash_heading(launch, PATH), ""]
    connections = megatron.connections(launch)
    if connections:
        lines += [f"export CUDA_DEVICE_MAX_CONNECTIONS={connections}", ""]
    command = [
        f'exec torchrun {torchrun_in_script(launch)} "${{MEGATRON_BRIDGE:-.}}/scripts/training/run_recipe.py"',
        f"--model {stem} --mode {mode} --dataset {dataset}",
        *(shlex.quote(f"{key}={hydra(value)}") for key, value in fields.items()),
    ]
    needs.append("environment: MEGATRON_BRIDGE, the folder of a Megatron-Bridge checkout, tag v0.6.0 (NeMo container)")
    file = File(PATH, "megatron-bridge", "\n".join([*lines, " \\\n    ".join(command), ""]), executable=True)
    return Piece((file,), tuple(needs), Start(script_command(launch, PATH), programs=("torchrun",)))


def _precision(launch: TrainingLaunch) -> Tree:
    """Types of weights and gradients: a library name where gradients are reduced in fp32, which all of its have but
    fp16's; else the fields of one, with gradients of 16 bits, which is what `auto` is estimated with."""
    words, training = table("megatron_bridge/fields"), launch.training
    if training.gradients == "fp32" or training.precision not in words["mixed_precision"]["of"]:
        return words["precisions"][training.precision]
    mixed = words["mixed_precision"]
    return {"_target_": mixed["class"], **mixed["fields"], **mixed["of"][training.precision]}


def _recipe(launch: TrainingLaunch, model: str) -> str:
    """The stem of the model's recipes. Raises PlanError with the models that there are."""
    words = table("megatron_bridge/fields")
    only = words["only"]["pretrain"]
    stems = {id: stem for id, stem in words["models"].items() if _mode(launch) == "pretrain" or stem not in only}
    if model not in stems:
        raise PlanError("model", f"Megatron-Bridge v0.6.0 has no {_mode(launch)} recipe of {model}", list(stems))
    return stems[model]


def _mode(launch: TrainingLaunch) -> str:
    return (
        launch.training.method if launch.uses_adapters else "pretrain" if launch.training.stage == "pretrain" else "sft"
    )


def _experts(launch: TrainingLaunch) -> dict[str, Tree]:
    """Dispatch, where the plan says: `auto` is the recipe's own."""
    core, training = table("megatron/fields"), launch.training
    fields: dict[str, Tree] = {}
    if named := megatron.dispatcher(launch):
        fields |= core["moe_dispatchers"][named]
    if training.moe_capacity is True:
        fields |= core["moe_capacity"]
    if training.moe_overlap is True:
        fields["overlap_moe_expert_parallel_comm"] = True
    return fields


def _placed(name: str, value: Tree) -> tuple[str, Tree]:
    """An argument of Megatron's as a field of the ConfigContainer; `no_...` switches are their opposite's false."""
    place = table("megatron_bridge/fields")["places"].get(name, "model")
    path = place if "." in place else f"{place}.{name}"
    return path, False if name.startswith("no_") else value


def _adapter(launch: TrainingLaunch) -> dict[str, Tree]:
    if not launch.uses_adapters:
        return {}
    lora, known = launch.training.lora, table("megatron_bridge/fields")["adapter_targets"]
    if lora.targets not in known:
        raise PlanError("workload.lora.targets", "Megatron fuses projections, so they are named by group", list(known))
    if lora.alpha != int(lora.alpha):
        raise PlanError("workload.lora.alpha", "Megatron-Bridge's alpha is a whole number", [round(lora.alpha) or 1])
    return {
        "peft.dim": lora.rank,
        "peft.alpha": int(lora.alpha),
        "peft.dropout": lora.dropout,
        "peft.target_modules": list(known[lora.targets]),
    }


def _saving(launch: TrainingLaunch) -> dict[str, Tree]:
    """Where checkpoints go, how often, and how many stay; the run goes on from the newest that lies there."""
    saving = megatron.saving(launch)
    fields: dict[str, Tree] = {f"checkpoint.{name}": saving[name] for name in ("save", "load", "save_interval")}
    return fields | {"checkpoint.most_recent_k": KEPT_NEWEST}


def _data(launch: TrainingLaunch, needs: list[str]) -> dict[str, Tree]:
    """Data, its length, and for fine-tuning the checkpoint to start from. Packed rows are batches of one."""
    tuned = _mode(launch) != "pretrain"
    key = "dataset.dataset_root" if tuned else "dataset.data_path"
    fields: dict[str, Tree] = {"dataset.seq_length": launch.seq_len}
    if is_own(launch):
        return fields
    fields = {key: launch.site.dataset or DATASET, **fields}
    if launch.site.dataset is None:
        what = "a folder with training.jsonl of input and output" if tuned else "the prefix of Megatron's .bin and .idx"
        needs.append(f"{PATH}: {key}, {what}")
    if not tuned:
        return fields
    if launch.training.packing and launch.micro_batch > 1:
        problem = "packed rows are trained in micro-batches of one"
        raise PlanError("workload.micro_batch", problem, [1])
    needs.append(f"{PATH}: checkpoint.pretrained_checkpoint, the model in Megatron's format (scripts/conversion)")
    return fields | {
        "dataset.enable_offline_packing": launch.training.packing,
        "checkpoint.pretrained_checkpoint": CHECKPOINT,
    }


def hydra(value: Tree) -> str:
    """A value in Hydra's override grammar; text is quoted where it is more than plain words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{','.join(hydra(part) for part in value)}]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{hydra(part)}" for key, part in value.items()) + "}"
    if isinstance(value, str) and value.startswith("torch."):
        return f"{{_target_:{value},_call_:false}}"
    if isinstance(value, str) and re.fullmatch(r"megatron(\.\w+)+", value):
        return value
    if isinstance(value, str) and not _PLAIN.fullmatch(value):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    return str(value)
