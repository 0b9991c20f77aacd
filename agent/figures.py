"""The figures that matter most in a tool's result, each with its unit: for a summary, or where an answer cannot be
trusted with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agent.wire import Outcome

_GIB = 2.0**30
# Where a figure stands in results, what it is called, and how it is printed.
_FIGURES: tuple[tuple[str, str, str], ...] = (
    ("memory.per_device_bytes", "memory per device", "gib"),
    ("memory.capacity_bytes", "capacity", "gib"),
    ("headroom_bytes", "headroom", "gib"),
    ("time.step_s", "step time", "s"),
    ("throughput.tokens_per_s", "training speed", "tokens/s"),
    ("throughput.mfu", "MFU", "%"),
    ("latency.ttft_s", "time to first token", "s"),
    ("latency.tpot_s", "time per output token", "s"),
    ("throughput.output_tokens_per_s", "output", "tokens/s"),
    ("replicas", "replicas", ""),
    ("value", "limit", ""),
    ("hours", "run", "h"),
    ("usd", "cost", "usd"),
    ("usd_per_month", "cost per month", "usd"),
    ("usd_per_million_tokens", "per million tokens", "usd"),
)
_MOST_ROWS = 4


def headline(outcome: Outcome) -> str:
    """One line: what was called about which run, and its main figures ('' when it gave none)."""
    result = outcome.response
    if outcome.error:
        return f"{outcome.call.name}: refused ({outcome.error[:200]})"
    parts = _of(result)
    options = result.get("options") or result.get("rows") or ()
    for row in list(options)[:_MOST_ROWS] if isinstance(options, list) else ():
        if isinstance(row, Mapping) and (inner := _of(row)):
            label = row.get("name") or " ".join(str(row[key]) for key in ("count", "accelerator") if row.get(key))
            parts.append(f"{label or 'option'} ({', '.join(inner)})")
    return f"{_subject(outcome)}: {', '.join(parts)}" if parts else ""


def headlines(outcomes: Iterable[Outcome]) -> list[str]:
    return [line for outcome in outcomes if (line := headline(outcome))]


def _subject(outcome: Outcome) -> str:
    """The tool's name with the model and hardware that its result is about."""
    plan = outcome.response.get("plan")
    plan = plan if isinstance(plan, Mapping) else {}
    cluster = plan.get("cluster")
    cluster = cluster if isinstance(cluster, Mapping) else {}
    model = plan.get("model") if isinstance(plan.get("model"), str) else None
    device = f"{cluster.get('count') or 1} x {cluster['accelerator']}" if cluster.get("accelerator") else None
    about = " on ".join(part for part in (model, device) if part)
    return f"{outcome.call.name} of {about}" if about else outcome.call.name


def _of(result: Mapping[str, Any]) -> list[str]:
    parts: list[str] = []
    memory = result.get("memory")
    if isinstance(memory, Mapping) and isinstance(memory.get("fits"), bool):
        parts.append("fits" if memory["fits"] else "does not fit")
    elif isinstance(result.get("fits"), bool):
        parts.append("fits" if result["fits"] else "does not fit")
    for path, name, unit in _FIGURES:
        value: Any = result
        for key in path.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, int | float) and not isinstance(value, bool):
            parts.append(f"{name} {_printed(float(value), unit)}")
    return parts


def _printed(value: float, unit: str) -> str:
    match unit:
        case "gib":
            return f"{value / _GIB:,.1f} GiB"
        case "usd":
            return f"${value:,.2f}"
        case "%":
            return f"{100 * value:.1f} %"
        case "s":
            return f"{value * 1000:.1f} ms" if abs(value) < 1 else f"{value:,.2f} s"
        case "h":
            return f"{value:,.2f} hours"
        case "tokens/s":
            return f"{value:,.0f} tokens/s" if value >= 100 else f"{value:,.1f} tokens/s"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.4g}"
