"""What is always in sight beside the conversation: the plan and the figures that tool results brought for it.

Pure data: a tool result is folded into an `Overview`; nothing is computed, only picked and, by the widgets, formatted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pages import units
from pages.clean import one_line

Data = Mapping[str, Any]


@dataclass(frozen=True)
class Overview:
    """`figures` maps a label to its formatted value; `memory` is a tool's memory result as it came; `time` is what the
    time of a step goes to, in seconds; `limits` says of each limit of latency that was set whether it is met."""

    plan: Data | None = None
    memory: Data | None = None
    time: Data | None = None
    headroom_bytes: float | None = None
    figures: Mapping[str, str] = field(default_factory=dict)
    bottleneck: str | None = None
    limits: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def fits(self) -> bool | None:
        return None if self.memory is None else self.memory.get("fits")


def _hours(hours: float) -> str:
    return units.duration(hours * 3600)


def _whole(number: float) -> str:
    return f"{number:,.0f}"


# What goes as one over the time of a step has its interval turned round.
_OF_STEP = ("time.high_s", "time.low_s")
# Label, where the value lies in a result, how it is written, and where the ends of its interval lie.
_FIGURES: tuple[tuple[str, str, Callable[[float], str], tuple[str, str] | None], ...] = (
    ("step", "time.step_s", units.duration, ("time.low_s", "time.high_s")),
    ("step", "best.step_s", units.duration, None),
    ("tokens/s", "throughput.tokens_per_s", units.count, _OF_STEP),
    ("tokens/s", "best.tokens_per_s", units.count, None),
    ("per device", "throughput.tokens_per_s_per_device", units.count, None),
    ("TFLOP/s", "throughput.model_tflops_per_device", lambda value: f"{value:.0f}", None),
    ("MFU", "throughput.mfu", units.percent, _OF_STEP),
    ("MFU", "best.mfu", units.percent, None),
    *(
        row
        for place in ("latency", "best", "chosen")
        for row in (
            ("first token", f"{place}.ttft_s", units.short_duration, (f"{place}.ttft_low_s", f"{place}.ttft_high_s")),
            ("per token", f"{place}.tpot_s", units.short_duration, (f"{place}.tpot_low_s", f"{place}.tpot_high_s")),
            ("request", f"{place}.e2e_s", units.short_duration, (f"{place}.e2e_low_s", f"{place}.e2e_high_s")),
        )
    ),
    *(
        row
        for place in ("throughput", "best", "chosen")
        for row in (
            (
                "output tok/s",
                f"{place}.output_tokens_per_s",
                units.count,
                (f"{place}.output_tokens_low_per_s", f"{place}.output_tokens_high_per_s"),
            ),
            ("per device", f"{place}.output_tokens_per_s_per_device", units.count, None),
            ("tok/s per user", f"{place}.tokens_per_s_per_user", units.count, None),
            ("requests/s", f"{place}.requests_per_s", units.count, None),
        )
    ),
    ("tokens/s", "tokens_per_s", units.count, None),
    ("samples/s", "samples_per_s", units.count, ("samples_low_per_s", "samples_high_per_s")),
    ("users at once", "memory.max_concurrency", _whole, None),
    ("users at once", "best.max_concurrency", _whole, None),
    ("longest", "memory.longest_request", lambda value: f"{value:,.0f} tokens", None),
    ("replicas", "replicas", _whole, None),
    ("replicas", "best.replicas", _whole, None),
    ("run", "run.hours", _hours, ("run.low_hours", "run.high_hours")),
    ("run", "hours", _hours, ("low_hours", "high_hours")),
    ("cost", "usd", units.usd, ("low_usd", "high_usd")),
    ("per hour", "cost.usd_per_hour", units.usd, None),
    ("per hour", "usd_per_hour", units.usd, None),
    ("per month", "usd_per_month", units.usd, None),
    ("per month", "cost.usd_per_month", units.usd, None),
    ("per 1M tokens", "usd_per_million_tokens", units.usd, None),
    *(("per 1M output", f"{place}usd_per_million_output_tokens", units.usd, None) for place in ("cost.", "best.", "")),
    ("host per node", "memory.host.per_node_bytes", units.memory, None),
    ("energy", "kwh", lambda value: f"{value:,.0f} kWh", None),
    ("CO2", "co2_kg", lambda value: f"{value:,.0f} kg", None),
)
_OF_TRAINING = ("step",)
_OF_A_RUN = ("run", "cost", "energy", "CO2")
# What is looked at less: it stands after the bars.
MINOR_LABELS = ("TFLOP/s", "per hour", "per month", "host per node", "energy", "CO2")
FIGURE_LABELS = tuple(dict.fromkeys(label for label, *_ in _FIGURES))


# Units of what a user can set by hand, by the end of its name.
_UNITS = {"_gib": "GiB", "_gb_per_s": "GB/s", "_us": "µs"}


def fold(overview: Overview, result: Data) -> Overview:
    """The overview after one more tool result. Figures of another plan go; a result without a plan changes nothing."""
    plan = result.get("plan")
    if not isinstance(plan, Mapping):
        return overview
    if overview.plan is None or _subject(plan) != _subject(overview.plan):
        overview = Overview()
    memory = result.get("memory")
    return replace(
        overview,
        plan=plan,
        memory=memory if isinstance(memory, Mapping) else overview.memory,
        time=_time(result) or overview.time,
        headroom_bytes=_number(_at(result, "headroom_bytes"), overview.headroom_bytes),
        figures={**overview.figures, **_figures(result)},
        bottleneck=result.get("bottleneck") or overview.bottleneck,
        limits=_limits(result) or overview.limits,
        warnings=tuple(dict.fromkeys([*overview.warnings, *map(str, result.get("warnings") or ())])),
    )


def _time(result: Data) -> Data | None:
    """Seconds by component of a training step; of a serving step by what it waits for."""
    parts = _at(result, "time.components")
    if not isinstance(parts, Mapping):
        rows = _rows(result.get("limits")) if _at(result, "time.step_s") is not None else []
        parts = {str(row.get("limit")): row.get("seconds") for row in rows}
    told = {name: value for name, value in parts.items() if isinstance(value, int | float) and value > 0}
    return told or None


def _limits(result: Data) -> tuple[str, ...]:
    """'TTFT 297 ms, over 200 ms' of each limit of latency."""
    told: list[str] = []
    for row in _rows(result.get("slo")):
        value, limit = row.get("value_s"), row.get("limit_s")
        if not isinstance(limit, int | float):
            continue
        name = f"{'p99 ' if row.get('statistic') == 'p99' else ''}{str(row.get('limit')).upper()}"
        shown = units.short_duration(value) if isinstance(value, int | float) else "without end"
        side = "within" if row.get("met") else "over"
        doubt = "" if row.get("sure", True) else "?"
        told.append(one_line(f"{name} {shown}, {side} {units.short_duration(limit)}{doubt}"))
    return tuple(told)


def _rows(found: Any) -> list[Data]:
    return [row for row in found if isinstance(row, Mapping)] if isinstance(found, list | tuple) else []


def plan_lines(plan: Data) -> list[tuple[str, str]]:
    """The plan in a few labelled lines."""
    workload, cluster = plan.get("workload") or {}, plan.get("cluster") or {}
    layout, goal = plan.get("layout") or {}, plan.get("goal") or {}
    model = plan.get("model")
    lines = [("model", one_line(model) if isinstance(model, str) else "given as a configuration")]
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
            lines.append(("data", f"{units.count(workload['dataset_tokens'])} tokens × {workload.get('epochs', 1):g}"))
    if cluster.get("accelerator"):
        lines.append(("cluster", one_line(f"{cluster.get('count') or '?'} × {cluster['accelerator']}")))
    lines.append(("layout", _layout(layout)))
    lines.append(("set", _overrides(plan.get("overrides") or {})))
    lines.append(("goal", _named(goal, "objective", "deadline_h", "budget_usd", "provider")))
    return [(label, text) for label, text in lines if text]


def _layout(layout: Data) -> str:
    sizes = [f"{name}{layout[name]}" for name in ("tp", "pp", "vpp", "cp", "ep", "etp", "dp") if _matters(layout, name)]
    rest = [f"ZeRO-{layout['zero_stage']}"] if layout.get("zero_stage") else []
    if layout.get("recompute") not in (None, "none"):
        rest.append(f"recompute {layout['recompute']}")
    if layout.get("offload") not in (None, "none"):
        rest.append(f"offload {layout['offload']}")
    return one_line(" ".join(sizes + rest))


def _cache(workload: Data) -> str:
    """The format of the cache, and how much of prompts is found in it."""
    kept = {name: workload.get(name) for name in ("prefix_hit", "memory_share") if workload.get(name)}
    return one_line(f"{_words(workload, 'kv_dtype')} {_named(kept, *kept)}".strip())


def _overrides(given: Data) -> str:
    """Figures that the user gave: memory of a device, rates of links, and their latency."""
    told: list[str] = []
    for ending, unit in _UNITS.items():
        rows = [(name.removesuffix(ending), value) for name, value in given.items() if name.endswith(ending)]
        figures = [f"{name.replace('_', ' ')} {_plain(value)}" for name, value in rows if value is not None]
        told += [f"{', '.join(figures)} {unit}"] if figures else []
    return one_line("; ".join(told))


def _matters(layout: Data, name: str) -> bool:
    """Sizes of one say nothing, but for those that everybody looks for first."""
    value = layout.get(name)
    return value is not None and (value != 1 or name in ("tp", "pp", "dp"))


def _words(section: Data, *names: str) -> str:
    return one_line(" ".join(str(section[name]) for name in names if section.get(name) not in (None, "auto")))


def _named(section: Data, *names: str) -> str:
    return one_line(" ".join(f"{name}={_plain(section[name])}" for name in names if section.get(name) is not None))


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _figures(result: Data) -> dict[str, str]:
    found: dict[str, str] = {}
    workload = _at(result, "plan.workload")
    # A deployment runs on: what its bill says of a month is no length of a run.
    serving = _at(workload, "kind") == "inference"
    left_out = (*(_OF_TRAINING if serving else ()), *(_OF_A_RUN if serving and not _at(workload, "requests") else ()))
    for label, path, write, ends in _FIGURES:
        if label in left_out:
            continue
        value = _at(result, path)
        if not isinstance(value, int | float) or isinstance(value, bool):
            continue
        low, high = (_at(result, end) for end in ends) if ends else (None, None)
        found[label] = write(value)
        if ends == _OF_STEP:
            step = _at(result, "time.step_s")
            low, high = (value * step / end if step and end else None for end in (low, high))
        if isinstance(low, int | float) and isinstance(high, int | float) and write(low) != write(high):
            found[label] += f" ({write(low)} – {write(high)})"
    return found


def _subject(plan: Data) -> tuple[Any, ...]:
    """What the figures depend on; the name and the goal change none of them."""
    return tuple(plan.get(section) for section in ("model", "workload", "cluster", "layout", "overrides"))


def _at(data: Any, path: str) -> Any:
    for key in path.split("."):
        if not isinstance(data, Mapping):
            return None
        data = data.get(key)
    return data


def _number(value: Any, otherwise: float | None) -> float | None:
    return value if isinstance(value, int | float) else otherwise
