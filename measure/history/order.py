"""Whether estimates put layouts in the order that measurements do: runs that differ in their layout only.

Errors that a whole group shares do not matter here: a planner that is 10 % off everywhere still finds the best layout.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np
from numpy.typing import ArrayLike, NDArray

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from measure.history.scores import estimated
from measure.history.training import Case

# Measured speeds that are as close as this are one speed: what repeated runs of one layout differ by.
TIE = 0.01
# With fewer layouts, being among the first three says little.
SMALLEST_FOR_TOP = 4
# Tokens per second and device that are estimated of a case. Raises PlanError where there is no estimate.
Speed = Callable[[Case], float]


@dataclass(frozen=True)
class Order:
    """One group: a case of each layout, and estimated and measured tokens per second and device, of shape (layouts,).

    What was measured of a layout is the median of its runs.
    """

    cases: tuple[Case, ...]
    estimated: NDArray[np.float64]
    measured: NDArray[np.float64]

    @property
    def source(self) -> str:
        return self.cases[0].source

    @property
    def correlation(self) -> float:
        """0 where all estimates are equal: they order nothing."""
        return float(np.nan_to_num(rank_correlation(self.estimated, self.measured)))

    @property
    def best_is_near_top(self) -> bool:
        return found_in_top(self.estimated, self.measured)


@dataclass(frozen=True)
class OrderSummary:
    """Groups and their layouts; `correlation` is the mean over groups, one of n layouts weighing n - 1
    (the variance of a rank correlation of two orders that have nothing to do with each other is 1 / (n - 1)).

    `found` is the share of the `tops` groups of four or more layouts whose best is among the first three; None
    without such a group.
    """

    groups: int
    layouts: int
    correlation: float
    tops: int
    found: float | None


def groups(cases: Iterable[Case], smallest: int = 2) -> list[list[list[Case]]]:
    """The cases that count in groups that differ in layout and micro-batch only, each as its layouts' runs.

    Groups of fewer than `smallest` layouts are left out; all is in order of the first case.
    """
    by_task: dict[str, dict[str, list[Case]]] = defaultdict(lambda: defaultdict(list))
    for case in cases:
        if case.reason_unscored is None and case.plan is not None and case.observed["tokens_per_s_per_device"]:
            task, layout = _parts(case.plan)
            by_task[case.source + task][layout].append(case)
    return [list(layouts.values()) for layouts in by_task.values() if len(layouts) >= smallest]


def _parts(plan: Plan) -> tuple[str, str]:
    """(What a plan is to train, in what way and on what; how it is laid out), as texts."""
    task = plan.patch({"name": None, "layout": None, "workload.micro_batch": None})
    return task.model_dump_json(), f"{plan.layout.model_dump_json()}{plan.training.micro_batch}"


def rank_correlation(estimated: ArrayLike, measured: ArrayLike, tie: float = TIE) -> float:
    """Spearman's rank correlation of two sequences of n positive speeds, from -1 to 1; NaN where one has no order.

    Tied values share their mean rank, as usual: estimates where they are equal, and measured values that are within
    `tie` (a fraction) of the slowest of their tie.
    """
    first, second = _ranks(estimated, 0.0), _ranks(measured, tie)
    first, second = first - first.mean(), second - second.mean()
    size = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / size if size > 0 else float("nan")


def _ranks(values: ArrayLike, tie: float) -> NDArray[np.float64]:
    """Mean ranks from 0, shape (n,)."""
    values = np.asarray(values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    ranks = np.empty(len(values))
    start = 0
    for end in range(1, len(values) + 1):
        if end == len(values) or values[order[end]] > values[order[start]] * (1.0 + tie):
            ranks[order[start:end]] = (start + end - 1) / 2.0
            start = end
    return ranks


def found_in_top(estimated: ArrayLike, measured: ArrayLike, top: int = 3, tie: float = TIE) -> bool:
    """Whether one of the `top` highest estimates is the highest measured speed, or within `tie` of it."""
    estimated, measured = np.asarray(estimated), np.asarray(measured)
    chosen = np.argsort(-estimated, kind="stable")[:top]
    return bool(measured[chosen].max() * (1.0 + tie) >= measured.max())


def speed(case: Case) -> float:
    """The planner's tokens per second and device. Raises PlanError where the plan cannot be estimated."""
    estimate = estimated(case)
    job = estimate.all.job
    return float(job.tokens_per_step / job.machine.count / estimate.all.step.seconds[estimate.best])


def orders(cases: Iterable[Case], speed: Speed = speed, smallest: int = 2) -> list[Order]:
    """Every group with its estimates; cases without one are left out, and groups that are then too small or that were
    all measured alike."""
    ordered = []
    for group in groups(cases, smallest):
        known: list[Case] = []
        speeds: list[float] = []
        measured: list[float] = []
        for runs in group:
            try:
                speeds.append(speed(runs[0]))
            except PlanError:
                continue
            known.append(runs[0])
            measured.append(median(run.observed["tokens_per_s_per_device"] or 0.0 for run in runs))
        if len(known) >= smallest and max(measured) > min(measured) * (1.0 + TIE):
            ordered.append(Order(tuple(known), np.array(speeds), np.array(measured)))
    return ordered


def summarise(orders: Sequence[Order]) -> OrderSummary:
    """Raises ValueError for no groups at all."""
    if not orders:
        raise ValueError("there is nothing to summarise")
    weights = np.array([len(order.cases) - 1.0 for order in orders])
    correlations = np.array([order.correlation for order in orders])
    tops = [order.best_is_near_top for order in orders if len(order.cases) >= SMALLEST_FOR_TOP]
    return OrderSummary(
        groups=len(orders),
        layouts=sum(len(order.cases) for order in orders),
        correlation=float(correlations @ weights / weights.sum()),
        tops=len(tops),
        found=fmean(tops) if tops else None,
    )


def by_source(orders: Iterable[Order]) -> dict[str, OrderSummary]:
    """A summary for each source, the one with most groups first."""
    sources: dict[str, list[Order]] = defaultdict(list)
    for order in orders:
        sources[order.source].append(order)
    ordered = sorted(sources.items(), key=lambda item: (-len(item[1]), item[0]))
    return {name: summarise(members) for name, members in ordered}
