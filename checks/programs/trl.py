"""Each question is a TRL file, `path` and `script`; the answer is what the parser of `trl <script> --config` reads."""

from __future__ import annotations

import importlib
import os

os.environ.update(CUDA_VISIBLE_DEVICES="", ACCELERATE_USE_CPU="true")
import transformers.training_args as training_args
import transformers.utils.import_utils as import_utils


class Found(tuple):
    """What transformers 5 says of a package, (there, version), as the truth value that TRL 0.24 takes it for."""

    def __bool__(self) -> bool:
        return bool(self[0])


found = import_utils._is_package_available
import_utils._is_package_available = lambda *words, **options: Found(found(*words, **options))

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
