"""The length of a training run by the clock: its steps, and what machines that fail add to them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from estimator.errors import PlanError
from estimator.money import goodput
from estimator.money.goodput import Disturbance
from estimator.plan.schema import Goal
from estimator.plan.training.job import Job
from estimator.training.checkpoints import checkpoint_size
from knowledge.machines.failures import interruption_rate
from knowledge.machines.host import host_facts
from knowledge.prices.ownership import interruption_assumptions
from planner.result import Assumption
from planner.results import Goodput, RunLength
from planner.training.planned import Planned

# Below both, what failures add is less than what is known of the speed.
LONG_RUN_H = 24.0
MANY_DEVICES = 64
# An upper end beyond this says no more than that the run may hardly get on.
_MOST_TIMES_LONGER = 10.0


@dataclass(frozen=True)
class FailureTerms:
    """What a person knows of their own cluster; None where published values are to be taken."""

    device_hours_between: float | None = None
    restart_h: float | None = None
    interval_h: float | None = None

    @property
    def named(self) -> bool:
        return any(value is not None for value in (self.device_hours_between, self.restart_h, self.interval_h))


@dataclass(frozen=True)
class WallClock:
    """Hours by the clock with their interval; `goodput` is None where nothing is added to the steps."""

    hours: float
    low_hours: float
    high_hours: float
    goodput: goodput.ElapsedTime | None = None


PUBLISHED = FailureTerms()


def wall_clock(job: Job, hours: tuple[float, float, float], terms: FailureTerms = PUBLISHED) -> WallClock:
    """Of (hours, low, high) of steps. The interval's ends are those of the steps and of the failures together, as of
    errors that know nothing of each other.

    Raises PlanError where failures come faster than work gets done.
    """
    run_h, low, high = hours
    if not _is_disturbed(job, run_h, terms):
        return WallClock(*hours)
    usual, *other = _disturbances(job, terms)
    expected = _expected(job, run_h, usual)
    best, *worse = (goodput.goodput(run_h, of) for of in other)
    assert best is not None  # it is disturbed less than `usual`
    factors = [high / run_h, _slow_machines(job), *(_times_longer(elapsed, expected) for elapsed in worse)]
    below = math.hypot(math.log(run_h / low), math.log(expected.hours / best.hours))
    above = math.hypot(*(math.log(factor) for factor in factors))
    return WallClock(expected.hours, expected.hours * math.exp(-below), expected.hours * math.exp(above), expected)


def clock_hours(job: Job, run_h: float, terms: FailureTerms = PUBLISHED) -> float:
    """The expected hours of `wall_clock` alone, for searches that take many. Raises PlanError."""
    if not _is_disturbed(job, run_h, terms):
        return run_h
    usual, *_ = _disturbances(job, terms)
    return _expected(job, run_h, usual).hours


def _is_disturbed(job: Job, run_h: float, terms: FailureTerms) -> bool:
    """Whether failures add more than what is known of the speed, or are said."""
    return run_h > 0.0 and (run_h >= LONG_RUN_H or job.machine.count >= MANY_DEVICES or terms.named)


def _expected(job: Job, run_h: float, usual: Disturbance) -> goodput.ElapsedTime:
    elapsed = goodput.goodput(run_h, usual)
    if elapsed is None:
        problem = f"of {job.machine.count} devices come faster than the run advances: give your own rate"
        raise PlanError("device_hours_between_failures", problem, ["30000", "100000"])
    return elapsed


def _times_longer(worse: goodput.ElapsedTime | None, expected: goodput.ElapsedTime) -> float:
    return _MOST_TIMES_LONGER if worse is None else min(worse.hours / expected.hours, _MOST_TIMES_LONGER)


def save_hours(job: Job) -> float:
    """Of one checkpoint to resume from, all nodes writing their part at once; training waits for it."""
    size = checkpoint_size(job, host_facts(job.framework.name)).resumable
    return size / (interruption_assumptions()["save_gb_per_s_per_node"].value * 1e9 * job.machine.nodes) / 3600.0


def _disturbances(job: Job, terms: FailureTerms) -> tuple[Disturbance, ...]:
    """As expected; at the good end of what is published; with more failures; with slower restarts."""
    rate, facts, save_h = interruption_rate(), interruption_assumptions(), save_hours(job)

    def disturbance(device_hours: float, minutes: str) -> Disturbance:
        between = device_hours if terms.device_hours_between is None else terms.device_hours_between
        restart_h = facts[minutes].value / 60.0 if terms.restart_h is None else terms.restart_h
        return Disturbance(job.machine.count / between, restart_h, save_h, terms.interval_h)

    return (
        disturbance(rate.device_hours, "restart_minutes"),
        disturbance(rate.high_device_hours, "quick_restart_minutes"),
        disturbance(rate.low_device_hours, "restart_minutes"),
        disturbance(rate.device_hours, "slow_restart_minutes"),
    )


def _slow_machines(job: Job) -> float:
    """How many times slower the run is while a slow machine among its nodes is not found: all wait for the slowest."""
    facts = interruption_assumptions()
    chance = 1.0 - (1.0 - facts["slow_machine_share"].value) ** job.machine.nodes
    return 1.0 + chance * facts["slow_machine_slowdown"].value


def run_of(planned: Planned) -> RunLength | None:
    """Length of the whole run; None when the plan names neither data nor steps."""
    run, index = planned.job.run, planned.index
    if run is None:
        return None
    hours = step_hours(planned)
    clock = wall_clock(planned.job, hours)
    return RunLength(
        tokens=run.tokens,
        steps=run.steps,
        hours=clock.hours,
        low_hours=clock.low_hours,
        high_hours=clock.high_hours,
        step_hours=hours[0],
        device_hours=clock.hours * planned.job.machine.count,
        goodput=clock.goodput and _goodput_of(clock.goodput, float(planned.estimates.mfu[index])),
        **elapsed(planned.job.plan.goal, (clock.hours, clock.low_hours, clock.high_hours)),
    )


def elapsed(goal: Goal, hours: tuple[float, float, float]) -> dict[str, float]:
    """Of (hours, low, high) of a run those by the calendar, where machines are free only a part of the week."""
    names = ("elapsed_hours", "low_elapsed_hours", "high_elapsed_hours")
    return {name: goal.free.elapsed_h(each) for name, each in zip(names, hours, strict=True)} if goal.free else {}


def step_hours(planned: Planned) -> tuple[float, float, float]:
    """(hours, low, high) of the steps of a run alone; zeros where the plan names neither data nor steps."""
    estimates, index = planned.estimates, planned.index
    hours = planned.job.run.steps / 3600.0 if planned.job.run else 0.0
    ends = (estimates.step.seconds[index], estimates.low_s[index], estimates.high_s[index])
    expected, low, high = (hours * float(seconds) for seconds in ends)
    return expected, low, high


def _goodput_of(expected: goodput.ElapsedTime, mfu: float) -> Goodput:
    interval_h = expected.interval_h
    return Goodput(
        interruptions=expected.interruptions,
        share=expected.share,
        mfu=mfu * expected.share,
        checkpoint_interval_minutes=None if interval_h is None else 60.0 * interval_h,
        checkpoint_hours=expected.checkpoint_h,
        redone_hours=expected.redone_h,
        restart_hours=expected.restart_h,
    )


def failure_assumptions(terms: FailureTerms = PUBLISHED) -> list[Assumption]:
    """What is taken from published runs, where a person names nothing of their own."""
    _, assumed = restart_of(terms)
    if terms.device_hours_between is not None:
        return assumed
    rate = interruption_rate()
    between = Assumption(field="device_hours_between_failures", value=rate.device_hours, why=rate.source)
    return [between, *assumed]


def restart_of(terms: FailureTerms) -> tuple[float, list[Assumption]]:
    """Hours from an interruption to work again, and what is assumed for it."""
    if terms.restart_h is not None:
        return terms.restart_h, []
    fact = interruption_assumptions()["restart_minutes"]
    return fact.value / 60.0, [Assumption(field="restart_minutes", value=fact.value, why=fact.source)]
