"""What a plan comes to in a few figures, and how the figures of two plans differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from estimator.errors import PlanError
from estimator.plan import Plan
from tools.registry import find
from tools.result import Result

_GIB = 2**30
# Each figure with its interval, as (figure, low, high).
_INTERVALS = {
    "per_device_bytes": ("low_bytes", "high_bytes"),
    "step_s": ("low_s", "high_s"),
    "tokens_per_s": ("tokens_low_per_s", "tokens_high_per_s"),
    "mfu": ("mfu_low", "mfu_high"),
    "hours": ("low_hours", "high_hours"),
    "usd": ("low_usd", "high_usd"),
    "ttft_s": ("ttft_low_s", "ttft_high_s"),
    "tpot_s": ("tpot_low_s", "tpot_high_s"),
    "output_tokens_per_s": ("output_tokens_low_per_s", "output_tokens_high_per_s"),
    "usd_per_hour": (None, None),
    "usd_per_million_tokens": (None, None),
}


class PlanFigures(Result):
    """What does not apply to a plan, or cannot be known of it, is null."""

    kind: str = Field(description="training or inference.")
    problem: str | None = Field(default=None, description="Why there are no figures.")
    fits: bool | None = None
    per_device_bytes: float | None = None
    low_bytes: float | None = None
    high_bytes: float | None = None
    capacity_bytes: float | None = None
    step_s: float | None = Field(default=None, description="Of training.")
    low_s: float | None = None
    high_s: float | None = None
    tokens_per_s: float | None = Field(default=None, description="Of training.")
    tokens_low_per_s: float | None = None
    tokens_high_per_s: float | None = None
    mfu: float | None = Field(default=None, description="Of training.")
    mfu_low: float | None = None
    mfu_high: float | None = None
    hours: float | None = Field(default=None, description="Of the whole training run, where its data is known.")
    low_hours: float | None = None
    high_hours: float | None = None
    usd: float | None = Field(default=None, description="Of the whole training run.")
    low_usd: float | None = None
    high_usd: float | None = None
    ttft_s: float | None = Field(default=None, description="Of serving.")
    ttft_low_s: float | None = None
    ttft_high_s: float | None = None
    tpot_s: float | None = Field(default=None, description="Of serving.")
    tpot_low_s: float | None = None
    tpot_high_s: float | None = None
    output_tokens_per_s: float | None = Field(default=None, description="Of serving.")
    output_tokens_low_per_s: float | None = None
    output_tokens_high_per_s: float | None = None
    usd_per_hour: float | None = Field(default=None, description="Of serving.")
    usd_per_million_tokens: float | None = Field(default=None, description="Of serving.")
    price: str | None = Field(default=None, description="The offer behind the money, with its date.")


class FigureChange(Result):
    figure: str = Field(description="Name with the unit in it.")
    a: float | bool | None
    b: float | bool | None
    change: float | None = Field(description="b - a.")
    ratio: float | None = Field(description="b / a.")
    within_interval: bool | None = Field(
        description="True: one value lies in the other's 80 % interval, so which is larger is not sure. Null: there is "
        "no interval."
    )


class Estimated(Result):
    """A plan with its figures, the complete plan (None where it cannot be estimated) and what was said of it."""

    figures: PlanFigures
    plan: dict[str, Any] | None
    assumptions: list[Any] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
    evidence: list[Any] = Field(default_factory=list)


def estimated(plan: Plan) -> Estimated:
    """Never raises PlanError: what cannot be estimated says why in `figures.problem`."""
    serves = plan.workload.kind == "inference"
    given = plan.given()
    try:
        found = find("estimate_inference" if serves else "estimate_training")({"plan": given})
    except PlanError as error:
        return Estimated(figures=PlanFigures(kind=plan.workload.kind, problem=str(error)), plan=None)
    try:
        bill: Mapping[str, Any] = find("estimate_cost")({"plan": found["plan"]})
    except PlanError:
        bill = {}  # without a size of the data there is no bill
    figures = _served(found, bill) if serves else _trained(found, bill)
    return Estimated(
        figures=PlanFigures(kind=plan.workload.kind, price=_price(bill), **figures),
        plan=found["plan"],
        assumptions=found["assumptions"],
        warnings=list(dict.fromkeys([*found["warnings"], *bill.get("warnings", [])])),
        evidence=found["evidence"],
    )


def _trained(found: Mapping[str, Any], bill: Mapping[str, Any]) -> dict[str, Any]:
    memory, time, speed = found["memory"], found["time"], found["throughput"]
    low, high = time["step_s"] / time["high_s"], time["step_s"] / time["low_s"]
    run = found["run"] or {}
    return {
        "fits": memory["fits"],
        **{name: memory[name] for name in ("per_device_bytes", "low_bytes", "high_bytes", "capacity_bytes")},
        **{name: time[name] for name in ("step_s", "low_s", "high_s")},
        "tokens_per_s": speed["tokens_per_s"],
        "tokens_low_per_s": speed["tokens_per_s"] * low,
        "tokens_high_per_s": speed["tokens_per_s"] * high,
        "mfu": speed["mfu"],
        "mfu_low": speed["mfu"] * low,
        "mfu_high": speed["mfu"] * high,
        **{name: run.get(name) for name in ("hours", "low_hours", "high_hours")},
        **{name: bill.get(name) for name in ("usd", "low_usd", "high_usd")},
    }


def _served(found: Mapping[str, Any], bill: Mapping[str, Any]) -> dict[str, Any]:
    memory, latency, speed = found["memory"], found["latency"], found["throughput"]
    times = ("ttft_s", "ttft_low_s", "ttft_high_s", "tpot_s", "tpot_low_s", "tpot_high_s")
    tokens = ("output_tokens_per_s", "output_tokens_low_per_s", "output_tokens_high_per_s")
    return {
        "fits": memory["fits"],
        **{name: memory[name] for name in ("per_device_bytes", "capacity_bytes")},
        **{name: latency[name] for name in times},
        **{name: speed[name] for name in tokens},
        **{name: bill.get(name) for name in ("usd_per_hour", "usd_per_million_tokens")},
    }


def _price(bill: Mapping[str, Any]) -> str | None:
    """The offer whose price a bill is made of."""
    usd = bill.get("usd")
    best = next((row for row in bill.get("by_provider", ()) if usd is not None and row["usd"] == usd), None)
    if best is None:
        return None
    return f"{best['provider']} {best['instance']}, {best['price_date'] or 'undated'}"


def changes(a: PlanFigures, b: PlanFigures) -> list[FigureChange]:
    """Every figure that both or one of them has."""
    rows = [] if a.fits == b.fits else [_change("fits", a, b)]
    return rows + [_change(name, a, b) for name in _INTERVALS if (getattr(a, name), getattr(b, name)) != (None, None)]


def _change(name: str, a: PlanFigures, b: PlanFigures) -> FigureChange:
    one, other = getattr(a, name), getattr(b, name)
    row = FigureChange(figure=name, a=one, b=other, change=None, ratio=None, within_interval=None)
    if name != "fits" and one is not None and other is not None:
        row.change, row.ratio = other - one, other / one if one else None
        row.within_interval = _within(name, a, b)
    return row


def _within(name: str, a: PlanFigures, b: PlanFigures) -> bool | None:
    spans = [[getattr(each, end) if end else None for end in _INTERVALS[name]] for each in (a, b)]
    if any(end is None for span in spans for end in span):
        return None
    (a_low, a_high), (b_low, b_high) = spans
    return a_low <= getattr(b, name) <= a_high or b_low <= getattr(a, name) <= b_high


def in_words(found: Estimated) -> list[str]:
    """The figures as lines for a person."""
    it = found.figures
    if it.problem is not None:
        return [f"not estimated: {it.problem}"]
    lines = []
    if it.per_device_bytes is not None and it.capacity_bytes is not None:
        most = f", up to {it.high_bytes / _GIB:.1f}" if it.high_bytes is not None else ""
        fits = "fits" if it.fits else "does not fit"
        used, room = it.per_device_bytes / _GIB, it.capacity_bytes / _GIB
        lines.append(f"{fits}: {used:.1f} GiB per device{most}, of {room:.1f}")
    if it.step_s is not None and it.tokens_per_s is not None and it.mfu is not None:
        lines.append(
            f"step {it.step_s:.4g} s ({it.low_s:.4g} to {it.high_s:.4g}), {it.tokens_per_s:,.0f} tokens/s, "
            f"MFU {100 * it.mfu:.1f} %"
        )
    if it.hours is not None:
        lines.append(f"run {it.hours:,.4g} hours ({it.low_hours:,.4g} to {it.high_hours:,.4g})")
    if it.output_tokens_per_s is not None:
        first = "grows without end" if it.ttft_s is None else f"{it.ttft_s:.4g} s"
        lines.append(f"{it.output_tokens_per_s:,.0f} output tokens/s, TTFT {first}, TPOT {it.tpot_s:.4g} s")
    money = [f"{it.usd:,.0f} USD"] if it.usd is not None else []
    money += [f"{it.usd_per_hour:,.2f} USD per hour"] if it.usd_per_hour is not None else []
    money += [f"{it.usd_per_million_tokens:,.3g} USD per million tokens"] if it.usd_per_million_tokens else []
    if money:
        lines.append(f"{', '.join(money)} ({it.price or 'your own price'})")
    return lines
