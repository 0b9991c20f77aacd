"""Clusters for a training plan: every size screened with the usual layouts, the most promising first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Literal

import numpy as np

from estimator.errors import PlanError
from estimator.machine.hardware import Accelerator
from estimator.plan.schema import Plan
from estimator.plan.training.job import Job
from estimator.rl.generation import STAGES, least_generation_s
from estimator.search.bounds import least_training_s
from estimator.search.fleet import Quick, Slower, quickest, sizes
from estimator.search.rivals import nearest_multiple, outdone_multiple
from knowledge.jobs.training import job_of
from knowledge.machines.without_training import no_training
from knowledge.offers import check_offered, choices
from planner.clusters.candidates import (
    MISFIT,
    NO_HOURLY,
    OVER_HOURLY,
    Candidate,
    Hourly,
    Place,
    Refusal,
    Refused,
    Screened,
    Shape,
    hourly_rows,
    missed,
    node_sizes,
    rank,
    unpriced,
)
from planner.clusters.request import Asked, Sort, finite
from planner.training.run import clock_hours

# Devices up to which sizes are tried at the least, and the most that are; sizes below this part of the most are not.
_USUAL_DEVICES, _MOST_DEVICES, _LEAST_PART = 64, 16_384, 64
# Without a deadline, sizes are tried until the run takes a month, at this share of the rate that is the most.
_MONTH_H, _USUAL_SHARE = 720.0, 0.5
# How many times the most devices the least number that would fit is looked for.
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
    refused: Refused = []
    tries: list[_Tries] = []
    known = ask.known.setdefault(_without_limits(ask.plan), KnownClusters())
    for device in ask.devices:
        if why := no_training(device):
            refused.append(Refusal(device.id, "no_framework", why))
        elif not ask.estimates(device.id):
            refused.append(unpriced(device.id))
        else:
            tries.append(_Tries(ask, device, known))
    ahead = _Ahead(ask, sort, enough)
    # Where the best are estimated first, the fewest have to be.
    order = count()
    waiting = [(ahead.promise(cluster), next(order), cluster) for device in tries for cluster in device.first()]
    heapify(waiting)
    while waiting:
        cluster = heappop(waiting)[-1]
        took = cluster.tries.estimate(cluster, ahead)
        if larger := cluster.tries.larger(cluster, took):
            heappush(waiting, (ahead.promise(larger), next(order), larger))
    failed = [device for device in tries if not device.fitted]
    errors = [device.error for device in failed if device.error and not device.misfits]
    if errors and not ahead.candidates and len({str(error) for error in errors}) == 1:
        raise errors[0]
    refused += [device.refusal() for device in failed]
    return Screened(ahead.candidates, refused, sum(device.tried for device in tries))


@dataclass(frozen=True, eq=False)
class _Sized:
    """The usual job of the plan on so many devices, the least seconds of its step, and the least that it takes."""

    plan: Plan
    job: Job
    least_s: float
    time: float


@dataclass(frozen=True)
class KnownClusters:
    """What clusters come to whatever the limits: asked once more with other limits, the same are not estimated again.
    By shape."""

    sized: dict[Place, _Sized] = field(default_factory=dict)
    best: dict[Place, tuple[Quick | None, Job]] = field(default_factory=dict)
    least: dict[tuple[str, int], int | None] = field(default_factory=dict)
    """By device and the most that were tried: the least number that would do."""


def _without_limits(plan: Plan) -> str:
    return plan.patch({"goal.deadline_h": None, "goal.budget_usd": None}).model_dump_json()


@dataclass(frozen=True, eq=False)
class _Open:
    """A cluster that is not estimated yet, at its place among the sizes: the usual job on it, and the least money and
    time by which it is ranked."""

    tries: _Tries
    shape: Shape
    place: int
    plan: Plan
    job: Job
    best: Hourly | None
    least_s: float
    money: float
    time: float

    @property
    def hours(self) -> float | None:
        return None if self.job.steps is None else self.time

    @property
    def missed(self) -> float:
        """By what factor it misses the limits at the least."""
        return missed(self.tries.ask, self.money if self.best else 0.0, self.hours) if self.hours is not None else 0.0


class _Ahead:
    """What fits, and whether what is not estimated yet can come before it."""

    def __init__(self, ask: Asked, sort: Sort, enough: int) -> None:
        self.ask, self.enough = ask, enough
        self.sort: Sort = sort
        self.candidates: list[Candidate] = []
        self._missed: list[float] = []
        self._inside: list[tuple[float, float]] = []

    def promise(self, cluster: _Open) -> tuple[float, tuple[bool, float, float, float]]:
        return max(1.0, cluster.missed), rank(self.sort, cluster.money, cluster.time)

    def add(self, candidate: Candidate) -> None:
        self.candidates.append(candidate)
        beyond = candidate.missed(self.ask)
        self._missed.append(beyond)
        if beyond <= 1.0:
            self._inside.append((candidate.money, candidate.time))

    def nearest_s(self, cluster: _Open) -> float:
        """Seconds of a step from which on it breaks the limits, and enough others are nearer to them."""
        return nearest_multiple(np.array(self._missed), cluster.missed, self.enough) * cluster.least_s

    def outdone_s(self, cluster: _Open) -> float:
        """Seconds of a step from which on enough others come before it, and some beat it in money and time both."""
        inside = np.array(self._inside).reshape(-1, 2)
        return outdone_multiple(self.sort, inside, cluster.money, cluster.time, self.enough) * cluster.least_s


class _Tries:
    """One accelerator in all sizes that are tried, by the size of its nodes, and what came of them."""

    def __init__(self, ask: Asked, device: Accelerator, known: KnownClusters) -> None:
        self.ask, self.device, self.known = ask, device, known
        self.shapes: dict[int | None, list[Shape]] = {}
        self.usual: dict[int | None, int] = {}
        # By the size of nodes: the place of the largest that was opened, and the least hours that a run took.
        self.opened: dict[int | None, int] = {}
        self.least_hours: dict[int | None, float] = {}
        # By the name of the framework.
        self.generation_s: dict[str, float] = {}
        self.fitted = self.outdone = False
        self.beyond: Literal["past_deadline", "over_budget"] | None = None
        self.error: PlanError | None = None
        self.misfits: list[int] = []
        self.dear: list[float] = []
        self.tried = 0
        self.most_is_open = ask.count is None and ask.max_devices is None and ask.max_nodes is None
        for per_node, sellers in node_sizes(ask, device):
            counts = self._counts(per_node)
            # In one node of fewer devices it is as in the usual node.
            shapes = [Shape(device, size, per_node, sellers) for size in counts]
            self.shapes[per_node] = [shape for shape in shapes if sellers is None or shape.count > (per_node or 1)]

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
            return self._opened(per_node, usual) if self._may_be_short(cluster) and least >= _SHORT_RUN_H else None
        budget = self.ask.max_usd
        if not self.most_is_open or took is None or (budget is not None and cluster.best and cluster.money > budget):
            return None
        if cluster.hours is None or took <= (self.ask.deadline_h or _MONTH_H):
            return None
        following = self._opened(per_node, _MOST_DEVICES)
        return following if following and following.time < _WORTHWHILE_PART * cluster.time else None

    def _opened(self, per_node: int | None, most: int) -> _Open | None:
        """The next size of up to `most` devices that can be tried."""
        shapes = self.shapes[per_node]
        for place in range(self.opened.get(per_node, -1) + 1, len(shapes)):
            if shapes[place].count > most:
                break
            self.opened[per_node] = place
            if cluster := self._sized(shapes[place], place):
                return cluster
        return None

    def _may_be_short(self, cluster: _Open) -> bool:
        return self.most_is_open and cluster.hours is not None and cluster.hours < _SHORT_RUN_H

    def _counts(self, per_node: int | None) -> list[int]:
        node = per_node or self.device.per_node
        most = self.ask.most(node, self.device)
        usual = self._usual_most(node)
        self.usual[per_node] = self.ask.count or most or usual
        if self.ask.count is not None:
            return [self.ask.count]
        least = max(1, min(usual, most or usual) // _LEAST_PART)
        return sorted({size for limit in (most or usual, most or _MOST_DEVICES) for size in sizes(node, least, limit)})

    def _usual_most(self, node: int) -> int:
        """Devices with which the run takes no longer than the deadline, or a month."""
        try:
            job = job_of(_with(self.ask.plan, Shape(self.device, node)))
        except PlanError:
            return _USUAL_DEVICES
        hours = (job.steps or 0) * least_training_s(job) * job.machine.count / _USUAL_SHARE / 3600.0
        needed = hours / (self.ask.deadline_h or _MONTH_H)
        return int(min(_MOST_DEVICES, max(_USUAL_DEVICES, 2 ** math.ceil(math.log2(max(1.0, needed))))))

    def _sized(self, shape: Shape, place: int) -> _Open | None:
        rows = hourly_rows(self.ask, shape, shape.node, shape.count > shape.node)
        best = rows[0] if rows else None
        if best is None and (shape.sellers is not None or self._waits_for_price(shape)):
            return None
        sized = self.known.sized.get(shape.place)
        if sized is None:
            plan = _with(self.ask.plan, shape)
            try:
                job = job_of(plan)
                check_offered(job)
            except PlanError as error:
                self.error = error
                return None
            least_s = least_training_s(job) + self._least_generation_s(plan, job)
            sized = self.known.sized[shape.place] = _Sized(plan, job, least_s, _took(job, least_s))
        money = _money(sized.job, sized.time, best)
        return _Open(self, shape, place, sized.plan, sized.job, best, sized.least_s, money, sized.time)

    def _best(self, cluster: _Open, slowest_s: float) -> tuple[Quick | Slower | None, Job]:
        """As `_quick`; what is known of a plan with other limits, it is also where it is slower."""
        place = cluster.shape.place
        if place in self.known.best:
            return self.known.best[place]
        quick, job = _quick(cluster.plan, cluster.job, slowest_s)
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
        return self.ask.rents(self.device.id) and self.ask.count is None and shape.count > 1

    def estimate(self, cluster: _Open, ahead: _Ahead) -> float | None:
        """Adds what it costs and takes in the best usual layout to what is `ahead`, unless it is left out. Returns the
        hours of the run (without data: seconds per token), at the least where it misses limits, at the most where it
        is outdone; None where it cannot be."""
        nearest_s, outdone_s = ahead.nearest_s(cluster), ahead.outdone_s(cluster)
        slowest_s = min(nearest_s, outdone_s)
        quick, job = Slower(), cluster.job
        if cluster.least_s < slowest_s:
            try:
                quick, job = self._best(cluster, slowest_s)
            except PlanError as error:
                self.error = error
                return None
            self.tried += 1
        if quick is None:
            self.misfits.append(cluster.shape.count)
            return None
        if isinstance(quick, Slower):
            if outdone_s <= nearest_s:
                self.outdone = True
                return _SELDOM_ABOVE_BOUND * cluster.time
            late = missed(self.ask, 0.0, cluster.hours) >= cluster.missed
            self.beyond = "past_deadline" if late else "over_budget"
            return max(1.0, nearest_s / cluster.least_s) * cluster.time
        limit, best = self.ask.max_usd_per_hour, cluster.best
        if limit is not None and (best is None or best.usd > limit):
            self.dear.append(best.usd if best else math.inf)
            return None
        took = _took(job, quick.step_s)
        money = _money(job, took, best)
        self.fitted = True
        ahead.add(
            Candidate(
                shape=cluster.shape,
                changes=cluster.shape.changes | chosen(job, quick.layout, quick.micro_batch),
                best=best,
                hours=None if job.steps is None else took,
                money=money,
                time=took,
            )
        )
        if job.steps is not None:
            self.least_hours[cluster.shape.per_node] = min(took, self.least_hours.get(cluster.shape.per_node, math.inf))
        return took

    def refusal(self) -> Refusal:
        name = self.device.id
        if self.dear:
            least = finite(min(self.dear))
            return Refusal(name, "over_hourly", OVER_HOURLY, least) if least else Refusal(name, "no_price", NO_HOURLY)
        if self.outdone and not self.ask.rents(name):
            return Refusal(name, "no_price", "no price is known, and enough others have one")
        if self.outdone:
            return Refusal(name, "outdone", "others cost and take less, even at the highest rate that it can reach")
        if self.misfits:
            most = max(self.misfits)
            if (name, most) not in self.known.least:
                self.known.least[name, most] = self._least_devices(most)
            return Refusal(name, "does_not_fit", MISFIT, self.known.least[name, most])
        if self.beyond:
            limit = {"past_deadline": "deadline", "over_budget": "budget"}[self.beyond]
            return Refusal(name, self.beyond, f"cannot keep to the {limit} even at the highest rate that it can reach")
        if self.error:
            return Refusal(name, "no_layout", " ".join(str(self.error).split()))
        return Refusal(name, "not_offered", "it is not rented in any number within the limits")

    def _least_devices(self, most: int) -> int | None:
        """The next doubling beyond the most on which it would fit."""
        node = self.ask.plan.cluster.per_node or self.device.per_node
        for size in sizes(node, most + 1, most * _LOOKED_BEYOND):
            try:
                plan = _with(self.ask.plan, Shape(self.device, size))
                if _quick(plan, job_of(plan), 0.0)[0]:
                    return size
            except PlanError:
                continue
        return None


def _with(plan: Plan, shape: Shape) -> Plan:
    return plan.patch(shape.changes)


def _other_frameworks(plan: Plan, first: Job) -> list[tuple[str, str]]:
    if plan.training.framework != "auto":
        return []
    return choices(plan, first.machine.accelerator, first.machine.count)[1:]


def _took(job: Job, step_s: float) -> float:
    """Hours of the run; without data seconds per token."""
    return step_s / job.tokens_per_step if job.steps is None else clock_hours(job, job.steps * step_s / 3600.0)


def _money(job: Job, took: float, best: Hourly | None) -> float:
    """USD of the run; without data USD per million tokens. inf: no price is known."""
    usd = math.inf if best is None else best.usd
    return usd / 3600.0 * took * 1e6 if job.steps is None else usd * took


def _quick(plan: Plan, first: Job, slowest_s: float = math.inf) -> tuple[Quick | Slower | None, Job]:
    """The best usual layout, on the usual framework or, where that does not fit, on another: as in an estimate.
    `first` is the job on the usual one. What fits and takes `slowest_s` at the least is Slower."""
    quick, job = quickest(first, slowest_s), first
    if quick:
        return quick, job
    for choice in _other_frameworks(plan, first):
        with suppress(PlanError):
            job = job_of(plan, choice)
            check_offered(job)
            if quick := quickest(job, slowest_s):
                return quick, job
    return None, first


def chosen(job: Job, layout: Mapping[str, Any], micro_batch: int) -> dict[str, Any]:
    """What a plan has to say for these very figures to come out again."""
    return {
        "layout": dict(layout),
        "workload.micro_batch": micro_batch,
        "workload.global_batch": job.global_batch,
        "workload.framework": job.framework.name,
    }
