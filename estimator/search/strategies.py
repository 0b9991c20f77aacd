"""Named strategies: what each asks of a layout, and which of the estimated candidates it takes.

A strategy chooses only among candidates that fit. Which tensor-parallel sizes a model allows (the head-divisibility
rule, `estimator.plan.training.layout_checks.valid_tp`) is kept by the enumeration, so nothing that comes here breaks
it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from estimator.plan.layouts import Floats, Ints, Layouts
from estimator.training.estimates import Estimates
from estimator.training.schedule import step_time

IDENTICAL = "truly_identical"
CUSTOM = "custom"
COMMUNICATION = ("tensor_parallel", "context_parallel", "expert_parallel", "data_parallel", "pipeline")
"""Components of a step that are communication which nothing hides."""
# What makes layouts of two platforms the same: everything, or what the user of any framework sets, where frameworks
# differ in what they have besides.
_EVERYTHING = (
    "tp", "sequence_parallel", "pp", "vpp", "schedule", "cp", "ep", "etp", "dp", "zero_stage", "shard_group",
    "recompute", "recompute_layers", "offload", "micro_batch",
)  # fmt: skip
_SPLIT = ("tp", "pp", "cp", "ep", "dp", "recompute", "recompute_layers", "micro_batch")
# Candidates at a time where components have to be computed again.
_PIECE = 24_576
# Figures that differ by less than this part are equal, and the next criterion decides.
_EQUAL = 1e-9


@dataclass(frozen=True)
class Costs:
    """What strategies weigh, of n candidates; arrays of shape (n,): seconds per step and bytes per device."""

    seconds: Floats
    memory: Floats
    communication: Floats
    capacity: float

    @cached_property
    def balance(self) -> Floats:
        """Geometric mean of three ratios, each 1 for the candidate that is best at it.

        Step time over the shortest; communication over the least, each on top of the shortest step; memory over the
        least, each on top of what the device has. Memory that fits costs no time, and no communication is no division
        by zero: so both weigh by how much they are of a step and of a device.
        """
        shortest = self.seconds.min()
        waiting = (shortest + self.communication) / (shortest + self.communication.min())
        room = (self.capacity + self.memory) / (self.capacity + self.memory.min())
        return np.cbrt(self.seconds / shortest * waiting * room)


CRITERIA: dict[str, Callable[[Costs], Floats]] = {
    "maximum_performance": lambda costs: costs.seconds,
    "memory_optimized": lambda costs: costs.memory,
    "minimal_communication": lambda costs: costs.communication,
    "balanced": lambda costs: costs.balance,
    CUSTOM: lambda costs: costs.seconds,
    "data": lambda costs: costs.seconds,
    "model": lambda costs: costs.seconds,
    "pipeline": lambda costs: costs.seconds,
    "hybrid": lambda costs: costs.seconds,
}
"""What each strategy makes small. `custom` is a layout that the user gave: the fastest of what that leaves open."""
USUAL = ("maximum_performance", IDENTICAL, "memory_optimized", "minimal_communication", "balanced")
KINDS: dict[str, Callable[[Layouts], NDArray[np.bool_]]] = {
    "data": lambda layouts: (layouts.tp == 1) & (layouts.pp == 1) & (layouts.cp == 1),
    "model": lambda layouts: (layouts.tp > 1) & (layouts.pp == 1) & (layouts.cp == 1),
    "pipeline": lambda layouts: (layouts.tp == 1) & (layouts.pp > 1) & (layouts.cp == 1),
    "hybrid": lambda layouts: (layouts.tp > 1) & (layouts.pp > 1),
}
"""How strategies that are named after a kind of parallelism split a model; what is left is data parallel."""
STRATEGIES = (*USUAL, CUSTOM, *KINDS)


def communication_seconds(estimates: Estimates) -> Floats:
    """Seconds of each candidate's step in which devices wait for each other's data; shape (n,)."""
    components = estimates.step.components
    if components:
        return sum((components[name] for name in COMMUNICATION), np.zeros(len(estimates.layouts)))
    pieces = (step_time(estimates.job, piece).components for piece in estimates.layouts.pieces(_PIECE))
    return np.concatenate([sum((components[name] for name in COMMUNICATION), np.float64(0.0)) for components in pieces])


def costs_of(estimates: Estimates, index: Ints) -> Costs:
    """What the candidates `index` cost."""
    communication = communication_seconds(estimates)[index]
    seconds, memory = estimates.step.seconds[index], estimates.memory.total[index]
    return Costs(seconds, memory, communication, estimates.job.usable_bytes)


def choose(strategy: str, estimates: Estimates) -> int | None:
    """Which candidate `strategy` (a key of CRITERIA) takes, None where nothing of its kind fits.

    The least communication is that of whole layers on each device, TP 1 and PP 1, where such a layout fits. Of equal
    ones the faster, then the one of less memory, then the simpler.
    """
    able = np.flatnonzero(estimates.fits)
    if strategy in KINDS:
        able = able[KINDS[strategy](estimates.layouts)[able]]
    elif strategy == "minimal_communication":
        whole = able[KINDS["data"](estimates.layouts)[able]]
        able = whole if len(whole) else able
    if not len(able):
        return None
    costs = costs_of(estimates, able)
    first = _ranks(CRITERIA[strategy](costs))
    order = np.lexsort((_complexity(estimates)[able], costs.memory, _ranks(costs.seconds), first))
    return int(able[order[0]])


@dataclass(frozen=True)
class Identical:
    """One layout on several platforms: its place among the candidates of each, and in which fields it is the same."""

    index: tuple[int, ...]
    fields: tuple[str, ...]

    @property
    def whole(self) -> bool:
        return self.fields == _EVERYTHING


def identical(platforms: Sequence[Estimates]) -> Identical | None:
    """The layout that is valid and fits on all platforms with the least geometric mean of step times.

    The same in every field where there is one; else in the split of the devices, the micro-batch and recompute, with
    the fastest of the rest on each platform. None where the platforms have nothing in common that fits.
    """
    return _identical(platforms, _EVERYTHING) or _identical(platforms, _SPLIT)


def _identical(platforms: Sequence[Estimates], names: tuple[str, ...]) -> Identical | None:
    able = [np.flatnonzero(platform.fits) for platform in platforms]
    if not able or not all(map(len, able)):
        return None
    tables = [
        np.stack([getattr(platform.layouts, name)[index] for name in names], axis=1)
        for platform, index in zip(platforms, able, strict=True)
    ]
    unique, label = np.unique(np.concatenate(tables), axis=0, return_inverse=True)
    label = label.reshape(-1)
    ends = np.cumsum([0, *map(len, able)])
    seconds = np.zeros(len(unique))
    places = np.zeros((len(platforms), len(unique)), dtype=np.int64)
    for number, (platform, index) in enumerate(zip(platforms, able, strict=True)):
        labelled = label[ends[number] : ends[number + 1]]
        order = np.argsort(platform.step.seconds[index], kind="stable")
        labels, first = np.unique(labelled[order], return_index=True)
        places[number, labels] = index[order[first]]
        total = np.full(len(unique), np.inf)
        total[labels] = np.log(platform.step.seconds[places[number, labels]])
        seconds += total
    if not np.isfinite(seconds).any():
        return None
    best = int(np.argmin(seconds))
    return Identical(tuple(int(place) for place in places[:, best]), names)


def _ranks(values: Floats) -> Floats:
    """Values in steps of what counts as equal, relative to the least that is not 0."""
    unit = np.min(values[values > 0], initial=np.inf)
    return np.round(values / (unit * _EQUAL)) if np.isfinite(unit) else values


def _complexity(estimates: Estimates) -> Ints:
    layouts = estimates.layouts
    return layouts.pp * layouts.tp * layouts.cp * layouts.vpp + layouts.zero_stage
