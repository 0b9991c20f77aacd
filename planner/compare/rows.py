"""The figures that tables show of one plan in one row: a training plan's, or a serving plan's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import Field

from estimator.money.cost import energy_kwh
from estimator.search.strategies import communication_seconds
from knowledge.prices.energy import energy_assumptions
from planner.money.offers import cheapest, offers, old_prices
from planner.partial import get
from planner.result import Dated, Result
from planner.serving.planned import Served, choice, latency_of, memory_of, money_of, throughput_of
from planner.serving.results import ServingChoice
from planner.training.planned import Planned
from planner.training.planned import throughput_of as training_throughput
from planner.training.run import run_of


class TrainingFigures(Dated):
    """Figures are null where they are not known, or where there is no estimate; bytes are per device."""

    devices: int | None = None
    framework: str | None = None
    layout: dict[str, Any] | None = None
    summary: str | None = None
    micro_batch: int | None = None
    global_batch: int | None = None
    grad_accum: int | None = None
    fits: bool = False
    per_device_bytes: float | None = None
    low_bytes: float | None = None
    high_bytes: float | None = None
    capacity_bytes: float | None = None
    headroom_bytes: float | None = Field(default=None, description="Capacity less the upper end of the memory.")
    step_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    communication_s: float | None = Field(default=None, description="Communication in a step that nothing hides.")
    tokens_per_s: float | None = None
    tokens_per_s_per_device: float | None = None
    model_tflops_per_device: float | None = None
    mfu: float | None = None
    hours: float | None = Field(default=None, description="Of the whole run; null where the plan names no data.")
    low_hours: float | None = None
    high_hours: float | None = None
    usd_per_hour: float | None = None
    usd: float | None = Field(default=None, description="Of the whole run.")
    usd_per_million_tokens: float | None = None
    kwh: float | None = Field(default=None, description="Of the whole run.")
    kwh_per_billion_tokens: float | None = None
    bottleneck: str | None = None


class ServingFigures(Dated):
    """Figures are null where they are not known, or where there is no estimate; bytes are per device."""

    devices: int | None = None
    replicas: int | None = None
    engine: str | None = None
    weight_dtype: str | None = None
    layout: dict[str, Any] | None = None
    summary: str | None = None
    fits: bool = False
    meets_slo: bool | None = None
    keeps_up: bool | None = Field(default=None, description="With the rate of requests; null where none is named.")
    per_device_bytes: float | None = None
    capacity_bytes: float | None = None
    headroom_bytes: float | None = Field(default=None, description="Capacity less what the requests of the plan need.")
    max_concurrency: int | None = None
    ttft_s: float | None = None
    ttft_low_s: float | None = None
    ttft_high_s: float | None = None
    tpot_s: float | None = None
    tpot_low_s: float | None = None
    tpot_high_s: float | None = None
    e2e_s: float | None = None
    output_tokens_per_s: float | None = None
    output_tokens_low_per_s: float | None = None
    output_tokens_high_per_s: float | None = None
    output_tokens_per_s_per_device: float | None = None
    total_tokens_per_s: float | None = None
    requests_per_s: float | None = None
    usd_per_hour: float | None = None
    usd_per_million_tokens: float | None = Field(default=None, description="Prompt and output tokens.")
    usd_per_million_output_tokens: float | None = None
    hours: float | None = Field(default=None, description="Until all `requests` are served; null where none are named.")
    usd: float | None = Field(default=None, description="Of these hours.")
    kwh: float | None = Field(default=None, description="Of these hours.")
    kwh_per_million_output_tokens: float | None = None
    bottleneck: str | None = None


class Related(Result):
    """A row against the baseline."""

    speedup: float | None = Field(
        default=None, description="Tokens/s over the baseline's; of serving, output tokens/s."
    )
    speedup_low: float | None = Field(
        default=None, description="Of its 80 % interval: errors that both share cancel in it."
    )
    speedup_high: float | None = None
    cost_ratio: float | None = Field(default=None, description="USD per million tokens over the baseline's.")
    memory_ratio: float | None = Field(default=None, description="Memory per device over the baseline's.")
    memory_difference_bytes: float | None = Field(default=None, description="Per device; negative for less.")
    apart: bool | None = Field(
        default=None, description="Whether the interval of speedup leaves no doubt which is faster, it or the baseline."
    )

    @property
    def falls_behind(self) -> bool:
        """Whether its requests come faster than it serves them."""
        return getattr(self, "keeps_up", None) is False

    @property
    def is_part(self) -> bool:
        """Whether devices that are not counted generate its samples: it is neither faster nor cheaper for that."""
        return get(getattr(self, "plan", None) or {}, "workload.rollout") == "separate"


class ComparedTraining(TrainingFigures, Related):
    name: str
    plan: dict[str, Any] | None = Field(default=None, description="The complete plan; null where it cannot be.")
    error: str | None = Field(default=None, description="Why there is no estimate.")


class ComparedServing(ServingFigures, Related):
    name: str
    plan: dict[str, Any] | None = Field(default=None, description="The complete plan; null where it cannot be.")
    error: str | None = Field(default=None, description="Why there is no estimate.")


def training_figures(planned: Planned, own_usd: float | None = None) -> TrainingFigures:
    """`own_usd` is the user's own price per device and hour."""
    job, estimates, index = planned.job, planned.estimates, planned.index
    layouts, devices = estimates.layouts, job.machine.count
    speed, run = training_throughput(planned), run_of(planned)
    offer = None if own_usd is not None else cheapest(offers(planned, 1.0))
    hourly = devices * own_usd if own_usd is not None else offer and offer.usd_per_hour
    # Of a whole run by the tokens of its data, as estimate_cost has it: its last step may not be full.
    hours, tokens = (run.hours, run.tokens) if run else (1.0, speed.tokens_per_s * 3600.0)
    return TrainingFigures(
        devices=devices,
        framework=job.framework.name,
        layout=layouts.row(index),
        summary=planned.summary,
        micro_batch=int(layouts.micro_batch[index]),
        global_batch=job.global_batch,
        grad_accum=int(layouts.grad_accum[index]),
        fits=planned.fits,
        per_device_bytes=float(estimates.memory.total[index]),
        low_bytes=float(estimates.low_bytes[index]),
        high_bytes=float(estimates.high_bytes[index]),
        capacity_bytes=job.usable_bytes,
        headroom_bytes=job.usable_bytes - float(estimates.high_bytes[index]),
        step_s=float(estimates.step.seconds[index]),
        low_s=float(estimates.low_s[index]),
        high_s=float(estimates.high_s[index]),
        communication_s=float(communication_seconds(estimates)[index]),
        tokens_per_s=speed.tokens_per_s,
        tokens_per_s_per_device=speed.tokens_per_s_per_device,
        model_tflops_per_device=speed.model_tflops_per_device,
        mfu=speed.mfu,
        hours=run and run.hours,
        low_hours=run and run.low_hours,
        high_hours=run and run.high_hours,
        usd_per_hour=hourly,
        usd=None if hourly is None or run is None else hourly * run.hours,
        usd_per_million_tokens=None if hourly is None else hourly * hours / (tokens / 1e6),
        price_date=offer and offer.price_date,
        stale=offer and offer.stale,
        kwh=run and _kwh(planned, run.hours),
        kwh_per_billion_tokens=_per(1e9, tokens, _kwh(planned, hours)),
        bottleneck=planned.diagnosis.bottleneck,
    )


def serving_figures(served: Served) -> ServingFigures:
    memory, latency, speed, money = memory_of(served), latency_of(served), throughput_of(served), money_of(served)
    requests, deployment = served.job.inference.requests, choice(served.pool, served.index, served.slo)
    shared = ServingFigures.model_fields.keys() & ServingChoice.model_fields
    figures = ServingFigures(**{name: getattr(deployment, name) for name in shared})
    figures.capacity_bytes = memory.capacity_bytes
    figures.headroom_bytes = memory.capacity_bytes - memory.per_device_bytes
    figures.ttft_low_s, figures.ttft_high_s = latency.ttft_low_s, latency.ttft_high_s
    figures.tpot_low_s, figures.tpot_high_s = latency.tpot_low_s, latency.tpot_high_s
    figures.output_tokens_low_per_s = speed.output_tokens_low_per_s
    figures.output_tokens_high_per_s = speed.output_tokens_high_per_s
    figures.usd_per_hour = money and money.usd_per_hour
    figures.usd_per_million_tokens = money and money.usd_per_million_tokens
    figures.usd_per_million_output_tokens = money and money.usd_per_million_output_tokens
    figures.price_date, figures.stale = money and money.price_date, money and money.stale
    figures.kwh_per_million_output_tokens = _per(1e6, speed.output_tokens_per_s * 3600.0, _kwh(served, 1.0))
    figures.bottleneck = served.bottleneck
    if served.job.inference.request_rate is not None:
        figures.keeps_up = not bool(served.estimates.steady.saturated[served.entry])
    if requests is not None:
        figures.hours = requests / speed.requests_per_s / 3600.0
        figures.usd = None if money is None else money.usd_per_hour * figures.hours
        figures.kwh = _kwh(served, figures.hours)
    return figures


def old_of(rows: Iterable[Dated]) -> list[str]:
    """What to beware of in the prices of rows."""
    return old_prices(row.price_date for row in rows if row.stale)


def _per(many: float, tokens: float, kwh: float | None) -> float | None:
    return None if kwh is None or not tokens else kwh / (tokens / many)


def _kwh(estimate: Planned | Served, hours: float) -> float | None:
    facts = energy_assumptions()
    return energy_kwh(estimate.job.machine, hours, facts["host_share"].value, facts["pue"].value)
