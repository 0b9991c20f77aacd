"""Each question is an accelerate file, `path`; the answer is what `accelerate launch` makes of it before it starts any
process, and what the FSDP plugin and the parallelism config read from the environment that it sets."""

from __future__ import annotations

import os
from pathlib import Path

import torch
import yaml
from accelerate.commands import launch
from accelerate.commands.config.config_args import load_config_from_file
from accelerate.parallelism_config import ParallelismConfig
from accelerate.utils import FullyShardedDataParallelPlugin
from accelerate.utils import launch as environments

torch.cuda.is_available = lambda: True
torch.cuda.current_device = lambda: 0
FSDP_KEYS = {
    option[2:]
    for action in launch.launch_command_parser()._actions
    for option in action.option_strings
    if option.startswith("--fsdp")
}
FSDP1_KEYS = {"fsdp_sharding_strategy", "fsdp_backward_prefetch", "fsdp_forward_prefetch", "fsdp_use_orig_params"}


def answer(question: dict) -> dict:
    path = Path(question["path"])
    os.chdir(path.parent)
    raw = yaml.safe_load(path.read_text())
    devices, nodes = raw["num_processes"], raw["num_machines"]
    torch.cuda.device_count = lambda: max(1, devices // nodes)
    config = load_config_from_file(str(path))
    words = ["--config_file", str(path), *question.get("words", []), "train.py"]
    arguments = launch._validate_launch_command(launch.launch_command_parser().parse_args(words))[0]
    arguments.deepspeed_fields_from_accelerate_config = ",".join(raw.get("deepspeed_config") or {})
    kind = str(config.distributed_type.value)
    if kind == "DEEPSPEED":
        _, environment = environments.prepare_deepspeed_cmd_env(arguments)
    elif kind in ("FSDP", "MULTI_GPU"):
        environment = environments.prepare_multi_gpu_env(arguments)
    else:
        _, environment = environments.prepare_simple_launcher_cmd_env(arguments)
    found = {
        "kind": kind,
        "devices": int(arguments.num_processes),
        "nodes": int(arguments.num_machines),
        "per_node": int(getattr(arguments, "nproc_per_node", None) or arguments.num_processes),
        "precision": environment.get("ACCELERATE_MIXED_PRECISION"),
        "deepspeed_file": environment.get("ACCELERATE_DEEPSPEED_CONFIG_FILE"),
    }
    sections = raw.get("fsdp_config") or {}
    if ignored := sorted(set(sections) - FSDP_KEYS):
        raise ValueError(f"ignored keys: {ignored}")
    if sections.get("fsdp_version") == 2 and FSDP1_KEYS & set(sections):
        raise ValueError("keys of FSDP1 with version 2")
    names = ("FSDP", "ACCELERATE", "PARALLELISM")
    added = {key: value for key, value in environment.items() if key.startswith(names)}
    kept = dict(os.environ)
    os.environ.update(added)
    try:
        if kind == "FSDP":
            plugin = FullyShardedDataParallelPlugin()
            found |= {
                "version": plugin.fsdp_version,
                "strategy": getattr(plugin.sharding_strategy, "name", None),
                "reshard": plugin.reshard_after_forward is True
                or str(plugin.reshard_after_forward).endswith("FULL_SHARD"),
                "offload": type(plugin.cpu_offload).__name__ == "CPUOffloadPolicy"
                or bool(getattr(plugin.cpu_offload, "offload_params", False)),
                "checkpointing": plugin.activation_checkpointing,
                "layers": plugin.transformer_cls_names_to_wrap,
            }
        if raw.get("parallelism_config"):
            sizes = ParallelismConfig()
            found["sizes"] = [sizes.dp_replicate_size, sizes.dp_shard_size, sizes.tp_size, sizes.cp_size]
    finally:
        os.environ.clear()
        os.environ.update(kept)
    return found
