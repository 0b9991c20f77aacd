"""Each question is a LlamaFactory file, `path`; the answer is what its own parsers read from it, as one process of
torchrun where FORCE_TORCHRUN is set."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
if os.environ.get("FORCE_TORCHRUN"):
    # One process of a distributed launch, as torchrun would start it: without these DeepSpeed files are refused.
    os.environ.update(
        RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", LOCAL_WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)
    )
os.environ.update(DS_ACCELERATOR="cpu", CUDA_VISIBLE_DEVICES="", ACCELERATE_USE_CPU="true", DISABLE_VERSION_CHECK="1")

import llamafactory.hparams.parser as parser
import torch
import transformers.training_args as training_args
import transformers.utils as utils
import transformers.utils.import_utils as import_utils
from transformers import HfArgumentParser

# What the hardware would answer: there is no GPU here.
for module in (training_args, utils, import_utils, parser):
    for name in ("is_torch_bf16_gpu_available", "is_torch_tf32_available"):
        if hasattr(module, name):
            setattr(module, name, lambda *_, **__: True)
torch.cuda.get_device_capability = lambda *_, **__: (9, 0)
arguments = HfArgumentParser(parser._TRAIN_ARGS)


def checked(raw: dict) -> None:
    """The command-line side of the same parser: parse_dict looks at keys, but neither at choices nor at types."""
    for key, value in raw.items():
        action = arguments._option_string_actions.get(f"--{key}")
        if action is None or value is None or isinstance(value, dict):
            continue
        for part in value if isinstance(value, list) else [value]:
            arguments._check_value(action, arguments._get_value(action, str(part)))


def answer(question: dict) -> dict:
    path = Path(question["path"])
    os.chdir(path.parent)
    sys.argv = ["train", path.name]
    raw = parser.read_args()
    checked(raw)
    model, data, training, finetuning, _ = parser.get_train_args(dict(raw))
    return {
        "micro_batch": training.per_device_train_batch_size,
        "accumulation": training.gradient_accumulation_steps,
        "cutoff": data.cutoff_len,
        "packing": data.packing,
        "stage": finetuning.stage,
        "method": finetuning.finetuning_type,
        "rank": finetuning.lora_rank,
        "alpha": finetuning.lora_alpha,
        "quantization": model.quantization_bit,
        "epochs": training.num_train_epochs,
        "steps": training.max_steps,
        "optimizer": str(training.optim.value),
        "by_block": finetuning.badam_mode if finetuning.use_badam else None,
        "deepspeed": training.deepspeed is not None,
        "checkpointing": not model.disable_gradient_checkpointing,
        "attention": str(model.flash_attn),
    }
