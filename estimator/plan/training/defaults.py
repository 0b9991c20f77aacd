"""Fills what a Plan leaves open, and says so: every value that the user did not give becomes an Assumption."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from estimator.errors import PlanError
from estimator.machine.hardware import Accelerator
from estimator.model.architecture import Architecture
from estimator.plan.assumptions import Assumption
from estimator.plan.schema import Plan, Training
from estimator.plan.training.framework import Framework
from estimator.plan.training.job import Job
from estimator.plan.training.run_length import data_size, full_sample, is_packed

# Sequences per optimizer step where the user names none: common fine-tuning practice, and about four million tokens for
# pretraining (Llama 2 paper, section 2.2: a global batch of 4M tokens).
_FINETUNE_BATCH = 128
_PRETRAIN_TOKENS = 4_194_304
# Tokens of a prompt where only what is generated behind it is named: TRL's GRPOConfig takes 512, mathematics and code
# about twice that.
_PROMPT = 1024
USUAL_SEQ_LEN = 4096


@dataclass(frozen=True)
class UsualRun:
    """What a model's maker trained it with: sequences a step, tokens a sequence, and where that is said."""

    batch: int
    seq_len: int
    source: str
    exact: bool = False
    """Whether the batch stays as it is: the framework can split layers, so that fewer replicas share it."""


def fill(
    plan: Plan,
    architecture: Architecture,
    accelerator: Accelerator,
    count: int,
    framework: tuple[str, str] | None = None,
    own: UsualRun | None = None,
    sums_gradients: bool = True,
) -> tuple[dict[str, Any], list[Assumption]]:
    """What completes the workload, by field, and the assumptions made.

    `count` is the number of devices; `framework` is the one to take where the plan leaves it open, with why; `own` is
    the run of the model's maker. Of micro-batches whose gradients the optimizer never sums a step has one.
    """
    training = plan.training
    stated = training.model_fields_set
    assumed: list[Assumption] = []
    changes: dict[str, Any] = {}

    def assume(name: str, value: Any, why: str) -> None:
        changes[name] = value
        assumed.append(Assumption(f"workload.{name}", value, why))

    if training.framework == "auto":
        assume("framework", *(framework or framework_choices(plan, accelerator, count)[0]))
    seq_len = training.seq_len
    if seq_len is None:
        unpacked = None if is_packed(training) else training.sample_tokens
        seq_len, why = _seq_len(architecture, own, training.response_len or 0, unpacked)
        assume("seq_len", seq_len, why)
    if training.stage in ("ppo", "grpo"):
        if training.response_len is None:
            assume("response_len", max(1, seq_len // 2), "half of each sequence is generated, half is its prompt")
        elif training.response_len >= seq_len:
            problem = f"{training.response_len} generated tokens leave no prompt in sequences of {seq_len}"
            raise PlanError("workload.response_len", problem, [f"below {seq_len}"])
    if training.global_batch is None:
        batch, why = _global_batch(plan, seq_len, count, own, sums_gradients)
        assume("global_batch", batch, why)
    data_size(training)
    if training.dataset_samples is not None and training.dataset_tokens is None and training.sample_tokens is None:
        filled = full_sample(training.model_copy(update={"seq_len": seq_len}))
        assume("sample_tokens", float(filled), "no length of samples is known, so each is taken to be full")
    if "precision" not in stated:
        assume("precision", *_precision(accelerator))
    for name, why in _PLAIN_DEFAULTS.items():
        if name not in stated and not (name == "epochs" and training.steps is not None):
            why = _MANY_TOKENS if getattr(training, name) == "pretrain" else why
            assumed.append(Assumption(f"workload.{name}", getattr(training, name), why))
    if training.method in ("lora", "qlora", "dora", "pissa"):
        for name in ("rank", "alpha", "targets"):
            if "lora" not in stated or name not in training.lora.model_fields_set:
                assumed.append(Assumption(f"workload.lora.{name}", getattr(training.lora, name), "the usual default"))
    return changes, assumed


def fill_adapters(plan: Plan, framework: Framework) -> tuple[Plan, list[Assumption]]:
    """The plan with what adapters have by default in the framework, and the assumptions made."""
    training = plan.training
    if training.method not in ("lora", "qlora", "dora", "pissa"):
        return plan, []
    usual: dict[str, Any] = {"dropout": framework.adapters.dropout}
    if training.method == "qlora":
        usual["quantisation"] = framework.adapters.quantisation
    stated = training.lora.model_fields_set if "lora" in training.model_fields_set else set()
    changes = {name: value for name, value in usual.items() if name not in stated}
    assumed = [
        Assumption(f"workload.lora.{name}", value, f"the default of {framework.name}")
        for name, value in changes.items()
    ]
    return plan.patch({"workload": {"lora": changes}}) if changes else plan, assumed


def recipe_options(job: Job) -> list[Assumption]:
    """Options that are left to the framework's recipes, as far as the run can have a use for them.

    They stay open in the plan, so that another framework or device brings its own; what they come to is told.
    """
    options: dict[str, str | bool] = {"cuda_graph": job.cuda_graph}
    split = job.plan.layout.tp or (2 if job.framework.limits.searches_splits else 1)
    if job.framework.limits.tp and job.machine.count > 1 and split > 1:
        options["tp_overlap"] = job.chosen("tp_overlap")
    if job.machine.count > 1:
        options["dp_overlap"] = job.chosen("dp_overlap")
    if job.compute_bytes < job.activation_bytes:
        options["fp8_attention"] = job.chosen("fp8_attention")
    if any(block.experts for block in job.architecture.blocks):
        options |= {name: job.chosen(name) for name in ("moe_dispatcher", "moe_overlap", "moe_capacity")}
    return [
        Assumption(f"workload.{name}", "auto", f"{option_words(value)}, as the framework's recipes have it")
        for name, value in options.items()
        if name not in job.training.model_fields_set and name not in job.framework.limits.options
    ]


def option_words(value: str | bool) -> str:
    """An option's value as people say it."""
    return value if isinstance(value, str) else "yes" if value else "no"


_MANY_TOKENS = "so many tokens are those of pretraining"
_PLAIN_DEFAULTS = {
    "stage": "supervised fine-tuning is the most common run",
    "method": "all weights are trained unless an adapter is named",
    "optimizer": "the usual optimizer",
    "packing": "every sequence is taken to be full",
    "attention": "the kernel that frameworks choose where they can",
    "fused_loss": "as the framework does by default",
    "compile": "frameworks leave it off by default",
    "epochs": "one pass over the data",
}


def _seq_len(architecture: Architecture, own: UsualRun | None, response: int, sample: float | None) -> tuple[int, str]:
    """`sample` are the mean tokens of samples that are padded, each in rows of its own."""
    if own:
        return own.seq_len, f"as the model was trained: {own.source}"
    if sample is not None and sample > response:
        room = 2 ** math.ceil(math.log2(sample))
        return min(room, architecture.context or room), "room for your samples, each padded to a row of its own"
    seq_len = min(USUAL_SEQ_LEN, architecture.context) if architecture.context else USUAL_SEQ_LEN
    if response >= seq_len:
        return response + _PROMPT, f"what is generated, behind a prompt of {_PROMPT:,}"
    return seq_len, "a common length" if seq_len == USUAL_SEQ_LEN else "the model's context"


def _global_batch(plan: Plan, seq_len: int, count: int, own: UsualRun | None, sums_gradients: bool) -> tuple[int, str]:
    """A batch that every data-parallel size dividing `count` divides; as many tokens as in the maker's `own` run."""
    layout = plan.layout
    if own:
        wanted, why = max(1, own.batch * own.seq_len // seq_len), f"as the model was trained: {own.source}"
    elif plan.training.stage == "pretrain":
        wanted, why = max(1, _PRETRAIN_TOKENS // seq_len), "about 4M tokens a step, as in the Llama 2 paper"
    elif plan.training.optimizer_in_backward or not sums_gradients:
        wanted, why = count, "one micro-batch a step, as weights are updated within the backward pass"
    else:
        wanted, why = _FINETUNE_BATCH, "a common batch for fine-tuning"
    replicas = layout.dp or (math.gcd(count, wanted) if own and own.exact else count)
    unit = replicas * (plan.training.micro_batch or 1)
    if plan.training.stage == "grpo":
        unit = math.lcm(unit, plan.training.group_size)
    rounded = f", rounded up to a multiple of {unit}" if wanted % unit else ""
    return unit * math.ceil(wanted / unit), f"{why}{rounded}"


def _precision(accelerator: Accelerator) -> tuple[str, str]:
    if accelerator.peak_flops.get("bf16"):
        return "bf16", "the usual training precision"
    if accelerator.peak_flops.get("fp16"):
        return "fp16", f"{accelerator.name} has no bf16 matmuls"
    return "fp32", f"{accelerator.name} has no 16-bit matrix rate in the catalogue"


def framework_choices(plan: Plan, accelerator: Accelerator, count: int) -> list[tuple[str, str]]:
    """Frameworks that run on the device and can express what the plan fixes, the usual one first, each with why."""
    by_vendor = {
        "Google": ("maxtext", "the usual framework on TPUs"),
        "AWS": ("neuronx", "the framework for Trainium and Inferentia"),
        "Apple": ("mlx", "the framework for Apple silicon"),
    }
    if accelerator.family == "Gaudi":
        return [("optimum-habana", "the usual framework on Gaudi")]
    if accelerator.vendor in by_vendor and accelerator.family != "CPU":
        return [by_vendor[accelerator.vendor]]
    layout, training = plan.layout, plan.training
    if count == 1 and (layout.zero_stage or layout.offload not in (None, "none", "activations")):
        return [("deepspeed", "ZeRO or offloading to host memory is asked for")]
    if count == 1:
        return [("hf-trainer", "the usual choice on one device")]
    # Megatron shards optimizer states and no more.
    sharded = (layout.zero_stage or 0) >= 2 or "params" in (layout.offload or "")
    split = max(layout.tp or 1, layout.pp or 1, layout.cp or 1, layout.ep or 1) > 1
    megatron = "primus" if accelerator.vendor == "AMD" else "megatron-bridge"
    if megatron == "megatron-bridge" and training.stage not in ("pretrain", "sft"):
        megatron = "nemo-rl"  # it trains on preferences and rewards with Megatron-Bridge
    few = training.global_batch is not None and training.global_batch < count
    pretrains = training.stage == "pretrain"
    # Megatron-LM's own script takes models of which Megatron-Bridge has no recipe.
    whole = [megatron, *(["megatron-lm"] if pretrains and megatron == "megatron-bridge" else []), "fsdp2"]
    if split or (few and (sharded or not pretrains)):
        first = [] if few else _splitting_sequences(plan)
        why = f"{training.global_batch} sequences on {count} devices have to be split themselves"
        if split:
            why = "it joins sharded weights with the other parallelism that is asked for"
        if split and not sharded:
            why = "tensor, pipeline, context or expert parallelism is asked for"
        sharders = ["torchtitan", "fsdp2"] if pretrains else ["fsdp2", "torchtitan"]
        return [*first, *((name, why) for name in (sharders if sharded else whole))]
    if pretrains and not sharded:
        usually = "pretraining on several devices usually runs on it"
        return [(name, "it pretrains without Megatron" if name == "fsdp2" else usually) for name in whole]
    usual = _fine_tuning(training)
    if training.method in ("full", "lora", "dora") and not sharded and len(usual) == 1:
        return [*usual, (megatron, "it can split layers and tensors over devices, and comes out ahead here")]
    return usual


def _fine_tuning(training: Training) -> list[tuple[str, str]]:
    usual = ("deepspeed", "the usual choice for fine-tuning on several devices")
    engine = "rollout" not in training.model_fields_set or training.rollout == "colocated"
    if training.stage in ("ppo", "grpo") and training.method in ("full", "lora") and engine:
        return [("verl", "the usual choice for reinforcement learning on several devices"), usual]
    return [usual]


def _splitting_sequences(plan: Plan) -> list[tuple[str, str]]:
    """The usual frameworks for fine-tuning, which split sequences and nothing else, where no more is asked for."""
    layout = plan.layout
    more = plan.training.stage == "pretrain" or max(layout.tp or 1, layout.pp or 1, layout.ep or 1) > 1
    return [] if more else _fine_tuning(plan.training)
