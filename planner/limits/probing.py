"""Trying one value of a plan after another until the last that fits is found; every probe is a search for memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.jobs.training import job_of
from knowledge.machines.catalogue import find_accelerator
from knowledge.models.catalogue import architecture
from knowledge.offers import choices
from planner.results import LimitProbe
from planner.training.ladder import Grower, told_of, way_beyond
from planner.training.lightest import lightest
from planner.training.planned import (
    Planned,
    first_that_fits,
    plan_to_fit,
    plan_training,
)

Value = int | str
# Part of what fits already by which more is asked for first.
_FIRST_STEP = 32
_SHOWN_PROBES = 24


@dataclass(frozen=True)
class Trial:
    """What became of one value: whether it fits, with the bytes per device of the layout that needs least memory of
    those that were tried (None where none is valid), or why there is none."""

    value: Value
    fits: bool
    bytes: float | None
    why: str | None
    whole: Callable[[], Planned] | None = None

    @cached_property
    def planned(self) -> Planned | None:
        """That layout with its times."""
        return self.whole and self.whole()

    @property
    def probe(self) -> LimitProbe:
        return LimitProbe(value=self.value, fits=self.fits, per_device_bytes=self.bytes, why=self.why)

    @property
    def too_large(self) -> bool:
        """Valid, but beyond the memory."""
        return self.bytes is not None and not self.fits


def nearest_probes(probes: Iterable[LimitProbe], value: Value | None, goal: str) -> list[LimitProbe]:
    """The values tried nearest to `value` (to the least where it was not tried), in order: models by parameters,
    cards by memory."""
    unique = {probe.value: probe for probe in probes}
    ordered = sorted(unique, key=_SIZES.get(goal, int))
    at = ordered.index(value) if value in unique else 0
    start = max(0, min(at - _SHOWN_PROBES // 2, len(ordered) - _SHOWN_PROBES))
    return [unique[tried] for tried in ordered[start : start + _SHOWN_PROBES]]


_SIZES: Mapping[str, Callable[[Any], float]] = {
    "model": lambda id: architecture(id).parameters,
    "accelerator": lambda id: find_accelerator(id).value.memory_bytes,
}


@dataclass
class Trials:
    """The values tried so far. `plan_at` gives the plan for a value.

    `fits` asks the devices alone, of the choices in `narrow`: of what the plan leaves open, those that take the least
    memory. What was refused so is refused for good only once `confirmed` has asked as a verdict does: all layouts, and
    host memory where the plan leaves that open.
    """

    plan_at: Callable[[Value], Plan]
    narrow: Mapping[str, Any]
    tried: dict[Value, Trial] = field(default_factory=dict)
    searched: set[Value] = field(default_factory=set)
    framework: str | None = None
    conceded: dict[str, Any] = field(default_factory=dict)
    grower: Grower = field(default_factory=Grower)
    alone: Value | None = None
    """The last that fits on the devices alone, with nothing given up for it."""

    def fits(self, value: Value) -> bool:
        if value not in self.tried:
            self.tried[value] = self._try(value, self.narrow, verdict=False)
        return self.tried[value].fits

    @property
    def way(self) -> dict[str, Any]:
        """In which the last value was `confirmed`: its framework, and what was conceded."""
        return {"workload.framework": self.framework, **self.conceded} if self.framework else {}

    def confirmed(self, value: Value) -> bool:
        """As `fits`, where a refusal is that of `plan_to_fit`."""
        if not self.fits(value) and value not in self.searched:
            self.searched.add(value)
            self.tried[value] = self._try(value, {}, verdict=True)
        return self.tried[value].fits

    def fits_alike(self, value: Value) -> bool:
        """Whether it fits in the way of the last value that was `confirmed`."""
        if value not in self.tried or not self.tried[value].fits:
            self.tried[value] = self._alike(value)
        return self.tried[value].fits

    def _alike(self, value: Value) -> Trial:
        """The trial of a value in the way of the last that was `confirmed`, with host memory if need be."""
        try:
            plan = self.plan_at(value).patch({**self.way, "goal.objective": "memory"})
            light = self.grower.lightest(job_of(plan), self.conceded)
        except PlanError as error:
            return Trial(value, False, None, str(error))
        if light is None:
            return Trial(value, False, None, None)
        return Trial(value, light.holds, light.bytes, None)

    def settled(self, value: Value) -> Planned:
        """The plan of a value as a verdict has it. Of one beyond the devices alone that is in the way of the last that
        was `confirmed`; where that way is none of the usual ones a verdict would come to it again, step by step."""
        plan = self.plan_at(value)
        if self.framework and value != self.alone and plan.training.framework == "auto":
            machine = job_of(plan).machine
            usual = [name for name, _ in choices(plan, machine.accelerator, machine.count)]
            odd = self.conceded or self.framework not in usual
            if odd and (planned := first_that_fits(plan, self.conceded, [self.framework])):
                return replace(planned, conceded=told_of(self.conceded, planned.job))
        return plan_to_fit(plan)

    def _try(self, value: Value, patch: Mapping[str, Any], verdict: bool) -> Trial:
        """One value with `patch`, on the devices alone or, for a verdict, with what `plan_to_fit` does beyond them."""
        try:
            plan = self.plan_at(value).patch({**patch, "goal.objective": "memory"})
            light = lightest(plan)
            way = way_beyond(plan, light.framework, self.grower) if verdict and not light.fits else None
        except PlanError as error:
            return Trial(value, False, None, str(error))
        if way:
            self.framework, self.conceded = way.light.framework, dict(way.changes)
            return Trial(value, True, way.light.bytes, None)
        return Trial(value, light.fits, light.bytes, None, partial(plan_training, plan, offload=False))


def narrowed(plan: Plan, *solved: str) -> dict[str, Any]:
    """Of the choices that the plan leaves open, those that take least memory whatever the rest is.

    One sequence per micro-batch keeps the fewest activations, full recompute keeps the least of each, and without
    interleaving the fewest micro-batches are in flight; `solved` names Plan paths that are what is asked for.
    """
    least: dict[str, Any] = {}
    if plan.training.micro_batch is None and "workload.micro_batch" not in solved:
        least["workload.micro_batch"] = 1
    if plan.layout.recompute is None:
        least["layout.recompute"] = "full"
    if plan.layout.vpp is None and plan.layout.schedule is None:
        least["layout.vpp"] = 1
    return least


def last_that_fits(trials: Trials, value_of: Callable[[int], int], marks: Sequence[int], start: int) -> int | None:
    """The last index whose value fits, or None. `marks` are ascending indices, the last of them the end of the range.

    From mark `start` on it goes up while marks fit, or down until one does: longer sequences may open layouts that
    shorter ones do not have, so the search begins where all are open. Between two neighbouring marks memory grows.
    All this is of the devices alone; a verdict then has the last word on the next value, and where that is yes its
    framework goes on as far as it can.
    """
    place = min(start, len(marks) - 1)
    if trials.fits(value_of(marks[place])):
        while place + 1 < len(marks) and trials.fits(value_of(marks[place + 1])):
            place += 1
        low = marks[place]
    else:
        place = next((at for at in range(place - 1, -1, -1) if trials.fits(value_of(marks[at]))), -1)
        low = marks[place] if place >= 0 else -1
    if low == marks[-1]:
        return low
    end = marks[-1]
    low = _bisect(lambda index: trials.fits(value_of(index)), low, marks[place + 1])
    trials.alone = value_of(low) if low >= 0 else None
    # Far ahead first: what fits there goes on further than what is just enough for the next.
    far = True
    while True:
        ahead = max(1, 2 * (low + 1)) if far else 1
        if low + ahead <= end and trials.fits(value_of(low + ahead)):
            low = reach(lambda index: trials.fits(value_of(index)), low + ahead, end)
            trials.alone = value_of(low)
        elif low + ahead <= end and trials.confirmed(value_of(low + ahead)):
            low = reach(lambda index: trials.fits_alike(value_of(index)), low + ahead, end)
            far = False
        elif ahead > 1:
            far = False
        else:
            break
    return None if low < 0 else low


def reach(fits: Callable[[int], bool], low: int, end: int) -> int:
    """The last index up to `end` that fits, from one that does: by doubling steps, then bisection."""
    step = max(1, low // _FIRST_STEP)
    high = min(end, low + step) if low < end else end + 1
    while high <= end and fits(high):
        low, step = high, 2 * step
        high = min(end, low + step) if low < end else end + 1
    return _bisect(fits, low, high)


def _bisect(fits: Callable[[int], bool], low: int, high: int) -> int:
    """The last index below `high` that fits, where `low` does (or is before the first) and `high` does not."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
