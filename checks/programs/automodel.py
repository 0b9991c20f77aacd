"""NeMo AutoModel's own configuration classes read our YAML. A question is {"path": the file}.

It lies beside titan's environment, of whose torch it takes what it needs."""

# ruff: noqa: E402  (what programs look for is put in place before they are imported)
from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(sys.prefix) / "automodel"))
# Its kernels for adapters do not load with this triton, and are not wanted where there is no device.
sys.modules["triton"] = None  # type: ignore[assignment]
from nemo_automodel.cli.utils import resolve_recipe_name
from nemo_automodel.components.config.loader import load_yaml_config
from nemo_automodel.recipes._dist_utils import parse_distributed_section
from nemo_automodel.recipes._typed_config import RecipeConfig


def answer(question):
    raw = load_yaml_config(question["path"])
    read = RecipeConfig(raw)
    split = parse_distributed_section(raw.distributed.to_dict())
    sharded, data, peft = split["strategy_config"], read.dataloader, raw.get("peft", None)
    adapter = peft.instantiate() if peft else None
    packing = data.packing
    return {
        "recipe": resolve_recipe_name(raw.recipe),
        "strategy": type(sharded).__name__,
        "tp": split["tp_size"],
        "cp": split["cp_size"],
        "replicas": split["dp_replicate_size"],
        "offload": type(getattr(sharded, "offload_policy", None)).__name__,
        "reshard": getattr(sharded, "reshard_after_forward", None),
        "recompute": split["activation_checkpointing"],
        "batch": read.step_scheduler.global_batch_size,
        "micro_batch": data.batch_size,
        "steps": read.step_scheduler.max_steps,
        "length": data.dataset_config.seq_length,
        "packed": None if packing is None else packing.packed_sequence_size,
        "optimizer": read.optimizer.factory.__name__,
        "loss": type(read.loss_fn).__name__,
        "adapter": None if adapter is None else [adapter.dim, adapter.alpha, adapter.use_dora],
        "kept": read.checkpoint.max_recent_checkpoints,
    }
