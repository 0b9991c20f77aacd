"""MaxText 0.2.5 YAML for TPUs: the plan's values over MaxText's base.yml.

A mesh axis has a size inside a slice (ici) and one across slices (dcn); their product is the number of chips. The batch
is per chip: per_device_batch_size x gradient_accumulation_steps x chips = the plan's global batch.
"""

from __future__ import annotations

from estimator.errors import PlanError
from estimator.model.architecture import Architecture
from knowledge.models.catalogue import architecture
from knowledge.models.known import architecture_row
from launchers.devices import accelerator_of
from launchers.launch.duration import KEPT_NEWEST, run_steps, save_steps
from launchers.launch.heading import heading
from launchers.launch.placeholders import DATASET, TOKENIZER
from launchers.launch.training import TrainingLaunch
from launchers.pieces import File, Piece, Start
from launchers.tables import table
from launchers.trial import profiling
from launchers.trial.synthetic import is_own
from launchers.yaml_text import Tree, document

PATH = "maxtext.yml"
_OUTPUT = "SET_ME_OUTPUT"


def render(launch: TrainingLaunch) -> Piece:
    """The YAML, the trainer on every host, and what the user must set."""
    words = table("maxtext/fields")
    device = accelerator_of(launch)
    if device.vendor != "Google":
        raise PlanError("cluster.accelerator", "these files are for TPUs", ["tpu-v5e", "tpu-v5p", "tpu-v6e"])
    model = architecture(launch.plan.model)
    row_id = architecture_row(model.id)
    if row_id not in words["models"]:
        raise PlanError("model", f"MaxText 0.2.5 has no config of {model.id}", list(words["models"]))
    if launch.training.optimizer == "muon" and words["models"][row_id] in words["without_muon"]:
        raise PlanError("workload.optimizer", f"MaxText has no Muon for {model.id}", ["adamw", "sgd"])
    if launch.training.moe_capacity is True and row_id.startswith("openai/gpt-oss"):
        raise PlanError("workload.moe_capacity", "MaxText drops no tokens of gpt-oss", ["false"])
    needs: list[str] = []
    comments: dict[str, str] = {}
    sections = {
        "base": {"base_config": "base.yml", "model_name": words["models"][row_id], "hardware": "tpu"},
        "batch and length": _batch(launch, needs, comments),
        "mesh": _mesh(launch, model, device.scaleup_domain),
        "precision and optimizer": {
            **words["precisions"][launch.training.precision],
            "weight_dtype": "bfloat16" if launch.training.weights == "bf16" else "float32",
            "opt_type": launch.training.optimizer,
        },
        "memory and speed": _memory(launch, model),
        "data": _data(launch, needs, comments),
        "run": {
            **words["run"],
            "checkpoint_period": save_steps(launch, words["run"]["checkpoint_period"]),
            "max_num_checkpoints_to_keep": KEPT_NEWEST,
            **_output(launch, needs, comments),
            **profiling.settings(launch),
        },
    }
    comments["learning_rate"] = "a value to start from; yours to choose"
    command = f"python3 -m maxtext.trainers.pre_train.train {PATH}"
    text = document(heading(launch, command), sections, comments)
    needs.append("environment: pip install maxtext[tpu]==0.2.5 on every host of the slice")
    return Piece((File(PATH, "maxtext", text),), tuple(needs), Start(command, programs=("maxtext",)))


def _batch(launch: TrainingLaunch, needs: list[str], comments: dict[str, str]) -> dict[str, Tree]:
    """Chips that split a sequence or its tensors share the sequences of one replica."""
    per_chip = launch.micro_batch * launch.dp / launch.devices
    if int(per_chip * launch.devices) != launch.micro_batch * launch.dp:
        chips = launch.devices // launch.dp
        problem = f"{launch.micro_batch} sequences cannot be shared by {chips} chips as a decimal fraction"
        raise PlanError("workload.micro_batch", problem, [launch.devices // launch.dp])
    comments["per_device_batch_size"] = (
        f"x {launch.accumulation} x {launch.devices} chips = {launch.global_batch} per step"
    )
    known = run_steps(launch)
    if known is None:
        needs.append(f"{PATH}: steps, the optimizer steps of the run (the plan says neither steps nor data)")
        comments["steps"] = "set this: the plan says neither steps nor data"
    return {
        "per_device_batch_size": int(per_chip) if per_chip == int(per_chip) else per_chip,
        "gradient_accumulation_steps": launch.accumulation,
        "max_target_length": launch.seq_len,
        "packing": launch.training.packing,
        "steps": known or table("maxtext/fields")["steps"],
    }


def _mesh(launch: TrainingLaunch, model: Architecture, slice_size: int) -> dict[str, Tree]:
    """Sizes of the axes. Experts share the data-parallel axes; more chips than a slice has are slices of whole replicas
    or shards."""
    layout = launch.plan.layout
    tp, cp, ep = layout.tp or 1, layout.cp or 1, layout.ep or 1
    for block in model.blocks:
        if block.heads % tp:
            raise PlanError("layout.tp", f"{block.heads} attention heads cannot be split over tp={tp}")
    if cp > 1 and launch.seq_len % (2 * cp):
        raise PlanError("workload.seq_len", f"{launch.seq_len} tokens cannot be split into 2 x cp={cp} parts")
    if ep > 1 and not model.experts:
        raise PlanError("layout.ep", "the model has no experts", [1])
    if ep > 1 and (model.experts % ep or launch.dp % ep):
        raise PlanError("layout.ep", f"ep={ep} has to divide {model.experts} experts and dp={launch.dp}")
    if model.experts and layout.etp not in (None, tp):
        raise PlanError("layout.etp", "experts are split over the tensor axis like the rest", [tp])
    shards = 1 if launch.zero_stage == 0 else layout.shard_group or launch.dp
    if shards % ep and ep > 1:
        raise PlanError("layout.shard_group", f"a shard group of {shards} does not hold ep={ep}")
    slices = max(1, -(-launch.devices // slice_size))
    if launch.devices % slices or launch.dp % slices:
        raise PlanError("cluster.count", f"{launch.devices} chips do not fill slices of {slice_size} evenly")
    copies = launch.dp // shards
    across = {"data": 1, "fsdp": 1}
    across["data" if copies % slices == 0 else "fsdp"] = slices
    if copies % slices and (shards // ep) % slices:
        raise PlanError("layout.shard_group", f"{shards} shards do not divide over {slices} slices")
    inside = {
        "data": copies // across["data"],
        "fsdp": (shards // ep) // across["fsdp"],
        "context": cp,
        "tensor": tp,
        "expert": ep,
    }
    fields: dict[str, Tree] = {f"ici_{axis}_parallelism": size for axis, size in inside.items()}
    return fields | {f"dcn_{axis}_parallelism": size for axis, size in across.items()}


def _memory(launch: TrainingLaunch, model: Architecture) -> dict[str, Tree]:
    words, training = table("maxtext/fields"), launch.training
    fields: dict[str, Tree] = {"remat_policy": words["recompute"][launch.recompute]}
    if launch.offload == "activations":
        fields |= words["offloaded_activations"][launch.recompute]
    else:
        fields |= words["offload"][launch.offload]
    fields["attention"] = words["attention"][training.attention]
    if training.fused_loss is True:
        fields["num_vocab_tiling"] = words["vocabulary_tiles"]
    if model.experts:
        fields |= words["moe"]["capacity" if training.moe_capacity is True else "dropless"]
    return fields


def _data(launch: TrainingLaunch, needs: list[str], comments: dict[str, str]) -> dict[str, Tree]:
    if is_own(launch):
        return {"dataset_type": "synthetic"}
    fields: dict[str, Tree] = {"dataset_type": "hf", "hf_path": launch.site.dataset or DATASET}
    if launch.site.dataset is None:
        comments["hf_path"] = "set this: a data set of the Hugging Face hub, or another dataset_type"
        needs.append(f"{PATH}: hf_path, a data set of the Hugging Face hub (or another dataset_type)")
    if launch.model is None:
        comments["tokenizer_path"] = "set this: a tokenizer of the Hugging Face hub"
        needs.append(f"{PATH}: tokenizer_path, a tokenizer of the Hugging Face hub")
    return fields | {"tokenizer_type": "huggingface", "tokenizer_path": launch.model or TOKENIZER}


def _output(launch: TrainingLaunch, needs: list[str], comments: dict[str, str]) -> dict[str, Tree]:
    comments["base_output_directory"] = "set this: a folder that all hosts reach, gs://..."
    needs.append(f"{PATH}: base_output_directory, a folder that all hosts reach (gs://...)")
    return {"run_name": launch.slug, "base_output_directory": _OUTPUT}
