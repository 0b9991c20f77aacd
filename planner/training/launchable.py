"""Whether some launch target writes a plan on its devices, whatever the search chooses of it."""

from __future__ import annotations

from contextlib import suppress

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.offers import is_unstarted, movable_to, runs_on
from launchers.choice import frameworks_started
from launchers.render import unsaid
from launchers.rules import briefly
from planner.fields import value_at
from planner.training.planned import Planned, plan_training
from planner.training.programs import refused


def unlaunched(asked: Plan, planned: Planned) -> list[str]:
    """A warning where no files are written of what was asked: every program of every framework that runs on the devices
    refuses what was given, or the devices. What nobody gave is chosen otherwise when files are written; that it is
    another framework, whose speed is another, is told."""
    plan, stated = planned.settled_plan, asked.given()
    device = planned.job.machine.accelerator
    if is_unstarted(planned.job.framework.name):
        return []
    first = refused(plan, stated)
    if first is None:
        return []
    if value_at(stated, "workload.framework") in (None, "auto"):
        names = [*movable_to(planned.job), *(name for name in frameworks_started() if runs_on(name, device))]
        others = (name for name in names if refused(plan.patch({"workload.framework": name}), stated) is None)
        if other := next(others, None):
            there = f"no launch files for this run with {planned.job.framework.name}; with {other} there are"
            return [there if not planned.fits or _fits(asked, other) else f"{there}, but it does not fit there"]
    return [f"Shardwise writes no launch files for such a run on {device.name}: {briefly(first.problem)}"]


def _fits(asked: Plan, framework: str) -> bool:
    """Whether it fits on the devices with that framework, host memory included."""
    with suppress(PlanError):
        return plan_training(asked.patch({"workload.framework": framework})).fits
    return False


def unwritten(asked: Plan, planned: Planned) -> list[str]:
    """As `unlaunched`, and a warning where the very layout is one that no program's files can say."""
    nothing = unlaunched(asked, planned)
    if nothing or is_unstarted(planned.job.framework.name):
        return nothing
    why = unsaid(planned.settled_plan)
    return [f"no launch files say this layout; those written have the nearest one, as {why}"] if why else []
