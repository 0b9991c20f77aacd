"""Primus v26.5.1 experiment YAML for AMD devices: a model preset with the plan's values over Megatron's.

Primus merges overrides into its presets without a schema, and an unknown key is carried along unread: keys are those of
the presets (primus/fields.yaml).
"""

from __future__ import annotations

from estimator.errors import PlanError
from estimator.model.architecture import Architecture
from knowledge.models.catalogue import architecture
from knowledge.models.known import architecture_row
from launchers.devices import accelerator_of
from launchers.launch.heading import heading
from launchers.launch.placeholders import DATASET
from launchers.launch.training import TrainingLaunch
from launchers.megatron import arguments as megatron
from launchers.pieces import File, Piece, Start
from launchers.shell.starting import in_environment
from launchers.tables import table
from launchers.trial import profiling
from launchers.trial.synthetic import is_own
from launchers.yaml_text import Tree, YamlNote, tree

PATH = "primus.yaml"


def render(launch: TrainingLaunch) -> Piece:
    """The YAML, primus-cli on every node, and what the user must set."""
    words = table("primus/fields")
    if accelerator_of(launch).vendor != "AMD":
        raise PlanError("cluster.accelerator", "Primus is for AMD devices", ["mi300x", "mi325x", "mi355x"])
    model = architecture(launch.plan.model)
    row_id = architecture_row(model.id)
    if row_id not in words["models"]:
        raise PlanError("model", f"Primus has no preset of {model.id}", list(words["models"]))
    megatron.check_split(launch, model)
    megatron.check_experts(launch, model)
    needs: list[str] = []
    sections = _sections(launch, model, needs)
    written = {key for section in sections.values() for key in _renamed(section)}
    overrides: dict[str, Tree] = {}
    overrides[YamlNote("what the presets would say otherwise")] = ""
    overrides |= {key: value for key, value in words["defaults"].items() if key not in written}
    for title, section in sections.items():
        if section:
            overrides[YamlNote(title)] = ""
            overrides |= _renamed(section)
    overrides[
        YamlNote(
            "data" if launch.site.dataset else "data: set train_data_path, the prefix of files in Megatron's format"
        )
    ] = ""
    overrides |= (
        {"mock_data": True}
        if is_own(launch)
        else {"mock_data": False, "train_data_path": launch.site.dataset or DATASET}
    )
    if launch.site.dataset is None:
        needs.append(f"{PATH}: train_data_path, the prefix of files in Megatron's format (or mock_data: true)")
    command = _command(launch)
    trainer: dict[str, Tree] = {
        "framework": "megatron",
        "config": "pre_trainer.yaml",
        "model": f"{words['models'][row_id]}.yaml",
        "overrides": overrides,
    }
    document: dict[str, Tree] = {
        "work_group": "shardwise",
        "user_name": "root",
        "exp_name": launch.slug,
        "workspace": "./output",
        "modules": {"pre_trainer": trainer},
    }
    lines = [f"# {line}" for line in heading(launch, command)] + ["", *tree(document), ""]
    needs.append("environment: primus-cli of Primus v26.5.1 (runner/primus-cli) on the path, or its container")
    start = Start(command, programs=("primus-cli",))
    return Piece((File(PATH, "primus", "\n".join(lines)),), tuple(needs), start)


def _sections(launch: TrainingLaunch, model: Architecture, needs: list[str]) -> dict[str, dict[str, Tree]]:
    """Megatron's arguments, titled."""
    return {
        "batch and length": {
            **megatron.batch(launch),
            "seq_length": launch.seq_len,
            "max_position_embeddings": max(model.context, launch.seq_len),
            **megatron.length(launch, "train_iters", needs, PATH),
        },
        "parallelism": megatron.parallelism(launch, model) | _schedule(launch),
        "experts": megatron.experts(launch, model),
        "precision": megatron.precision(launch),
        "memory": megatron.memory(launch, model),
        "optimizer, a learning rate to start from": {
            **table("megatron/fields")["optimizers"][launch.training.optimizer],
            **table("megatron/fields")["learning_rates"][launch.training.stage],
            "lr_warmup_fraction": 0.01,
            "lr_warmup_iters": 0,
        },
        "run": table("megatron/fields")["run"] | _saving(launch),
        "profiler": profiling.settings(launch),
    }


def _saving(launch: TrainingLaunch) -> dict[str, Tree]:
    """Primus puts checkpoints into the experiment's folder and finds the newest there itself."""
    return megatron.saving(launch) | {"load": None, "auto_continue_train": True}


def _renamed(section: dict[str, Tree]) -> dict[str, Tree]:
    """Megatron's arguments by Primus' keys. `no_...` switches become their opposite's false."""
    words = table("primus/fields")
    fields: dict[str, Tree] = {}
    for key, value in section.items():
        if key not in words["unknown"]:
            fields[words["renamed"].get(key, key)] = False if key.startswith("no_gradient") else value
    if fields.get("moe_token_dispatcher_type") == "flex":
        fields |= words["flex"]
    return fields


def _schedule(launch: TrainingLaunch) -> dict[str, Tree]:
    """The switches of zero-bubble schedules, which replace what the plan's ZeRO stage would overlap."""
    layout = launch.plan.layout
    wanted = layout.schedule
    if wanted not in ("zero-bubble", "v-half") or (layout.pp or 1) == 1:
        return {}
    if (layout.vpp or 1) > 1:
        raise PlanError("layout.vpp", f"the {wanted} schedule deals out its own stages", [1])
    return dict(table("primus/fields")["schedules"][wanted])


def _command(launch: TrainingLaunch) -> str:
    """primus-cli takes the world from the environment; eight devices a node unless it is told."""
    return (
        f"NNODES={launch.nodes} GPUS_PER_NODE={launch.node_devices} {in_environment(launch)}"
        f"primus-cli direct -- train pretrain --config {PATH}"
    )
