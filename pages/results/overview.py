"""What is always in sight beside the conversation: the plan and the figures that tool results brought for it.

Pure data: a tool's result is folded into an `Overview`; nothing is decided, only picked and written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel

from estimator.plan.schema import Plan
from knowledge import figures
from pages.blocks import Row, value_of
from pages.rendering.clean import one_line
from pages.results.limits import LimitWords, limit_words
from planner.results import BestParallelism, FitCheck, Limit, MemoryEstimate, TrainingEstimate
from planner.serving.results import LatencyLimit, ServingEstimate, ServingMemoryEstimate

Data = Mapping[str, Any]

# In the order in which they are read. What is looked at less stands after the bars.
_FIRST = (
    "step_s", "tokens_per_s", "tokens_per_s_per_device", "mfu", "ttft_s", "tpot_s", "e2e_s", "output_tokens_per_s",
    "output_tokens_per_s_per_device", "tokens_per_s_per_user", "requests_per_s", "samples_per_s", "max_concurrency",
    "longest_request", "replicas", "hours", "usd", "usd_per_million_tokens", "usd_per_million_output_tokens",
)  # fmt: skip
_MINOR = ("model_tflops_per_device", "usd_per_hour", "usd_per_month", "per_node_bytes", "kwh", "co2_kg")
FIGURE_LABELS = tuple(map(figures.label, (*_FIRST, *_MINOR)))
MINOR_LABELS = tuple(map(figures.label, _MINOR))
# Parts of results whose figures are those of the plan.
_PARTS = ("time", "throughput", "latency", "memory", "run", "cost", "best", "chosen")
_OF_A_STEP = ("tokens_per_s", "mfu")
# What a bill of a month says is no length of a run.
_OF_A_RUN = ("hours", "usd", "kwh", "co2_kg")


@dataclass(frozen=True)
class Overview:
    """`figures` maps a label to its written value, of which `old` are at old prices; `time` is what the time of a
    step goes to, in seconds; `latency` are the limits of latency that were set, and `told` the results that say whether
    the others are kept, the latest first."""

    plan: Data | None = None
    memory: MemoryEstimate | ServingMemoryEstimate | None = None
    time: Mapping[str, float] | None = None
    figures: Mapping[str, str] = field(default_factory=dict)
    old: frozenset[str] = frozenset()
    bottleneck: str | None = None
    latency: tuple[LatencyLimit, ...] = ()
    told: tuple[BaseModel, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def fits(self) -> bool | None:
        return None if self.memory is None else self.memory.fits

    @property
    def tight(self) -> bool:
        return isinstance(self.memory, MemoryEstimate) and self.memory.tight

    @property
    def limits(self) -> LimitWords:
        """Of each limit that the plan sets, whether it is kept."""
        goal = Plan.model_validate(self.plan).goal if self.plan and self.told else None
        words = limit_words(goal, *(part for result in self.told for part in _parts(result)))
        late = [f"{latency_limit(row)}." for row in self.latency if not row.met]
        unsure = [f"{latency_limit(row)}." for row in self.latency if row.met and not row.sure]
        met = [f"{latency_limit(row)}." for row in self.latency if row.met and row.sure]
        return LimitWords([*late, *words.broken], [*unsure, *words.doubtful], [*met, *words.kept])


# Results that an answer tells of one plan: the run that was asked about, or the one that was chosen.
_TOLD = (
    "TrainingEstimate", "ServingEstimate", "FitCheck", "CostEstimate", "Limit", "BestParallelism", "BestServing",
    "SizedServing", "RecommendedCluster", "AutoConfigured", "Comparison", "Sweep", "MlperfProjection", "Rates",
)  # fmt: skip


def plan_told(results: Sequence[BaseModel]) -> Data | None:
    """The plan that an answer with these results is about."""
    plans = [getattr(result, "plan", None) for result in results if type(result).__name__ in _TOLD]
    return next((plan for plan in reversed(plans) if isinstance(plan, Mapping) and plan), None)


def fold(overview: Overview, result: BaseModel) -> Overview:
    """The overview after one more tool result. Figures of another plan go; a result that tells of no plan changes
    nothing."""
    plan = plan_told([result])
    if plan is None:
        return overview
    if overview.plan is None or not same_run(plan, overview.plan):
        overview = Overview()
    warnings = [*overview.warnings, *getattr(result, "warnings", ())]
    rows = figure_rows(result)
    overview = replace(
        overview,
        plan=plan,
        told=(result, *overview.told),
        figures=_laid_over(overview.figures, rows),
        old=overview.old - {row[0] for row in rows} | _old_figures(result),
        warnings=tuple(dict.fromkeys(warnings)),
    )
    match result:
        case TrainingEstimate(memory=memory, bottleneck=bottleneck):
            return replace(overview, memory=memory, bottleneck=bottleneck, time=_taking(result.time.components))
        case ServingEstimate(memory=memory, bottleneck=bottleneck, slo=slo):
            time = _taking({row.limit: row.seconds for row in result.limits})
            latency = tuple(slo) or overview.latency
            return replace(overview, memory=memory, bottleneck=bottleneck, time=time, latency=latency)
        case FitCheck(memory=memory) | Limit(memory=memory) | BestParallelism(memory=memory):
            return replace(overview, memory=memory)
    return overview


def _laid_over(before: Mapping[str, str], rows: Sequence[Row]) -> dict[str, str]:
    """The figures with those of `rows`. Told again without its interval, a figure keeps the one that it has."""
    told = {row[0]: value_of(row) for row in rows}
    kept = {name for name, text in told.items() if before.get(name, "").startswith(f"{text} (")}
    return {**before, **{name: text for name, text in told.items() if name not in kept}}


def figure_rows(result: BaseModel) -> list[Row]:
    """The figures that a result has of its plan, with their intervals."""
    workload = (getattr(result, "plan", None) or {}).get("workload") or {}
    serving = workload.get("kind") == "inference"
    endless = serving and not workload.get("requests")
    left_out = (*(("step_s",) if serving else ()), *(_OF_A_RUN if endless else ()))
    rows: list[Row] = []
    for key in (*_FIRST, *_MINOR):
        part = _part_with(result, key)
        if part is None or key in left_out:
            continue
        span = _of_step(result, key) if isinstance(result, TrainingEstimate) else ""
        span = span or figures.interval(part, key)
        rows.append((figures.label(key), figures.shown(key, getattr(part, key)), span))
    return rows


def _old_figures(result: BaseModel) -> set[str]:
    """Labels of the money that a result has at a price that is over 90 days old, or of unknown date."""
    parts = {key: _part_with(result, key) for key in (*_FIRST, *_MINOR) if key.startswith("usd")}
    return {figures.label(key) for key, part in parts.items() if getattr(part, "stale", None)}


def _part_with(result: BaseModel, key: str) -> BaseModel | None:
    return next((part for part in _parts(result) if isinstance(getattr(part, key, None), int | float)), None)


def latency_limit(row: LatencyLimit) -> str:
    """'TTFT 297 ms, over 200 ms'."""
    name = f"{'p99 ' if row.statistic == 'p99' else ''}{row.limit.upper()}"
    value = "grows without bound" if row.value_s is None else figures.shown("value_s", row.value_s)
    side = "within" if row.met else "over"
    return one_line(
        f"{name} {value}, {side} {figures.shown('limit_s', row.limit_s)}{'' if row.sure else ', not certain'}"
    )


def _parts(result: BaseModel) -> list[BaseModel]:
    inner = [getattr(result, name, None) for name in _PARTS]
    parts = [result, *(part for part in inner if isinstance(part, BaseModel))]
    host = getattr(getattr(result, "memory", None), "host", None)
    return [*parts, host] if isinstance(host, BaseModel) else parts


def _of_step(result: TrainingEstimate, key: str) -> str:
    """What goes as one over the time of a step has its interval turned round."""
    if key not in _OF_A_STEP:
        return ""
    value, step = getattr(result.throughput, key), result.time
    return figures.between(key, value * step.step_s / step.high_s, value * step.step_s / step.low_s)


def _taking(seconds: Mapping[str, float]) -> dict[str, float] | None:
    return {name: value for name, value in seconds.items() if value > 0} or None


def same_run(plan: Data, other: Data) -> bool:
    return _subject(plan) == _subject(other)


def _subject(plan: Data) -> tuple[Any, ...]:
    """What the figures depend on; the name and the goal change none of them."""
    return tuple(plan.get(section) for section in ("model", "workload", "cluster", "layout", "overrides"))
