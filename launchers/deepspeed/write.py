"""DeepSpeed 0.19 JSON. All values are numbers, never "auto": they are the plan's, a launch with another batch or world
size is refused instead of run, and the file serves the Hugging Face Trainer (LlamaFactory) and a plain script alike.
"""

from __future__ import annotations

import json
from typing import Any

from knowledge.models.catalogue import architecture
from launchers import File, Piece, Start
from launchers.job import Job
from launchers.tables import table

PATH = "deepspeed.json"
_SCRIPT = "train.py"


def render(job: Job) -> Piece:
    """The JSON and, where it is all of the set, the launch of the user's own script."""
    words = table("deepspeed")
    config: dict[str, Any] = {
        "train_batch_size": job.global_batch,
        "train_micro_batch_size_per_gpu": job.micro_batch,
        "gradient_accumulation_steps": job.accumulation,
        "gradient_clipping": table("hf_arguments")["run"]["max_grad_norm"],
        "zero_allow_untested_optimizer": True,
    }
    if job.training.precision in ("bf16", "fp8"):
        config["bf16"] = {"enabled": True}
    elif job.training.precision == "fp16":
        config["fp16"] = dict(words["fp16"])
    config["zero_optimization"] = _zero(job, words)
    command = f"deepspeed --num_gpus {job.node_devices} {_SCRIPT} --deepspeed --deepspeed_config {PATH}"
    needs = [f"{_SCRIPT}: your training script; it builds the model and the {job.training.optimizer} optimizer"]
    if job.nodes > 1:
        command = command.replace("deepspeed ", f"deepspeed --hostfile hostfile --num_nodes {job.nodes} ", 1)
        needs.append(f"hostfile: one line '<host> slots={job.node_devices}' for each of the {job.nodes} nodes")
    text = json.dumps(config, indent=2) + "\n"
    files = (File(PATH, "deepspeed", text),)
    alone = job.targets == ("deepspeed",)
    return Piece(files, tuple(needs), Start(command, programs=("deepspeed",))) if alone else Piece(files)


def _zero(job: Job, words: dict[str, Any]) -> dict[str, Any]:
    """The zero_optimization section. `offload: params` takes the optimizer states along, as ZeRO-Infinity does."""
    zero = dict(words["zero"][job.zero_stage])
    if job.zero_stage == 3:
        hidden = _hidden_size(job)
        zero |= {
            "reduce_bucket_size": hidden * hidden,
            "stage3_prefetch_bucket_size": int(0.9 * hidden * hidden),
            "stage3_param_persistence_threshold": 10 * hidden,
        }
        shard_group = job.plan.layout.shard_group
        if shard_group is not None and shard_group != job.dp:
            zero["zero_hpz_partition_size"] = shard_group
    if job.offload in ("optimizer", "params"):
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
    if job.offload == "params":
        zero["offload_param"] = {"device": "cpu", "pin_memory": True}
    return zero


def _hidden_size(job: Job) -> int:
    """The model's width in elements, from the catalogue or the config that the plan names."""

    return architecture(job.plan.model).hidden
