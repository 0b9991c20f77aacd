"""Varied plans for the trainers of the Hugging Face world: each differs from a base in a few fields."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from launchers.pieces import Rendered
from launchers.render import render
from launchers.site import Site

BASE: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-8B",
    "workload": {"framework": "hf-trainer", "seq_len": 4096, "micro_batch": 2, "global_batch": 64},
    "cluster": {"accelerator": "h100-sxm", "count": 8, "per_node": 8},
    "layout": {"tp": 1, "pp": 1, "cp": 1, "ep": 1, "dp": 8, "zero_stage": 0, "recompute": "full", "offload": "none"},
}
STAGES = ("pretrain", "sft", "rm", "dpo", "ipo", "orpo", "simpo", "kto", "ppo", "grpo")
METHODS = ("full", "lora", "qlora", "dora", "pissa", "freeze")
OPTIMIZERS = (
    "adamw", "paged_adamw", "adamw_8bit", "paged_adamw_8bit", "sgd", "adafactor", "lion", "galore", "apollo", "muon",
    "adam_mini", "lomo", "badam",
)  # fmt: skip
MODELS = ("Qwen/Qwen2.5-7B-Instruct", "mistralai/Mistral-7B-v0.1", "google/gemma-2-9b", "Qwen/Qwen3-8B", "acme/own-9b")

# One oddity each, with which every framework is tried; a PlanError is an answer too.
ODDITIES: list[dict[str, Any]] = [
    *({"workload.precision": precision, "workload.attention": "sdpa"} for precision in ("fp16", "fp32", "tf32", "fp8")),
    *({"workload.attention": attention} for attention in ("flash", "flash2", "flash3", "sdpa", "eager")),
    *({"workload.weights": weights} for weights in ("fp32", "bf16")),
    *({"layout.offload": offload} for offload in ("optimizer", "params", "activations")),
    *({"workload.optimizer": name, "workload.global_batch": 16} for name in OPTIMIZERS),
    *({"model": model, "workload.method": "lora", "workload.lora.targets": "attention"} for model in MODELS),
    {"workload": {"method": "qlora", "lora": {"quantisation": "nf4-single", "rank": 64, "alpha": 128}}},
    {"workload": {"method": "qlora", "lora": {"quantisation": "gptq"}}},
    {"workload": {"method": "lora", "lora": {"train_embeddings": True, "dropout": 0.05, "targets": "attention,mlp"}}},
    {"workload": {"fused_loss": True}},
    {"workload": {"fused_loss": False, "packing": False, "epochs": 3}},
    {"workload": {"compile": True, "steps": 1234}},
    {"layout": {"recompute": "none"}},
    {"cluster": {"count": 1, "per_node": 1}, "layout": {"dp": 1}, "workload.global_batch": 8},
    {"cluster": {"count": 16}, "layout": {"dp": 16}, "workload.global_batch": 128},
    {"cluster": {"count": 16}, "layout": {"dp": 16, "shard_group": 8}, "workload.global_batch": 128},
    {"layout": {"shard_group": 4}},
    {"layout": {"tp": 2, "dp": 4}},
    {"layout": {"cp": 2, "dp": 4}, "workload": {"micro_batch": 1}},
    {"workload": {"stage": "grpo", "rollout": "colocated", "engine_share": 0.4}},
    {"workload": {"stage": "grpo", "rollout": "separate", "group_size": 16, "response_len": 1024}},
]


def plans(framework: str, stages: Iterable[int]) -> list[Plan]:
    """All stages with all methods, and all oddities, at each ZeRO stage."""
    base = Plan.parse(BASE)
    changes = [{"workload": {"stage": stage, "method": method}} for stage in STAGES for method in METHODS] + ODDITIES
    return [
        base.patch({"workload.framework": framework, "layout.zero_stage": zero}).patch(change)
        for zero in stages
        for change in changes
    ]


SITES = (Site(), Site(dataset="synthetic", profile="auto:2-3"))


def rendered_with(plan: Plan, target: str, site: Site) -> Rendered:
    """The files of a plan where they are looked at as `site` says, or plain where the program takes none of that."""
    with suppress(PlanError):
        return render(plan, [target], site=site)
    return render(plan, [target])


def written(plans: Iterable[Plan], target: str, folder: Path) -> list[tuple[Plan, Rendered, Path]]:
    """The plans that `target` takes, each with its files in a folder of its own below `folder`; every second one runs
    on random tokens and is profiled."""
    done: list[tuple[Plan, Rendered, Path]] = []
    for number, plan in enumerate(plans):
        try:
            rendered = rendered_with(plan, target, SITES[number % len(SITES)])
        except PlanError:
            continue
        place = folder / str(len(done))
        place.mkdir(parents=True)
        for file in rendered.files:
            (place / file.path).write_text(file.text)
        done.append((plan, rendered, place))
    return done


def accumulation(plan: Plan) -> int:
    training, layout = plan.training, plan.layout
    return (training.global_batch or 0) // ((training.micro_batch or 1) * (layout.dp or 1))
