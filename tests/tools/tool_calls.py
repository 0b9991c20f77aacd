"""Calls that the tools' tests share: a small plan that every planning tool takes, and its results."""

from __future__ import annotations

from functools import cache
from typing import Any

from tools import call

FLAT: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm", "count": 8, "seq_len": 4096, "global_batch": 64,
    "dataset_tokens": "1B",
}  # fmt: skip
NESTED: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-8B",
    "workload": {"seq_len": 4096, "global_batch": 64, "dataset_tokens": 1e9},
    "cluster": {"accelerator": "h100-sxm", "count": 8},
}
PLANNING = (
    "estimate_training", "check_fit", "best_parallelism", "estimate_cost", "render_configs", "write_configs"
)  # fmt: skip
GIB = 2**30


@cache
def result(tool: str) -> dict[str, Any]:
    """The result of a planning tool for the small plan."""
    return call(tool, FLAT)


def steady(found: dict[str, Any]) -> dict[str, Any]:
    """A result without what no two calls share: the seconds that the search took."""
    return {key: value for key, value in found.items() if key != "seconds"}


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    """Dotted name of every plain value in a plan, without those that are null."""
    if isinstance(value, dict):
        parts = [leaves(inner, f"{path}.{key}" if path else key) for key, inner in value.items()]
        return {name: leaf for part in parts for name, leaf in part.items()}
    return {} if value is None else {path: value}
