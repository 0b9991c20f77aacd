"""find_limit for data: how many tokens a run takes within its deadline, its budget and its device-hours."""

from __future__ import annotations

import time
from collections.abc import Callable

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.figures import hours, number, usd
from planner.asked.money import CostTerms
from planner.evidence import evidence_of
from planner.money.training import bill_of
from planner.partial import DATA_SIZES
from planner.results import Limit
from planner.training.length import DATA
from planner.training.memory import memory_of
from planner.training.planned import Planned, choice, plan_to_fit, warnings_of
from planner.training.run import WallClock, wall_clock

# Halvings of the stretch that the hours of work lie in: the tenth digit is reached.
_HALVINGS = 40
# What the price of an hour is asked with: it does not depend on the length of the run.
_SOME_TOKENS = 1e9


def most_tokens(plan: Plan) -> Limit:
    """The most tokens, with an interval from that of the speed and of failures. Raises PlanError where the plan limits
    neither time, nor money, nor device-hours, or has no price for its money."""
    started = time.perf_counter()
    open_plan = plan.patch({f"workload.{name}": None for name in (*DATA_SIZES, "epochs")})
    at = plan_to_fit(open_plan)
    allowed_h, (limited_by, why) = min(_allowed(open_plan, at))
    estimates, index = at.estimates, at.index
    step, per_s = estimates.step.seconds[index], float(estimates.tokens_per_s[index])
    low, high = float(estimates.low_s[index] / step), float(estimates.high_s[index] / step)

    def clock(work_h: float) -> WallClock:
        return wall_clock(at.job, (work_h, work_h * low, work_h * high))

    def tokens(length: Callable[[WallClock], float]) -> int:
        return int(_work_within(allowed_h, lambda work_h: length(clock(work_h))) * 3600 * per_s)

    memory, fits = memory_of(at), at.fits
    value = tokens(lambda length: length.hours) if fits else None
    planned = at.plan.patch({DATA: value}) if value else at.plan
    return Limit(
        goal="tokens",
        value=value,
        low_value=tokens(lambda length: length.high_hours) if fits else None,
        high_value=tokens(lambda length: length.low_hours) if fits else None,
        plan=planned.model_dump(mode="json"),
        assumptions=at.assumptions,
        parameters=at.job.architecture.parameters,
        memory=memory,
        chosen=choice(estimates, index),
        limited_by=limited_by if fits else memory.decided_by,
        why=why if fits else "it does not fit",
        next_value=None,
        tried=1,
        probes=[],
        seconds=time.perf_counter() - started,
        warnings=warnings_of(at),
        evidence=evidence_of(at.job),
    )


def _allowed(plan: Plan, at: Planned) -> list[tuple[float, tuple[str, str]]]:
    """(Hours by the clock, (what allows no more, why)) of each limit of the plan."""
    goal, devices = plan.goal, at.job.machine.count
    limits: list[tuple[float, tuple[str, str]]] = []
    if goal.free_h:
        limits.append((goal.free_h, ("deadline", f"the run ends after {hours(goal.free_h)}")))
    if goal.budget_device_hours:
        each = goal.budget_device_hours / devices
        on = "one device" if devices == 1 else f"{number(devices)} devices"
        why = f"{number(goal.budget_device_hours)} device-hours are {hours(each)} of {on}"
        limits.append((each, ("device_hours", why)))
    # Credits alone are all that a run may cost.
    money_usd = goal.budget_usd or goal.credits_usd
    if money_usd:
        hourly = bill_of(plan.patch({DATA: _SOME_TOKENS}), CostTerms.model_validate({})).usd_per_hour
        if not hourly:
            raise PlanError(
                "goal.budget_usd", f"buys unknown hours: no price is known for {at.job.machine.accelerator.id}"
            )
        each = money_usd / hourly
        limits.append((each, ("budget", f"{usd(money_usd)} pays for {hours(each)} at {usd(hourly)} per hour")))
    if not limits:
        problem = "is required to know how much data a run takes, or budget_usd, credits_usd, or budget_device_hours"
        raise PlanError("goal.deadline_h", problem, ["336", "720"])
    return limits


def _work_within(allowed_h: float, clock_h: Callable[[float], float]) -> float:
    """The most hours of work that are done within so many by the clock."""

    def in_time(work_h: float) -> bool:
        try:
            return clock_h(work_h) <= allowed_h
        except PlanError:  # failures come faster than the run gets on
            return False

    done, late = 0.0, 2.0 * allowed_h
    while in_time(late):
        late *= 2.0
    for _ in range(_HALVINGS):
        middle = (done + late) / 2.0
        done, late = (middle, late) if in_time(middle) else (done, middle)
    return done
