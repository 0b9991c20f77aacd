"""Fits the calibration factors of step times to the measured runs: few physical factors, shared as far as they can be.

A factor of a framework is the sum of what all frameworks share, what its kin add and what it adds itself (in the
factor's fitted scale: logarithm or logit); so is a factor of an accelerator family. Each part has a prior of zero, so
runs move what is shared before they move what is their own, and a framework that was never measured gets its kin's
(random effects: Laird and Ware 1982). Damped Gauss-Newton on the log of estimated over measured step time with Huber
weights; a source weighs by a root of its rows. Deterministic, numpy only. Surfaces of matmuls, attention and networks
are fitted apart, on timings of single operators.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from estimator.errors import PlanError
from estimator.job import Job
from estimator.layouts import Layouts
from estimator.profile import Calibration
from estimator.schedule import step_time
from knowledge.calibration import device_lineage, framework_lineage
from measure.cases import Case
from measure.scores import estimated

# Every n-th row of a source beyond this many: regular sweeps repeat themselves.
_ROWS_PER_SOURCE = 120
# A source weighs by this power of its rows.
SOURCE_POWER = 0.5
# Misses beyond this (in logarithms) pull no harder than at it.
_HUBER = 0.2
# What a miss is measured against: the noise of a good source.
_NOISE = 0.08
# How far kin may differ from each other, as a part of how far all together may be from what is expected.
_KIN_SIGMA = 0.6
_STEPS = 8
_REFINING_STEPS = 2
_NUDGE = 0.02
DEFAULT = "default"


@dataclass(frozen=True)
class Factor:
    """One fitted number: `low` and `high` bound it, `expected` is its prior, `sigma` how far (in the fitted scale) the
    prior lets it go."""

    name: str
    low: float
    high: float
    expected: float
    sigma: float
    logit: bool = False

    def to_free(self, value: float) -> float:
        if self.logit:
            share = (value - self.low) / (self.high - self.low)
            return math.log(share / (1.0 - share))
        return math.log(value)

    def from_free(self, value: float) -> float:
        if self.logit:
            return self.low + (self.high - self.low) / (1.0 + math.exp(-value))
        return min(self.high, max(self.low, math.exp(value)))


FRAMEWORK_FACTORS = (
    Factor("compute", 0.6, 2.5, 1.0, 0.1),
    Factor("data_overlap", 0.0, 1.0, 0.85, 1.0, logit=True),
    Factor("tensor_overlap", 0.0, 1.0, 0.5, 0.7, logit=True),
    Factor("expert_overlap", 0.0, 1.0, 0.8, 0.7, logit=True),
    Factor("kernel_host_s", 1e-6, 1e-4, 8e-6, 0.4),
    Factor("step_host_s", 1e-4, 0.04, 5e-3, 0.35),
    Factor("expert_wait_s", 1e-5, 1e-2, 1e-3, 0.5),
    Factor("straggler", 1e-4, 0.08, 5e-3, 0.5),
)
DEVICE_FACTORS = (
    Factor("memory", 0.2, 1.2, 0.85, 0.1),
    Factor("scaleup", 0.2, 1.3, 1.0, 0.15),
    Factor("scaleout", 0.05, 1.3, 1.0, 0.4),
)
# Matmuls: little to fit where the surface is the family's own, its height where it is borrowed.
HEIGHT = Factor("matmul", 0.3, 1.6, 1.0, 0.06)
BORROWED = Factor("matmul", 0.3, 1.6, 1.0, 0.6)
# Attention, likewise.
ATTENTION = Factor("attention", 0.2, 1.5, 1.0, 0.1)
BORROWED_ATTENTION = Factor("attention", 0.2, 1.5, 1.0, 0.6)
_FEW_POINTS = 10


@dataclass(frozen=True)
class Run:
    """A measured run as the fit sees it: one job with one layout, and the measured seconds of a step."""

    case: Case
    job: Job
    layouts: Layouts
    measured_s: float


def timed_runs(cases: Iterable[Case]) -> list[Run]:
    """The runs of `cases` that count and that the estimator has an answer for."""
    found = (_run(case) for case in cases if case.reason_unscored is None)
    return [run for run in found if run]


def thinned(runs: Sequence[Run]) -> list[Run]:
    """`runs` without most of those of sources that have very many."""
    by_source: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        by_source[run.case.source].append(run)
    return [run for part in by_source.values() for run in part[:: max(1, math.ceil(len(part) / _ROWS_PER_SOURCE))]]


def _run(case: Case) -> Run | None:
    tokens = case.observed["tokens_per_s_per_device"]
    if not tokens:
        return None
    try:
        found = estimated(case)
    except PlanError:
        return None
    job = found.all.job
    measured = job.tokens_per_step / job.machine.count / tokens
    return Run(case, job, found.all.layouts.take(np.array([found.best])), measured)


Node = tuple[str, str]
Values = dict[Node, dict[str, float]]


def lineage(kind: str, name: str) -> list[Node]:
    """A framework or family, its kin, theirs, and last what all share."""
    line = framework_lineage(name) if kind == "framework" else device_lineage(name)
    return [(kind, member) for member in (*line, DEFAULT)]


def _kinds(run: Run) -> tuple[tuple[str, str, tuple[Factor, ...]], ...]:
    device = run.job.calibration.device
    kernel = device.attention_kernel
    height = HEIGHT if device.surface else BORROWED
    attention = BORROWED_ATTENTION if kernel.borrowed or kernel.points < _FEW_POINTS else ATTENTION
    return (
        ("framework", run.job.framework.name, FRAMEWORK_FACTORS),
        ("device", device.family, (*DEVICE_FACTORS, height, attention)),
    )


def factors_of(run: Run) -> dict[Node, tuple[Factor, ...]]:
    """The framework and the family whose factors a run's time depends on."""
    return {(kind, name): factors for kind, name, factors in _kinds(run)}


def fitted_numbers(sample: Sequence[Run]) -> int:
    """How many numbers are fitted to a sample: what all share, what kin add, and each one's own."""
    return len(_Design(sample).columns)


def applied(now: Calibration, framework: Mapping[str, object], device: Mapping[str, object]) -> Calibration:
    """`now` with fitted values, which may be arrays of shape (n,), one entry a candidate."""
    return replace(
        now,
        framework=replace(now.framework, **framework),
        device=replace(now.device, **device),
    )


def nearest(values: Values, kind: str, name: str) -> dict[str, float]:
    """The values of a framework or family, or of its nearest kin that has some."""
    return next((values[node] for node in lineage(kind, name) if node in values), {})


def residual(run: Run, values: Values) -> float:
    """Log of estimated over measured step time."""
    parts = {
        kind: {f.name: nearest(values, kind, name)[f.name] for f in factors} for kind, name, factors in _kinds(run)
    }
    job = replace(run.job, calibration=applied(run.job.calibration, **parts))
    return math.log(float(step_time(job, run.layouts).seconds[0]) / run.measured_s)


def _responses(run: Run, values: Values) -> np.ndarray:
    """The residual, and its derivatives by the run's own factors in their fitted scale; shape (1 + factors,).

    One batch: the first entry as it is, each other with one factor nudged.
    """
    parts: dict[str, dict[str, np.ndarray]] = {}
    total = 1 + sum(len(factors) for _, _, factors in _kinds(run))
    entry = 0
    for kind, name, factors in _kinds(run):
        own = nearest(values, kind, name)
        parts[kind] = {}
        for factor in factors:
            entry += 1
            column = np.full(total, own[factor.name])
            column[entry] = factor.from_free(factor.to_free(own[factor.name]) + _NUDGE)
            parts[kind][factor.name] = column
    job = replace(run.job, calibration=applied(run.job.calibration, **parts))
    logs = np.log(step_time(job, run.layouts.take(np.zeros(total, dtype=np.int64))).seconds / run.measured_s)
    logs[1:] = (logs[1:] - logs[0]) / _NUDGE
    return logs


class _Design:
    """Which parts (node, factor) each run's factors are the sum of."""

    def __init__(self, sample: Sequence[Run]) -> None:
        self.columns: list[tuple[Node, Factor]] = []
        self.index: dict[tuple[Node, str], int] = {}
        self.leaves: dict[Node, tuple[Factor, ...]] = {}
        for run in sample:
            for kind, name, factors in _kinds(run):
                known = self.leaves.get((kind, name), ())
                self.leaves[kind, name] = factors if len(factors) > len(known) else known
        for (kind, name), factors in sorted(self.leaves.items()):
            for node in lineage(kind, name):
                for factor in factors:
                    if (node, factor.name) not in self.index:
                        self.index[node, factor.name] = len(self.columns)
                        self.columns.append((node, factor))
        self.sigma = np.array([f.sigma * (1.0 if node[1] == DEFAULT else _KIN_SIGMA) for node, f in self.columns])

    def jacobian(self, sample: Sequence[Run], responses: Sequence[np.ndarray]) -> np.ndarray:
        """Derivatives of the residuals by the parts; shape (runs, parts)."""
        matrix = np.zeros((len(sample), len(self.columns)))
        for row, (run, response) in enumerate(zip(sample, responses, strict=True)):
            entry = 1
            for kind, name, factors in _kinds(run):
                nodes = lineage(kind, name)
                for factor in factors:
                    for node in nodes:
                        matrix[row, self.index[node, factor.name]] = response[entry]
                    entry += 1
        return matrix

    def values(self, parts: np.ndarray) -> Values:
        """The factors of every node, from the parts along its lineage."""
        found: Values = {}
        for node, factor in self.columns:
            line = lineage(*node) if node[1] != DEFAULT else [node]
            free = sum(parts[self.index[member, factor.name]] for member in line if (member, factor.name) in self.index)
            value = factor.from_free(factor.to_free(factor.expected) + free)
            found.setdefault(node, {})[factor.name] = _inside(factor, value)
        return found

    def parts(self, values: Values) -> np.ndarray:
        """The parts that give `values`; nodes that `values` lacks add nothing."""
        parts = np.zeros(len(self.columns))
        for column, (node, factor) in enumerate(self.columns):
            line = lineage(*node) if node[1] != DEFAULT else [node]
            own = self._free(values, line, factor)
            above = self._free(values, line[1:], factor) if len(line) > 1 else factor.to_free(factor.expected)
            parts[column] = own - above
        return parts

    @staticmethod
    def _free(values: Values, line: Sequence[Node], factor: Factor) -> float:
        own = next((values[n][factor.name] for n in line if factor.name in values.get(n, {})), factor.expected)
        return factor.to_free(own)


def _inside(factor: Factor, value: float) -> float:
    """Within the bounds, and off them far enough for the scale to stay finite."""
    edge = 1e-3 * (factor.high - factor.low)
    return min(factor.high - edge, max(factor.low + edge, value)) if factor.logit else value


@dataclass(frozen=True)
class Fit:
    """Fitted values of every node, and the responses of each run of the sample at the last step."""

    values: Values
    responses: dict[str, np.ndarray]


def fit(sample: Sequence[Run], start: Fit | None = None) -> Fit:
    """The factors of every framework and family in `sample`.

    `start` is an earlier fit that a part of its runs was left out of: only few steps lead from there.
    """
    design = _Design(sample)
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
        responses = [known[run.case.id] if known else _responses(run, values) for run in sample]
        known = None
        current = np.array([response[0] for response in responses])
        jacobian = design.jacobian(sample, responses)
        huber = np.minimum(1.0, _HUBER / np.maximum(1e-9, np.abs(current)))
        scale = weight * huber / _NOISE**2
        normal = jacobian.T @ (jacobian * scale[:, None]) + np.diag(1.0 / design.sigma**2)
        gradient = jacobian.T @ (scale * current) + parts / design.sigma**2
        parts = parts - np.clip(np.linalg.solve(normal, gradient), -0.6, 0.6)
        values = design.values(parts)
        parts = design.parts(values)
    return Fit(values, {run.case.id: response for run, response in zip(sample, responses, strict=True)})
