"""What the beginning of a log says of the run: its plan, its devices, and the software that it ran on.

Each program prints its settings in a way of its own: Megatron-LM and DeepSpeed as `name ..... value`, MaxText as
`Config param name: value`, torchtitan, the HF Trainer and Unsloth in sentences, verl and others as an object over many
lines.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from estimator.errors import PlanError
from knowledge.machines.catalogue import find_accelerator
from knowledge.models.catalogue import find_model
from measure.logs.megatron import ARGUMENTS

# GPT-NeoX has dots behind the value too.
_DOTTED = re.compile(r"([a-z][a-z0-9_]+) \.{3,} ?(\S.*?)(?:\.{3,}\w+)? *$")
# As Megatron-LM and DeepSpeed fill up to a column: no sentence has so many.
_LISTED = re.compile(r"(?:^|[\]:|]) *[a-z][a-z0-9_]+ \.{8,} ?\S")
_PARAM = re.compile(r"Config param (\w+): (.*?) *$")
_QUOTED = re.compile(r"'(\w+)': '?([\w./-]+)'?,?")
# Of configs that programs print, YAML or JSON: a line each.
_SET = re.compile(r"^[ \t]*['\"]?([a-z][a-z0-9_]+)['\"]?: ['\"]?([\w./-]+)['\"]?,?[ \t]*$")
# Of a command: --micro-batch-size 1, trainer.n_gpus_per_node=8.
_ARGUMENT = re.compile(r"(?:--([a-z][\w-]*)[= ]|\b(?:[a-z]\w*\.)+([a-z]\w*)=)([\w./][\w./-]*)")
# Several of them on a line: seq_len=4096, world_size: 8.
_AMONG = re.compile(r"(?<![\w.-])([a-z][a-z_]{3,})['\"]?[=:] ?(\d[\d,]*)(?![\w.])")
_MODEL = re.compile(
    r"models--([\w.-]+?)--([\w.-]+)/|(?:model_name_or_path|_name_or_path|base_model|\bmodel\.path|(?<![a-z_])model_name)"
    r"['\"]?[=: ]+['\"]?(?!None\b)([\w.-]+(?:/[\w.-]+)?)|(?<![\w.-])[Mm]odel['\"]?[=:] *['\"]?([\w.-]+/[\w.-]+)"
)
_DEVICE = re.compile(
    r"((?:NVIDIA |AMD |Tesla )(?:GeForce |Instinct |RTX |DGX )*[A-Z0-9][\w-]*"
    r"(?: (?:\d+ ?GB|HBM\d\w*|PCIe|NVL|SXM\d?|Ti|SUPER|Ada|Generation))*|TPU v\d\w*)"
)
_VERSION = re.compile(
    r"\b((?:py)?torch|transformers|deepspeed|megatron[- _]core|nemo|torchtitan|torchtune|axolotl|unsloth|verl|vllm"
    r"|triton|flash[-_]attn|liger[-_]kernel|jax|maxtext|lightning|peft|trl|bitsandbytes|nccl|rocm|cuda toolkit)"
    r"(?:[ _]+(?:version|info))?[\s:=,.'\"v]{1,30}(?:version[=: ]+)?v?(\d+\.\d+[\w.+-]*)",
    re.IGNORECASE,
)
_DATE = re.compile(r"(?<![\d.])(20[1-4]\d)[-/]?([01]\d)[-/]?([0-3]\d)(?:[ T_]+[0-2]\d[:_.]?[0-5]\d)")
_FRAMEWORKS = (
    ("unsloth", re.compile(r"Unsloth[: ]+20\d\d|Unsloth - \d|unsloth free finetuning|==\(\(====\)\)==", re.IGNORECASE)),
    ("axolotl", re.compile(r"\[axolotl\.|axolotl\.cli|memory/max_(?:mem_)?active ?\(GiB\)", re.IGNORECASE)),
    ("ms-swift", re.compile(r"\[INFO:swift\]|train_speed\(iter/s\)")),
    ("mlx", re.compile(r"Iter \d+: Train loss .* It/sec")),
    ("litgpt", re.compile(r"\blitgpt\b|iter \d+ (?:\| )?step \d+.*iter time: ")),
    ("nanotron", re.compile(r"nanotron|hardware_tflops_per_gpu")),
    ("nemo-automodel", re.compile(r"nemo_automodel|\| tps [\d.]+\([\d.]+/gpu\)")),
    ("llm-foundry", re.compile(r"llmfoundry|throughput/device/|^\[batch=\d+/\d+\]")),
    ("openrlhf", re.compile(r"\bopenrlhf\b")),
    ("verl", re.compile(r"verl\.trainer|timing_s/step")),
    ("torchtitan", re.compile(r"\[titan\]|torchtitan|step: +\d+ .*tps:", re.IGNORECASE)),
    ("torchtune", re.compile(r"torchtune|tokens_per_second_per_gpu:|^Step \d+ \| loss:\S+ lr:", re.IGNORECASE)),
    ("maxtext", re.compile(r"maxtext|completed step: \d+, seconds:", re.IGNORECASE)),
    ("primus", re.compile(r"primus|hip mem usage|rocm mem usage|tokens/s/GPU inst/harmonic", re.IGNORECASE)),
    ("nemo", re.compile(r"\[NeMo [IW] |train_step_timing in s|reduced_train_loss")),
    # GPT-NeoX is a Megatron-DeepSpeed too.
    ("megatron-deepspeed", re.compile(r"elapsed_time_per_iteration_ms|gpu per second \(tgs\)|approx flops per GPU")),
    ("megatron-bridge", re.compile(r"megatron\.bridge|megatron_bridge|Step Time : [\d.]+s GPU utilization")),
    ("megatron-lm", re.compile(r"elapsed time per iteration \(ms\)|using world size: \d+, data-parallel size")),
    ("deepspeed", re.compile(r"DeepSpeed info|\[deepspeed\]|RunningAvgSamplesPerSec|\[Rank 0\] step=\d")),
    ("hf-trainer", re.compile(r"\*{5} Running training \*{5}|'train_runtime'|\{'loss': [^{}]*'epoch': |"
                              r"Total optimization steps")),
)  # fmt: skip

Put = Callable[["HeaderFacts", str], None]


@dataclass
class HeaderFacts:
    """What is known so far; what was said first counts."""

    plan: dict[str, Any] = field(default_factory=dict)
    software: dict[str, str] = field(default_factory=dict)
    values: dict[str, int] = field(default_factory=dict)
    """accumulation, micro_batch and other numbers that a plan follows from, and steps."""
    arguments: dict[str, str] = field(default_factory=dict)
    """What Megatron-LM prints that a model follows from."""
    lists: bool = False
    """Whether a program lists its settings there, each with dots up to its value."""
    frameworks: set[str] = field(default_factory=set)
    date: str | None = None

    def put(self, path: str, value: Any) -> None:
        *sections, name = path.split(".")
        place = self.plan
        for section in sections:
            place = place.setdefault(section, {})
        place.setdefault(name, value)

    def count(self, path: str, text: str, least: int = 1) -> None:
        if (value := whole(text)) is not None and value >= least:
            self.put(path, value)

    def note(self, name: str, text: str) -> None:
        if (value := whole(text)) is not None and value > 0:
            self.values.setdefault(name, value)

    def read(self, line: str) -> None:
        """Takes what a line says."""
        for name, sign in _FRAMEWORKS:
            if name not in self.frameworks and sign.search(line):
                self.frameworks.add(name)
        self.lists = self.lists or bool(_LISTED.search(line))
        if (listed := _DOTTED.search(line)) and listed[1] in ARGUMENTS:
            self.arguments.setdefault(listed[1], listed[2])
        if setting := listed or _PARAM.search(line) or _SET.search(line):
            self._setting(setting[1], setting[2])
        for name, value in _QUOTED.findall(line) if "'" in line else ():
            self._setting(name, value)
        for flag, key, value in _ARGUMENT.findall(line) if "--" in line or "=" in line else ():
            self._setting(key or flag.replace("-", "_"), value)
        for name, value in _AMONG.findall(line) if "loss" not in line else ():
            self._setting(name, value)
        for pattern, put in _SENTENCES:
            if sentence := pattern.search(line):
                put(self, sentence[1])
        if self.date is None and (day := _DATE.search(line)) and int(day[2]) <= 12 and 1 <= int(day[3]) <= 31:
            self.date = f"{day[1]}-{day[2]}-{day[3]}"
        self._named(line)

    def _setting(self, name: str, value: str) -> None:
        if (path := _COUNTS.get(name)) is not None:
            (self.count if "." in path else self.note)(path, value)
        elif fact := (_FLAGS.get(name) if value in ("True", "true", "1") else _WORDS.get((name, value.strip("'\"")))):
            self.put(*fact)

    def _named(self, line: str) -> None:
        """Model, device and versions."""
        if "model" not in self.plan and (named := _MODEL.search(line)):
            model(self, f"{named[1]}/{named[2]}" if named[1] else named[3] or named[4])
        if "accelerator" not in self.plan.get("cluster", {}) and (device := _DEVICE.search(line)):
            accelerator(self, device[1])
        for name, number in _VERSION.findall(line):
            key = name.lower().replace("pytorch", "torch").replace(" ", "-").replace("_", "-")
            self.software.setdefault(key, number.rstrip(".+-"))

    @property
    def framework(self) -> str | None:
        """The program: the most particular of those that left a sign; the HF Trainer runs on DeepSpeed where both."""
        return next((name for name, _ in _FRAMEWORKS if name in self.frameworks), None)


def whole(text: str) -> int | None:
    """A whole number as programs print it: 1,024 or 1.0."""
    try:
        value = float(text.strip().strip("'\",").replace(",", ""))
    except ValueError:
        return None
    return int(value) if value == value and abs(value) < 1e15 and value == int(value) else None


def model(facts: HeaderFacts, name: str) -> None:
    """A model that the catalogue knows."""
    try:
        facts.put("model", find_model(name).value.id)
    except PlanError:
        facts.software.setdefault("model-said", name[:100])


def accelerator(facts: HeaderFacts, name: str) -> None:
    try:
        facts.put("cluster.accelerator", find_accelerator(name).value.id)
    except PlanError:
        return


_COUNTS = {
    "micro_batch_size": "workload.micro_batch", "global_batch_size": "workload.global_batch",
    "seq_length": "workload.seq_len", "tensor_model_parallel_size": "layout.tp",
    "pipeline_model_parallel_size": "layout.pp", "context_parallel_size": "layout.cp",
    "expert_model_parallel_size": "layout.ep", "expert_tensor_parallel_size": "layout.etp",
    "virtual_pipeline_model_parallel_size": "layout.vpp", "data_parallel_size": "layout.dp",
    "pipe_parallel_size": "layout.pp", "model_parallel_size": "layout.tp", "global_num_gpus": "cluster.count",
    "world_size": "cluster.count", "train_iters": "steps", "num_layers_per_virtual_pipeline_stage": "vpp_layers",
    "train_batch_size": "workload.global_batch", "train_micro_batch_size_per_gpu": "workload.micro_batch",
    "gradient_accumulation_steps": "accumulation", "zero_optimization_stage": "layout.zero_stage",
    "max_target_length": "workload.seq_len", "per_device_batch_size": "workload.micro_batch",
    "ici_tensor_parallelism": "layout.tp", "ici_fsdp_parallelism": "fsdp", "num_devices": "cluster.count",
    "n_gpus_per_node": "per_node", "nnodes": "nodes",
    "per_device_train_batch_size": "workload.micro_batch", "max_seq_length": "workload.seq_len",
    "sequence_len": "workload.seq_len", "max_seq_len": "workload.seq_len", "cutoff_len": "workload.seq_len",
    "lora_r": "workload.lora.rank", "batch_size": "batch_size", "seq_len": "workload.seq_len",
    "seqlen": "workload.seq_len", "sequence_length": "workload.seq_len", "context_length": "workload.seq_len",
    "block_size": "workload.seq_len", "max_length": "workload.seq_len", "micro_batch": "workload.micro_batch",
    "global_batch": "workload.global_batch", "grad_accum": "accumulation", "grad_accum_steps": "accumulation",
    "gradient_accumulation": "accumulation", "accum": "accumulation", "accum_steps": "accumulation",
    "accumulation_steps": "accumulation", "per_device_batch": "workload.micro_batch",
}  # fmt: skip
_FLAGS = {
    "sequence_parallel": ("layout.sequence_parallel", True),
    "use_distributed_optimizer": ("layout.zero_stage", 1),
    "bf16": ("workload.precision", "bf16"),
    "fp16": ("workload.precision", "fp16"),
    "enable_activation_checkpointing": ("layout.recompute", "full"),
    "bfloat16_enabled": ("workload.precision", "bf16"),
}
_WORDS: dict[tuple[str, str], tuple[str, Any]] = {
    ("recompute_granularity", "full"): ("layout.recompute", "full"),
    ("recompute_granularity", "selective"): ("layout.recompute", "selective"),
    ("optimizer", "adam"): ("workload.optimizer", "adamw"),
    ("remat_policy", "full"): ("layout.recompute", "full"),
    ("dtype", "bfloat16"): ("workload.precision", "bf16"),
    ("dtype", "bf16"): ("workload.precision", "bf16"),
    ("adapter", "lora"): ("workload.method", "lora"),
    ("adapter", "qlora"): ("workload.method", "qlora"),
    ("adv_estimator", "grpo"): ("workload.stage", "grpo"),
}


def _built(facts: HeaderFacts, builder: str) -> None:
    """What torchtune builds its model with: llama3_1_8b, lora_llama3_1_8b."""
    adapter, _, name = builder.rpartition("lora_")
    if name.endswith(("tokenizer", "transform")) or "model" in facts.plan:
        return
    facts.put("workload.method", {"": "lora", "q": "qlora"}.get(adapter, "lora") if "lora_" in builder else "full")
    model(facts, name)


def _mesh(facts: HeaderFacts, text: str) -> None:
    sizes = [int(size) for size in text.split(",") if size.strip()]
    facts.count("cluster.count", str(math.prod(sizes)))


def _counting(path: str) -> Put:
    return lambda facts, text: facts.count(path, text)


def _noting(name: str) -> Put:
    return lambda facts, text: facts.note(name, text)


def _saying(path: str, value: Any) -> Put:
    return lambda facts, _: facts.put(path, value)


# What says a fact in words; the group is what is said.
_SENTENCES: tuple[tuple[re.Pattern[str], Put], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), put)
    for pattern, put in (
        # transformers trainer.py, and Unsloth's banner in its place.
        (r"Instantaneous batch size per device = ([\d,]+)", _counting("workload.micro_batch")),
        (r"\bBatch size per device = ([\d,]+)", _counting("workload.micro_batch")),
        (r"Total train batch size .*= ([\d,]+)", _counting("workload.global_batch")),
        (r"Total batch size (?:\([^)]*\) )?= ([\d,]+)", _counting("workload.global_batch")),
        (r"Gradient Accumulation steps = ([\d,]+)", _noting("accumulation")),
        (r"Total (?:optimization )?steps = ([\d,]+)", _noting("steps")),
        (r"Num Epochs = ([\d,]+)", _noting("epochs")),
        (r"Num GPUs used = (\d+)", _counting("cluster.count")),
        (r"Number of trainable parameters = ([\d,]+)", _noting("trainable")),
        (r"Trainable parameters = ([\d,]+) ?(?:/|of)", _noting("trainable")),
        (r"trainable params: ([\d,]+) \|\| all params", _noting("trainable")),
        (r"\|\| all params: ([\d,]+)", _noting("parameters")),
        (r"Trainable parameters = [\d,]+ ?(?:/|of) ?([\d,]+)", _noting("parameters")),
        (r"(Fine-tuning method: LoRA)", _saying("workload.method", "lora")),
        (r"(Fine-tuning method: Full)", _saying("workload.method", "full")),
        (r"(Gradient checkpointing enabled|Unsloth: .*gradient checkpointing)", _saying("layout.recompute", "full")),
        # torchtitan train.py and models/parallelize.
        (r"global batch size ([\d,]+), (?:gradient accumulation|sequence length)", _counting("workload.global_batch")),
        (r"local batch size ([\d,]+), global", _counting("workload.micro_batch")),
        (r"sequence length ([\d,]+), total steps", _counting("workload.seq_len")),
        (r"total steps ([\d,]+)", _noting("steps")),
        (r"Building (llama\S* \S+|qwen\S* \S+|deepseek\S* \S+) (?:with|model)", model),
        (r"Model (\S+ \S+) size: [\d,]+ total parameters", model),
        (r"(Applied full activation checkpointing)", _saying("layout.recompute", "full")),
        (r"(Applied selective activation checkpointing)", _saying("layout.recompute", "selective")),
        (r"device mesh with \[[^\]]*\], \[([\d, ]+)\]", lambda facts, text: _mesh(facts, text)),
        (r"(Applied FSDP to the model)", _saying("layout.zero_stage", 3)),
        # torchtune's recipes print their config; one on a single device says so in its name.
        (r"_component_: torchtune\.models\.\w+\.(\w+)", _built),
        (r"_component_: torch\.optim\.(AdamW)\b", _saying("workload.optimizer", "adamw")),
        (r"Running \w+(SingleDevice) with resolved config", _saying("cluster.count", 1)),
        # Megatron-LM training/arguments.py, initialize.py.
        (r"using world size: (\d+)", _counting("cluster.count")),
        (r"data-parallel size: (\d+)", _counting("layout.dp")),
        (r"[^-]tensor-model-parallel size: (\d+)", _counting("layout.tp")),
        (r"pipeline-model-parallel size: (\d+)", _counting("layout.pp")),
        (r"context-parallel size: (\d+)", _counting("layout.cp")),
        # Lightning, DeepSpeed, Accelerate and what stands on torch.distributed.
        (r"(?<![\w.])(\d+) ?[x×] ?(?:NVIDIA|AMD|Tesla) ", _counting("cluster.count")),
        (r"Starting with (\d+) processes", _counting("cluster.count")),
        (r"\[rank-?\d+/(\d+)\]", _counting("cluster.count")),
        (r"world[_ ]size['\"]?[:= ]{1,4}(\d+)", _counting("cluster.count")),
        (r"num_processes['\"]?[:= ]{1,4}(\d+)", _counting("cluster.count")),
        (r"num_devices: (\d+)", _counting("cluster.count")),
        (r"(?:creating (?:bf16|fp16) ZeRO stage |zero[_ ]stage[ =:]+)([0-3])\b", _counting("layout.zero_stage")),
    )
)
