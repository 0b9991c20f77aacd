"""What a complete plan is, in words: what runs, on what, under which load and with which layout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from estimator.plan.schema import Inference, Plan, Training
from knowledge import figures
from pages.results.plan import layout_parts

_METHODS = {"lora": "LoRA", "qlora": "QLoRA", "dora": "DoRA", "pissa": "PiSSA", "freeze": "frozen-layer"}
_STAGES = {
    "dpo": "DPO", "ppo": "PPO", "grpo": "GRPO", "kto": "KTO", "orpo": "ORPO", "simpo": "SimPO", "ipo": "IPO",
    "rm": "reward model",
}  # fmt: skip


def complete(plan: Mapping[str, Any]) -> Plan:
    """The complete plan of a result."""
    return Plan.model_validate(plan)


def model_words(plan: Plan) -> str:
    """A catalogue name without who published it, or the path of a config."""
    if not isinstance(plan.model, str):
        return "your model"
    return plan.model if plan.model.endswith(".json") else plan.model.rpartition("/")[2]


def hardware_words(plan: Plan) -> str:
    """'8 x h100-sxm'."""
    others = Counter(plan.cluster.beside or ())
    beside = ", ".join(f"{count} x {name}" if count > 1 else name for name, count in others.items())
    return f"{plan.cluster.count or 1} x {plan.cluster.accelerator}{f' beside {beside}' if beside else ''}"


def run_words(plan: Plan) -> str:
    """'full fine-tuning of Llama-3.1-8B' or, of serving, 'Llama-3.1-8B (bf16, vllm)'."""
    if isinstance(plan.workload, Inference):
        return f"{model_words(plan)} ({plan.workload.weight_dtype}, {plan.workload.engine})"
    return f"{kind_words(plan.workload)} of {model_words(plan)}"


def kind_words(workload: Training) -> str:
    """'full fine-tuning', 'GRPO training with LoRA'."""
    method = None if workload.method == "full" else _METHODS.get(workload.method, workload.method)
    match workload.stage:
        case "pretrain":
            return f"continued pretraining with {method}" if method else "pretraining"
        case "sft":
            return f"{method or 'full'} fine-tuning"
        case stage:
            return f"{_STAGES.get(stage, stage)} training{f' with {method}' if method else ''}"


def load_words(workload: Inference) -> str:
    """'64 clients at once, 2,048 tokens in and 500 out'."""
    if workload.request_rate:
        load = f"{figures.number(workload.request_rate)} requests/s"
    elif workload.scenario == "offline":
        load = f"{figures.whole(workload.requests)} requests" if workload.requests else "all requests at once"
    elif workload.scenario == "single-stream" or workload.concurrency == 1:
        load = "one client"
    elif workload.concurrency:
        load = f"{figures.whole(workload.concurrency)} clients at once"
    else:
        load = "as many requests as the limits allow"
    return f"{load}, {length_words(workload)}"


def length_words(workload: Inference) -> str:
    """'2,048 tokens in and 500 out', with the images of a prompt: '500 tokens and 5 images in and 300 out'."""
    count = workload.images
    images = f" and {figures.whole(count)} image{'s' if count > 1 else ''}" if count else ""
    return f"{figures.number(workload.input_len)} tokens{images} in and {figures.number(workload.output_len)} out"


def layout_words(plan: Plan) -> str:
    """Of training: 'DP 8, ZeRO-3, full recompute, micro-batch 2, global batch 128'."""
    workload = plan.workload
    parts = layout_parts(plan.layout.model_dump() | {"dp": plan.layout.dp or 1})
    if isinstance(workload, Training):
        batches = {"micro-batch": workload.micro_batch, "global batch": workload.global_batch}
        parts += [f"{name} {size}" for name, size in batches.items() if size]
    return ", ".join(parts)


def replica_words(plan: Plan, replicas: int) -> str:
    """Of serving: '4 replicas, each TP 2' or 'one replica on one device'."""
    copies = f"{figures.whole(replicas)} replicas" if replicas > 1 else "one replica"
    layout = plan.layout
    split = {"TP": layout.tp, "PP": layout.pp, "EP": layout.ep, "DP": layout.dp}
    sizes = ", ".join(f"{name} {size}" for name, size in split.items() if (size or 1) > 1)
    if sizes:
        return f"{copies}, each {sizes}" if replicas > 1 else f"{copies}, {sizes}"
    return f"{copies} of one device each" if replicas > 1 else f"{copies} on one device"
