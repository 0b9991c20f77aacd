"""Fits the calibration factors of step times to the measured runs: few physical factors, shared as far as they can be.

Factors of frameworks and of accelerator families are shared as far as they can be (hierarchy.py): a framework that was
never measured gets its kin's. Damped Gauss-Newton on the log of estimated over measured step time with Huber weights; a
source weighs by a root of its rows. Surfaces of matmuls, attention and networks are fitted apart, on timings of single
operators.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from estimator.errors import PlanError
from estimator.plan.calibration import Calibration
from estimator.plan.layouts import Layouts
from estimator.plan.training.job import Job
from estimator.training.schedule import step_time
from knowledge.fitted.training import device_lineage, factors_node, framework_lineage
from measure.fit.hierarchy import DEFAULT, NUDGE, Design, Factor, Node, Values, nearest, step
from measure.fit.matmul_timings import best_rates, timings
from measure.history.scores import estimated
from measure.history.training import Case

# Every n-th row of a source beyond this many: regular sweeps repeat themselves.
_ROWS_PER_SOURCE = 120
# A source weighs by this power of its rows.
SOURCE_POWER = 0.5
# Misses beyond this (in logarithms) pull no harder than at it.
_HUBER = 0.2
# What a miss is measured against: the noise of a good source.
_NOISE = 0.08
_STEPS = 8
# From an earlier fit that a part of its runs was left out of: how often every run is estimated anew, and the steps in
# between, by the derivatives known.
_REFINING_STEPS = 2
_LINEAR_STEPS = 8


FRAMEWORK_FACTORS = (
    # Narrow: the same kernels take the same time whatever calls them, and what steps cost clocks is the device's.
    Factor("compute", 0.6, 2.5, 1.0, 0.015),
    Factor("data_overlap", 0.0, 1.0, 0.85, 1.0, logit=True),
    Factor("tensor_overlap", 0.0, 1.0, 0.5, 0.7, logit=True),
    Factor("expert_overlap", 0.0, 1.0, 0.8, 0.7, logit=True),
    Factor("kernel_host_s", 1e-6, 1e-4, 2e-5, 0.25),
    Factor("step_host_s", 1e-4, 0.04, 5e-3, 0.35),
    Factor("expert_wait_s", 1e-5, 1e-2, 1e-3, 0.5),
    Factor("dispatch_wait_s", 1e-5, 1e-2, 1e-3, 0.5),
    # How far nodes of a cluster are apart is the cluster's, whatever program waits for the slowest of them.
    Factor("straggler", 1e-4, 0.08, 5e-3, 0.25),
)
DEVICE_FACTORS = (
    Factor("memory", 0.2, 1.2, 0.85, 0.1),
    # Of scans few timings are of the device, and those of Mamba-2 of one kernel of five.
    Factor("scan", 0.2, 2.0, 1.0, 0.4),
    Factor("scaleup", 0.2, 1.3, 1.0, 0.15),
    Factor("scaleout", 0.05, 1.3, 1.0, 0.4),
)
# Matmuls: little to fit where the surface is the family's own, its height where it is borrowed.
HEIGHT = Factor("matmul", 0.3, 1.6, 1.0, 0.11)
BORROWED = Factor("matmul", 0.3, 1.6, 1.0, 0.6)
# Attention, likewise: its kernels draw less power than matmuls, so that whole steps cost them fewer clocks.
ATTENTION = Factor("attention", 0.2, 1.5, 1.0, 0.05)
BORROWED_ATTENTION = Factor("attention", 0.2, 1.5, 1.0, 0.6)
_FEW_POINTS = 10
# Makers of devices whose clock does not follow their power, as that of GPUs does: what whole steps cost those in matrix
# rates says nothing of these.
_STEADY = ("Google",)


@dataclass(frozen=True)
class TimedRun:
    """A measured run as the fit sees it: one job with one layout, and the measured seconds of a step."""

    case: Case
    job: Job
    layouts: Layouts
    measured_s: float


def timed_runs(cases: Iterable[Case]) -> list[TimedRun]:
    """The runs of `cases` that count and that the estimator has an answer for."""
    runs = (_run(case) for case in cases if case.reason_unscored is None)
    return [run for run in runs if run]


def thinned(runs: Sequence[TimedRun]) -> list[TimedRun]:
    """`runs` without most of those of sources that have very many."""
    by_source: dict[str, list[TimedRun]] = defaultdict(list)
    for run in runs:
        by_source[run.case.source].append(run)
    return [run for part in by_source.values() for run in part[:: max(1, math.ceil(len(part) / _ROWS_PER_SOURCE))]]


def _run(case: Case) -> TimedRun | None:
    tokens = case.observed["tokens_per_s_per_device"]
    if not tokens:
        return None
    try:
        estimate = estimated(case)
    except PlanError:
        return None
    job = estimate.all.job
    measured = job.tokens_per_step / job.machine.count / tokens
    return TimedRun(case, job, estimate.all.layouts.take(np.array([estimate.best])), measured)


def lineage(node: Node) -> list[Node]:
    """A framework or family, and its kin."""
    kind, name = node
    return [(kind, member) for member in (framework_lineage(name) if kind == "framework" else device_lineage(name))]


def _leaves(run: TimedRun) -> tuple[tuple[Node, tuple[Factor, ...]], ...]:
    device = run.job.calibration.device
    kernel = device.attention_kernel
    known = device.surface or run.job.machine.accelerator.id in _searched()
    height = HEIGHT if known else BORROWED
    if run.job.machine.accelerator.vendor in _STEADY:
        height = replace(height, shared=False)
    attention = BORROWED_ATTENTION if kernel.borrowed or kernel.points < _FEW_POINTS else ATTENTION
    return (
        (("framework", run.job.framework.name), FRAMEWORK_FACTORS),
        (("device", factors_node(run.job.machine.accelerator)), (*DEVICE_FACTORS, height, attention)),
    )


@cache
def _searched() -> frozenset[str]:
    """The accelerators whose best rate a search over shapes has found: their surface's height rests on it."""
    return frozenset(best_rates(timings("bf16")))


def factors_of(run: TimedRun) -> dict[Node, tuple[Factor, ...]]:
    """The framework and the family whose factors a run's time depends on."""
    return dict(_leaves(run))


def fitted_numbers(sample: Sequence[TimedRun]) -> int:
    """How many numbers are fitted to a sample: what all share, what kin add, and each one's own."""
    return len(_design(sample).columns)


def applied(now: Calibration, framework: Mapping[str, object], device: Mapping[str, object]) -> Calibration:
    """`now` with fitted values, which may be arrays of shape (n,), one entry a candidate."""
    return replace(
        now,
        framework=replace(now.framework, **framework),
        device=replace(now.device, **device),
    )


def values_of(values: Values, kind: str, name: str) -> dict[str, float]:
    """The values of a framework or family, or of its nearest kin that has some."""
    return nearest(values, [*lineage((kind, name)), (kind, DEFAULT)])


def _value(values: Values, node: Node, factor: Factor) -> float:
    """A factor of a node, or of its nearest kin that has some; as expected where it is like no other's."""
    if not factor.shared and not any(member in values for member in lineage(node)):
        return factor.expected
    return values_of(values, *node)[factor.name]


def residual(run: TimedRun, values: Values) -> float:
    """Log of estimated over measured step time."""
    parts = {node[0]: {f.name: _value(values, node, f) for f in factors} for node, factors in _leaves(run)}
    job = replace(run.job, calibration=applied(run.job.calibration, **parts))
    return math.log(float(step_time(job, run.layouts).seconds[0]) / run.measured_s)


def responses_of(run: TimedRun, values: Values) -> np.ndarray:
    """The residual, and its derivatives by the run's own factors in their fitted scale; shape (1 + factors,).

    One batch: the first entry as it is, each other with one factor nudged.
    """
    parts: dict[str, dict[str, np.ndarray]] = {}
    total = 1 + sum(len(factors) for _, factors in _leaves(run))
    entry = 0
    for (kind, name), factors in _leaves(run):
        node_values = values_of(values, kind, name)
        parts[kind] = {}
        for factor in factors:
            entry += 1
            column = np.full(total, node_values[factor.name])
            column[entry] = factor.nudged(node_values[factor.name], NUDGE)
            parts[kind][factor.name] = column
    job = replace(run.job, calibration=applied(run.job.calibration, **parts))
    logs = np.log(step_time(job, run.layouts.take(np.zeros(total, dtype=np.int64))).seconds / run.measured_s)
    logs[1:] = (logs[1:] - logs[0]) / NUDGE
    return logs


def _design(sample: Sequence[TimedRun]) -> Design:
    leaves: dict[Node, tuple[Factor, ...]] = {}
    for run in sample:
        for node, factors in _leaves(run):
            known = leaves.get(node, ())
            leaves[node] = factors if len(factors) > len(known) else known
    return Design(leaves, lineage)


def _jacobian(design: Design, sample: Sequence[TimedRun], responses: Sequence[np.ndarray]) -> np.ndarray:
    """Derivatives of the residuals by the parts; shape (runs, parts)."""
    matrix = np.zeros((len(sample), len(design.columns)))
    for row, (run, response) in enumerate(zip(sample, responses, strict=True)):
        columns_of_factors = [design.columns_of(node, factor) for node, factors in _leaves(run) for factor in factors]
        for entry, columns in enumerate(columns_of_factors, start=1):
            matrix[row, columns] = response[entry]
    return matrix


@dataclass(frozen=True)
class Fit:
    """Fitted values of every node, and the responses of each run of the sample at the last step."""

    values: Values
    responses: dict[str, np.ndarray]


def fit(sample: Sequence[TimedRun], start: Fit | None = None) -> Fit:
    """The factors of every framework and family in `sample`.

    `start` is an earlier fit that a part of its runs was left out of: only few steps lead from there.
    """
    design = _design(sample)
    parts = design.parts(start.values) if start else np.zeros(len(design.columns))
    values = design.values(parts)
    rows = defaultdict(int)
    for run in sample:
        rows[run.case.source] += 1
    weight = np.array([rows[run.case.source] ** (SOURCE_POWER - 1.0) for run in sample])
    weight = weight / weight.mean()
    known = start.responses if start else None
    responses: list[np.ndarray] = []
    for _ in range(_REFINING_STEPS if start else _STEPS):
        responses = [known[run.case.id] if known else responses_of(run, values) for run in sample]
        known = None
        before, jacobian = parts, _jacobian(design, sample, responses)
        for _ in range(_LINEAR_STEPS if start else 1):
            current = np.array([response[0] for response in responses]) + jacobian @ (parts - before)
            parts = step(design, parts, current, jacobian, weight, _NOISE, _HUBER)
            values = design.values(parts)
            parts = design.parts(values)
    return Fit(values, {run.case.id: response for run, response in zip(sample, responses, strict=True)})
