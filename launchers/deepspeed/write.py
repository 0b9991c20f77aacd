"""DeepSpeed 0.19 JSON. All values are numbers, never "auto": they are the plan's, a launch with another batch or world
size is refused instead of run, and the file serves the Hugging Face Trainer (LlamaFactory) and a plain script alike.
"""

from __future__ import annotations

import json
from typing import Any

from knowledge.models.catalogue import architecture
from launchers.launch.training import TrainingLaunch
from launchers.pieces import File, Piece, Start
from launchers.tables import table

PATH = "deepspeed.json"
_SCRIPT = "train.py"


def render(launch: TrainingLaunch) -> Piece:
    """The JSON and, where it is all of the set, the launch of the user's own script."""
    words = table("deepspeed/fields")
    # DeepSpeed counts every rank as one of the batch unless it is told who shares sequences, which ms-swift does not.
    whole = {} if (launch.plan.layout.cp or 1) > 1 else {"train_batch_size": launch.global_batch}
    config: dict[str, Any] = {
        **whole,
        "train_micro_batch_size_per_gpu": launch.micro_batch,
        "gradient_accumulation_steps": launch.accumulation,
        "gradient_clipping": table("hf/fields")["run"]["max_grad_norm"],
        "zero_allow_untested_optimizer": True,
    }
    if launch.training.precision in ("bf16", "fp8"):
        config["bf16"] = {"enabled": True}
    elif launch.training.precision == "fp16":
        config["fp16"] = dict(words["fp16"])
    config["zero_optimization"] = _zero(launch, words)
    command = f"deepspeed --num_gpus {launch.node_devices} {_SCRIPT} --deepspeed --deepspeed_config {PATH}"
    needs = [f"{_SCRIPT}: your training script; it builds the model and the {launch.training.optimizer} optimizer"]
    if launch.nodes > 1:
        command = command.replace("deepspeed ", f"deepspeed --hostfile hostfile --num_nodes {launch.nodes} ", 1)
        needs.append(f"hostfile: one line '<host> slots={launch.node_devices}' for each of the {launch.nodes} nodes")
    text = json.dumps(config, indent=2) + "\n"
    files = (File(PATH, "deepspeed", text),)
    alone = launch.targets == ("deepspeed",)
    return Piece(files, tuple(needs), Start(command, programs=("deepspeed",))) if alone else Piece(files)


def _zero(launch: TrainingLaunch, words: dict[str, Any]) -> dict[str, Any]:
    """The zero_optimization section. `offload: params` takes the optimizer states along, as ZeRO-Infinity does."""
    zero = dict(words["zero"][launch.zero_stage])
    if launch.zero_stage == 3:
        hidden = _hidden_size(launch)
        zero |= {
            "reduce_bucket_size": hidden * hidden,
            "stage3_prefetch_bucket_size": int(0.9 * hidden * hidden),
            "stage3_param_persistence_threshold": 10 * hidden,
        }
        shard_group = launch.plan.layout.shard_group
        if shard_group is not None and shard_group != launch.dp:
            zero["zero_hpz_partition_size"] = shard_group
    if launch.offload in ("optimizer", "params"):
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
    if launch.offload == "params":
        zero["offload_param"] = {"device": "cpu", "pin_memory": True}
    return zero


def _hidden_size(launch: TrainingLaunch) -> int:
    """The model's width in elements, from the catalogue or the config that the plan names."""
    return architecture(launch.plan.model).hidden
