"""Complete plans for the launcher tests, made from a base by naming what differs."""

from __future__ import annotations

from typing import Any

from estimator.plan.schema import Plan
from launchers.predictions import TrainingPrediction

BASE: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-8B",
    "workload": {"framework": "hf-trainer", "seq_len": 4096, "micro_batch": 1, "global_batch": 32},
    "cluster": {"accelerator": "h100-sxm", "count": 8, "per_node": 8},
    "layout": {"tp": 1, "pp": 1, "cp": 1, "ep": 1, "dp": 8, "zero_stage": 2, "recompute": "full", "offload": "none"},
}

PREDICTION = TrainingPrediction(
    memory_bytes=60 * 2**30,
    memory_low_bytes=55 * 2**30,
    memory_high_bytes=66 * 2**30,
    capacity_bytes=79.6 * 2**30,
    step_s=12.34,
    step_low_s=11.0,
    step_high_s=13.9,
)


def complete(changes: dict[str, Any] | None = None) -> Plan:
    """The base plan (full SFT of an 8B model on one node of 8, ZeRO-2) with dotted or nested `changes`."""
    return Plan.parse(BASE).patch(changes or {})


def devices(count: int, per_node: int = 8) -> dict[str, Any]:
    """Changes that put the base plan on `count` devices, four sequences a device and step."""
    return {"cluster": {"count": count, "per_node": per_node}, "layout.dp": count, "workload.global_batch": 4 * count}
