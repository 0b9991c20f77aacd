"""A Python script on Optimum Neuron 0.4's SFT trainer for Trainium: a process a logical core. Words: fields.yaml.

A plan's devices are chips, and its tensor parallelism is over chips; the cores of a chip share its memory, so a chip's
part is split over them too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from estimator.errors import PlanError
from knowledge.models.catalogue import architecture
from launchers.devices import FIELD, accelerator_of
from launchers.families import layer_class_of
from launchers.hf import script
from launchers.hf.adapters import checkpoint
from launchers.hf.write import LAST_SAVED, batch_comment, learning_rate, length, optimizer, saving
from launchers.launch.heading import heading
from launchers.launch.training import TrainingLaunch
from launchers.pieces import File, Piece, Start
from launchers.python.calls import Symbol, call
from launchers.shell.starting import torchrun_options
from launchers.tables import table

PATH = "train_neuron.py"
CORES = "CORES"


def render(launch: TrainingLaunch) -> Piece:
    """The script, its start by torchrun with a process a core, and what the user must set."""
    words, training = table("optimum_neuron/fields"), launch.training
    needs = _model_is_there(launch, words)
    cores = _cores(launch, words)
    comments = {
        "gradient_accumulation_steps": batch_comment(launch),
        "learning_rate": "a value to start from; yours to choose",
        "tensor_parallel_size": f"{launch.plan.layout.tp} x {cores} cores of a chip",
    }
    name = checkpoint(launch, PATH, "model_name", needs, comments)
    data = script.data(launch, PATH, words["data"][training.stage], needs, comments)
    needs.append(f"environment: {words['environment']}")
    # torchrun counts processes.
    command = f"torchrun {torchrun_options(replace(launch, node_devices=launch.node_devices * cores))} {PATH}"
    half = Symbol("torch.float32" if training.precision == "fp32" else "torch.bfloat16")
    model = {"torch_dtype": half, "attn_implementation": words["attention"][training.attention]}
    adapter = call("adapter = LoraConfig", _adapter(launch, needs), comments) if launch.uses_adapters else []
    lines = [
        *(f"# {line}" for line in heading(launch, command)),
        "import os",
        "",
        "import torch",
        "from datasets import load_dataset",
        "from optimum.neuron import NeuronSFTConfig, NeuronSFTTrainer",
        "from optimum.neuron.models.training import NeuronModelForCausalLM",
        *(["from peft import LoraConfig"] if adapter else []),
        "from transformers import AutoTokenizer",
        "from transformers.trainer_utils import get_last_checkpoint",
        "",
        f"{CORES} = {cores}  # of a chip, as the runtime numbers them; torchrun starts a process for each",
        f"model_name = {name!r}" + (f"  # {comments['model_name']}" if "model_name" in comments else ""),
        *call("arguments = NeuronSFTConfig", _arguments(launch, cores), comments),
        *call("model = NeuronModelForCausalLM.from_pretrained", model, comments, "model_name", "arguments.trn_config"),
        "tokenizer = AutoTokenizer.from_pretrained(model_name)",
        "tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token",
        *call("data = load_dataset", data, comments),
        *adapter,
        "trainer = NeuronSFTTrainer(",
        "    model=model, args=arguments, train_dataset=data, processing_class=tokenizer"
        + (", peft_config=adapter" if adapter else ""),
        ")",
        *script.GOING_ON,
    ]
    start = Start(command, environment=words["variables"], programs=("optimum-neuron",), last_saved=LAST_SAVED)
    return Piece((File(PATH, "optimum-neuron", "\n".join(lines)),), tuple(needs), start)


def _model_is_there(launch: TrainingLaunch, words: dict[str, Any]) -> list[str]:
    """What is left to the user to see. Raises PlanError for a family that it has no training code of."""
    layer = layer_class_of(launch.model)
    if layer is None:
        return [f"{PATH}: model_name, of a family that Optimum Neuron trains ({', '.join(words['layers'].values())})"]
    if layer not in words["layers"]:
        problem = f"Optimum Neuron trains models of {', '.join(words['layers'].values())}, and {launch.model} is none"
        raise PlanError("model", problem, ["meta-llama/Llama-3.1-8B", "Qwen/Qwen3-8B"])
    return []


def _cores(launch: TrainingLaunch, words: dict[str, Any]) -> int:
    """Logical cores of a chip. Raises PlanError where heads cannot be split over those of all tensor ranks."""
    device = accelerator_of(launch).id
    if device not in words["cores"]:
        raise PlanError(FIELD, f"the cores of {device} are not known", list(words["cores"]))
    cores = words["cores"][device]
    heads = {block.heads for block in architecture(launch.plan.model).blocks if block.heads}
    tp = launch.plan.layout.tp or 1
    if any(number % (tp * cores) for number in heads):
        valid = [size for size in (1, 2, 4, 8, 16) if not any(number % (size * cores) for number in heads)]
        problem = f"{tp} chips of {cores} cores do not divide {min(heads)} attention heads"
        raise PlanError("layout.tp", problem, valid)
    return cores


def _arguments(launch: TrainingLaunch, cores: int) -> dict[str, Any]:
    """Pipelines take a step's micro-batches as one batch, and are told how many it is cut into."""
    common, training, layout = table("hf/fields"), launch.training, launch.plan.layout
    pipeline: dict[str, Any] = {}
    if (layout.pp or 1) > 1:
        pipeline = {
            "pipeline_parallel_size": layout.pp,
            "pipeline_parallel_num_microbatches": launch.accumulation,
        }
    return {
        "output_dir": f"saves/{launch.slug}",
        "dataset_text_field": "text",
        "max_length": launch.seq_len,
        "packing": training.packing,
        "per_device_train_batch_size": launch.micro_batch,
        "gradient_accumulation_steps": launch.accumulation,
        "tensor_parallel_size": (layout.tp or 1) * cores,
        "disable_sequence_parallel": layout.sequence_parallel is False,
        **pipeline,
        "zero_1": launch.zero_stage == 1,
        "bf16": training.precision == "bf16",
        **optimizer(launch),
        "learning_rate": learning_rate(launch),
        "gradient_checkpointing": launch.recompute == "full",
        **length(launch),
        **common["run"],
        **saving(launch),
        "report_to": "none",
    }


def _adapter(launch: TrainingLaunch, needs: list[str]) -> dict[str, Any]:
    """Its parallel layers are found by name alone."""
    every = list(table("optimum_neuron/fields")["all_linear"])
    return script.adapter(launch, PATH, "LoraConfig", every, {"task_type": "CAUSAL_LM"}, needs)
