"""Jobs and layouts for the estimator's tests: a base plan with what differs named, and changed parts of a job."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from estimator.plan.layouts import Layouts
from estimator.plan.schema import Plan
from estimator.plan.training.job import Job
from estimator.search.layouts import candidates
from estimator.training.estimates import Estimates, estimate
from knowledge.jobs.training import job_of

# Dense, grouped-query, tied, biased, old, mixture of experts (plain, shared, latent attention), hybrid and plain SSM.
MODELS = (
    "gpt2",
    "huggyllama/llama-7b",
    "meta-llama/Llama-3.1-8B",
    "meta-llama/Llama-3.1-70B",
    "Qwen/Qwen2.5-7B",
    "google/gemma-2-9b",
    "mistralai/Mixtral-8x7B-v0.1",
    "deepseek-ai/DeepSeek-V3",
    "Qwen/Qwen3-30B-A3B",
)

BASE: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-8B",
    "workload": {"framework": "megatron-lm", "seq_len": 4096, "micro_batch": 1, "global_batch": 64},
    "cluster": {"accelerator": "h100-sxm", "count": 16},
    "layout": {"tp": 2, "pp": 2, "cp": 1, "dp": 4, "vpp": 1, "zero_stage": 1, "recompute": "none", "offload": "none"},
}


def make_plan(changes: dict[str, Any] | None = None, **flat: Any) -> Plan:
    return Plan.parse(BASE).patch(changes or {}).patch(flat)


def make_job(changes: dict[str, Any] | None = None) -> Job:
    """The Job of the base plan (Llama-3.1-8B on 16 H100, tp 2, pp 2, ZeRO-1) with dotted or nested `changes`."""
    return job_of(make_plan(changes))


def estimate_of(changes: dict[str, Any] | None = None) -> Estimates:
    """The estimate of the one layout that the changed base plan names."""
    found = make_job(changes)
    layouts = candidates(found)
    assert len(layouts) == 1, [layouts.summary(index) for index in range(len(layouts))]
    return estimate(found, layouts)


def open_job(**flat: Any) -> Job:
    """A job whose layout and micro-batch are left to the search; `flat` are dotted fields with _ for the dot."""
    plan = {"model": flat.pop("model", BASE["model"]), "workload": {}, "cluster": {}, "layout": {}, "goal": {}}
    for name, value in flat.items():
        section, _, field = name.partition("_")
        plan[section][field] = value
    plan["cluster"] = {"accelerator": "h100-sxm", "count": 16} | plan["cluster"]
    return job_of(Plan.parse(plan))


def with_accelerator(job: Job, **changes: Any) -> Job:
    """The same job on an accelerator that differs in the named fields."""
    return replace(job, machine=replace(job.machine, accelerator=replace(job.machine.accelerator, **changes)))


def with_network(job: Job, **changes: Any) -> Job:
    return replace(job, machine=replace(job.machine, network=replace(job.machine.network, **changes)))


def with_layout(layouts: Layouts, **changes: int) -> Layouts:
    """Every candidate with the named fields set to a number."""
    return replace(layouts, **{name: getattr(layouts, name) * 0 + value for name, value in changes.items()})
