"""Fits the calibration factors to the measured runs: few physical factors per framework and accelerator family.

Damped Gauss-Newton on the log of estimated over measured step time, with Huber weights, every source weighted by the
square root of its rows, and a prior that pulls each factor to its default where the runs do not say. Deterministic;
needs only numpy. The matmul surfaces are fitted apart, on matmul timings, and are not touched here.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from estimator.errors import PlanError
from estimator.job import Job
from estimator.layouts import Layouts
from estimator.profile import Calibration
from estimator.schedule import step_time
from knowledge.calibration import calibration
from measure.cases import Case, training_cases
from measure.scores import estimated

# Every n-th row of a source beyond this many: regular sweeps repeat themselves.
_ROWS_PER_SOURCE = 120
_HUBER = 0.25
_FEWEST_RUNS = 4
_STEPS = 8


@dataclass(frozen=True)
class Factor:
    """One fitted number: `low` and `high` bound it, `sigma` is how far (in the fitted scale) the prior lets it go."""

    name: str
    low: float
    high: float
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
    Factor("compute", 0.6, 2.5, 0.2),
    Factor("data_overlap", 0.0, 1.0, 1.0, logit=True),
    Factor("tensor_overlap", 0.0, 1.0, 1.0, logit=True),
    Factor("host_s", 1e-6, 8e-3, 1.0),
    Factor("step_host_s", 1e-4, 0.5, 1.0),
    Factor("straggler", 1e-4, 0.08, 0.5),
)
DEVICE_FACTORS = (
    Factor("attention_forward", 0.05, 0.9, 0.4),
    Factor("attention_backward", 0.05, 0.9, 0.4),
    Factor("memory", 0.2, 1.0, 0.15),
    Factor("scaleup", 0.2, 1.0, 0.3),
    Factor("scaleout", 0.1, 1.0, 0.3),
)
# Families without a matmul surface of their own: its height is fitted as well.
HEIGHT = Factor("matmul", 0.15, 1.0, 0.4)


@dataclass
class Run:
    """A measured run as the fit sees it: one job with one layout, and the measured seconds of a step."""

    case: Case
    job: Job
    layouts: Layouts
    measured_s: float
    weight: float


def runs() -> list[Run]:
    """The countable training runs that the estimator has an answer for, thinned where a source has very many."""
    by_source: dict[str, list[Case]] = defaultdict(list)
    for case in training_cases():
        if case.reason_unscored is None:
            by_source[case.source].append(case)
    found: list[Run] = []
    for cases in by_source.values():
        stride = max(1, math.ceil(len(cases) / _ROWS_PER_SOURCE))
        kept = [run for case in cases[::stride] if (run := _run(case))]
        found += [replace(run, weight=1.0 / math.sqrt(len(kept))) for run in kept]
    return found


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
    return Run(case, job, found.all.layouts.take(np.array([found.best])), measured, 1.0)


Values = dict[tuple[str, str], dict[str, float]]


def start(sample: Iterable[Run]) -> tuple[Values, dict[tuple[str, str], tuple[Factor, ...]]]:
    """Defaults of every framework and family that enough runs speak for, and which factors of each are free."""
    sample = list(sample)
    neutral = calibration("", "")
    frameworks = Counter(run.job.framework.name for run in sample)
    families = Counter(run.job.machine.accelerator.family for run in sample)
    values: Values = {}
    free: dict[tuple[str, str], tuple[Factor, ...]] = {}
    for run in sample:
        name, family = run.job.framework.name, run.job.machine.accelerator.family
        if frameworks[name] >= _FEWEST_RUNS:
            key = ("framework", name)
            free[key] = FRAMEWORK_FACTORS
            values[key] = {factor.name: getattr(neutral.framework, factor.name) for factor in FRAMEWORK_FACTORS}
        if families[family] >= _FEWEST_RUNS:
            key = ("device", family)
            free[key] = DEVICE_FACTORS if run.job.calibration.device.surface else (*DEVICE_FACTORS, HEIGHT)
            values[key] = {factor.name: getattr(neutral.device, factor.name) for factor in free[key]}
    return values, free


def applied(now: Calibration, values: Values) -> Calibration:
    """`now` with the fitted values of its own framework and family."""
    framework = values.get(("framework", now.framework.framework), {})
    device = values.get(("device", now.device.family), {})
    return replace(
        now,
        framework=replace(now.framework, **framework),
        device=replace(now.device, **device),
    )


def residual(run: Run, values: Values) -> float:
    """Log of estimated over measured step time."""
    job = replace(run.job, calibration=applied(run.job.calibration, values))
    return math.log(float(step_time(job, run.layouts).seconds[0]) / run.measured_s)


def fit(sample: list[Run], steps: int = _STEPS) -> Values:
    """The fitted factors of every framework and family in `sample`."""
    values, free = start(sample)
    columns = [(key, factor) for key, factors in free.items() for factor in factors]
    prior = np.array([factor.to_free(values[key][factor.name]) for key, factor in columns])
    sigma = np.array([factor.sigma for _, factor in columns])
    users = [
        [index for index, run in enumerate(sample) if key in (_framework_key(run), _device_key(run))]
        for key, _ in columns
    ]
    weight = np.array([run.weight for run in sample])
    weight = weight / weight.mean()
    point = prior.copy()
    current = np.array([residual(run, values) for run in sample])
    for _ in range(steps):
        jacobian = np.zeros((len(sample), len(columns)))
        for column, (key, factor) in enumerate(columns):
            moved = {name: dict(inner) for name, inner in values.items()}
            moved[key][factor.name] = factor.from_free(point[column] + 0.02)
            for index in users[column]:
                jacobian[index, column] = (residual(sample[index], moved) - current[index]) / 0.02
        huber = np.minimum(1.0, _HUBER / np.maximum(1e-9, np.abs(current)))
        scale = weight * huber / 0.1**2
        normal = jacobian.T @ (jacobian * scale[:, None]) + np.diag(1.0 / sigma**2)
        gradient = jacobian.T @ (scale * current) + (point - prior) / sigma**2
        move = np.clip(np.linalg.solve(normal + 0.05 * np.diag(np.diag(normal)), gradient), -0.5, 0.5)
        point = point - move
        for column, (key, factor) in enumerate(columns):
            values[key][factor.name] = factor.from_free(point[column])
        current = np.array([residual(run, values) for run in sample])
    return values


def _framework_key(run: Run) -> tuple[str, str]:
    return ("framework", run.job.framework.name)


def _device_key(run: Run) -> tuple[str, str]:
    return ("device", run.job.machine.accelerator.family)


@dataclass(frozen=True)
class Miss:
    """How far an estimate is off: the log of estimated over measured, and the source of the measurement."""

    error: float
    source: str


def spread_of(misses: Iterable[Miss], share: float = 0.8, power: float = 0.0) -> float:
    """Half width, as a factor less one, of the interval that holds `share` of the misses.

    A source counts by its rows to the `power`: every source alike, or by the root of its rows (0.5).
    """
    ordered = sorted(misses, key=lambda miss: abs(miss.error))
    rows = Counter(miss.source for miss in ordered)
    held, wanted = 0.0, share * sum(count**power for count in rows.values())
    for miss in ordered:
        held += rows[miss.source] ** (power - 1.0)
        if held >= wanted - 1e-9:
            return math.expm1(abs(miss.error))
    raise ValueError("there is nothing to take a spread of")


def blended(own: float, pooled: float, trust: float) -> float:
    """A spread between two, nearer to its own the more that is trusted."""
    return math.expm1(trust * math.log1p(own) + (1.0 - trust) * math.log1p(pooled))
