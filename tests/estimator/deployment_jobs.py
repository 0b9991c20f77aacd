"""Serving jobs for the estimator's tests: a base plan with what differs named, changed machines, and drawn loads."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from estimator.plan.schema import Plan
from estimator.plan.serving.deployments import Deployments
from estimator.plan.serving.job import ServingJob
from estimator.serving.estimates import ServingEstimates, estimate
from estimator.serving.space import deployments
from knowledge.engines import engine, kernels_for
from knowledge.jobs.serving import serving_job
from knowledge.machines.catalogue import find_accelerator
from knowledge.models.catalogue import find_architecture

SMALL, LARGE = "meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-70B"
ONE = {"tp": 1, "pp": 1, "ep": 1, "dp": 1}

# Dense (tied, biased, grouped-query), windows, experts (plain, shared, latent attention), hybrid, state space alone.
MODELS = (
    "openai-community/gpt2", "Qwen/Qwen2.5-0.5B", SMALL, LARGE, "google/gemma-2-9b", "mistralai/Mixtral-8x7B-v0.1",
    "openai/gpt-oss-20b", "deepseek-ai/DeepSeek-V2-Lite", "deepseek-ai/DeepSeek-V3", "Qwen/Qwen3-30B-A3B",
    "ai21labs/Jamba-v0.1", "state-spaces/mamba-2.8b-hf",
)  # fmt: skip
ACCELERATORS = ("h100-sxm", "a100-sxm-80gb", "l40s", "rtx-4090", "b200-sxm", "mi300x", "tpu-v6e", "apple-m3-max")
ENGINES = ("vllm", "vllm", "sglang", "trtllm", "llamacpp", "mlc")


def serving_plan(
    model: str | dict[str, Any] = SMALL,
    accelerator: str = "h100-sxm",
    count: int = 1,
    layout: dict[str, Any] | None = None,
    overrides: dict[str, Any] | None = None,
    **workload: Any,
) -> Plan:
    return Plan.parse(
        {
            "model": model,
            "cluster": {"accelerator": accelerator, "count": count},
            "layout": layout or {},
            "overrides": overrides or {},
            "workload": {"kind": "inference", "input_len": 1024, "output_len": 256} | workload,
        }
    )


def make(*named: Any, **fields: Any) -> ServingJob:
    """The job of Llama-3.1-8B on one H100 with what is named otherwise; arguments as of `serving_plan`."""
    return serving_job(serving_plan(*named, **fields))


def one(*named: Any, **fields: Any) -> tuple[ServingJob, Deployments]:
    """A job and the only deployment that its layout leaves (tp, ep and dp are 1 unless named)."""
    fields["layout"] = ONE | fields.get("layout", {})
    job = make(*named, **fields)
    these = deployments(job)
    assert len(these) == 1
    return job, these


def estimate_of(*named: Any, **fields: Any) -> ServingEstimates:
    return estimate(*one(*named, **fields))


def under(these: Deployments, **loads: Any) -> Deployments:
    """The first deployment under each of several loads: `loads` are lists of values of its fields."""
    count = max(len(values) for values in loads.values())
    return replace(
        these.take(np.zeros(count, dtype=np.int64)),
        **{name: np.asarray(values, dtype=np.float64) for name, values in loads.items()},
    )


def clients(these: Deployments, *counts: float) -> Deployments:
    """The first deployment under several numbers of clients, each sending ten requests."""
    return under(these, concurrency=counts, requests=[10.0 * count for count in counts])


def faster(job: ServingJob, factor: float, *names: str) -> ServingJob:
    """The same job on an accelerator whose named rates are `factor` times as high."""
    before = job.machine.accelerator
    rates: dict[str, Any] = {name: getattr(before, name) for name in names}
    changes = {
        name: {kind: rate * factor for kind, rate in value.items()} if isinstance(value, dict) else value * factor
        for name, value in rates.items()
    }
    return replace(job, machine=replace(job.machine, accelerator=replace(before, **changes)))


def jobs(**choices: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments of `make`: any model on any accelerator that the engine runs on, under any closed load, the layout left
    open."""
    drawn: dict[str, Any] = {
        "model": MODELS,
        "accelerator": ACCELERATORS,
        "count": (1, 2, 4, 8),
        "engine": ENGINES,
        "weight_dtype": ("bf16", "fp8", "awq", "q4_k_m"),
        "kv_dtype": ("auto", "bf16", "fp8"),
        "input_len": (16, 200, 2000, 16000),
        "output_len": (16, 200, 2000),
        "concurrency": (1, 7, 64, 1000),
    } | choices
    found = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in drawn.items()})
    return found.filter(lambda fields: _runs_on(fields["engine"], fields["accelerator"], fields["model"]))


@cache
def _runs_on(name: str, accelerator: str, model: str) -> bool:
    device = find_accelerator(accelerator).value
    return kernels_for(engine(name, None, device), find_architecture(model)[0])
