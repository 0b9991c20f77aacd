"""How far predictions are from measurements: errors of single runs, and their summary over a group of runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Generic, Protocol, TypeVar

from estimator.plan.training.options import as_shipped
from estimator.search.layouts import search
from estimator.training.estimates import Estimates
from knowledge.jobs.training import job_of
from measure.history.training import Case

# A source with fewer rows says little by itself; such sources are summarised together.
SMALLEST_SOURCE = 5
POOLED = "sources with few rows"


class Sourced(Protocol):
    """A measured run of some source."""

    @property
    def id(self) -> str: ...
    @property
    def source(self) -> str: ...


AnyCase = TypeVar("AnyCase", bound=Sourced)


@dataclass(frozen=True)
class CasePrediction:
    """An estimate and its 80 % interval, in the unit of what it is compared with, and whether the plan fits.

    `over` says that the estimate itself is more than there is, not the upper end of its interval alone.
    """

    value: float
    low: float
    high: float
    fits: bool
    over: bool = False


@dataclass(frozen=True)
class Estimate:
    """What the planner says of a case: all layouts that agree with its plan, and `best`, the one it would take."""

    all: Estimates
    best: int

    def peak_bytes(self, kind: str | None) -> float:
        """The peak as the counter `kind` would show it: 'allocated' and 'reserved' leave out the context and
        pages of managed memory, and 'allocated' what is cached too."""
        peak = float(self.all.memory.total[self.best])
        if kind in ("allocated", "reserved"):
            memory = self.all.of(self.best).memory
            peak -= float(memory.components["framework_and_context"][0]) + float(memory.paged[0])
            if kind == "allocated":
                peak -= float(memory.cached[0])
        return peak


def estimated(case: Case) -> Estimate:
    """The planner's estimate of a case that has a plan; what the source leaves open is at its usual setting, as whoever
    ran it had not searched. Raises PlanError where it has no answer."""
    assert case.plan is not None
    layout = case.plan.layout
    everyone = (layout.dp or 1) * (layout.cp or 1)
    # A source would say that weights are sharded over some of the ranks only.
    sharded = layout.zero_stage == 3 and layout.dp is not None and layout.shard_group is None
    plan = case.plan.patch({"layout.shard_group": everyone}) if sharded else case.plan
    job = replace(job_of(plan), first_step="first_step" in case.tags)
    estimates, order = search(as_shipped(job))
    return Estimate(estimates, int(order[0]))


@dataclass(frozen=True)
class Score(Generic[AnyCase]):
    """One run's prediction beside its measurement (both in the same unit)."""

    case: AnyCase
    observed: float
    prediction: CasePrediction

    @property
    def error(self) -> float:
        """Relative error of the prediction: 0.1 is 10 % more than measured."""
        return self.prediction.value / self.observed - 1.0

    @property
    def covered(self) -> bool:
        return self.prediction.low <= self.observed <= self.prediction.high


@dataclass(frozen=True)
class Summary:
    """Errors over `runs` runs; all but `runs` are fractions. `bias` is the mean signed error."""

    runs: int
    mape: float
    median_error: float
    bias: float
    within_10: float
    within_20: float
    coverage: float


def summarise(scores: Sequence[Score[AnyCase]]) -> Summary:
    """Raises ValueError for no scores at all."""
    if not scores:
        raise ValueError("there is nothing to summarise")
    errors = [score.error for score in scores]
    sizes = [abs(error) for error in errors]
    return Summary(
        runs=len(scores),
        mape=fmean(sizes),
        median_error=median(sizes),
        bias=fmean(errors),
        within_10=fmean(size <= 0.10 for size in sizes),
        within_20=fmean(size <= 0.20 for size in sizes),
        coverage=fmean(score.covered for score in scores),
    )


def by_group(scores: Iterable[Score[AnyCase]], key: Callable[[AnyCase], str]) -> dict[str, Summary]:
    """A summary for each value of `key`, the largest group first."""
    groups: dict[str, list[Score[AnyCase]]] = defaultdict(list)
    for score in scores:
        groups[key(score.case)].append(score)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return {name: summarise(members) for name, members in ordered}


def over_sources(scores: Sequence[Score[AnyCase]]) -> tuple[int, Summary]:
    """How many sources there are, and the mean of their summaries, each source counting once.

    A large source cannot hide the others this way; small ones are pooled into one.
    """
    rows: dict[str, int] = defaultdict(int)
    for score in scores:
        rows[score.case.source] += 1
    groups = by_group(scores, lambda case: case.source if rows[case.source] >= SMALLEST_SOURCE else POOLED)
    parts = list(groups.values())
    return len(parts), Summary(
        runs=len(scores),
        mape=fmean(part.mape for part in parts),
        median_error=fmean(part.median_error for part in parts),
        bias=fmean(part.bias for part in parts),
        within_10=fmean(part.within_10 for part in parts),
        within_20=fmean(part.within_20 for part in parts),
        coverage=fmean(part.coverage for part in parts),
    )


def worst(scores: Iterable[Score[AnyCase]], count: int = 10) -> list[Score[AnyCase]]:
    """The scores that are furthest off as a ratio, so that half and double are equally far."""
    return sorted(scores, key=lambda score: -_ratio(score))[:count]


def _ratio(score: Score[AnyCase]) -> float:
    value = score.prediction.value
    if value <= 0:
        return float("inf")
    return max(value / score.observed, score.observed / value)
