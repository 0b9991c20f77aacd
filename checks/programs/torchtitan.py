"""Each question is the options of a torchtitan run; the answer is what its ConfigManager reads. Kernels of FP8 and the
like ask for a GPU while they are configured; that question alone is answered for them."""

from __future__ import annotations

import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
from torchtitan.components.quantization import float8, mx
from torchtitan.config import ConfigManager

float8.has_cuda_capability = mx.has_cuda_capability = lambda *_: True


def answer(question: dict) -> dict:
    config = ConfigManager().parse_args(question["options"])
    split, training = config.parallelism, config.training
    variant = type(config.activation_checkpoint)
    return {
        "replicas": split.data_parallel_replicate_degree,
        "shards": split.data_parallel_shard_degree,
        "reshard": split.fsdp_reshard_after_forward,
        "tp": split.tensor_parallel_degree,
        "pp": split.pipeline_parallel_degree,
        "cp": split.context_parallel_degree,
        "ep": split.expert_parallel_degree,
        "sequence_parallel": split.enable_sequence_parallel,
        "schedule": split.pipeline_parallel_schedule,
        "layers_per_stage": split.pipeline_parallel_layers_per_stage,
        "micro_batch": split.pipeline_parallel_microbatch_size,
        "local": training.local_batch_size,
        "global": training.global_batch_size,
        "length": training.seq_len,
        "steps": training.steps,
        "dtype": training.dtype,
        "offload": training.enable_cpu_offload,
        "cuda_graphs": not training.disable_cuda_graphs,
        "compile": config.compile.enable,
        "async_tp": config.compile.enable_async_tensor_parallel,
        "recompute": variant.__qualname__.partition(".")[0],
        "layers": len(config.model_spec.model.layers),
    }
