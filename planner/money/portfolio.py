"""Several runs on one cluster over weeks: when each is done, what that costs, and what is enough for all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import Field

from estimator.errors import PlanError
from estimator.machine.hardware import Accelerator
from estimator.money.queue import QueuedRun, starts
from estimator.plan.schema import Inference, Plan
from knowledge.prices.book import prices
from planner.asked.portfolio import PortfolioRequest, PortfolioRun
from planner.money.choice import doubts_of
from planner.money.offers import OfferTerms, cheapest, in_order, offer, rentable
from planner.named import device_named
from planner.requests import PlanRequest, parsed
from planner.result import Assumption, ProviderCost, Result, Warned
from planner.training.planned import Planned, plan_training
from planner.training.run import run_of

_TIMES = (2, 4, 8, 16, 32)


class PlacedRun(Result):
    name: str
    devices: int
    begins_h: float | None = Field(description="Hours from the start; null where it cannot run on this cluster.")
    ends_h: float | None
    latest_h: float | None = Field(description="The end at the upper ends of its own and all earlier intervals.")
    takes_h: float | None
    begins: str | None = Field(default=None, description="As a date, where a start is given.")
    ends: str | None = None
    latest: str | None = None
    usd: float | None = Field(description="Its part of the cluster for its hours.")
    meets_deadline: bool | None = None
    layout: str = ""
    why_not: str = ""


class EnoughDevices(Result):
    """The smallest multiple of the cluster on which every run ends in time."""

    count: int
    ends_h: float
    usd_per_hour: float | None
    usd: float | None = Field(description="Of the cluster until the last run has ended.")


class Portfolio(Warned):
    accelerator: str
    count: int
    provider: str | None
    usd_per_hour: float | None
    placed: list[PlacedRun] = Field(description="In the order in which they begin.")
    ends_h: float | None = Field(description="When the last is done.")
    busy_share: float | None = Field(description="Part of the devices' hours until then in which they work.")
    usd: float | None = Field(description="Of the whole cluster until then, idle hours too.")
    in_time: bool | None = Field(description="Whether every deadline is met; null without one.")
    enough: EnoughDevices | None = Field(
        default=None, description="Where a run is late or does not fit: what would do; null where nothing tried does."
    )
    assumptions: list[Assumption]
    warnings: list[str]


@dataclass(frozen=True)
class _Timed:
    """A run as it is planned on the cluster, which asks for `asks` devices and gets `devices`; `planned` is None where
    that cannot be, with why."""

    asked: PortfolioRun
    asks: int
    devices: int
    planned: Planned | None
    hours: float
    high_hours: float
    why_not: str = ""


@dataclass(frozen=True)
class _Schedule:
    runs: list[_Timed]
    begins: list[float | None]
    latest: list[float | None]
    accelerator: str
    per_node: int
    count: int

    def end(self, place: int) -> float | None:
        begins = self.begins[place]
        return None if begins is None else begins + self.runs[place].hours

    @property
    def ends_h(self) -> float | None:
        ends = [self.end(place) for place in range(len(self.runs))]
        known = [end for end in ends if end is not None]
        return max(known) if known else None

    @property
    def in_time(self) -> bool:
        """Whether all run, and none is late."""
        ends = [self.end(place) for place in range(len(self.runs))]
        return all(
            end is not None and (run.asked.deadline_h is None or end <= run.asked.deadline_h)
            for run, end in zip(self.runs, ends, strict=True)
        )


def schedule_runs(request: PortfolioRequest) -> Portfolio:
    """Schedule several runs on one cluster. Raises PlanError."""
    device, named = device_named(request.accelerator)
    _check_names(request.runs)
    schedule = _scheduled(request, device, request.count)
    offered, hourly = _hourly(request, schedule)
    ends_h = schedule.ends_h
    placed = [_placed(request, schedule, place, hourly) for place in range(len(schedule.runs))]
    placed.sort(key=lambda row: (row.begins_h is None, row.begins_h or 0.0))
    busy = sum(run.devices * run.hours for run, begins in zip(schedule.runs, schedule.begins, strict=True)
               if begins is not None)  # fmt: skip
    unable = [f"{row.name}: {row.why_not}" for row in placed if row.why_not]
    limited = any(run.deadline_h is not None for run in request.runs)
    return Portfolio(
        accelerator=device.id,
        count=request.count,
        provider=offered and offered.provider,
        usd_per_hour=hourly,
        placed=placed,
        ends_h=ends_h,
        busy_share=busy / (request.count * ends_h) if ends_h else None,
        usd=None if hourly is None or ends_h is None else hourly * ends_h,
        in_time=schedule.in_time if limited else None,
        enough=None if schedule.in_time else _enough(request, device),
        assumptions=[
            *named,
            *_models_read(schedule),
            Assumption(field="order", value="by priority", why="no run delays what goes first; none is stopped"),
            Assumption(field="devices", value="whole nodes", why="a run has its nodes to itself"),
        ],
        warnings=[*unable, *_doubts(request, offered, hourly)],
        warning_kinds=dict.fromkeys(unable, "fit"),
    )  # fmt: skip


def _models_read(schedule: _Schedule) -> list[Assumption]:
    """How the names of the runs' models were read."""
    return [
        item.model_copy(update={"field": f"runs.{run.asked.name}.model"})
        for run in schedule.runs
        if run.planned is not None
        for item in run.planned.assumptions
        if item.field == "model"
    ]


def _check_names(runs: Sequence[PortfolioRun]) -> None:
    names = [run.name for run in runs]
    for name in names:
        if names.count(name) > 1:
            raise PlanError("runs", f"has two runs called {name!r}")
    for run in runs:
        for other in run.after:
            if other not in names or other == run.name:
                raise PlanError("runs", f"{run.name!r} waits for {other!r}, which is no other run here", names)


def _scheduled(request: PortfolioRequest, device: Accelerator, count: int) -> _Schedule:
    per_node = min(device.per_node, count)
    timed = [_timed(run, device.id, count) for run in request.runs]
    names = [run.name for run in request.runs]

    def queue(high: bool) -> list[QueuedRun]:
        return [
            QueuedRun(
                nodes=math.ceil(run.asks / per_node),
                hours=run.high_hours if high else run.hours,
                priority=run.asked.priority,
                ready_h=run.asked.ready_h,
                after=tuple(names.index(other) for other in run.asked.after),
            )
            if run.planned is not None
            else QueuedRun(nodes=count + 1, hours=0.0)
            for run in timed
        ]

    nodes = max(1, count // per_node)
    begins, late = starts(queue(False), nodes), starts(queue(True), nodes)
    latest = [None if start is None else start + run.high_hours for start, run in zip(late, timed, strict=True)]
    return _Schedule(timed, begins, latest, device.id, per_node, count)


def _timed(run: PortfolioRun, accelerator: str, count: int) -> _Timed:
    """On a cluster of `count` devices. Raises PlanError for a plan that is none of training, or names no length."""
    nested = {name: value for name, value in run.plan.items() if name in Plan.model_fields}
    flat = {name: value for name, value in run.plan.items() if name not in nested}
    try:
        plan = parsed(PlanRequest, flat | {"plan": nested}).to_plan()
        asks = run.devices or plan.cluster.count or count
        devices = min(asks, count)
        plan = plan.patch({"cluster.accelerator": accelerator, "cluster.count": devices})
    except PlanError as error:
        raise PlanError(f"runs.{run.name}.{error.field}", error.problem, error.valid) from None
    if isinstance(plan.workload, Inference):
        raise PlanError(f"runs.{run.name}.workload", "is of serving, which has no end: only training is queued")
    try:
        planned = plan_training(plan)
        length = run_of(planned)
    except PlanError as error:
        if error.field == "model":
            raise PlanError(f"runs.{run.name}.model", error.problem, error.valid) from None
        return _Timed(run, asks, devices, None, 0.0, 0.0, str(error))
    if length is None:
        raise PlanError(f"runs.{run.name}.workload.dataset_tokens", "is required to know its length", ["1B"])
    if not planned.fits:
        return _Timed(run, asks, devices, None, 0.0, 0.0, f"it does not fit in memory on {devices} devices")
    return _Timed(run, asks, devices, planned, length.hours, length.high_hours)


def _hourly(request: PortfolioRequest, schedule: _Schedule) -> tuple[ProviderCost | None, float | None]:
    """(The cheapest offer, USD an hour) of the whole cluster; your own price has no offer."""
    if request.usd_per_device_hour is not None:
        return None, request.usd_per_device_hour * schedule.count
    terms = OfferTerms(per_node=schedule.per_node, nodes=math.ceil(schedule.count / schedule.per_node))
    listed = rentable(prices(schedule.accelerator), schedule.per_node)
    row = cheapest(in_order([offer(price, schedule.count, 1.0, terms) for price in listed]))
    return (None, None) if row is None else (row, row.usd_per_hour)


def _doubts(request: PortfolioRequest, offered: ProviderCost | None, hourly: float | None) -> list[str]:
    """What to beware of in the cluster's price."""
    if hourly is None:
        return [f"no price of {request.count} of these devices is known"]
    return doubts_of(offered, offered.price_date, request.count) if offered else []


def _placed(request: PortfolioRequest, schedule: _Schedule, place: int, hourly: float | None) -> PlacedRun:
    run, begins, ends = schedule.runs[place], schedule.begins[place], schedule.end(place)
    why = run.why_not
    if begins is None and not why:
        why = f"it waits for a run that cannot start, or needs more than {schedule.count} devices"
    deadline = run.asked.deadline_h
    return PlacedRun(
        name=run.asked.name,
        devices=run.devices,
        begins_h=begins,
        ends_h=ends,
        latest_h=schedule.latest[place],
        takes_h=run.hours if run.planned is not None else None,
        begins=_date(request.start, begins),
        ends=_date(request.start, ends),
        latest=_date(request.start, schedule.latest[place]),
        usd=None if hourly is None or begins is None else hourly * run.devices / schedule.count * run.hours,
        meets_deadline=None if deadline is None else ends is not None and ends <= deadline,
        layout=run.planned.estimates.layouts.summary(run.planned.index) if run.planned is not None else "",
        why_not=why,
    )


def _date(start: datetime | None, hours: float | None) -> str | None:
    if start is None or hours is None:
        return None
    try:
        return (start + timedelta(hours=hours)).strftime("%Y-%m-%d %H:%M")
    except OverflowError:
        return None


def _enough(request: PortfolioRequest, device: Accelerator) -> EnoughDevices | None:
    """The smallest tried multiple of the cluster that does; runs without a number of devices take all of it."""
    for times in _TIMES:
        count = request.count * times
        schedule = _scheduled(request, device, count)
        if schedule.in_time and schedule.ends_h is not None:
            _, hourly = _hourly(request, schedule)
            usd = None if hourly is None else hourly * schedule.ends_h
            return EnoughDevices(count=count, ends_h=schedule.ends_h, usd_per_hour=hourly, usd=usd)
    return None
