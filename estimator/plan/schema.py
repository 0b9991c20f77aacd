"""The Plan: one document that says what to run, on what, how split, and to what end.

Every field is optional except the model, and what is left out is filled by `estimator.plan.training.defaults` (and, for
the layout, by the search) and named as an assumption. `Plan.given()` is exactly what the user said.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from estimator.errors import PlanError, near, nearest
from estimator.plan.calendar import DAY_H, WEEK_D, FreeHours
from estimator.plan.choices import about, members, valid_values

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

Framework = Literal[
    "auto", "hf-trainer", "fsdp1", "fsdp2", "ddp", "deepspeed", "megatron-lm", "megatron-bridge", "megatron-deepspeed",
    "nemo", "nemo-automodel", "mlperf-nemo", "primus", "torchtitan", "torchtune", "llm-foundry", "litgpt", "nanotron",
    "fms-fsdp", "kempnerforge", "axolotl", "ms-swift", "unsloth", "levanter", "maxtext", "pathways", "neuronx",
    "optimum-habana", "llmboost", "mlx", "pytorch", "prime-rl", "verl", "openrlhf", "nemo-rl", "slime",
]  # fmt: skip
Stage = Literal["pretrain", "sft", "dpo", "ppo", "grpo", "kto", "orpo", "simpo", "ipo", "rm"]
Method = Literal["full", "lora", "qlora", "dora", "pissa", "freeze"]
Precision = Literal["bf16", "fp16", "fp32", "tf32", "fp8", "mxfp8", "mxfp4", "nvfp4"]
Optimizer = Literal[
    "adamw", "paged_adamw", "adamw_8bit", "paged_adamw_8bit", "sgd", "adafactor", "lion", "galore", "apollo", "muon",
    "soap", "adam_mini", "lomo", "badam",
]  # fmt: skip
Objective = Literal["throughput", "cost", "time", "memory"]
WeightDtype = Literal[
    "bf16", "fp16", "fp32", "fp8", "int8", "int4", "awq", "gptq", "gguf", "mxfp4", "nvfp4", "exl2", "q8_0", "q6_k",
    "q5_k_m", "q5_k_s", "q5_1", "q5_0", "q4_k_m", "q4_k_s", "q4_0", "q4_1", "iq4_xs", "iq4_nl", "q3_k_l", "q3_k_m",
    "q3_k_s", "iq3_m", "iq3_s", "iq3_xs", "iq3_xxs", "q2_k", "iq2_m", "iq2_s", "iq2_xs", "iq2_xxs", "iq1_m", "iq1_s",
]  # fmt: skip
CacheDtype = Literal["auto", "bf16", "fp16", "fp8", "int8", "fp4"]
Statistic = Literal["mean", "p99"]
Engine = Literal["vllm", "sglang", "trtllm", "llamacpp", "ollama", "mlx", "hf", "gpt-fast", "exllamav2", "mlc"]

# Characters of a value that an error shows.
_SHOWN = 80
# Powers of a thousand (definition).
_SUFFIXES = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
# Commas and underscores only between groups of three digits: '1,5B' could mean 1.5 or 15, so it is not read at all.
_COUNT = re.compile(r"((?:[0-9]{1,3}(?:[,_][0-9]{3})+|[0-9]+)\.?[0-9]*(?:e[+-]?[0-9]+)?)\s*([kmbt]?)", re.IGNORECASE)


def parse_count(value: object) -> object:
    """'1B', '300M', '1.5T', '52k', '1_000' and '2e9' as numbers; anything else is left for pydantic to judge."""
    if isinstance(value, str) and (match := _COUNT.fullmatch(value.strip())):
        digits = match[1].replace("_", "").replace(",", "")
        return float(digits) * _SUFFIXES.get(match[2].lower(), 1.0)
    return value


Amount = Annotated[float, BeforeValidator(parse_count, json_schema_input_type=float | str)]
WholeAmount = Annotated[int, BeforeValidator(parse_count, json_schema_input_type=int | str)]

# YAML reads days by itself.
Day = Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, date) else value)]


_IMAGE_SIZE = "1024x1024"
"""A common size of photographs as they are sent, where a plan has images and does not say."""
_SIZE = re.compile(r"([0-9]{1,5})\s*(?:x|×|\*|by)\s*([0-9]{1,5})", re.IGNORECASE)


def image_sides(text: str) -> tuple[int, int]:
    """(Width, height) of '768x768'. Raises ValueError."""
    match = _SIZE.fullmatch(text.strip())
    if not match or not int(match[1]) or not int(match[2]):
        raise ValueError(f"{text[:_SHOWN]!r} is not a size in pixels; valid: e.g. 768x768")
    return int(match[1]), int(match[2])


def _pixels(text: object) -> object:
    """A size as '768x768'; a list of two numbers too."""
    if isinstance(text, list | tuple):
        text = "x".join(str(side) for side in text)
    return "{}x{}".format(*image_sides(text)) if isinstance(text, str) else text


ImageSize = Annotated[
    str,
    BeforeValidator(_pixels, json_schema_input_type=str),
    Field(description="Width x height of an image or frame in pixels, e.g. 768x768."),
]
VisualTokens = Annotated[
    int | None,
    Field(ge=0, le=100_000_000, description="Tokens of these together; by the model's own rule unless given."),
]


class PlanPart(BaseModel):
    """A section of the Plan: unknown fields are refused, values are re-checked on assignment never made (frozen)."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Lora(PlanPart):
    rank: int = Field(16, ge=1, le=4096, description="Adapter rank.")
    alpha: float = Field(32, gt=0, description="Adapter scale numerator.")
    targets: str = Field("all-linear", description="all-linear, attention, mlp, or module names joined by commas.")
    dropout: float = Field(
        0.0, ge=0, lt=1, description="On the inputs of adapters; the framework's default unless given."
    )
    quantisation: Literal["nf4", "nf4-single", "gptq"] = Field(
        "nf4",
        description="How qlora holds frozen weights: nf4 has its scales quantised too, nf4-single has not; the "
        "framework's default unless given.",
    )
    train_embeddings: bool = Field(False, description="Embedding and head are trained in full besides the adapters.")


# Fine-tuning has a few billion tokens at most.
PRETRAINING_TOKENS = 20e9


class Training(PlanPart):
    kind: Literal["training"] = "training"
    framework: Framework = Field("auto", description="Training framework; auto chooses one the plan can run on.")
    software_version: str | None = Field(
        None, description="Version of the framework, where known, or of libraries: torch 2.1, bitsandbytes 0.41."
    )
    stage: Stage = Field("sft", description="Pretraining, fine-tuning or preference training.")
    method: Method = Field("full", description="Which weights are trained.")
    lora: Lora = Field(
        default_factory=lambda: Lora.model_validate({}), description="Adapter settings of lora, qlora, dora and pissa."
    )
    precision: Precision = Field("bf16", description="Compute precision of the matmuls.")
    weights: Literal["auto", "fp32", "bf16"] = Field(
        "auto",
        description="What weights are held in: as the framework does, in fp32, or all in 16 bits (no master copy).",
    )
    gradients: Literal["auto", "fp32", "bf16"] = Field(
        "auto", description="What gradients are summed and reduced in: as the framework does, in fp32, or in 16 bits."
    )
    optimizer: Optimizer = Field("adamw", description="Optimizer of the trained weights.")
    optimizer_in_backward: bool = Field(
        False, description="Each weight is updated as soon as its gradient is there, which is then freed."
    )
    rollout: Literal["trainer", "colocated", "separate"] = Field(
        "trainer",
        description="Where ppo and grpo generate samples: trainer, an engine on the same devices, or elsewhere.",
    )
    engine_share: float = Field(0.3, gt=0, le=1, description="Part of a device that a colocated engine takes.")
    group_size: int = Field(8, ge=1, le=4096, description="Samples that grpo generates per prompt.")
    response_len: int | None = Field(
        None, ge=1, le=100_000_000, description="Tokens generated per sample; half of seq_len unless given."
    )
    seq_len: int | None = Field(None, ge=1, le=100_000_000, description="Tokens per sequence.")
    images: int = Field(0, ge=0, le=10_000, description="Images in each sequence.")
    image_size: ImageSize = _IMAGE_SIZE
    video_frames: int = Field(0, ge=0, le=100_000, description="Frames of video that are sampled in each sequence.")
    visual_tokens: VisualTokens = None
    vision: Literal["frozen", "trained"] = Field("frozen", description="Whether what reads images is trained too.")
    packing: bool = Field(True, description="Short samples are packed to full sequences.")
    micro_batch: int | None = Field(None, ge=1, le=1_000_000, description="Sequences per device and micro-step.")
    global_batch: int | None = Field(None, ge=1, le=100_000_000, description="Sequences per optimizer step.")
    attention: Literal["flash", "eager", "sdpa", "flash1", "flash2", "flash3"] = Field(
        "flash", description="Attention kernel; flash is the framework's own choice on the device, flash1 that of 2022."
    )
    fp8_attention: bool | Literal["auto"] = Field(
        "auto", description="Attention in 8 bits too where matmuls are in 8 or 4; the framework's default if auto."
    )
    fp8_healing: float = Field(
        0,
        ge=0,
        lt=1,
        description="Part of the steps, the last ones, that run in 8 bits after those in 4 (FP8 healing).",
    )
    fused_loss: bool | Literal["auto"] = Field("auto", description="Fused or chunked cross-entropy (no full logits).")
    tiled_mlp: bool = Field(
        False, description="Dense MLPs go tile by tile over the sequence, and run again in the backward pass."
    )
    compile: bool = Field(False, description="torch.compile (XLA always compiles).")
    cuda_graph: Literal["auto", "none", "layers", "full"] = Field(
        "auto",
        description="CUDA graphs of layers' static parts or of a whole iteration; the framework's default if auto.",
    )
    dp_overlap: bool | Literal["auto", "gradients"] = Field(
        "auto", description="Below ZeRO-3 too gradients are reduced, and weights gathered, beside the passes."
    )
    tp_overlap: bool | Literal["auto"] = Field(
        "auto", description="Tensor-parallel communication overlaps with matmuls (userbuffers, async TP)."
    )
    moe_dispatcher: Literal["auto", "alltoall", "flex", "deepep", "hybridep"] = Field(
        "auto", description="How tokens reach experts: a copy each, or once per node; flex: as the device has it."
    )
    moe_overlap: bool | Literal["auto"] = Field(
        "auto", description="Expert dispatch overlaps with the compute of another micro-batch (1F1B overlap)."
    )
    moe_capacity: bool | Literal["auto"] = Field(
        "auto", description="Tokens beyond an expert's capacity are dropped, so that shapes are fixed."
    )
    dataset_tokens: Amount | None = Field(None, gt=0, le=1e18, description="Tokens in the data set, e.g. 1B.")
    dataset_samples: Amount | None = Field(
        None, ge=1, le=1e15, description="Samples in the data set, e.g. 52k; preference pairs or prompts count as one."
    )
    sample_tokens: Amount | None = Field(
        None, gt=0, le=1e9, description="Mean tokens per sample; of a pair both answers, of grpo prompt and one answer."
    )
    steps: WholeAmount | None = Field(
        None, ge=1, le=10**12, description="Optimizer steps of the run; wins over the size of the data."
    )
    epochs: float = Field(1, gt=0, le=1e6, description="Passes over the data set.")

    @model_validator(mode="after")
    def _pretrains(self) -> Self:
        """Whole models are trained on so many tokens before they are tuned, unless the stage is named."""
        many = (self.dataset_tokens or 0) >= PRETRAINING_TOKENS and self.method == "full"
        if many and "stage" not in self.model_fields_set:
            object.__setattr__(self, "stage", "pretrain")
        return self


# What people and files call weight formats and engines, in lower case, by the Plan's own names.
_FORMAT_NAMES = {
    "fp4": "nvfp4", "f16": "fp16", "half": "fp16", "f32": "fp32", "4bit": "int4", "uint4": "int4", "w4a16": "int4",
    "8bit": "int8", "w8a8": "int8", "float8": "fp8", "bfloat16": "bf16", "float16": "fp16", "float32": "fp32",
}  # fmt: skip
_ENGINE_NAMES = {
    "llama.cpp": "llamacpp", "llama-cpp": "llamacpp", "tensorrt-llm": "trtllm", "trt-llm": "trtllm",
    "tensorrt_llm": "trtllm", "transformers": "hf", "huggingface": "hf", "mlc-llm": "mlc", "nim": "trtllm",
    "mlx-lm": "mlx", "mlx_lm": "mlx",
}  # fmt: skip


def _named(names: Mapping[str, str]) -> BeforeValidator:
    """Reads a name in any case, and the usual other names of it."""
    return BeforeValidator(lambda name: names.get(name.lower(), name.lower()) if isinstance(name, str) else name)


class Inference(PlanPart):
    kind: Literal["inference"]
    input_len: int | float = Field(
        1024, ge=1, le=100_000_000, description="Mean prompt tokens per request, without images."
    )
    images: int = Field(0, ge=0, le=10_000, description="Images in each prompt.")
    image_size: ImageSize = _IMAGE_SIZE
    video_frames: int = Field(0, ge=0, le=100_000, description="Frames of video that are sampled in each prompt.")
    visual_tokens: VisualTokens = None
    output_len: int | float = Field(256, ge=1, le=100_000_000, description="Mean generated tokens per request.")
    output_spread: float | None = Field(
        None, ge=0, le=10, description="Standard deviation of the generated tokens over their mean; 0 if all are alike."
    )
    concurrency: int | None = Field(None, ge=1, le=10_000_000, description="Requests in flight, over all devices.")
    request_rate: float | None = Field(None, gt=0, le=1e9, description="Requests per second, arriving at random.")
    requests: int | None = Field(
        None, ge=1, le=1_000_000_000, description="Requests of the whole run, the first ones sent at once."
    )
    prefix_hit: float = Field(0.0, ge=0, lt=1, description="Part of the prompt tokens found in the prefix cache.")
    weight_dtype: Annotated[WeightDtype, _named(_FORMAT_NAMES)] = Field("bf16", description="Format of the weights.")
    weight_bits: float | None = Field(
        None, gt=0, le=32, description="Mean bits per weight (exl2, gguf); the format's own unless given."
    )
    kv_dtype: CacheDtype = Field("auto", description="Format of the KV cache; auto is the engine's for these weights.")
    engine: Annotated[Engine, _named(_ENGINE_NAMES)] = Field("vllm", description="Serving engine.")
    software_version: str | None = Field(None, description="Version of the engine, where known.")
    scenario: Literal["offline", "server", "interactive", "single-stream", "static-batch"] = Field(
        "server",
        description="offline: all requests at once; server and interactive: clients under latency limits; "
        "single-stream: one request at a time; static-batch: one batch in step.",
    )
    max_batch: int | None = Field(None, ge=1, le=1_000_000, description="Most requests in one step of a replica.")
    max_batched_tokens: int | None = Field(None, ge=1, le=10_000_000, description="Most tokens in one step.")
    chunked_prefill: bool | Literal["auto"] = Field(
        "auto", description="Prompts are read in pieces beside generation, not in steps of their own."
    )
    admission_steps: int = Field(
        1, ge=1, le=10_000, description="Steps between two looks at new requests (SGLang, --scheduler-recv-interval)."
    )
    cuda_graph: bool | Literal["auto"] = Field("auto", description="Generation steps are replayed CUDA graphs.")
    memory_share: float | None = Field(
        None, gt=0, le=1, description="Part of the device that the engine claims; its default unless given."
    )
    max_context: int | None = Field(
        None, ge=1, le=100_000_000, description="Longest request that is to fit; prompt and output unless given."
    )
    device_layers: int | None = Field(
        None, ge=1, le=10_000, description="Layers on cards (llama.cpp, --gpu-layers); as many as fit unless given."
    )
    host_experts: int | None = Field(
        None,
        ge=0,
        le=10_000,
        description="Layers whose experts a processor of cluster.beside holds (llama.cpp, --n-cpu-moe); as few as have "
        "to be unless given.",
    )
    expert_exchange: Literal["auto", "gather", "all_to_all"] = Field(
        "auto",
        description="How tokens reach experts of other devices: all go everywhere, or each to its experts' ranks alone "
        "(DeepEP, pplx, NVLink one-sided).",
    )
    two_batch_overlap: bool | Literal["auto"] = Field(
        "auto", description="A step is cut in two, so that one half computes while the other's tokens travel."
    )
    speculative_tokens: int | None = Field(None, ge=1, le=64, description="Tokens drafted per step.")
    draft_method: Literal["auto", "mtp", "eagle3", "ngram"] = Field(
        "auto",
        description="What drafts: layers of the checkpoint (mtp), a head trained for it (eagle3), or text that it has "
        "seen (ngram).",
    )
    acceptance: float = Field(0.7, ge=0, le=1, description="Chance that a drafted token is kept.")
    ttft_slo_ms: float | None = Field(None, gt=0, description="Time to first token to stay below.")
    tpot_slo_ms: float | None = Field(None, gt=0, description="Time per output token to stay below.")
    slo_statistic: Statistic = Field("mean", description="Whether latency limits hold for the mean or the p99.")

    @property
    def prompt_len(self) -> float:
        """Mean tokens of a prompt with those of its images."""
        return self.input_len + (self.visual_tokens or 0)


class Cluster(PlanPart):
    accelerator: str | None = Field(None, description="Accelerator id or name, e.g. h100-sxm.")
    count: int | None = Field(None, ge=1, le=1_000_000, description="Accelerators in the run.")
    per_node: int | None = Field(None, ge=1, le=4096, description="Accelerators per node.")
    beside: list[str] | None = Field(
        None,
        max_length=16,
        description="Other devices of the same machine that hold layers too, e.g. rtx-3090 (one name for each); a "
        "processor, e.g. cpu-core-i9-13900k, holds what cards have no room for.",
    )
    interconnect: str = Field("auto", description="Network between nodes, e.g. ib-ndr-400x8, roce-100x1, efa-v3.")


RecomputeModule = Literal["core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts"]


class Layout(PlanPart):
    tp: int | None = Field(None, ge=1, le=4096, description="Tensor parallel size.")
    sequence_parallel: bool | None = Field(None, description="Megatron sequence parallelism within the tp group.")
    pp: int | None = Field(None, ge=1, le=4096, description="Pipeline parallel size.")
    vpp: int | None = Field(None, ge=1, le=256, description="Virtual pipeline stages per device (interleaving).")
    schedule: Literal["1f1b", "interleaved", "zero-bubble", "v-half", "gpipe", "dualpipe"] | None = Field(
        None, description="Order of forward and backward passes in the pipeline."
    )
    cp: int | None = Field(None, ge=1, le=4096, description="Context parallel size.")
    ep: int | None = Field(None, ge=1, le=4096, description="Expert parallel size.")
    etp: int | None = Field(None, ge=1, le=4096, description="Tensor parallel size inside experts.")
    dp: int | None = Field(None, ge=1, le=1_000_000, description="Data parallel size.")
    zero_stage: int | None = Field(None, ge=0, le=3, description="ZeRO stage; FSDP full shard is 3.")
    shard_group: int | None = Field(
        None, ge=1, le=1_000_000, description="HSDP: devices per shard group; dp x cp for one group of all."
    )
    recompute: str | None = Field(None, description="none, selective, full or block:N.")
    recompute_modules: list[RecomputeModule] | None = Field(
        None, min_length=1, description="What selective recompute drops (core_attn)."
    )
    offload: (
        Literal["none", "optimizer", "params", "activations", "optimizer+activations", "params+activations"] | None
    ) = Field(None, description="To host memory; params with the optimizer's states.")

    @property
    def hybrid_group(self) -> int | None:
        """Devices per shard group where there are several groups; None where all share one."""
        return None if self.shard_group == (self.dp or 1) * (self.cp or 1) else self.shard_group

    @field_validator("recompute")
    @classmethod
    def _recompute_is_known(cls, value: str | None) -> str | None:
        if value is None or value in ("none", "selective", "full") or re.fullmatch(r"block:[0-9]{1,4}", value):
            return value
        raise ValueError(f"{value!r} is not a recompute mode; valid: none selective full block:N")


def _gib(what: str) -> Any:
    return Field(None, ge=0, le=1e6, description=what)


def _rate(what: str) -> Any:
    return Field(None, gt=0, le=1e6, description=what)


class Overrides(PlanPart):
    """Figures that the user knows better; each replaces what would be estimated or looked up. Memory is per device."""

    usable_gib: float | None = Field(None, gt=0, le=1e6, description="Memory that a device can allocate.")
    reserve_gib: float | None = _gib("Memory that is to stay free.")
    weights_gib: float | None = _gib("Weights.")
    gradients_gib: float | None = _gib("Gradients.")
    optimizer_gib: float | None = _gib("Optimizer states.")
    activations_gib: float | None = _gib("Activations kept for the backward pass.")
    logits_and_loss_gib: float | None = _gib("Logits and loss.")
    extra_models_gib: float | None = _gib("Models beside the trained one, and generated samples.")
    communication_buffers_gib: float | None = _gib("Gathered weights and communication buffers.")
    step_temporaries_gib: float | None = _gib("Temporaries of the optimizer step.")
    framework_and_context_gib: float | None = _gib("Framework and device context.")
    allocator_slack_gib: float | None = _gib("What the allocator holds beyond what is used.")
    host_gib: float | None = Field(None, gt=0, le=1e6, description="Memory of a node's host.")
    host_gb_per_s: float | None = _rate("Memory bandwidth of a node's processors, GB/s.")
    scaleup_gb_per_s: float | None = _rate("Links of one device inside a node or rack, GB/s one way, all together.")
    network_gb_per_s: float | None = _rate("Network of one node, GB/s one way, all ports together.")
    network_latency_us: float | None = _rate("One message between nodes, microseconds one way.")
    mfu: float | None = Field(None, gt=0, le=1, description="Model FLOP utilisation that training reaches: 0.4.")


class Goal(PlanPart):
    objective: Objective = Field("throughput", description="What the best layout is best at.")
    deadline_h: float | None = Field(None, gt=0, description="Hours until the run must be done.")
    budget_usd: Amount | None = Field(None, gt=0, description="Most the run may cost.")
    budget_device_hours: Amount | None = Field(None, gt=0, description="Most device-hours it may take.")
    credits_usd: Amount | None = Field(None, gt=0, description="Credits that pay for the run first.")
    credits_end: Day | None = Field(None, description="Day on which the credits end, e.g. 2026-12-31.")
    provider: str | None = Field(None, description="Price book to use, e.g. AWS.")
    hours_per_day: float | None = Field(None, gt=0, le=24, description="Hours a day the machines are free.")
    days_per_week: int | None = Field(None, ge=1, le=7, description="Days a week the machines are free.")

    @field_validator("credits_end")
    @classmethod
    def _is_a_day(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                date.fromisoformat(value)
            except ValueError:
                raise ValueError(f"{value!r} is no day; valid: 2026-12-31") from None
        return value

    @property
    def free(self) -> FreeHours | None:
        """None where machines are free all the time."""
        free = FreeHours(self.hours_per_day or DAY_H, self.days_per_week or WEEK_D)
        return None if free.always else free

    @property
    def free_share(self) -> float:
        """The part of all hours in which machines are free."""
        return 1.0 if self.free is None else self.free.share

    @property
    def free_h(self) -> float | None:
        """Of the hours until the deadline those in which machines are free."""
        free = self.free
        return self.deadline_h if free is None or self.deadline_h is None else free.free_h(self.deadline_h)

    def hours_on(self, devices: int) -> float | None:
        """Hours that the deadline and the device-hours leave to so many devices; None without either."""
        each = None if self.budget_device_hours is None else self.budget_device_hours / devices
        return min((hours for hours in (self.free_h, each) if hours is not None), default=None)


class Plan(PlanPart):
    name: str | None = Field(None, max_length=200)
    model: str | dict[str, Any] = Field(description="Catalogue name, path to a config.json, or inline config fields.")
    workload: Annotated[Training | Inference, Field(discriminator="kind")] = Field(
        default_factory=lambda: Training.model_validate({})
    )
    cluster: Cluster = Field(default_factory=lambda: Cluster.model_validate({}))
    layout: Layout = Field(default_factory=lambda: Layout.model_validate({}))
    goal: Goal = Field(default_factory=lambda: Goal.model_validate({}))
    overrides: Overrides = Field(default_factory=lambda: Overrides.model_validate({}))

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Self:
        """A Plan from plain data; null is the same as not given.

        Raises PlanError naming the field, the problem and the valid values.
        """
        if not isinstance(data, Mapping):
            raise PlanError("plan", f"must be a mapping with at least a model, not {type(data).__name__}")
        return cls._valid(_merged({}, copy.deepcopy(dict(data))))

    @classmethod
    def _valid(cls, data: dict[str, Any]) -> Self:
        """A Plan from data that nobody else holds, merged."""
        workload = data.get("workload")
        if isinstance(workload, dict):
            workload.setdefault("kind", "training")
        check_bools(cls, data)
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise plan_error(error, cls) from None

    def given(self) -> dict[str, Any]:
        """Only what was set, as plain data; parsing it again gives an equal Plan with the same gaps."""
        data = self.model_dump(mode="json", exclude_unset=True)
        workload = data.get("workload")
        if isinstance(workload, dict) and set(workload) <= {"kind"} and workload.get("kind") == "training":
            del data["workload"]
        return data

    def to_yaml(self) -> str:
        import yaml

        return yaml.safe_dump(self.given(), sort_keys=False, allow_unicode=True)

    def patch(self, changes: Mapping[str, Any]) -> Self:
        """A new Plan with `changes` laid over this one.

        Keys are dotted names ('cluster.count') or nested mappings; None takes a value back, so that it is chosen again.
        """
        return type(self)._valid(_merged(self.given(), copy.deepcopy(dict(changes))))

    @property
    def training(self) -> Training:
        """The workload of a training plan; raises PlanError for a serving plan."""
        if self.workload.kind == "training":
            return self.workload
        raise PlanError("workload.kind", "this needs a training plan, but the plan is for inference", ["training"])

    @property
    def inference(self) -> Inference:
        """The workload of a serving plan; raises PlanError for a training plan."""
        if self.workload.kind == "inference":
            return self.workload
        raise PlanError("workload.kind", "this needs a serving plan, but the plan is for training", ["inference"])


def merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`changes` (nested or dotted) laid over `base`; None removes. Lists and model configs are replaced whole.

    Neither is changed, and the result shares no mapping with `base`.
    """
    return _merged(copy.deepcopy(dict(base)), changes)


def _merged(result: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`result` with `changes` put into it."""
    for key, value in changes.items():
        head, _, rest = str(key).partition(".")
        if rest:
            value = {rest: value}
        if value is None:
            result.pop(head, None)
        elif isinstance(value, Mapping) and head != "model":
            inner = result.get(head)
            result[head] = _merged(dict(inner) if isinstance(inner, Mapping) else {}, value)
        else:
            result[head] = value
    return result


def check_bools(model: type[BaseModel], data: Mapping[str, Any], path: tuple[str, ...] = ()) -> None:
    """Raises PlanError for true or false in a field that holds no truth values, and for what is neither in one that
    does: pydantic would read true as 1, and 1, 'on' and 'y' as true."""
    truths = _truths_of(model, path)
    for name, value in data.items():
        here = (*path, str(name))
        if isinstance(value, bool):
            if name not in truths and _field_at(model, here):
                raise PlanError(".".join(here), f"got {str(value).lower()}, which is neither a number nor a name")
        elif isinstance(value, Mapping):
            if _fields_at(model, here):
                check_bools(model, value, here)
        elif name in truths and isinstance(value, str | int | float) and str(value) not in truths[name]:
            what = "neither true nor false" if truths[name] == [*_BOTH] else "not one of the known values"
            raise PlanError(".".join(here), f"{_shown(value)} is {what}", truths[name])


_BOTH = ("true", "false")
# Choices that are all shown, whatever was written (choice); of more those that are near, or all where none is.
_FEW = 16


def plan_error(error: ValidationError, model: type[BaseModel], prefix: str = "") -> PlanError:
    """pydantic's first complaint as a PlanError with the dotted field name and the valid values; what was written wrong
    comes before what is missing."""
    problems = sorted(error.errors(include_url=False), key=lambda problem: problem["type"] == "missing")
    problem = problems[0]
    paths = [_field_path(model, problem) for problem in problems]
    path = paths[0]
    field = prefix + ".".join(path) if path else prefix.rstrip(".") or "plan"
    more = len({tuple(other) for other in paths}) - 1
    tail = f" (and {more} more problem{'s' if more > 1 else ''})" if more else ""
    context = problem.get("ctx", {})
    same = [problem for problem, other in zip(problems, paths, strict=True) if other == path]
    match problem["type"]:
        case "extra_forbidden":
            choices = _fields_at(model, path[:-1])
            return PlanError(field, f"there is no such field{tail}", nearest(path[-1], choices))
        case "missing":
            return _missing(field, _field_at(model, path), tail)
        case "union_tag_invalid":
            return PlanError(f"{field}.kind", f"{context.get('tag')!r} is unknown{tail}", ["training", "inference"])
        case "value_error":
            return PlanError(field, str(context["error"]) + tail)
    if choices := _literals(same):
        close = choices if len(choices) <= _FEW else near(str(problem["input"]), choices) or choices
        return PlanError(field, f"{_shown(problem['input'])} is not one of the known values{tail}", close)
    message = problem["msg"][0].lower() + problem["msg"][1:].partition(", ")[0]
    message = message.replace("valid integer", "whole number").replace("a valid ", "a ")
    valid = _taken(_field_at(model, path))
    return PlanError(field, f"got {_shown(problem['input'])}, but the {message}{tail}", valid)


def _taken(info: FieldInfo | None) -> list[Any]:
    """The words that a field takes, or examples of what it takes."""
    return valid_values(info.annotation) or info.examples or [] if info else []


def _missing(field: str, info: FieldInfo | None, tail: str) -> PlanError:
    """What is missing, with the values that it takes or examples of them, or in the field's own words."""
    valid = _taken(info)
    told = about(info.description) if info and not valid else ""
    return PlanError(field, f"is required{told}{tail}", valid)


def _literals(problems: Sequence[ErrorDetails]) -> list[str]:
    """The values that a field's literals allow, and true and false where it may also be a truth value."""
    literal = [problem for problem in problems if problem["type"] == "literal_error"]
    choices = [value for problem in literal for value in re.findall(r"'([^']+)'", problem.get("ctx", {})["expected"])]
    if choices and any(problem["type"].startswith("bool") for problem in problems):
        choices += ["true", "false"]
    return choices


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # An integer of more digits than Python prints.
        return "a number that is too large"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _field_path(model: type[BaseModel], problem: ErrorDetails) -> list[str]:
    """Where a problem is, without the branches of unions that pydantic names (workload.training.tp, model.str)."""
    path: list[str] = []
    for step in problem["loc"]:
        unknown = problem["type"] == "extra_forbidden" and step == problem["loc"][-1]
        if isinstance(step, int) or unknown or step in _fields_at(model, path):
            path.append(str(step))
    return path


def _fields_at(model: type[BaseModel], path: Sequence[str]) -> Mapping[str, FieldInfo]:
    """The fields of the section that `path` leads to; none where it leads to a plain value."""
    return _fields_of(model, tuple(path))


@lru_cache(maxsize=1024)  # What people write may be in the path.
def _fields_of(model: type[BaseModel], path: tuple[str, ...]) -> Mapping[str, FieldInfo]:
    fields = model.model_fields
    for step in path:
        if step == "workload" and step in fields:
            fields = Training.model_fields | Inference.model_fields
            continue
        if step.isdigit():  # Of a list, whose entries' fields these are already.
            continue
        annotation = fields[step].annotation if step in fields else None
        if get_origin(annotation) is list:
            annotation = get_args(annotation)[0]
        fields = annotation.model_fields if isinstance(annotation, type) and issubclass(annotation, BaseModel) else {}
    return fields


@lru_cache(maxsize=1024)
def _truths_of(model: type[BaseModel], path: tuple[str, ...]) -> Mapping[str, list[str]]:
    """The words that each field of a section takes which holds truth values, in a plan of either kind."""
    of_run = path == ("workload",) and "workload" in model.model_fields
    sections = [Training.model_fields, Inference.model_fields] if of_run else [_fields_of(model, path)]
    words: dict[str, list[str]] = {}
    for name in dict.fromkeys(name for fields in sections for name in fields):
        kinds = [fields[name].annotation for fields in sections if name in fields]
        if any(bool in members(kind) for kind in kinds):
            every = dict.fromkeys(word for kind in kinds for word in valid_values(kind))
            words[name] = sorted(every, key=lambda word: word in _BOTH)
    return words


def _field_at(model: type[BaseModel], path: Sequence[str]) -> FieldInfo | None:
    return _fields_at(model, path[:-1]).get(path[-1])
