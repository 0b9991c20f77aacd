"""Generation with experts over many devices, against totals that were published of decoding nodes alone (LMSYS blog:
2025-05-05 large-scale-ep, 2025-06-16 gb200-part-1, 2025-07-20 k2-large-scale-ep, 2025-09-25 gb200-part-2)."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import serving_calls  # noqa: F401 (its tools are called by name)

from tools import call

# (Model, accelerator, devices, requests on each, format of weights and of the cache, tokens/s of each device)
PUBLISHED = [
    ("deepseek-ai/DeepSeek-V3", "h100-sxm", 72, 256, "fp8", "auto", 22_282 / 8),
    ("deepseek-ai/DeepSeek-V3", "gb200", 48, 768, "fp8", "auto", 7_583.0),
    ("deepseek-ai/DeepSeek-R1", "gb200", 48, 1408, "nvfp4", "fp8", 13_386.0),
    ("moonshotai/Kimi-K2-Instruct", "h200-sxm", 96, 480, "fp8", "auto", 288_000 / 96),
]


def generated(row: tuple[str, str, int, int, str, str, float]) -> tuple[float, float]:
    """(Tokens/s of a device that has no prompts to read, how far the interval goes to either side)."""
    model, accelerator, devices, each, weights, cache, _ = row
    workload: dict[str, Any] = {
        "kind": "inference", "engine": "sglang", "weight_dtype": weights, "kv_dtype": cache, "input_len": 2000,
        "output_len": 100, "concurrency": each * devices, "max_batch": each, "prefix_hit": 0.9995,
    }  # fmt: skip
    layout = {"tp": 1, "ep": devices, "dp": devices}
    plan = {"model": model, "workload": workload, "layout": layout}
    found = call("estimate_inference", {"plan": plan | {"cluster": {"accelerator": accelerator, "count": devices}}})
    assert found["memory"]["max_concurrency"] >= each * devices, row
    return each / found["time"]["generating"]["total_s"], found["latency"]["tpot_high_s"] / found["latency"]["tpot_s"]


def test_experts_over_many_devices_generate_as_was_published() -> None:
    errors, held = [], []
    for row in PUBLISHED:
        rate, spread = generated(row)
        errors.append(abs(rate / row[-1] - 1.0))
        held.append(rate / spread <= row[-1] <= rate * spread)
    assert fmean(errors) < 0.25, errors
    assert all(held)
