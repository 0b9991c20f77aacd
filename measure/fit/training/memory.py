"""Fits what is uncertain in the memory of a run: what the allocator holds beyond what is used.

A handful of factors for all frameworks together (`FACTORS`), by Gauss-Newton on the log of estimated over measured peak
with Huber weights, every source weighted by the square root of its rows, and a prior on each factor; and for each
framework how far its estimates are off. Everything else in the memory of a run is counted, not fitted. Also which runs
that ran are evidence that a peak cannot be much above its estimate.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimator.errors import PlanError
from estimator.plan.calibration import FEWEST_WITNESSES
from estimator.plan.training.job import UNMEASURED_MEMORY
from estimator.training.memory import varying_lengths
from knowledge.fitted.training import framework_lineage
from measure.fit.spreads import Miss, blended, spread_of
from measure.history.scores import Estimate, estimated
from measure.history.training import Case

# Factor: (middle of its prior, how far the prior lets its logarithm go).
FACTORS = {
    "slack": (0.04, 0.5),
    "loss_slack": (0.16, 0.5),
}
_HUBER = 0.1
_STEPS = 12
# How far a logarithm of peaks scatters when all factors are right.
_NOISE = 0.05
# How many runs of one framework may contradict its interval: a part, or the two of one source that went as far as
# memory let them.
_CONTRADICTING, _FEW_CONTRADICTING = 0.01, 2
# A source counts by the root of its rows.
_SOURCE_POWER = 0.5
_LEAST_SPREAD = 0.04
_LEAST_ABOVE = 0.01
# A framework with fewer rows or sources than this also answers for the spread over all frameworks.
_FEW_ROWS = 12
_FEW_SOURCES = 2

Factors = dict[str, float]


@dataclass(frozen=True)
class NeededMemory:
    """What a run needs, and what is cached beside it as a function of the factors. Numbers are of one run, or arrays of
    many.

    `fixed_bytes` are used when most is used and cached together, `more_bytes` more when most is used. Each factor
    multiplies its slope; `left_bytes` are blocks of shorter texts. What is cached is given back before a run fails, so
    that it is within `usable_bytes`, what the device can hold. `hidden_bytes` is what is there and the counter of the
    peak leaves out.
    """

    fixed_bytes: Any
    more_bytes: Any
    slopes: Mapping[str, Any]
    left_bytes: Any
    hidden_bytes: Any
    usable_bytes: Any

    @property
    def needed_bytes(self) -> Any:
        """Without the blocks that the allocator gives back."""
        return self.fixed_bytes + self.more_bytes

    @property
    def room(self) -> Any:
        """By what factor, less one, the device can hold more."""
        return self.usable_bytes / (self.needed_bytes + self.hidden_bytes) - 1.0

    def estimate(self, factors: Factors) -> Any:
        cached = self.left_bytes + sum(self.slopes[name] * factors[name] for name in FACTORS)
        within = np.minimum(self.fixed_bytes + cached, self.usable_bytes - self.hidden_bytes)
        return np.maximum(self.needed_bytes, within)


@dataclass(frozen=True)
class Peak(NeededMemory):
    """The estimate of one run's peak. `observed_bytes` is None where the run ran (or ran out) and its peak was not
    read. `unmeasured` counts what no measured peak covers, the framework apart."""

    case: Case
    frameworks: tuple[str, ...]
    observed_bytes: float | None
    unmeasured: int
    family: str

    @property
    def framework(self) -> str:
        return self.frameworks[0]

    def error(self, factors: Factors) -> float:
        assert self.observed_bytes is not None
        return math.log(self.estimate(factors) / self.observed_bytes)


def peaks(cases: Iterable[Case]) -> list[Peak]:
    """The cases that the estimator has an answer for."""
    measured = []
    for case in cases:
        try:
            measured.append(_peak(case, estimated(case)))
        except PlanError:
            continue
    return measured


def countable(case: Case) -> bool:
    return case.reason_unscored is None and bool(case.observed["peak_bytes"])


def _peak(case: Case, estimate: Estimate) -> Peak:
    job, memory, best = estimate.all.job, estimate.all.memory, estimate.best
    parts = {name: float(values[0]) for name, values in estimate.all.of(best).memory.components.items()}
    kind = case.observed["peak_kind"]
    held = kind != "allocated"
    caches = held and job.framework.allocator == "caching"
    slopes = {
        "slack": caches * (parts["activations"] + parts["step_temporaries"]),
        "loss_slack": caches * parts["logits_and_loss"],
    }
    peak, cached = estimate.peak_bytes(kind), float(memory.cached[best])
    needed = peak - cached if held else peak
    fixed = peak - parts["allocator_slack"] if held else peak
    unmeasured = sum(not text.startswith("framework ") for text in job.unmeasured_memory)
    return Peak(
        case=case,
        frameworks=tuple(framework_lineage(job.framework.name)),
        observed_bytes=case.observed["peak_bytes"],
        fixed_bytes=fixed,
        more_bytes=needed - fixed,
        slopes=slopes,
        left_bytes=slopes["loss_slack"] * varying_lengths(job),
        hidden_bytes=parts["framework_and_context"] if kind in ("allocated", "reserved") else 0.0,
        usable_bytes=job.usable_bytes,
        unmeasured=unmeasured,
        family=job.machine.accelerator.family,
    )


def fit(sample: Sequence[Peak]) -> Factors:
    """The factors that make the estimates of `sample` agree best with what was measured."""
    errors = _errors(sample)
    names = list(FACTORS)
    prior = np.log([FACTORS[name][0] for name in names])
    sigma = np.array([FACTORS[name][1] for name in names])
    rows = Counter(peak.case.source for peak in sample)
    weight = np.array([1.0 / math.sqrt(rows[peak.case.source]) for peak in sample])
    weight = weight / weight.mean() / _NOISE**2
    point = prior.copy()
    for _ in range(_STEPS):
        now = errors(point)
        moved = [point + 0.01 * (np.arange(len(names)) == column) for column in range(len(names))]
        jacobian = np.stack([(errors(other) - now) / 0.01 for other in moved], axis=1)
        scale = weight * np.minimum(1.0, _HUBER / np.maximum(1e-9, np.abs(now)))
        normal = jacobian.T @ (jacobian * scale[:, None]) + np.diag(1.0 / sigma**2)
        gradient = jacobian.T @ (scale * now) + (point - prior) / sigma**2
        point = point - np.clip(np.linalg.solve(normal, gradient), -0.5, 0.5)
    return dict(zip(names, np.exp(point).tolist(), strict=True))


def _errors(sample: Sequence[Peak]) -> Callable[[np.ndarray], np.ndarray]:
    """The errors of all of `sample` by the factors' logarithms."""
    numbers = ("fixed_bytes", "more_bytes", "left_bytes", "hidden_bytes", "usable_bytes", "observed_bytes")
    columns = {name: np.array([getattr(peak, name) for peak in sample]) for name in numbers}
    observed = columns.pop("observed_bytes")
    slopes = {name: np.array([peak.slopes[name] for peak in sample]) for name in FACTORS}
    need = NeededMemory(slopes=slopes, **columns)

    def errors(point: np.ndarray) -> np.ndarray:
        factors = dict(zip(FACTORS, np.exp(point).tolist(), strict=True))
        return np.log(need.estimate(factors) / observed)

    return errors


@dataclass(frozen=True)
class MemorySpread:
    """Half widths of the 80 % interval, as factors less one: below and above the estimate."""

    below: float
    above: float
    rows: int
    witnesses: int

    @property
    def known(self) -> bool:
        """Whether peaks were read, or enough runs ran to say how high peaks can be."""
        return self.rows > 0 or self.witnesses >= FEWEST_WITNESSES


def spreads(sample: Sequence[Peak], factors: Factors, ran: Sequence[Peak]) -> dict[str, MemorySpread]:
    """The spread of each framework, and of all of them as 'default'.

    `ran` are runs that ran, whose peaks cannot have been above what the device holds: with those whose peaks were read
    they bound the upper side.
    """
    misses: dict[str, list[Miss]] = defaultdict(list)
    for peak in sample:
        misses[peak.framework].append(Miss(peak.error(factors), peak.case.source))
    rooms: dict[str, list[float]] = defaultdict(list)
    for peak in {peak.case.id: peak for peak in (*sample, *ran)}.values():
        rooms[peak.framework].append(peak.room)
    everything = [miss for part in misses.values() for miss in part]
    pooled = _sides(everything)
    widths = {"default": MemorySpread(*pooled, 0, 0)}
    for name in sorted({*misses, *rooms}):
        errors, room = misses.get(name, []), rooms.get(name, [])
        below, above = (_half_width(errors, side, all_of) for side, all_of in zip(_sides(errors), pooled, strict=True))
        widths[name] = MemorySpread(below, max(_LEAST_ABOVE, min(above, _bound(room))), len(errors), len(room))
    return widths


def _sides(misses: Sequence[Miss]) -> tuple[float, float]:
    """How far above a tenth of the peaks estimates were at the least, and how far below another tenth."""
    if not misses:
        return 0.0, 0.0
    over, under = ([Miss(max(0.0, sign * miss.error), miss.source) for miss in misses] for sign in (1.0, -1.0))
    below, above = (max(_LEAST_SPREAD, spread_of(side, share=0.9, power=_SOURCE_POWER)) for side in (over, under))
    return below, above


def interval(peak: Peak, factors: Factors, widths: Mapping[str, MemorySpread]) -> tuple[float, float, bool]:
    """(low, high, whether it fits) of a run under fitted factors and spreads, kin standing in for what has none."""
    known = next((name for name in peak.frameworks if name in widths and widths[name].known), "default")
    known_framework = peak.framework in widths and widths[peak.framework].known
    more = UNMEASURED_MEMORY * (peak.unmeasured + (not known_framework))
    below, above = widths[known].below + more, widths[known].above + more
    value = peak.estimate(factors)
    return value / (1.0 + below), value * (1.0 + above), peak.room >= above


def _half_width(errors: Sequence[Miss], own: float, pooled: float) -> float:
    if not errors:
        return pooled
    sources = len({miss.source for miss in errors})
    trust = min(1.0, len(errors) / _FEW_ROWS) * min(1.0, sources / _FEW_SOURCES)
    return max(_LEAST_SPREAD, blended(own, pooled, trust))


def _bound(room: list[float]) -> float:
    """The margin that all but a few of the runs had at least; no bound where there are not enough runs."""
    if len(room) < FEWEST_WITNESSES:
        return math.inf
    return sorted(room)[max(_FEW_CONTRADICTING, math.ceil(_CONTRADICTING * len(room)))]


def measured_kinds(sample: Iterable[Peak], ran: Iterable[Peak]) -> dict[str, list[str]]:
    """What the measured peaks cover, by what a plan calls it; of devices also those on which runs ran."""
    seen: dict[str, set[str]] = defaultdict(set)
    for peak in sample:
        assert peak.case.plan is not None
        training = peak.case.plan.training
        for name in ("method", "stage", "precision", "optimizer"):
            seen[name].add(str(getattr(training, name)))
    seen["accelerator family"] = {peak.family for peak in (*sample, *ran)}
    return {name: sorted(values) for name, values in seen.items()}
