"""Each question is a TRL file, `path` and `script`; the answer is what the parser of `trl <script> --config` reads."""

from __future__ import annotations

import importlib
import os
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", ACCELERATE_USE_CPU="true")
# The TRL that our files ask for; LlamaFactory and Axolotl want older ones (environments/train.txt).
sys.path.insert(0, os.path.join(sys.prefix, "trl"))
import transformers.training_args as training_args

training_args.is_torch_bf16_gpu_available = lambda: True
training_args.is_torch_tf32_available = lambda: True


def answer(question: dict) -> dict:
    script = importlib.import_module(f"trl.scripts.{question['script']}")
    read = script.make_parser().parse_args_and_config(["--config", question["path"]])
    training, model = read[1], read[2]
    return {
        "micro_batch": training.per_device_train_batch_size,
        "accumulation": training.gradient_accumulation_steps,
        "length": getattr(training, "max_length", None),
        "answer": getattr(training, "max_completion_length", None),
        "packing": getattr(training, "packing", None),
        "generated": getattr(training, "generation_batch_size", None),
        "group": getattr(training, "num_generations", None),
        "vllm": getattr(training, "use_vllm", None),
        "share": getattr(training, "vllm_gpu_memory_utilization", None),
        "loss": getattr(training, "loss_type", None),
        "checkpointing": training.gradient_checkpointing,
        "optimizer": str(training.optim.value),
        "epochs": training.num_train_epochs,
        "steps": training.max_steps,
        "bf16": training.bf16,
        "fp16": training.fp16,
        "dtype": model.dtype,
        "peft": model.use_peft,
        "rank": model.lora_r,
        "alpha": model.lora_alpha,
        "dora": model.use_dora,
        "four_bits": model.load_in_4bit,
        "attention": model.attn_implementation,
    }
