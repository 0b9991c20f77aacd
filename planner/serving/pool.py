"""Deployments of several engines, formats and accelerators side by side, as arrays, and their order by a goal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from estimator.plan.layouts import Floats, Ints
from estimator.plan.schema import Inference, Statistic
from estimator.plan.serving.job import ServingJob
from estimator.serving.estimates import ServingEstimates
from planner.asked.serving import Goal

# What differs by less than one percent is equal: estimates cannot tell it apart.
EQUAL = 0.01
# Above any size of a layout (Layout.tp and others).
_MOST_SIZE = 4097


@dataclass(frozen=True)
class Slo:
    """Limits of latency in seconds (inf: none), and the statistic that they hold for."""

    ttft_s: float
    tpot_s: float
    statistic: Statistic

    @property
    def limits_any(self) -> bool:
        return bool(np.isfinite(self.ttft_s) or np.isfinite(self.tpot_s))


def slo_of(workload: Inference) -> Slo:
    def seconds(limit_ms: float | None) -> float:
        return np.inf if limit_ms is None else limit_ms / 1e3

    return Slo(seconds(workload.ttft_slo_ms), seconds(workload.tpot_slo_ms), workload.slo_statistic)


@dataclass(frozen=True)
class Pool:
    """n deployments under a load each; arrays have shape (n,), seconds and tokens/s over all devices.

    Entry i is entry `entry[i]` of the estimates of `jobs[option[i]]`. `excess_bytes` is what a device of one that does
    not fit lacks. `usd_per_hour` is of all its devices, NaN where
    no price is known.
    """

    jobs: tuple[ServingJob, ...]
    estimates: tuple[ServingEstimates, ...]
    option: Ints
    entry: Ints
    fits: np.ndarray
    excess_bytes: Floats
    saturated: np.ndarray
    devices: Floats
    complexity: Floats
    ttft_s: Floats
    tpot_s: Floats
    e2e_s: Floats
    ttft_p99_s: Floats
    tpot_p99_s: Floats
    output_tokens_per_s: Floats
    requests_per_s: Floats
    usd_per_hour: Floats

    def __len__(self) -> int:
        return len(self.option)

    def job(self, index: int) -> ServingJob:
        return self.jobs[self.option[index]]

    def of(self, index: int) -> tuple[ServingEstimates, int]:
        """The estimates that hold deployment `index`, and its place there."""
        return self.estimates[self.option[index]], int(self.entry[index])

    def column(self, name: str) -> Floats:
        """A field of the deployments (tp, replicas, concurrency …) of every entry."""
        every = [np.asarray(getattr(estimate.deployments, name), dtype=np.float64) for estimate in self.estimates]
        starts = np.cumsum([0, *(len(device) for device in every)])
        return np.concatenate(every)[starts[self.option] + self.entry]

    @cached_property
    def deployment(self) -> Ints:
        """The number of each entry's deployment, which may be there under many loads."""
        numbers = self.option.astype(np.int64)
        for name in ("tp", "pp", "ep", "dp"):
            numbers = numbers * _MOST_SIZE + self.column(name).astype(np.int64)
        return np.unique(numbers, return_inverse=True)[1]

    @property
    def per_device(self) -> Floats:
        """Output tokens/s per device."""
        return self.output_tokens_per_s / self.devices

    @property
    def usd_per_million(self) -> Floats:
        """Of output tokens; NaN where no price is known."""
        return self.usd_per_hour / (self.output_tokens_per_s * 3600.0 / 1e6)

    def take(self, index: Any) -> Pool:
        """The entries that `index` (integers or a mask) selects."""
        return Pool(self.jobs, self.estimates, *[getattr(self, name)[index] for name in _ARRAYS])

    def missed(self, slo: Slo) -> Floats:
        """By what factor the limits are missed: 1 or less where they are met, inf where the load cannot be served."""
        p99 = slo.statistic == "p99"
        first = (self.ttft_p99_s if p99 else self.ttft_s) / slo.ttft_s
        between = (self.tpot_p99_s if p99 else self.tpot_s) / slo.tpot_s
        # A queue without end over no limit.
        worst = np.maximum(first, between)
        return np.where(self.saturated, np.inf, np.where(np.isnan(worst), 0.0, worst))


_ARRAYS = tuple(field.name for field in fields(Pool) if field.name not in ("jobs", "estimates"))


def pool_of(options: Sequence[tuple[ServingJob, ServingEstimates, Floats]]) -> Pool:
    """All deployments of (job, estimates, USD per hour of each deployment's devices)."""
    steadies = [estimates.steady for _, estimates, _ in options]
    shapes = [estimates.deployments for _, estimates, _ in options]

    def joined(values: Sequence[Any]) -> np.ndarray:
        return np.concatenate([np.asarray(value) for value in values])

    return Pool(
        jobs=tuple(job for job, _, _ in options),
        estimates=tuple(estimates for _, estimates, _ in options),
        option=joined([np.full(len(shape), number) for number, shape in enumerate(shapes)]),
        entry=joined([np.arange(len(shape)) for shape in shapes]),
        fits=joined([estimates.memory.fits for _, estimates, _ in options]),
        excess_bytes=joined(
            [
                np.where(estimates.memory.fits, 0.0, estimates.memory.total - estimates.memory.capacity)
                for _, estimates, _ in options
            ]
        ),
        saturated=joined([steady.saturated for steady in steadies]),
        devices=joined([shape.devices for shape in shapes]).astype(np.float64),
        complexity=joined([shape.pp * 4 + shape.tp + shape.dp + shape.ep for shape in shapes]).astype(np.float64),
        ttft_s=joined([steady.ttft_s for steady in steadies]),
        tpot_s=joined([steady.tpot_s for steady in steadies]),
        e2e_s=joined([steady.e2e_s for steady in steadies]),
        ttft_p99_s=joined([steady.ttft_p99_s for steady in steadies]),
        tpot_p99_s=joined([steady.tpot_p99_s for steady in steadies]),
        output_tokens_per_s=joined([estimates.output_tokens_per_s for _, estimates, _ in options]),
        requests_per_s=joined([estimates.requests_per_s for _, estimates, _ in options]),
        usd_per_hour=joined([usd for _, _, usd in options]),
    )


def feasible(pool: Pool, slo: Slo) -> np.ndarray:
    """Which deployments fit and meet the limits; shape (n,)."""
    return pool.fits & (pool.missed(slo) <= 1.0)


def goal_order(pool: Pool, goal: Goal, slo: Slo) -> Ints:
    """Indices: what fits and meets the limits first, the best of it by the goal and the simplest of equals, announced
    devices last; then what misses the limits least, and what lacks the least memory."""
    missed = pool.missed(slo)
    meets = missed <= 1.0
    able = pool.fits & meets if (pool.fits & meets).any() else pool.fits
    tokens, latency = _steps(1.0 / pool.per_device, able), _steps(pool.e2e_s, able)
    match goal:
        case "throughput":
            first, second = tokens, latency
        case "latency":
            first, second = latency, tokens
        case "cost":
            first, second = _steps(pool.usd_per_million, able), tokens
    misses = np.where(meets, 0.0, np.minimum(missed, 1e12))
    announced = np.array([job.machine.accelerator.announced for job in pool.jobs], dtype=bool)[pool.option]
    return np.lexsort((second, pool.complexity, first, misses, announced, ~meets, pool.excess_bytes, ~pool.fits))


def _steps(values: Floats, able: np.ndarray) -> Floats:
    """How many times over what counts as equal they are above the least of the able ones; inf for what is not known."""
    known = np.where(np.isfinite(values), np.maximum(values, 1e-300), np.inf)
    least = np.min(known[able], initial=np.inf)
    return np.floor(np.log(known / least) / EQUAL) if np.isfinite(least) else np.zeros(len(values))


def front(pool: Pool, allowed: np.ndarray, value: Floats) -> Ints:
    """Of the allowed entries those that no other beats in both time per token and `value` (more is better), the
    shortest time per token first."""
    index = np.flatnonzero(allowed & np.isfinite(value))
    order = index[np.lexsort((-value[index], pool.tpot_s[index]))]
    better = order[value[order] > np.maximum.accumulate(np.concatenate([[-np.inf], value[order][:-1]]))]
    kept: list[int] = []
    for place in better:
        best = value[kept[-1]] if kept else -np.inf
        if value[place] > best * (1.0 + np.sign(best) * EQUAL):
            kept.append(int(place))
    if len(kept) > 1:
        # The end is the most there is, though no step more than what stands before it.
        kept[-1] = int(better[-1])
    return np.array(kept, dtype=np.intp)
