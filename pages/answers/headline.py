"""The figures that matter most in a result, each with its name: for a summary, or where an answer is not trusted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge import figures
from pages.answers.plan import hardware_words
from pages.results.overview import latency_limit
from planner.clusters.results import AutoConfigured, ClusterOption, RecommendedCluster
from planner.money.results import CostEstimate
from planner.results import BestParallelism, FitCheck, Limit, MemoryEstimate, TrainingEstimate
from planner.serving.results import BestServing, ServingEstimate, ServingMemoryEstimate, SizedServing

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
        *map(latency_limit, estimate.slo),
    ]


def layout(search: BestParallelism) -> list[str]:
    best = search.best
    return ["fits", f"best {best.summary}", f"memory per device {figures.gib(best.per_device_bytes)}",
            f"step time {figures.seconds(best.step_s)}", f"training speed {figures.rate(best.tokens_per_s)} tokens/s",
            f"MFU {figures.percent(best.mfu)}"]  # fmt: skip


def deployment(search: BestServing | SizedServing) -> list[str]:
    best = search.best
    if best is None:
        return ["nothing serves this load within the limits"]
    return [_fits(best.fits), *_met(best.meets_slo), f"best {best.summary}",
            *_known("time to first token", best.ttft_s, figures.seconds),
            *_known("time per output token", best.tpot_s, figures.seconds),
            f"output {figures.rate(best.output_tokens_per_s)} tokens/s",
            *_known("cost per hour", best.usd_per_hour, figures.usd)]  # fmt: skip


def fit(check: FitCheck) -> list[str]:
    left = figures.shown("headroom_bytes", check.headroom_bytes)
    return [*_memory(check.memory), f"headroom {left}", *_met(check.meets_slo)]


def limit(found: Limit) -> list[str]:
    value = "none fits" if found.value is None else f"limit {figures.plain(found.value)}"
    return [*_memory(found.memory), value]


def cost(bill: CostEstimate) -> list[str]:
    goals = (("budget", bill.within_budget), ("deadline", bill.within_deadline))
    kept = [f"{'within' if met else 'beyond'} the {name}" for name, met in goals if met is not None]
    return [*_run(bill), *_known("cost per month", bill.usd_per_month, figures.usd), *kept]


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


def _met(met: bool | None) -> list[str]:
    return [] if met is None else ["latency limits met" if met else "latency limits missed"]


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
