"""Each question is an Axolotl file, `path`; the answer is what its own config model reads. Keys and optimizers that
Axolotl takes without knowing them are errors here."""

# ruff: noqa: E402  (what programs look for is put in place before they are imported)
from __future__ import annotations

import os
import sys
import types
from pathlib import Path

os.environ.update(CUDA_VISIBLE_DEVICES="")
# Needed to exist by the check of context parallelism; it has CUDA code.
sys.modules["ring_flash_attn"] = types.ModuleType("ring_flash_attn")
import yaml
from axolotl.utils.schemas.config import AxolotlInputConfig
from axolotl.utils.schemas.enums import CustomSupportedOptimizers
from transformers.training_args import OptimizerNames

fields = AxolotlInputConfig.model_fields
KNOWN = set(fields) | {field.alias for field in fields.values() if field.alias}
OPTIMIZERS = {name.value for name in OptimizerNames} | {name.value for name in CustomSupportedOptimizers}


def answer(question: dict) -> dict:
    os.chdir(Path(question["path"]).parent)
    raw = yaml.safe_load(Path(question["path"]).read_text())
    if ignored := sorted(set(raw) - KNOWN):
        raise ValueError(f"ignored keys: {ignored}")
    read = AxolotlInputConfig(**raw)
    optimizer = str(getattr(read.optimizer, "value", read.optimizer))
    if optimizer not in OPTIMIZERS:
        raise ValueError(f"unknown optimizer {optimizer}")
    shards = read.fsdp_config
    return {
        "micro_batch": read.micro_batch_size,
        "accumulation": read.gradient_accumulation_steps,
        "length": read.sequence_len,
        "packing": read.sample_packing,
        "adapter": read.adapter,
        "rank": read.lora_r,
        "four_bits": read.load_in_4bit,
        "stage": getattr(read.rl, "value", read.rl),
        "optimizer": optimizer,
        "epochs": read.num_epochs,
        "steps": read.max_steps,
        "deepspeed": read.deepspeed,
        "fsdp": read.fsdp_version,
        "reshard": shards.reshard_after_forward if shards else None,
        "offload": shards.offload_params if shards else None,
        "checkpointing": bool(read.gradient_checkpointing) or bool(shards and shards.activation_checkpointing),
        "sizes": [read.dp_replicate_size, read.dp_shard_size, read.tensor_parallel_size, read.context_parallel_size],
        "attention": read.attn_implementation,
    }
