"""A plan in a few labelled lines, and changes of one as the flags that make them. A plan is data: it may be partial."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from estimator.plan.layouts import recompute_words
from knowledge.figures import count, plain
from pages.blocks import Block, Figures
from pages.rendering.clean import one_line
from planner.requests import ALL_PATHS, flag_of

Data = Mapping[str, Any]

# Units of what a user can set by hand, by the end of its name (estimator/plan/schema.py, Overrides).
_UNITS = {"_gib": "GiB", "_gb_per_s": "GB/s", "_us": "µs"}

# What a field is called beside its value; else by its own name.
_CALLED = {
    "seq_len": "{} tokens", "micro_batch": "micro-batch {}", "input_len": "{} tokens in", "output_len": "{} out",
    "concurrency": "{} client{s} at once", "request_rate": "{} requests/s", "requests": "{} request{s}",
    "speculative_tokens": "a draft of {} tokens", "ttft_slo_ms": "TTFT {} ms", "tpot_slo_ms": "TPOT {} ms",
    "max_context": "context {}", "max_batch": "batch {}", "objective": "{}", "deadline_h": "done in {} hours",
    "budget_usd": "at most ${}", "provider": "at {}", "count": "{} device{s}", "weight_dtype": "{} weights",
    "kv_dtype": "{} cache", "method": "{} fine-tuning", "framework": "{}", "engine": "{}", "stage": "{}",
    "precision": "{}", "optimizer": "{}", "model": "{}", "dataset_tokens": "{} tokens",
}  # fmt: skip


_LINKS = "overrides.scaleup_gb_per_s"


def plan_figures(plan: Data | None) -> list[Block]:
    return [Figures(plan_lines(plan))] if plan else []


# Keys of a config that say its name.
_NAMED_BY = ("name", "_name_or_path")


def config_name(model: Data) -> str:
    """What a model is called that is given as a config and not by a name of the catalogue."""
    return str(next((model[key] for key in _NAMED_BY if model.get(key)), "own config"))


def plan_lines(plan: Data) -> list[tuple[str, str]]:
    """The plan in a few labelled lines."""
    workload, cluster = plan.get("workload") or {}, plan.get("cluster") or {}
    layout, goal = plan.get("layout") or {}, plan.get("goal") or {}
    model = plan.get("model")
    lines = [("model", one_line(model if isinstance(model, str) else config_name(model or {})))]
    if workload.get("kind") == "inference":
        lines.append(("serving", _words(workload, "engine", "software_version", "weight_dtype", "scenario")))
        lines.append(
            ("requests", _named(workload, "input_len", "output_len", "concurrency", "request_rate", "requests"))
        )
        lines.append(("cache", _cache(workload)))
        lines.append(("drafts", _named(workload, "speculative_tokens")))
        lines.append(("limits", _named(workload, "ttft_slo_ms", "tpot_slo_ms", "max_context", "max_batch")))
    else:
        lines.append(("training", _words(workload, "stage", "method", "precision", "optimizer", "framework")))
        lines.append(("batch", _named(workload, "seq_len", "micro_batch", "global_batch")))
        if workload.get("dataset_tokens"):
            lines.append(("data", f"{count(workload['dataset_tokens'])} tokens × {workload.get('epochs', 1):g}"))
    if cluster.get("accelerator"):
        lines.append(("cluster", one_line(f"{cluster.get('count') or '?'} × {cluster['accelerator']}")))
    lines.append(("layout", one_line(", ".join(layout_parts(layout)))))
    lines.append(("set", _overrides(plan.get("overrides") or {})))
    lines.append(("goal", _named(goal, "objective", "deadline_h", "budget_usd", "provider")))
    return [(label, text) for label, text in lines if text]


def layout_parts(layout: Data) -> list[str]:
    """'DP 8', 'ZeRO-3', 'full recompute': splits over one device say nothing, unless the rest is still open."""
    splits = {name: layout[name] for name in ("tp", "pp", "vpp", "cp", "ep", "etp", "dp") if layout.get(name)}
    parts = [
        f"{name.upper()} {size}" for name, size in splits.items() if size != 1 or name == "dp" or "dp" not in splits
    ]
    if layout.get("zero_stage"):
        parts.append(f"ZeRO-{layout['zero_stage']}")
    if layout.get("sequence_parallel") and (layout.get("tp") or 1) > 1:
        parts.append("sequence parallel")
    whole_group = (layout.get("dp") or 1) * (layout.get("cp") or 1)
    if (group := layout.get("shard_group")) and group != whole_group:
        parts.append(f"shard groups of {group}")
    if layout.get("recompute"):
        parts.append(recompute_words(layout["recompute"]))
    if layout.get("offload") not in (None, "none"):
        parts.append(f"{layout['offload']} offloaded to host memory")
    return parts


def _cache(workload: Data) -> str:
    """The format of the cache, and how much of prompts is found in it."""
    kept = {name: workload.get(name) for name in ("prefix_hit", "memory_share") if workload.get(name)}
    return one_line(f"{_words(workload, 'kv_dtype')} {_named(kept, *kept)}".strip())


def _overrides(overrides: Data) -> str:
    """Figures that the user gave: memory of a device, rates of links, and their latency."""
    told: list[str] = []
    for ending, unit in _UNITS.items():
        rows = [(name.removesuffix(ending), value) for name, value in overrides.items() if name.endswith(ending)]
        figures = [f"{name.replace('_', ' ')} {_plain(value)}" for name, value in rows if value is not None]
        told += [f"{', '.join(figures)} {unit}"] if figures else []
    return one_line("; ".join(told))


def _words(section: Data, *names: str) -> str:
    return one_line(" ".join(str(section[name]) for name in names if section.get(name) not in (None, "auto")))


def _named(section: Data, *names: str) -> str:
    """'4,096 tokens, micro-batch 1': the fields that have a value, each as it is called."""
    values = [(name, section.get(name)) for name in names]
    return one_line(", ".join(set_words(name, value) for name, value in values if value is not None))


def set_words(name: str, value: Any) -> str:
    """'micro-batch 1', 'sequence parallel yes': a field by its own name, with its value."""
    if name == _LINKS:
        return f"PCIe at {value:g} GB/s" if isinstance(value, float) else str(value)
    counted = isinstance(value, int | float) and not isinstance(value, bool)
    words = _CALLED.get(name, f"{name.replace('_', ' ')} {{}}")
    return words.format(count(value) if counted else plain(value), s="s" * (value != 1))


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def flags(changes: Data | None) -> str:
    """A change of the plan as the flags that make it, without what it leaves open."""
    flat = {path: name for name, path in ALL_PATHS.items()}
    told: list[str] = []
    for key, item in (changes or {}).items():
        text = json.dumps(item) if isinstance(item, bool | dict | list) else _plain(item)
        if item is not None:
            told.append(f"{flag_of(flat[key])} {text}" if key in flat else f"--set {key}={text}")
    return " ".join(told)
