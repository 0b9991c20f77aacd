"""A device that is better in every figure serves no slower with the same software over the same links."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from estimator.errors import PlanError
from estimator.machine.matmul import MatmulRates, matmul_seconds
from estimator.plan.schema import Plan
from estimator.serving.estimates import estimate
from estimator.serving.space import deployments
from knowledge.fitted.training import surfaces
from knowledge.jobs.serving import serving_job

PAIRS = [
    ("gb200", "gb300"), ("b200-sxm", "b300-sxm"), ("h100-sxm", "h200-sxm"), ("mi300x", "mi325x"), ("mi350x", "mi355x"),
]  # fmt: skip
MODELS = [
    ("deepseek-r1", "nvfp4"), ("deepseek-r1", "fp8"), ("llama-3.1-70b", "fp8"), ("llama-3.1-8b", "bf16"),
    ("gpt-oss-120b", "mxfp4"),
]  # fmt: skip
LAYOUTS = [(8, 1, 1), (8, 8, 1), (1, 8, 8), (1, 64, 64), (1, 1, 1)]


# Engines have tables of sizes per device (which all-reduce, from where on), and more memory runs more requests at once.
SLACK = 0.03


@cache
def tokens_per_s(accelerator: str, engine: str, model: str, dtype: str, layout: tuple[int, int, int], load: int) -> Any:
    """Output tokens/s, and whether it fits; None where it cannot be."""
    tp, ep, dp = layout
    plan = {
        "model": model,
        "cluster": {"accelerator": accelerator, "count": max(layout)},
        "layout": {"tp": tp, "pp": 1, "ep": ep, "dp": dp},
        "workload": {
            "kind": "inference", "engine": engine, "weight_dtype": dtype, "input_len": 2048, "output_len": 512,
            "concurrency": load * max(layout),
        },
    }  # fmt: skip
    try:
        job = serving_job(Plan.parse(plan))
        found = estimate(job, deployments(job))
    except PlanError:
        return None
    return float(found.output_tokens_per_s[0]) if found.memory.fits[0] else None


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
@pytest.mark.parametrize(("worse", "better"), PAIRS)
def test_what_is_better_in_every_figure_serves_no_slower(worse: str, better: str, engine: str) -> None:
    tried = 0
    for model, dtype in MODELS:
        for layout in LAYOUTS:
            for load in (1, 32, 512):
                less, more = (tokens_per_s(name, engine, model, dtype, layout, load) for name in (worse, better))
                if less and more:
                    tried += 1
                    assert more >= (1.0 - SLACK) * less, (model, dtype, layout, load)
    assert tried > 5 or engine == "trtllm"


@pytest.mark.parametrize("engine", ["sglang", "trtllm"])
@pytest.mark.parametrize("accelerator", ["gb200", "gb300"])
def test_experts_over_more_of_a_rack_serve_as_much_per_device(accelerator: str, engine: str) -> None:
    rates = [tokens_per_s(accelerator, engine, "deepseek-r1", "nvfp4", (1, n, n), 256) / n for n in (8, 16, 32, 64)]
    # Flat or rising: no step down, nor all of them together, is more than what counts as equal.
    assert all(more >= (1.0 - SLACK) * max(rates[: place + 1]) for place, more in enumerate(rates))
    # What is published is flat or rising: the best of the wider ones gives up nothing that is seen.
    assert max(rates[1:]) > 0.99 * rates[0]


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
@pytest.mark.parametrize("accelerator", ["h200-sxm", "b200-sxm"])
@pytest.mark.parametrize(("input_len", "output_len"), [(1024, 1024), (8192, 1024), (804, 3886)])
def test_no_server_answers_more_than_all_requests_at_once(
    accelerator: str, engine: str, input_len: int, output_len: int
) -> None:
    workload = {
        "kind": "inference", "engine": engine, "weight_dtype": "fp8", "input_len": input_len, "output_len": output_len,
    }  # fmt: skip
    loads = {"offline": {}, "server": {"request_rate": 1e5}, "interactive": {"concurrency": 8192}}
    rates: dict[str, float] = {}
    for scenario, load in loads.items():
        plan = {
            "model": "qwen3-235b-a22b", "cluster": {"accelerator": accelerator, "count": 8},
            "layout": {"tp": 1, "pp": 1, "ep": 8, "dp": 8}, "workload": workload | load | {"scenario": scenario},
        }  # fmt: skip
        job = serving_job(Plan.parse(plan))
        rates[scenario] = float(estimate(job, deployments(job)).output_tokens_per_s[0])
    assert max(rates.values()) <= 1.01 * rates["offline"]


def test_stages_cost_what_was_published() -> None:
    """TensorRT-LLM 1.0's performance overview: Llama-3.3-70B in 4 bits on RTX PRO 6000 cards, 128 tokens in and 2,048
    out, makes 2,422, 2,496, 1,980 and 1,229 tokens/s per card on 1, 2, 4 and 8 stages."""
    rates: list[float] = []
    for stages in (1, 2, 4, 8):
        workload = {
            "kind": "inference", "engine": "trtllm", "software_version": "1.0", "weight_dtype": "nvfp4",
            "kv_dtype": "fp8", "input_len": 128, "output_len": 2048, "requests": 3000, "scenario": "offline",
        }  # fmt: skip
        cluster = {"accelerator": "rtx-pro-6000-blackwell-server", "count": stages}
        plan = {"model": "llama-3.3-70b", "cluster": cluster, "layout": {"tp": 1, "pp": stages}, "workload": workload}
        job = serving_job(Plan.parse(plan))
        rates.append(float(estimate(job, deployments(job)).output_tokens_per_s[0]) / stages)
    assert rates[2] < rates[1]
    assert rates[3] < 0.8 * rates[1]


@pytest.mark.parametrize(("tokens", "seconds"), [(1834, 1.12), (7234, 3.85)])
def test_experts_are_as_wide_as_what_they_read(tokens: int, seconds: float) -> None:
    """Nemotron 3 Super, whose experts read a projection of a quarter of its width: its prompts on a DGX Spark by vLLM's
    blog of 2026-06-01."""
    plan = {
        "model": "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4",
        "cluster": {"accelerator": "gb10-dgx-spark", "count": 1},
        "workload": {"kind": "inference", "engine": "vllm", "input_len": tokens, "output_len": 32, "concurrency": 1},
    }
    job = serving_job(Plan.parse(plan))
    assert float(estimate(job, deployments(job)).steady.ttft_s[0]) == pytest.approx(seconds, rel=0.3)


def prompt_rate(accelerator: str, engine: str, dtype: str) -> float:
    """Tokens/s at which a prompt of one client is read."""
    plan = {
        "model": "llama-3.1-8b",
        "cluster": {"accelerator": accelerator, "count": 1},
        "workload": {
            "kind": "inference", "engine": engine, "weight_dtype": dtype, "input_len": 2048, "output_len": 64,
            "concurrency": 1,
        },
    }  # fmt: skip
    job = serving_job(Plan.parse(plan))
    return 2048 / float(estimate(job, deployments(job)).steady.ttft_s[0])


@pytest.mark.parametrize("engine", ["llamacpp", "ollama"])
def test_tensor_cores_change_less_than_their_rate_where_weights_are_unpacked_beside_them(engine: str) -> None:
    """B300's int8 units are a thirtieth of B200's, A100's do twice and B200's eight times what GeForce's do."""
    rate = {name: prompt_rate(name, engine, "q4_k_m") for name in ("rtx-3090", "a100-sxm-80gb", "b200-sxm", "b300-sxm")}
    assert rate["b200-sxm"] / 3.5 < rate["b300-sxm"] < rate["b200-sxm"]
    assert rate["rtx-3090"] < rate["a100-sxm-80gb"] < 2.0 * rate["rtx-3090"]


def test_a_card_with_fewer_of_the_same_cores_is_filled_by_fewer_outputs() -> None:
    """A product that fills neither takes both as long: what one core works at, not how many there are."""
    timed, fewer = surfaces("rtx-5090", cores=188), surfaces("rtx-5090", cores=47)
    for kind, surface in timed.items():
        times = [
            matmul_seconds(MatmulRates(one, cores * 2e12, 1e15), np.ones(1), 256.0, 4096.0)
            for one, cores in ((surface, 188), (fewer[kind], 47))
        ]
        assert times[0] == pytest.approx(times[1], rel=0.02)
    assert surfaces("mi300x", cores=304) == surfaces("mi300x", cores=152)
