"""Each question is a `command` of ms-swift and its `words`; the answer is what its own argument classes make of them.

The model of the words is a folder with a tiny one: nothing is downloaded.
"""

from __future__ import annotations

import os
import socket
import sys

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    PORT = free.getsockname()[1]
# One process of a distributed launch, as torchrun would start it, where there is no GPU.
os.environ.update(
    RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", LOCAL_WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(PORT),
    DS_ACCELERATOR="cpu", CUDA_VISIBLE_DEVICES="", ACCELERATE_USE_CPU="true",
)  # fmt: skip

# ms-swift and the TRL that it wants (environments/train.txt).
sys.path.insert(0, os.path.join(sys.prefix, "swift"))
import transformers.training_args as training_args
from swift.arguments import PretrainArguments, RLHFArguments, SftArguments
from swift.utils import parse_args

training_args.is_torch_bf16_gpu_available = lambda: True
training_args.is_torch_tf32_available = lambda: True
CLASSES = {"pt": PretrainArguments, "sft": SftArguments, "rlhf": RLHFArguments}
READ = (
    "per_device_train_batch_size", "gradient_accumulation_steps", "max_length", "tuner_type", "lora_rank", "lora_alpha",
    "gradient_checkpointing", "torch_dtype", "quant_bits", "num_train_epochs", "max_steps", "num_generations",
    "max_completion_length", "packing", "rlhf_type", "add_version", "output_dir",
)  # fmt: skip


def answer(question: dict) -> dict:
    os.chdir(question["folder"])
    args, rest = parse_args(CLASSES[question["command"]], question["words"])
    if rest:
        raise ValueError(f"remaining_argv: {rest}")
    stage = (args.deepspeed or {}).get("zero_optimization", {}).get("stage", 0)
    return {"read": {name: _plain(getattr(args, name, None)) for name in READ} | {"zero_stage": stage}}


def _plain(value):
    return value if isinstance(value, bool | int | float | str | None) else str(value)
