"""The order of estimated candidates, the Pareto front, what else there is of another kind, and why others lost."""

from __future__ import annotations

import numpy as np

from estimator.plan.layouts import Floats, Ints, Layouts
from estimator.plan.training.job import Job
from estimator.training.estimates import Estimates
from estimator.training.memory import MOMENTS
from estimator.units import GIB, PERCENT

# What neighbours differ in.
FIELDS = (
    "tp", "sequence_parallel", "pp", "vpp", "schedule", "cp", "ep", "etp", "zero_stage", "shard_group", "recompute",
    "offload", "micro_batch",
)  # fmt: skip
# Seconds (or bytes) are equal where they are to so many digits behind the point.
_DIGITS = 12
TIE_S = 10.0**-_DIGITS
# A part of the growth that is worth a second component in a rule.
_ALSO = 0.3


def objective_order(estimates: Estimates) -> np.ndarray:
    """Indices of the candidates from best to worst: what fits first, then by the goal, then the simpler layout."""
    seconds, memory, fits = estimates.step.seconds, estimates.high_bytes, estimates.fits
    index, rest = np.flatnonzero(fits), np.flatnonzero(~fits)
    fitting = estimates.layouts if len(index) == len(fits) else estimates.layouts.take(index)
    best = index[fitting_order(estimates.job, fitting, seconds[index], memory[index])]
    complexity = _complexity(estimates.layouts)
    return np.concatenate([best, rest[np.lexsort((complexity[rest], seconds[rest], memory[rest]))]])


def fitting_order(job: Job, layouts: Layouts, seconds: Floats, memory: Floats) -> np.ndarray:
    """The same of candidates that all fit, with their seconds and bytes."""
    # Cost at a fixed number of devices is time, so throughput, time and cost order alike here.
    primary = memory if job.plan.goal.objective == "memory" else seconds
    return np.lexsort((memory, _complexity(layouts), np.round(primary, _DIGITS)))


def _complexity(layouts: Layouts) -> Ints:
    return layouts.pp * layouts.tp * layouts.cp * layouts.vpp + layouts.zero_stage


def pareto(estimates: Estimates) -> np.ndarray:
    """Candidates that fit and that no other beats in both step time and memory, fastest first."""
    index = np.flatnonzero(estimates.fits)
    order = index[np.lexsort((estimates.memory.total[index], estimates.step.seconds[index]))]
    best = np.minimum.accumulate(np.concatenate([[np.inf], estimates.memory.total[order][:-1]]))
    return order[estimates.memory.total[order] < best]


def alternatives(estimates: Estimates, order: np.ndarray, count: int) -> list[int]:
    """Up to `count` other candidates that fit: the best of each way to split and shard the run, the best first.

    Where there are fewer ways than that, the best with another recompute mode, micro-batch or ZeRO stage follow, and
    then whatever comes next.
    """
    layouts, fitting = estimates.layouts, order[estimates.fits[order]]
    sharded = layouts.zero_stage >= 3
    kind = _numbered([layouts.tp, layouts.pp, layouts.cp, layouts.ep, layouts.offload, sharded], fitting)
    finer = _numbered([kind, layouts.recompute[fitting], layouts.micro_batch[fitting], layouts.zero_stage[fitting]])
    chosen: list[int] = []
    for labels in (kind, finer, np.arange(len(fitting))):
        firsts = np.sort(np.unique(labels, return_index=True)[1])
        taken = set(chosen)
        chosen += [place for place in firsts[: count + len(chosen) + 1].tolist() if place and place not in taken]
    return [int(fitting[place]) for place in chosen[:count]]


def _numbered(columns: list[np.ndarray], index: np.ndarray | None = None) -> np.ndarray:
    """One number for each combination of values; shape (n,)."""
    label = np.zeros(len(columns[0] if index is None else index), dtype=np.int64)
    for column in columns:
        values = np.unique(column if index is None else column[index], return_inverse=True)[1]
        label = label * (int(values.max(initial=0)) + 1) + values
    return label


def neighbours(estimates: Estimates, best: int, order: np.ndarray | None = None) -> list[tuple[int, str]]:
    """For each field the best candidate of each other value there, and why it lost: what it would need, or how much
    slower (larger, for the goal of memory) it is and which components grew."""
    order = objective_order(estimates) if order is None else order
    indices = _neighbours(estimates.layouts, best, order)
    if not indices:
        return []
    detail = estimates.of(best, *indices)
    return [(index, _lost(detail, place)) for place, index in enumerate(indices, start=1)]


def _neighbours(layouts: Layouts, best: int, order: np.ndarray) -> list[int]:
    """Field by field, the first candidate in the order with each value that the best has not; each once."""
    indices: list[int] = []
    for name in FIELDS:
        column = getattr(layouts, name)
        values, places = np.unique(column[order], return_index=True)
        indices += [int(order[place]) for value, place in zip(values, places, strict=True) if value != column[best]]
    return list(dict.fromkeys(indices))


def _lost(detail: Estimates, index: int) -> str:
    """Why candidate `index` comes after candidate 0."""
    if not detail.fits[index]:
        return _misfit(detail, index)
    seconds, memory = detail.step.seconds, detail.memory.total
    slower = float(seconds[index] / seconds[0]) - 1.0
    more = float(memory[index] - memory[0])
    if detail.job.plan.goal.objective != "memory" and slower > 0:
        return f"fits, but is {PERCENT * slower:.1f} % slower: {_grown(detail.step.components, index, 1.0, 's')}"
    if more > 0:
        return f"fits, but takes {more / GIB:.1f} GiB more: {_grown(detail.memory.components, index, GIB, 'GiB')}"
    return "equal; the simpler layout wins"


def _misfit(detail: Estimates, index: int) -> str:
    """What it would need, and which part of it is much: what grew over the best, or the largest where nothing did."""
    need, have = detail.high_bytes[index] / GIB, detail.job.usable_bytes / GIB
    components = detail.memory.components
    moment = MOMENTS[detail.memory.moment[index]].replace("_", " ")
    text = f"does not fit: up to {need:.1f} GiB of {have:.1f} GiB, {need - have:.1f} GiB short at {moment}"
    if detail.memory.total[index] > detail.memory.total[0]:
        return f"{text}; {_grown(components, index, GIB, 'GiB')}"
    name = max(components, key=lambda part: components[part][index])
    return f"{text}; {name.replace('_', ' ')} alone {components[name][index] / GIB:.1f} GiB"


def _grown(components: dict[str, np.ndarray], index: int, unit: float, name: str) -> str:
    """The component that grew most over candidate 0, and a second one that grew about as much."""
    growth = {part: float(values[index] - values[0]) / unit for part, values in components.items()}
    ordered = sorted(growth, key=lambda part: -growth[part])
    also = [part for part in ordered[1:2] if growth[part] > _ALSO * growth[ordered[0]] and growth[part] > 0]
    words = []
    for part in [ordered[0], *also]:
        now, before = components[part][index] / unit, components[part][0] / unit
        words.append(f"{part.replace('_', ' ')} {now:.3g} instead of {before:.3g} {name}")
    return ", ".join(words)
