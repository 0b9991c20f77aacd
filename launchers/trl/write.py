"""TRL 1.14: the YAML of its SFT, DPO, KTO, reward or GRPO script, which accelerate starts with its target's file.

The YAML does not carry the number of devices: accelerate's file does. Words: trl/fields.yaml and hf/fields.yaml.
"""

from __future__ import annotations

from launchers.accelerate.write import accelerate_launch
from launchers.devices import attention_of
from launchers.hf.adapters import checkpoint, embedding_modules, target_modules, whole_alpha
from launchers.hf.profiler import CALLBACK, callback
from launchers.hf.sharding import backend_of, uses_fsdp
from launchers.hf.write import (
    LAST_SAVED,
    attention_word,
    batch_comment,
    learning_rate,
    length,
    optimizer,
    packages,
    saving,
)
from launchers.launch.heading import heading
from launchers.launch.placeholders import DATASET, ENGINE_HOST, REWARD
from launchers.launch.training import TrainingLaunch
from launchers.pieces import File, Piece, Start
from launchers.rollouts import answer_tokens, samples_per_prompt
from launchers.tables import table
from launchers.yaml_text import Tree, document

PATH = "trl.yaml"
SCRIPT = "trl_resume.py"
# A share of the steps, as transformers 5 takes it.
_WARMUP: dict[str, Tree] = {"warmup_steps": 0.1}
# TRL's scripts call `train()`, which starts over whatever lies in output_dir.
_RESUMING = '''
"""TRL's script of the name that is the first argument, going on from the last checkpoint where there is one."""

import os
import runpy
import sys

from transformers import Trainer
from transformers.trainer_utils import get_last_checkpoint

train = Trainer.train


def resumed(trainer, resume_from_checkpoint=None, **options):
    folder = trainer.args.output_dir
    last = get_last_checkpoint(folder) if os.path.isdir(folder) else None
    return train(trainer, resume_from_checkpoint=resume_from_checkpoint or last, **options)


Trainer.train = resumed
runpy.run_module(f"trl.scripts.{sys.argv.pop(1)}", run_name="__main__")
'''


def render(launch: TrainingLaunch) -> Piece:
    """The YAML, its launch through accelerate, and what the user must set."""
    words, common = table("trl/fields"), table("hf/fields")
    training = launch.training
    stage = words["stages"][training.stage]
    needs: list[str] = []
    comments = {
        "gradient_accumulation_steps": batch_comment(launch),
        "learning_rate": "a value to start from; yours to choose",
    }
    sections: dict[str, dict[str, Tree]] = {
        "model": _model(launch, needs, comments),
        "data": _data(launch, needs, comments),
        "method": stage["fields"] | (_generation(launch, needs, comments) if training.stage == "grpo" else {}),
        "batch": {
            "per_device_train_batch_size": launch.micro_batch,
            "gradient_accumulation_steps": launch.accumulation,
        },
        "precision and optimizer": {
            **(common["precisions"][training.precision] if training.weights != "bf16" else {"bf16": False}),
            **optimizer(launch),
            "learning_rate": learning_rate(launch),
        },
        "memory and speed": _memory_and_speed(launch, comments),
        "run": {
            "output_dir": f"saves/{launch.slug}",
            **length(launch),
            **_WARMUP,
            **{name: value for name, value in common["run"].items() if name != "warmup_ratio"},
            **saving(launch),
            **common["reporting"],
        },
    }
    # From 1.15 on the loss is computed in pieces in any case, which is not what a plan without a fused one estimates.
    wanted = ["trl==1.14.2", "'transformers>=5.6'", *(["peft"] if launch.uses_adapters else []), *packages(launch)]
    if training.fused_loss is True:
        wanted.append("liger-kernel")
    if training.stage == "grpo" and training.rollout != "trainer":
        wanted.append("vllm")
    needs.append(f"environment: pip install {' '.join(dict.fromkeys(wanted))}")
    command = accelerate_launch(launch, SCRIPT, stage["script"], "--config", PATH)
    text = document(heading(launch, command), {title: fields for title, fields in sections.items() if fields}, comments)
    script = "\n".join([*(f"# {line}" for line in heading(launch, command)), _resuming(launch)])
    files = (File(PATH, "trl", text), File(SCRIPT, "trl", script))
    return Piece(files, tuple(needs), Start(command, programs=("trl",), last_saved=LAST_SAVED))


def _resuming(launch: TrainingLaunch) -> str:
    """The script that starts TRL's own, with what profiles it."""
    text = _RESUMING.lstrip("\n")
    profiler = callback(launch)
    if not profiler:
        return text
    text = text.replace("import sys\n", "import sys\n\nimport torch", 1)
    text = text.replace("import Trainer\n", "import Trainer, TrainerCallback\n", 1)
    text = text.replace("train = Trainer.train\n", "\n".join(["", *profiler, "", "", "train = Trainer.train", ""]), 1)
    return text.replace("    folder =", f"    trainer.add_callback({CALLBACK}())\n    folder =", 1)


def _model(launch: TrainingLaunch, needs: list[str], comments: dict[str, str]) -> dict[str, Tree]:
    """The checkpoint and the type that its weights are loaded in: what is trained in full under autocast or FSDP is
    fp32; frozen weights and those of DeepSpeed, which keeps fp32 copies itself, are in the compute type."""
    words, training = table("trl/fields"), launch.training
    half = {"bf16": "bfloat16", "fp16": "float16"}.get(training.precision)
    whole = not launch.uses_adapters and training.weights != "bf16" and backend_of(launch.plan) != "deepspeed"
    fields: dict[str, Tree] = {
        "model_name_or_path": checkpoint(launch, PATH, "model_name_or_path", needs, comments),
        "dtype": "float32" if half is None or whole else half,
        "attn_implementation": attention_word(launch, _attention(launch), words["attention"]),
        **words["methods"][training.method],
    }
    if not launch.uses_adapters:
        return fields
    lora = training.lora
    targets = target_modules(launch, PATH, "lora_target_modules", needs)
    fields |= words["quantisations"][launch.quantisation] if launch.quantisation else {}
    fields |= {
        "lora_r": lora.rank,
        "lora_alpha": whole_alpha(launch, "TRL"),
        "lora_dropout": lora.dropout,
        "lora_target_modules": ["all-linear"] if targets is None else targets,
    }
    if training.stage == "rm":
        fields["lora_task_type"] = "SEQ_CLS"
    if lora.train_embeddings:
        fields["lora_modules_to_save"] = embedding_modules(launch, PATH, "lora_modules_to_save", needs)
    return fields


def _attention(launch: TrainingLaunch) -> str:
    """Sequences that accelerate splits are split with sdpa alone (transformers trainer.py,
    _prepare_context_parallel_inputs)."""
    chosen = attention_of(launch)
    return "sdpa" if chosen == "flash" and _split(launch) > 1 else chosen


def _split(launch: TrainingLaunch) -> int:
    return launch.plan.layout.cp or 1


def _data(launch: TrainingLaunch, needs: list[str], comments: dict[str, str]) -> dict[str, Tree]:
    """The data set and how its samples become rows of seq_len tokens. A row of DPO and KTO is a prompt with one answer;
    of GRPO the answer comes on top of the prompt."""
    training = launch.training
    fields: dict[str, Tree] = {"dataset_name": launch.site.dataset or DATASET}
    if launch.site.dataset is None:
        content = table("trl/fields")["data"][training.stage]
        comments["dataset_name"] = f"set this: a Hugging Face data set or a folder of one ({content})"
        needs.append(f"{PATH}: dataset_name, your data ({content})")
    if training.stage in ("sft", "pretrain"):
        fields |= {"max_length": launch.seq_len, "packing": training.packing}
        if training.packing:
            # Whole samples side by side are told apart by FlashAttention only (SFTTrainer.__init__, packing_strategy).
            whole = training.stage == "sft" and _attention(launch) not in ("sdpa", "eager")
            fields["packing_strategy"] = "bfd" if whole else "wrapped"
        if _split(launch) > 1:
            # Each rank has one piece of both halves (torch context_parallel's balance).
            fields["pad_to_multiple_of"] = 2 * _split(launch)
    elif training.stage == "grpo":
        answer = answer_tokens(launch)
        fields["max_completion_length"] = answer
        comments["max_completion_length"] = f"after prompts of up to {launch.seq_len - answer}, which TRL does not cut"
        if training.rollout != "trainer":
            fields["vllm_max_model_length"] = launch.seq_len
    else:
        fields["max_length"] = launch.seq_len
    if training.stage != "grpo":
        fields["dataset_num_proc"] = 16
    return fields


def _generation(launch: TrainingLaunch, needs: list[str], comments: dict[str, str]) -> dict[str, Tree]:
    """GRPO's groups, rewards and the engine that generates. The batch counts samples, not prompts."""
    training = launch.training
    size = samples_per_prompt(launch)
    fields: dict[str, Tree] = {
        "num_generations": size,
        "generation_batch_size": launch.global_batch,
        "reward_funcs": [REWARD],
        "use_vllm": training.rollout != "trainer",
    }
    comments["reward_funcs"] = "set this: accuracy_reward, think_format_reward, or my_module.my_function"
    needs.append(f"{PATH}: reward_funcs, the functions that score answers")
    if training.rollout == "colocated":
        fields |= {
            "vllm_mode": "colocate",
            "vllm_gpu_memory_utilization": training.engine_share,
            "vllm_tensor_parallel_size": 1,
        }
    elif training.rollout == "separate":
        fields |= {"vllm_mode": "server", "vllm_server_host": ENGINE_HOST, "vllm_server_port": 8000}
        comments["vllm_server_host"] = "set this: where trl vllm-serve runs the same model"
        needs.append(f"{PATH}: vllm_server_host, the address of `trl vllm-serve --model ...` on other devices")
    return fields


def _memory_and_speed(launch: TrainingLaunch, comments: dict[str, str]) -> dict[str, Tree]:
    """Checkpointing is TRL's default, so it is said either way; under FSDP it is FSDP's own (accelerate.yaml)."""
    by_fsdp = uses_fsdp(launch.plan)
    fields: dict[str, Tree] = {"gradient_checkpointing": launch.recompute == "full" and not by_fsdp}
    if by_fsdp and launch.recompute == "full":
        comments["gradient_checkpointing"] = "done by FSDP, see accelerate.yaml"
    if launch.training.fused_loss is True:
        fields["use_liger_kernel"] = True
    if launch.offload == "activations":
        fields["activation_offloading"] = True
    if launch.training.compile:
        fields["torch_compile"] = True
    return fields
