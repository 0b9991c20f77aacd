"""A Python script on Optimum Habana 1.21's SFT trainer for Gaudi, with its set's DeepSpeed file. Words: fields.yaml.

torchrun starts it, as every scheduler here does; Optimum Habana's own gaudi_spawn.py starts the same script.
"""

from __future__ import annotations

from typing import Any

from launchers.hf import script
from launchers.hf.adapters import checkpoint
from launchers.hf.write import LAST_SAVED, batch_comment, learning_rate, length, optimizer, saving
from launchers.launch.heading import heading
from launchers.launch.training import TrainingLaunch
from launchers.pieces import File, Piece, Start
from launchers.python.calls import Symbol, call
from launchers.shell.starting import torchrun_options
from launchers.tables import table
from launchers.trial import profiling

PATH = "train_gaudi.py"


def render(launch: TrainingLaunch) -> Piece:
    """The script, its start by torchrun, and what the user must set."""
    words, training = table("optimum_habana/fields"), launch.training
    needs: list[str] = []
    comments = {
        "gradient_accumulation_steps": batch_comment(launch),
        "learning_rate": "a value to start from; yours to choose",
    }
    name = checkpoint(launch, PATH, "model_name", needs, comments)
    data = script.data(launch, PATH, words["data"][training.stage], needs, comments)
    needs.append(f"environment: {words['environment']}")
    command = f"torchrun {torchrun_options(launch)} {PATH}"
    half = Symbol("torch.float32" if training.precision == "fp32" else "torch.bfloat16")
    model = {"torch_dtype": half, "attn_implementation": words["attention"][training.attention], "use_cache": False}
    set_model = [f"  # {comments['model_name']}"] if "model_name" in comments else [""]
    lines = [
        *(f"# {line}" for line in heading(launch, command)),
        "import os",
        "",
        "import torch",
        "from datasets import load_dataset",
        "from optimum.habana import GaudiConfig",
        "from optimum.habana.trl import GaudiSFTConfig, GaudiSFTTrainer",
        *(["from peft import LoraConfig"] if launch.uses_adapters else []),
        "from transformers import AutoModelForCausalLM, AutoTokenizer",
        "from transformers.trainer_utils import get_last_checkpoint",
        "",
        f"model_name = {name!r}{set_model[0]}",
        # Before the model: ZeRO-3 shards it as it is loaded.
        *call("arguments = GaudiSFTConfig", _arguments(launch), comments),
        *call("model = AutoModelForCausalLM.from_pretrained", model, comments, "model_name"),
        "tokenizer = AutoTokenizer.from_pretrained(model_name)",
        "tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token",
        *call("data = load_dataset", data, comments),
        *(script.AS_TEXTS if training.stage == "sft" else []),
        "settings = GaudiConfig()",
        # DeepSpeed's own Adam is what runs on the host.
        f"settings.use_fused_adam = {training.optimizer == 'adamw' and launch.offload == 'none'}",
        "settings.use_fused_clip_norm = True",
        *(call("adapter = LoraConfig", _adapter(launch, needs), comments) if launch.uses_adapters else []),
        "trainer = GaudiSFTTrainer(",
        "    model=model, args=arguments, gaudi_config=settings, train_dataset=data, tokenizer=tokenizer"
        + (", peft_config=adapter" if launch.uses_adapters else ""),
        ")",
        *script.GOING_ON,
    ]
    start = Start(command, environment=words["variables"], programs=("optimum-habana",), last_saved=LAST_SAVED)
    return Piece((File(PATH, "optimum-habana", "\n".join(lines)),), tuple(needs), start)


def _arguments(launch: TrainingLaunch) -> dict[str, Any]:
    """What is not packed is padded to the longest row: other shapes would be compiled anew."""
    common, training = table("hf/fields"), launch.training
    return {
        "output_dir": f"saves/{launch.slug}",
        "use_habana": True,
        "use_lazy_mode": True,
        "deepspeed": "deepspeed.json",
        "dataset_text_field": "text",
        "max_seq_length": launch.seq_len,
        "packing": training.packing,
        "pad_max": True,
        "per_device_train_batch_size": launch.micro_batch,
        "gradient_accumulation_steps": launch.accumulation,
        "bf16": training.precision == "bf16",
        **optimizer(launch),
        "learning_rate": learning_rate(launch),
        "gradient_checkpointing": launch.recompute == "full",
        **length(launch),
        **common["run"],
        **saving(launch),
        **common["reporting"],
        **profiling.settings(launch),
    }


def _adapter(launch: TrainingLaunch, needs: list[str]) -> dict[str, Any]:
    every = "all-linear"
    return script.adapter(launch, PATH, "LoraConfig", every, {"task_type": "CAUSAL_LM"}, needs)
