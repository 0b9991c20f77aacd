"""What a plan comes to in a few figures, and how the figures of two plans differ."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.figure_facts import known_figure
from knowledge.figures import held, label, shown
from planner.asked.money import CostTerms
from planner.asked.serving import InferenceRequest
from planner.money.cost import bill_of
from planner.money.results import CostEstimate
from planner.requests import parsed
from planner.result import Assumption, Evidence, Result
from planner.results import TrainingEstimate
from planner.serving.estimate import estimate_inference
from planner.serving.results import ServingEstimate
from planner.training.estimate import EstimateRequest, estimate_training

_FIGURES = (
    "per_device_bytes", "step_s", "tokens_per_s", "mfu", "hours", "usd", "ttft_s", "tpot_s", "output_tokens_per_s",
    "usd_per_hour", "usd_per_million_tokens",
)  # fmt: skip


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
    assumptions: list[Assumption] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
    evidence: list[Evidence] = Field(default_factory=list)


def estimated(plan: Plan) -> Estimated:
    """Never raises PlanError: what cannot be estimated says why in `figures.problem`."""
    kind = plan.workload.kind
    arguments = {"plan": plan.given()}
    try:
        if kind == "inference":
            result = estimate_inference(parsed(InferenceRequest, arguments))
        else:
            result = estimate_training(parsed(EstimateRequest, arguments))
    except PlanError as error:
        return Estimated(figures=PlanFigures(kind=kind, problem=str(error)), plan=None)
    try:
        bill = bill_of(Plan.parse(result.plan), CostTerms.model_validate({}))
    except PlanError:
        bill = None  # without a size of the data there is no bill
    figures = _trained(result, bill) if isinstance(result, TrainingEstimate) else _served(result, bill)
    return Estimated(
        figures=figures,
        plan=result.plan,
        assumptions=list(result.assumptions),
        warnings=list(dict.fromkeys([*result.warnings, *(bill.warnings if bill else ())])),
        evidence=list(result.evidence),
    )


def _trained(result: TrainingEstimate, bill: CostEstimate | None) -> PlanFigures:
    memory, time, speed, run = result.memory, result.time, result.throughput, result.run
    low, high = time.step_s / time.high_s, time.step_s / time.low_s
    return PlanFigures(
        kind="training",
        fits=memory.fits,
        per_device_bytes=memory.per_device_bytes,
        low_bytes=memory.low_bytes,
        high_bytes=memory.high_bytes,
        capacity_bytes=memory.capacity_bytes,
        step_s=time.step_s,
        low_s=time.low_s,
        high_s=time.high_s,
        tokens_per_s=speed.tokens_per_s,
        tokens_low_per_s=speed.tokens_per_s * low,
        tokens_high_per_s=speed.tokens_per_s * high,
        mfu=speed.mfu,
        mfu_low=speed.mfu * low,
        mfu_high=speed.mfu * high,
        hours=run.hours if run else None,
        low_hours=run.low_hours if run else None,
        high_hours=run.high_hours if run else None,
        usd=bill.usd if bill else None,
        low_usd=bill.low_usd if bill else None,
        high_usd=bill.high_usd if bill else None,
        price=_price(bill),
    )


def _served(result: ServingEstimate, bill: CostEstimate | None) -> PlanFigures:
    memory, latency, speed = result.memory, result.latency, result.throughput
    return PlanFigures(
        kind="inference",
        fits=memory.fits,
        per_device_bytes=memory.per_device_bytes,
        capacity_bytes=memory.capacity_bytes,
        ttft_s=latency.ttft_s,
        ttft_low_s=latency.ttft_low_s,
        ttft_high_s=latency.ttft_high_s,
        tpot_s=latency.tpot_s,
        tpot_low_s=latency.tpot_low_s,
        tpot_high_s=latency.tpot_high_s,
        output_tokens_per_s=speed.output_tokens_per_s,
        output_tokens_low_per_s=speed.output_tokens_low_per_s,
        output_tokens_high_per_s=speed.output_tokens_high_per_s,
        usd_per_hour=bill.usd_per_hour if bill else None,
        usd_per_million_tokens=bill.usd_per_million_tokens if bill else None,
        price=_price(bill),
    )


def _price(bill: CostEstimate | None) -> str | None:
    """The offer whose price a bill is made of."""
    if bill is None or bill.usd is None:
        return None
    best = next((row for row in bill.by_provider if row.usd == bill.usd), None)
    return None if best is None else f"{best.provider} {best.instance}, {best.price_date or 'undated'}"


def changes(a: PlanFigures, b: PlanFigures) -> list[FigureChange]:
    """Every figure that both or one of them has."""
    rows = [] if a.fits == b.fits else [_change("fits", a, b)]
    return rows + [_change(name, a, b) for name in _FIGURES if (getattr(a, name), getattr(b, name)) != (None, None)]


def _change(name: str, a: PlanFigures, b: PlanFigures) -> FigureChange:
    first, second = getattr(a, name), getattr(b, name)
    row = FigureChange(figure=name, a=first, b=second, change=None, ratio=None, within_interval=None)
    if name != "fits" and first is not None and second is not None:
        row.change, row.ratio = second - first, second / first if first else None
        row.within_interval = _within(name, a, b)
    return row


def _within(name: str, a: PlanFigures, b: PlanFigures) -> bool | None:
    row = known_figure(name)
    spans = [[getattr(each, end) for end in row.ends] for each in (a, b)] if row and row.ends else [[None]]
    if any(end is None for span in spans for end in span):
        return None
    (a_low, a_high), (b_low, b_high) = spans
    return a_low <= getattr(b, name) <= a_high or b_low <= getattr(a, name) <= b_high


def in_words(estimated_plan: Estimated) -> list[str]:
    """The figures as lines for a person."""
    found = estimated_plan.figures
    if found.problem is not None:
        return [f"not estimated: {found.problem}"]
    memory = f"{held(found, 'per_device_bytes')} per device of {shown('capacity_bytes', found.capacity_bytes)}"
    known = [name for name in _FIGURES[1:] if getattr(found, name) is not None]
    lines = [f"{'fits' if found.fits else 'does not fit'}: {memory}"]
    lines += [f"{label(name)}: {held(found, name)}" for name in known]
    if found.output_tokens_per_s is not None and found.ttft_s is None:
        lines.append(f"{label('ttft_s')}: grows without bound")
    return [*lines, f"price: {found.price or 'your own'}"] if found.usd or found.usd_per_hour else lines
