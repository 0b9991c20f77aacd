"""Calls that the tests of serving tools share: a small plan, and its results."""

from __future__ import annotations

from functools import cache
from typing import Any

import planner.serving.estimate  # noqa: F401 (its tools are called by name)
from tools import call

SERVE: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm", "count": 4, "input_len": 1024, "output_len": 256,
    "concurrency": 64, "engine": "vllm", "weight_dtype": "fp8",
}  # fmt: skip
LARGE: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-70B", "accelerator": "h100-sxm", "count": 8, "input_len": 1024, "output_len": 512,
}  # fmt: skip


@cache
def estimate(**changes: Any) -> dict[str, Any]:
    """The estimate of the small plan with changes; None takes a field back."""
    return call("estimate_inference", {name: value for name, value in (SERVE | changes).items() if value is not None})


@cache
def best(**changes: Any) -> dict[str, Any]:
    """The best way to serve the large plan under limits that a node can meet, with changes."""
    limits = {"ttft_slo_ms": 2000, "tpot_slo_ms": 50}
    arguments = LARGE | limits | {name: list(v) if isinstance(v, tuple) else v for name, v in changes.items()}
    return call("best_serving", {name: value for name, value in arguments.items() if value is not None})
