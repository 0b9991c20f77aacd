"""accelerate 1.11 config: one process per device under DDP, DeepSpeed, FSDP1 or FSDP2, and the sizes of its groups.

num_processes counts the devices of all nodes. It serves programs on the transformers Trainer and a script of one's own.
"""

from __future__ import annotations

from estimator.errors import PlanError
from launchers.devices import maker
from launchers.families import layer_class_of
from launchers.hf.sharding import Backend, backend_of
from launchers.launch.heading import heading
from launchers.launch.training import TrainingLaunch
from launchers.pieces import File, Piece, Start
from launchers.shell.quoting import MASTER_ADDR, MASTER_PORT, NODE_RANK, quoted
from launchers.tables import table
from launchers.yaml_text import Tree, document

PATH = "accelerate.yaml"
_SCRIPT = "train.py"


def render(launch: TrainingLaunch) -> Piece:
    """The YAML and, where no program of the set reads it, the launch of the user's own script."""
    backend, words = backend_of(launch.plan), table("accelerate/fields")
    needs: list[str] = []
    comments = {"num_processes": f"of all nodes: {launch.nodes} x {launch.node_devices}"}
    if launch.nodes > 1:
        comments["machine_rank"] = "each node gives its own on the command line"
    sections: dict[str, dict[str, Tree]] = {
        "processes": {
            "compute_environment": "LOCAL_MACHINE",
            "distributed_type": (words["backends"] | words["backends_of"].get(maker(launch), {}))[backend],
            "num_machines": launch.nodes,
            "num_processes": launch.devices,
            "machine_rank": 0,
            "main_training_function": "main",
            "rdzv_backend": "static",
            "same_network": True,
            "use_cpu": False,
        },
    }
    if backend == "deepspeed":
        # With a DeepSpeed file accelerate refuses mixed_precision and what else the file says (utils/dataclasses.py).
        deepspeed: dict[str, Tree] = {
            "deepspeed_config_file": "deepspeed.json",
            "zero3_init_flag": launch.zero_stage == 3,
        }
        if launch.nodes > 1:
            deepspeed["deepspeed_multinode_launcher"] = "standard"
        sections["sharding"] = {"deepspeed_config": deepspeed}
    else:
        sections["precision"] = {"mixed_precision": _mixed_precision(launch)}
    if backend in ("fsdp1", "fsdp2"):
        sections["sharding"] = {"fsdp_config": _fsdp(launch, backend, comments)}
    if sizes := _sizes(launch, backend):
        sections["groups"] = {"parallelism_config": sizes}
    alone = launch.targets in (("accelerate",), ("deepspeed", "accelerate"))
    if alone:
        needs.append(f"{_SCRIPT}: your training script; it calls Accelerator.prepare on model, {_own(launch)}")
        if launch.training.compile:
            sections["compilation"] = {"dynamo_config": {"dynamo_backend": "INDUCTOR"}}
    command = accelerate_launch(launch, _SCRIPT)
    text = document(heading(launch, command if alone else accelerate_launch(launch, "...")), sections, comments)
    start = Start(command, programs=("accelerate",)) if alone else None
    return Piece((File(PATH, "accelerate", text),), tuple(needs), start)


def _own(launch: TrainingLaunch) -> str:
    """What the script of one's own has to bring, because accelerate's file has no field for it."""
    parts = [f"{launch.training.optimizer} optimizer", f"batches of {launch.micro_batch} x {launch.seq_len} tokens"]
    if launch.accumulation > 1:
        parts.append(f"{launch.accumulation} micro-steps (gradient_accumulation_steps)")
    if launch.recompute not in ("none", "full") or (
        launch.recompute == "full" and backend_of(launch.plan)[:4] != "fsdp"
    ):
        parts.append(f"recompute {launch.recompute}")
    return ", ".join(parts)


def _mixed_precision(launch: TrainingLaunch) -> str:
    """`no` where weights are held in the compute type: 16 bits without a master copy, or fp32. LlamaFactory puts fp8 in
    the environment itself (hparams/parser.py)."""
    if launch.training.weights == "bf16":
        return "no"
    return table("accelerate/fields")["precisions"][launch.training.precision]


def _fsdp(launch: TrainingLaunch, backend: Backend, comments: dict[str, str]) -> dict[str, Tree]:
    """The fsdp_config section. The shards of FSDP1's hybrid strategies are the devices of a node."""
    layer = layer_class_of(launch.model)
    fields: dict[str, Tree] = {"fsdp_version": int(backend[-1])}
    if backend == "fsdp2":
        fields["fsdp_reshard_after_forward"] = launch.zero_stage == 3
    else:
        group = launch.plan.layout.shard_group
        hybrid = group is not None and group != launch.dp
        if hybrid and group != launch.node_devices:
            raise PlanError(
                "layout.shard_group",
                f"FSDP1's shard groups are the {launch.node_devices} devices of a node (FSDP2 takes any)",
                [launch.node_devices, launch.dp],
            )
        fields["fsdp_sharding_strategy"] = table("accelerate/fields")["strategies"]["hybrid" if hybrid else "whole"][
            launch.zero_stage
        ]
        fields["fsdp_use_orig_params"] = True
        fields["fsdp_sync_module_states"] = True
    fields["fsdp_auto_wrap_policy"] = "TRANSFORMER_BASED_WRAP"
    if layer:
        fields["fsdp_transformer_layer_cls_to_wrap"] = layer
    else:
        comments["fsdp_auto_wrap_policy"] = "layer classes: the model's own _no_split_modules"
    # LlamaFactory checkpoints layers itself (disable_gradient_checkpointing).
    checkpointing = launch.recompute == "full" and "llamafactory" not in launch.targets
    # Four-bit weights that only the first rank has packed do not fit the shards of the others.
    efficient = launch.quantisation not in ("nf4", "nf4-single")
    return fields | {
        "fsdp_offload_params": launch.offload == "params",
        "fsdp_activation_checkpointing": checkpointing,
        "fsdp_cpu_ram_efficient_loading": efficient,
        "fsdp_state_dict_type": "FULL_STATE_DICT",
    }


def _sizes(launch: TrainingLaunch, backend: Backend) -> dict[str, Tree]:
    """The parallelism_config section, whose product is all devices; none where data parallelism is one group."""
    layout = launch.plan.layout
    tp, cp = layout.tp or 1, layout.cp or 1
    group = launch.dp if layout.shard_group is None else layout.shard_group
    if backend not in ("fsdp2", "ddp", "none") or (tp == cp == 1 and (backend != "fsdp2" or group == launch.dp)):
        return {}
    shard = group if backend == "fsdp2" else 1
    sizes = {"dp_replicate": launch.dp // shard, "dp_shard": shard, "tp": tp, "cp": cp}
    return {f"parallelism_config_{name}_size": size for name, size in sizes.items()}


def accelerate_launch(launch: TrainingLaunch, *words: str) -> str:
    """`accelerate launch` of a script or of `-m module`, with the file of the accelerate target."""
    rank = ""
    if launch.nodes > 1:
        rank = f" --machine_rank {NODE_RANK} --main_process_ip {MASTER_ADDR} --main_process_port {MASTER_PORT}"
    return f"accelerate launch --config_file {PATH}{rank} {quoted(words)}"
