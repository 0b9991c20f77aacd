"""Whether a turn is about serving a model or about training one, and what stays of the plan where that changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.offline.form import Reading
from estimator.plan.schema import merge
from planner.partial import is_serving
from planner.requests import ONLY_SERVING, ONLY_TRAINING

_SERVING_TOOLS = ("estimate_inference", "best_serving", "size_serving", "project_mlperf")
_TRAINING_TOOLS = ("estimate_training", "best_parallelism", "apply_strategies", "project_scaling", "peak_throughput",
                   "benchmark_matrix", "render_matrix")  # fmt: skip
_SERVING_QUANTITIES = ("total_tokens", "token_rate", "prefix_tokens", "replicas", "expert_parallel", "load")
_KEPT = ("model", "name", "cluster")
_KEPT_OVERRIDES = ("usable_gib", "reserve_gib", "scaleup_gb_per_s", "network_gb_per_s", "network_latency_us")


def serves(reading: Reading, plan: Mapping[str, Any]) -> bool:
    """What the words say, else what the plan is; of a new plan what its tool or its fields are for."""
    if reading.serving is not None:
        return reading.serving
    if reading.tool in _SERVING_TOOLS or reading.tool in _TRAINING_TOOLS:
        return reading.tool in _SERVING_TOOLS
    if plan:
        return is_serving(plan)
    fields = {edit.field for edit in reading.edits}
    return bool(fields & (ONLY_SERVING | set(_SERVING_QUANTITIES))) and not fields & ONLY_TRAINING


def switched(plan: Mapping[str, Any], serving: bool) -> tuple[dict[str, Any], list[str]]:
    """The partial plan as one for serving, or for training, and what is said about that.

    Model and devices go over; what was said about the other kind of work is set aside.
    """
    if is_serving(plan) == serving:
        return merge(plan, {}), []
    kept: dict[str, Any] = {name: plan[name] for name in _KEPT if name in plan}
    if provider := (plan.get("goal") or {}).get("provider"):
        kept["goal"] = {"provider": provider}
    overrides = {name: value for name, value in (plan.get("overrides") or {}).items() if name in _KEPT_OVERRIDES}
    kept |= {"overrides": overrides} if overrides else {}
    kept |= {"workload": {"kind": "inference"}} if serving else {}
    lost = set(plan.get("workload") or {}) - {"kind"} or set(plan.get("layout") or {})
    what = "training" if serving else "serving"
    note = f"what was said about {what} before is set aside; model and accelerators are kept"
    return merge(kept, {}), [note] if lost else []
