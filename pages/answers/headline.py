"""The figures that matter most in a result, each with its name: for a summary, or where an answer is not trusted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge import figures
from pages.answers.plan import hardware_words
from planner.clusters.results import AutoConfigured, ClusterOption, RecommendedCluster
from planner.money.results import CostEstimate
from planner.results import FitCheck, Limit, MemoryEstimate, TrainingEstimate
from planner.serving.results import ServingEstimate, ServingMemoryEstimate

if TYPE_CHECKING:
    from planner.compare.rows import ServingFigures, TrainingFigures
    from planner.compare.scenarios import Comparison
    from planner.files.importing import ImportedConfig
    from planner.layouts.strategies import AppliedStrategies

_MOST_ROWS = 4


def subject(plan: dict[str, Any] | None) -> str:
    """The model and hardware of a plan, as far as they are known."""
    try:
        found = Plan.parse(plan or {})
    except PlanError:
        return ""
    model = found.model if isinstance(found.model, str) else ""
    return " on ".join(part for part in (model, hardware_words(found) if found.cluster.accelerator else "") if part)


def training(estimate: TrainingEstimate) -> list[str]:
    return [
        *_memory(estimate.memory),
        f"step time {figures.seconds(estimate.time.step_s)}",
        f"training speed {figures.rate(estimate.throughput.tokens_per_s)} tokens/s",
        f"MFU {figures.percent(estimate.throughput.mfu)}",
    ]


def serving(estimate: ServingEstimate) -> list[str]:
    return [
        *_memory(estimate.memory),
        *_known("time to first token", estimate.latency.ttft_s, figures.seconds),
        f"time per output token {figures.seconds(estimate.latency.tpot_s)}",
        f"output {figures.rate(estimate.throughput.output_tokens_per_s)} tokens/s",
        f"replicas {figures.whole(estimate.replicas)}",
    ]


def fit(check: FitCheck) -> list[str]:
    return [*_memory(check.memory), f"headroom {figures.gib(check.headroom_bytes)}"]


def limit(found: Limit) -> list[str]:
    return [*_memory(found.memory), *([] if found.value is None else [f"limit {figures.plain(found.value)}"])]


def cost(bill: CostEstimate) -> list[str]:
    return [*_run(bill), *_known("cost per month", bill.usd_per_month, figures.usd)]


def recommended(clusters: RecommendedCluster) -> list[str]:
    return _rows((f"{row.count} {row.accelerator}", _run(row)) for row in clusters.options)


def compared(comparison: Comparison) -> list[str]:
    return _rows((row.name, [_fits(row.fits), *_run(row)]) for row in comparison.rows)


def strategies(applied: AppliedStrategies) -> list[str]:
    return _rows((f"{row.strategy} on {row.accelerator}", [_fits(row.fits), *_run(row)]) for row in applied.rows)


def plan(found: AutoConfigured | ImportedConfig) -> list[str]:
    if found.fits is None:
        return []
    return [_fits(found.fits), *_known("run", found.hours, figures.hours), *_known("cost", found.usd, figures.usd)]


def _memory(memory: MemoryEstimate | ServingMemoryEstimate) -> list[str]:
    used, room = figures.gib(memory.per_device_bytes), figures.gib(memory.capacity_bytes)
    return [_fits(memory.fits), f"memory per device {used}", f"capacity {room}"]


def _fits(fits: bool) -> str:
    return "fits" if fits else "does not fit"


def _run(run: CostEstimate | ClusterOption | TrainingFigures | ServingFigures) -> list[str]:
    return [
        *_known("run", run.hours, figures.hours),
        *_known("cost", run.usd, figures.usd),
        *_known("per million tokens", run.usd_per_million_tokens, figures.usd),
    ]


def _known(name: str, value: float | None, write: Callable[[float], str]) -> list[str]:
    return [] if value is None else [f"{name} {write(value)}"]


def _rows(rows: Iterable[tuple[str, list[str]]]) -> list[str]:
    return [f"{name} ({', '.join(parts)})" for name, parts in list(rows)[:_MOST_ROWS] if parts]
