"""Clusters for a training plan: every size screened with the usual layouts, the most promising first."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Literal

import numpy as np

from estimator.errors import PlanError
from estimator.machine.hardware import Accelerator
from estimator.plan.schema import Plan
from estimator.plan.training.job import Job
from estimator.rl.generation import STAGES, least_generation_s
from estimator.search.bounds import least_bytes, least_kernels_s, least_training_s
from estimator.search.fleet import Quick, Slower, quickest, sizes
from estimator.search.rivals import Promise, nearest_multiple, outdone_multiple
from knowledge.fitted.training import framework
from knowledge.jobs.training import job_of
from knowledge.machines.without_training import no_training
from knowledge.offers import check_offered, other_choices
from planner.asked.clusters import Sort
from planner.clusters.candidates import (
    MISFIT,
    NO_HOURLY,
    OVER_HOURLY,
    Beyond,
    Candidate,
    Hourly,
    Place,
    Rank,
    Refusal,
    Screened,
    Shape,
    hourly_rows,
    missed,
    node_sizes,
    rank,
    spent,
    unpriced,
)
from planner.clusters.request import Asked, finite
from planner.clusters.training.beyond import beyond_usual
from planner.clusters.training.outlay import money_of, took_of, unbroken_of
from planner.training.pinned import chosen
from planner.training.planned import Planned

# Devices up to which sizes are tried at the least, and the most that are; sizes below this part of the most are not.
_USUAL_DEVICES, _MOST_DEVICES, _LEAST_PART = 64, 16_384, 64
# Without a deadline, sizes are tried until the run takes a month, at this share of the rate that is the most.
_MONTH_H, _USUAL_SHARE = 720.0, 0.5
# How many times the most devices the least number that would fit is looked for.
# As many frameworks are usual beside the first, of any device.
_USUAL_CHOICES = 2
_LOOKED_BEYOND = 16
# More devices are tried where they leave no more than this part of the least hours.
_WORTHWHILE_PART = 0.8
# How many times its bound a run may take: what is outdone is taken to be as slow.
_SELDOM_ABOVE_BOUND = 8.0
# A shorter run is not split further where nobody says how far: starting it takes as long.
_SHORT_RUN_H = 1.0


def screened(ask: Asked, sort: Sort, enough: int) -> Screened:
    """What fits. Left out is what even at the most that it
    reaches comes behind `enough` others by `sort` and is not on the front. Raises PlanError where the plan itself
    cannot be."""
    refused: list[Callable[[], Refusal]] = []
    tries: list[_Tries] = []
    known = known_clusters(ask)
    for device in ask.devices:
        if why := no_training(device):
            refused.append(partial(Refusal, device.id, "no_framework", why))
        elif not ask.estimates(device.id):
            refused.append(partial(unpriced, device.id))
        else:
            tries.append(_Tries(ask, device, known))
    ahead = _Ahead(ask, sort, enough)
    # Where the best are estimated first, the fewest have to be.
    order = count()
    waiting = [(ahead.promise(cluster), next(order), cluster) for device in tries for cluster in device.first()]
    heapify(waiting)
    while waiting:
        cluster = heappop(waiting)[-1]
        if cluster.sized is None and not ahead.leaves_out(cluster):
            # What it promised was scaled from a node: it waits for its turn by what it really promises.
            if cluster := cluster.tries.whole(cluster):
                heappush(waiting, (ahead.promise(cluster), next(order), cluster))
            continue
        took = cluster.tries.estimate(cluster, ahead)
        if larger := cluster.tries.larger(cluster, took):
            heappush(waiting, (ahead.promise(larger), next(order), larger))
    if not ahead.candidates:
        for candidate in beyond_usual(ask, [shape for device in tries for shape in device.misfits], known.beyond):
            ahead.add(candidate)
    fitting = {each.shape.accelerator.id for each in ahead.candidates}
    failed = [device for device in tries if device.device.id not in fitting]
    errors = [device.error for device in failed if device.error and not device.misfits]
    dear = any(device.dear for device in failed)
    if errors and not ahead.candidates and not dear and len({str(error) for error in errors}) == 1:
        raise errors[0]

    def refusals() -> Iterator[Refusal]:
        yield from (refusal() for refusal in refused)
        for device in failed:
            yield device.refusal()

    return Screened(ahead.candidates, refusals, sum(device.tried for device in tries), ahead.beyond)


@dataclass(frozen=True, eq=False)
class _Sized:
    """The usual job of the plan on so many devices, the least seconds of its step, the least that it takes, and that
    without failures, generation and a last step that is partly empty: what grows as the devices get fewer."""

    plan: Plan
    job: Job
    least_s: float
    time: float
    unbroken: float


@dataclass(frozen=True)
class KnownClusters:
    """What clusters come to whatever the limits: asked once more with other limits, the same are not estimated again.
    By shape."""

    sized: dict[Place, _Sized] = field(default_factory=dict)
    best: dict[Place, tuple[Quick | None, Job]] = field(default_factory=dict)
    beyond: dict[Place, Planned | None] = field(default_factory=dict)
    chosen: dict[tuple[Place, str], dict[str, Any]] = field(default_factory=dict)
    """The best layout, by its network too."""


def known_clusters(ask: Asked) -> KnownClusters:
    without = ask.plan.patch({"goal.deadline_h": None, "goal.budget_usd": None})
    return ask.known.setdefault(without.model_dump_json(), KnownClusters())


@dataclass(frozen=True, eq=False)
class _Open:
    """A cluster that is not estimated yet, at its place among the sizes: the least money and time by which it is
    ranked, and the usual job on it (None: not made yet, what it promises is scaled from that on a node)."""

    tries: _Tries
    shape: Shape
    place: int
    best: Hourly | None
    money: float
    time: float
    sized: _Sized | None

    @property
    def hours(self) -> float | None:
        return self.time if self.tries.ask.ends else None

    @property
    def bought(self) -> bool:
        return self.best is not None and self.best.years_usd is not None

    @property
    def missed(self) -> float:
        """By what factor it misses the limits at the least."""
        if self.hours is None:
            return 0.0
        return missed(self.tries.ask, spent(self.best, self.money) if self.best else 0.0, self.hours)


class _Ahead:
    """What fits, and whether what is not estimated yet can come before it."""

    def __init__(self, ask: Asked, sort: Sort, enough: int) -> None:
        self.ask, self.enough = ask, enough
        self.sort: Sort = sort
        self.candidates: list[Candidate] = []
        self.beyond: list[Beyond] = []
        # Of what was measured, and of all: what was comes before what never was.
        self._missed: dict[bool, list[float]] = {True: [], False: []}
        self._inside: dict[bool, list[tuple[float, float]]] = {True: [], False: []}

    def promise(self, cluster: _Open) -> tuple[float, Rank]:
        unhurried_h, measured = self.ask.unhurried_h, cluster.tries.measured
        return max(1.0, cluster.missed), rank(self.sort, cluster.money, cluster.time, unhurried_h, measured)

    def add(self, candidate: Candidate) -> None:
        self.candidates.append(candidate)
        beyond = candidate.missed(self.ask)
        for kind in (True, False) if candidate.measured else (False,):
            self._missed[kind].append(beyond)
            if beyond <= 1.0:
                self._inside[kind].append((candidate.money, candidate.time))

    def leave(self, cluster: _Open) -> None:
        """Keeps what is left out for a limit."""
        self.beyond.append(Beyond(cluster.money, cluster.time, cluster.missed, cluster.tries.measured))

    def leaves_out(self, cluster: _Open) -> bool:
        return min(self.nearest(cluster), self.outdone(cluster)) <= 1.0

    def nearest(self, cluster: _Open) -> float:
        """From which multiple of its least time on it breaks the limits, and enough others are nearer to them."""
        reach = missed(self.ask, 0.0, cluster.hours) if cluster.bought else cluster.missed
        return nearest_multiple(np.array(self._missed[cluster.tries.measured]), reach, self.enough)

    def outdone(self, cluster: _Open) -> float:
        """From which on enough others come before it, and some beat it in money and time both."""
        inside = np.array(self._inside[cluster.tries.measured]).reshape(-1, 2)
        promise = Promise(cluster.money, cluster.time, cluster.bought, self.ask.unhurried_h)
        return outdone_multiple(self.sort, inside, promise, self.enough)


class _Tries:
    """One accelerator in all sizes that are tried, by the size of its nodes, and what came of them."""

    def __init__(self, ask: Asked, device: Accelerator, known: KnownClusters) -> None:
        self.ask, self.device, self.known = ask, device, known
        self.shapes: dict[int | None, list[Shape]] = {}
        self.usual: dict[int | None, int] = {}
        # By the size of nodes: the place of the largest that was opened, and the least hours that a run took.
        self.opened: dict[int | None, int] = {}
        self.least_hours: dict[int | None, float] = {}
        # What others are scaled from until they have a job of their own: a whole node.
        self.node: dict[int | None, _Sized] = {}
        # By the name of the framework.
        self.generation_s: dict[str, float] = {}
        # What kernels take at the least over what large products do, whatever the number of devices; and on how many
        # the usual layouts are known to fit.
        self.kernels: dict[str, float] = {}
        self.fits_on = math.inf
        # By the size of nodes: the most devices on which no usual layout fits.
        self.full_on: dict[int | None, int] = {}
        self.outdone = False
        self.beyond: Literal["past_deadline", "over_budget"] | None = None
        self.error: PlanError | None = None
        self.misfits: list[Shape] = []
        # Beyond the limit of an hour, with what they cost.
        self.dear: list[tuple[Shape, float]] = []
        self.tried = 0
        self.most_is_open = ask.count is None and ask.max_devices is None and ask.max_nodes is None
        for per_node, sellers in node_sizes(ask, device):
            counts = self._counts(per_node)
            # In one node of fewer devices it is as in the usual node.
            shapes = [Shape(device, size, per_node, sellers) for size in counts]
            self.shapes[per_node] = [shape for shape in shapes if sellers is None or shape.count > (per_node or 1)]

    @property
    def measured(self) -> bool:
        """Whether runs on the device were; so it is taken to be where no job on it is known."""
        return not self.node or any(sized.job.calibration.device_measured for sized in self.node.values())

    def first(self) -> Iterator[_Open]:
        """Those of each size of nodes up to the usual most, or to the first on which the run may take less than an
        hour."""
        for per_node in self.shapes:
            while cluster := self._opened(per_node, self.usual[per_node]):
                yield cluster
                if self._may_be_short(cluster):
                    break

    def larger(self, cluster: _Open, took: float | None) -> _Open | None:
        """The next size, if none beyond this one is open: up to as many as usual while the run takes an hour, and more
        while it takes longer than the deadline, or a month, and more can help. `took` is what `estimate` said."""
        per_node = cluster.shape.per_node
        usual, beyond = self.usual[per_node], self.shapes[per_node][cluster.place + 1 :]
        if not beyond or cluster.place < self.opened[per_node]:
            return None
        if beyond[0].count <= usual:
            least = self.least_hours.get(per_node, math.inf)
            return self._opened(per_node, usual) if least >= _SHORT_RUN_H else None
        budget, deadline_h = self.ask.max_usd, self.ask.deadline_h or _MONTH_H
        if not self.most_is_open or took is None or cluster.hours is None or took <= deadline_h:
            return None
        if budget is not None and cluster.best and spent(cluster.best, cluster.money) > budget:
            return None
        following = self._opened(per_node, _MOST_DEVICES)
        # Failures grow with the devices: whether more of them help is not seen from what was scaled.
        here, whole = self.whole(cluster), following and self.whole(following)
        return whole if here and whole and whole.time < _WORTHWHILE_PART * here.time else None

    def _opened(self, per_node: int | None, most: int) -> _Open | None:
        """The next size of up to `most` devices that can be tried."""
        shapes = self.shapes[per_node]
        for place in range(self.opened.get(per_node, -1) + 1, len(shapes)):
            if shapes[place].count > most:
                break
            self.opened[per_node] = place
            if cluster := self._next(shapes[place], place):
                return cluster
        return None

    def _may_be_short(self, cluster: _Open) -> bool:
        return self.most_is_open and cluster.hours is not None and cluster.hours < _SHORT_RUN_H

    def _counts(self, per_node: int | None) -> list[int]:
        node = per_node or self.device.per_node
        most = self.ask.most(node, self.device)
        usual = self._usual_most(node, per_node)
        self.usual[per_node] = self.ask.count or most or usual
        if self.ask.count is not None:
            return [self.ask.count]
        least = max(1, min(usual, most or usual) // _LEAST_PART)
        return sorted({size for limit in (most or usual, most or _MOST_DEVICES) for size in sizes(node, least, limit)})

    def _usual_most(self, node: int, per_node: int | None) -> int:
        """Devices with which the run takes no longer than the deadline, or a month."""
        sized = self._sized(Shape(self.device, node, per_node))
        if sized is None:
            return _USUAL_DEVICES
        self.node[per_node], job = sized, sized.job
        hours = (job.steps or 0) * least_training_s(job) * job.machine.count / _USUAL_SHARE / 3600.0
        needed = hours / (self.ask.deadline_h or _MONTH_H)
        return int(min(_MOST_DEVICES, max(_USUAL_DEVICES, 2 ** math.ceil(math.log2(max(1.0, needed))))))

    def _next(self, shape: Shape, place: int) -> _Open | None:
        """None where it cannot be had."""
        rows = hourly_rows(self.ask, shape, shape.node, shape.count > shape.node)
        best = rows[0] if rows else None
        if best is None and (shape.sellers is not None or self._waits_for_price(shape)):
            return None
        limit = self.ask.max_usd_per_hour
        if limit is not None and (best is None or best.usd > limit):
            self.dear.append((shape, best.usd if best else math.inf))
            return None
        sized = self.node.get(shape.per_node)
        if sized is None or self.ask.plan.training.stage in STAGES:  # Generation does not scale.
            return self.whole(_Open(self, shape, place, best, 0.0, 0.0, None))
        time = sized.unbroken * sized.job.machine.count / shape.count
        return _Open(self, shape, place, best, money_of(sized.job, time, best), time, None)

    def whole(self, cluster: _Open) -> _Open | None:
        """With the usual job on it; None where there is none."""
        sized = self._sized(cluster.shape)
        if sized is None:
            return None
        return replace(cluster, money=money_of(sized.job, sized.time, cluster.best), time=sized.time, sized=sized)

    def _sized(self, shape: Shape) -> _Sized | None:
        sized = self.known.sized.get(shape.place)
        if sized is None:
            plan = self.ask.plan.patch(shape.changes)
            try:
                job = job_of(plan)
                check_offered(job)
                products_s, name = least_training_s(job), job.framework.name
                kernels = self.kernels[name] = self.kernels.get(name) or least_kernels_s(job) / products_s
                trained_s = kernels * products_s
                least_s = trained_s + self._least_generation_s(plan, job)
                sized = _Sized(plan, job, least_s, took_of(job, least_s), unbroken_of(job, trained_s))
            except PlanError as error:
                self.error = error
                return None
            self.known.sized[shape.place] = sized
        return sized

    def _best(self, shape: Shape, sized: _Sized, slowest_s: float) -> tuple[Quick | Slower | None, Job]:
        """As `_quick`; what is known of a plan with other limits, it is also where it is slower."""
        place = shape.place
        if place in self.known.best:
            return self.known.best[place]
        # What fits on some devices fits on more, and what has no room on some has none on fewer.
        if shape.count < self.full_on.get(shape.per_node, 0):
            return None, sized.job
        quick, job = _quick(sized.plan, sized.job, slowest_s, shape.count > self.fits_on)
        if quick and job is sized.job:
            self.fits_on = min(shape.count, self.fits_on)
        if quick is None:
            self.full_on[shape.per_node] = max(shape.count, self.full_on.get(shape.per_node, 0))
        if not isinstance(quick, Slower):
            self.known.best[place] = quick, job
        return quick, job

    def _least_generation_s(self, plan: Plan, first: Job) -> float:
        """Seconds of a step that generation takes on each of the frameworks; `first` is the job on the usual one. What
        the host launches for it does not depend on the number of devices."""
        if first.rollout is not None or first.training.stage not in STAGES:
            return least_generation_s(first)
        least_s = math.inf
        for choice in (None, *_other_frameworks(plan, first)):
            name = choice[0] if choice else first.framework.name
            with suppress(PlanError):
                if name not in self.generation_s:
                    self.generation_s[name] = least_generation_s(job_of(plan, choice) if choice else first)
                least_s = min(least_s, self.generation_s[name])
        return least_s

    def _waits_for_price(self, shape: Shape) -> bool:
        """Devices that can be rented are only tried in numbers in which they can, unless a number was asked for."""
        some = shape.count > 1 or self.ask.buys
        return self.ask.rents(self.device.id) and self.ask.count is None and some

    def estimate(self, cluster: _Open, ahead: _Ahead) -> float | None:
        """Adds what it costs and takes in the best usual layout to what is `ahead`, unless it is left out. Returns the
        hours of the run (without data: seconds per token), at the least where it misses limits, at the most where it
        is outdone; None where it cannot be."""
        nearest, outdone = ahead.nearest(cluster), ahead.outdone(cluster)
        sized, multiple = cluster.sized, min(nearest, outdone)
        quick, job = Slower(), None
        if sized is not None and multiple > 1.0:
            try:
                quick, job = self._best(cluster.shape, sized, multiple * sized.least_s)
            except PlanError as error:
                self.error = error
                return None
            self.tried += 1
        if quick is None:
            self.misfits.append(cluster.shape)
            return None
        if isinstance(quick, Slower) or job is None:
            if outdone <= nearest:
                self.outdone = True
                return _SELDOM_ABOVE_BOUND * cluster.time
            ahead.leave(cluster)
            late = missed(self.ask, 0.0, cluster.hours) >= cluster.missed
            self.beyond = "past_deadline" if late else "over_budget"
            return max(1.0, nearest) * cluster.time
        took = took_of(job, quick.step_s)
        money = money_of(job, took, cluster.best)
        ahead.add(
            Candidate(
                shape=cluster.shape,
                changes=cluster.shape.changes | chosen(job, quick.layout, quick.micro_batch),
                best=cluster.best,
                hours=None if job.steps is None else took,
                money=money,
                time=took,
                measured=job.calibration.device_measured,
            )
        )
        if job.steps is not None:
            self.least_hours[cluster.shape.per_node] = min(took, self.least_hours.get(cluster.shape.per_node, math.inf))
        return took

    def refusal(self) -> Refusal:
        name = self.device.id
        if (least := self._least_hourly()) is not None:
            known = finite(least)
            return Refusal(name, "over_hourly", OVER_HOURLY, known) if known else Refusal(name, "no_price", NO_HOURLY)
        if self.outdone and not self.ask.rents(name):
            return Refusal(name, "no_price", "no price is known, and enough others have one")
        if self.outdone:
            return Refusal(name, "outdone", "others are cheaper and faster even if it reached its peak rate")
        if self.misfits:
            return Refusal(name, "does_not_fit", MISFIT, look=self._least_devices)
        if self.beyond:
            limit = {"past_deadline": "deadline", "over_budget": "budget"}[self.beyond]
            return Refusal(name, self.beyond, f"cannot keep to the {limit} even at its peak rate")
        if self.error:
            return Refusal(name, "no_layout", " ".join(str(self.error).split()))
        return Refusal(name, "not_offered", "no number of them that is for rent meets the limits")

    def _least_hourly(self) -> float | None:
        """USD an hour of the cheapest that fits of those beyond the limit of an hour; inf where its price is not
        known, None where none fits."""
        for shape, usd in sorted(self.dear, key=lambda each: (each[1], each[0].count)):
            try:
                if self._fits(shape):
                    return usd
                self.misfits.append(shape)
            except PlanError as error:
                self.error = error
        return None

    def _least_devices(self) -> int | None:
        """The next doubling beyond the most that were tried on which it would fit."""
        node, most = self.ask.plan.cluster.per_node or self.device.per_node, max(shape.count for shape in self.misfits)
        larger = sizes(node, most + 1, most * _LOOKED_BEYOND)
        if larger:
            with suppress(PlanError):
                job = job_of(self.ask.plan.patch(Shape(self.device, larger[-1]).changes))
                larger = [size for size in larger if least_bytes(job) <= job.usable_bytes * size]

        def holds(size: int) -> bool:
            with suppress(PlanError):
                return self._fits(Shape(self.device, size))
            return False

        place = bisect_left(larger, True, key=holds)
        return larger[place] if place < len(larger) else None

    def _fits(self, shape: Shape) -> bool:
        """In whatever time. Raises PlanError where the plan cannot be."""
        plan = self.ask.plan.patch(shape.changes)
        return bool(_quick(plan, job_of(plan), 0.0)[0])


def _other_frameworks(plan: Plan, first: Job) -> list[tuple[str, str]]:
    """Those that are tried where the usual one has no room. Of many, on a device that no usual one has, the first that
    splits models otherwise: the rest shards as the usual one does."""
    others = other_choices(plan, first)
    if len(others) <= _USUAL_CHOICES or first.framework.limits.searches_splits:
        return others[:_USUAL_CHOICES]
    return [choice for choice in others if framework(choice[0]).limits.searches_splits][:1]


def _quick(plan: Plan, first: Job, slowest_s: float, known_to_fit: bool = False) -> tuple[Quick | Slower | None, Job]:
    """The best usual layout, on the usual framework or, where that does not fit, on another: as in an estimate.
    `first` is the job on the usual one. What fits and takes `slowest_s` at the least is Slower."""
    quick, job = quickest(first, slowest_s, known_to_fit), first
    if quick:
        return quick, job
    for choice in _other_frameworks(plan, first):
        with suppress(PlanError):
            job = job_of(plan, choice)
            check_offered(job)
            if quick := quickest(job, slowest_s):
                return quick, job
    return None, first
