"""Each question is a DeepSpeed file, `path` and `world`; the answer is what DeepSpeedConfig reads for so many ranks."""

from __future__ import annotations

import json
import os
import types

os.environ.update(DS_ACCELERATOR="cpu", CUDA_VISIBLE_DEVICES="")
import deepspeed.comm as communication
from deepspeed.runtime.config import DeepSpeedConfig

# Without a process group the config would take a world of one.
communication.get_rank = lambda *_, **__: 0

# The top-level keys that DeepSpeed 0.19 reads and ours use; others it ignores without a word.
KNOWN = {
    "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "gradient_clipping",
    "zero_allow_untested_optimizer", "bf16", "fp16", "zero_optimization",
}  # fmt: skip


def device(offload: object) -> str | None:
    return None if offload is None else str(getattr(offload.device, "value", offload.device))  # type: ignore[attr-defined]


def answer(question: dict) -> dict:
    with open(question["path"], encoding="utf-8") as stream:
        raw = json.load(stream)
    if ignored := sorted(set(raw) - KNOWN):
        raise ValueError(f"ignored keys: {ignored}")
    world = question["world"]
    read = DeepSpeedConfig(raw, mpu=types.SimpleNamespace(get_data_parallel_world_size=lambda: world))
    zero = read.zero_config
    return {
        "world": read.world_size,
        "micro_batch": read.train_micro_batch_size_per_gpu,
        "accumulation": read.gradient_accumulation_steps,
        "global_batch": read.train_batch_size,
        "stage": int(zero.stage),
        "shard_group": zero.zero_hpz_partition_size,
        "offload_optimizer": device(zero.offload_optimizer),
        "offload_params": device(zero.offload_param),
        "bf16": bool(raw.get("bf16", {}).get("enabled")),
        "fp16": bool(raw.get("fp16", {}).get("enabled")),
    }
