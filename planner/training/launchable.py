"""Whether some launch target writes a plan on its devices, whatever the search chooses of it."""

from __future__ import annotations

from contextlib import suppress

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.figures import label
from knowledge.offers import is_unstarted, movable_to, runs_on
from launchers.choice import frameworks_started, usual_program
from launchers.render import render, unsaid
from planner.fields import value_at
from planner.training.planned import Planned

# Fields that nobody gave and that are tried otherwise, one after the other.
_MOST_CHANGES = 6


def unlaunched(asked: Plan, planned: Planned) -> list[str]:
    """A warning where no files are written of what was asked: every program of every framework that runs on the devices
    refuses what was given, or the devices. What nobody gave is chosen otherwise when files are written; that it is
    another framework, whose speed is another, is told."""
    plan, stated = planned.settled_plan, asked.given()
    device = planned.job.machine.accelerator
    if is_unstarted(planned.job.framework.name):
        return []
    first = _refused(plan, stated)
    if first is None:
        return []
    if value_at(stated, "workload.framework") in (None, "auto"):
        names = [*movable_to(planned.job), *(name for name in frameworks_started() if runs_on(name, device))]
        others = (name for name in names if _refused(plan.patch({"workload.framework": name}), stated) is None)
        if other := next(others, None):
            return [f"no launch files for this run with {planned.job.framework.name}; with {other} there are"]
    what = f"such a run on {device.name}: {label(first.field)}: {first.problem}"
    return [f"Shardwise writes no launch files for {what}"]


def unwritten(asked: Plan, planned: Planned) -> list[str]:
    """As `unlaunched`, and a warning where the very layout is one that no program's files can say."""
    nothing = unlaunched(asked, planned)
    if nothing or is_unstarted(planned.job.framework.name):
        return nothing
    why = unsaid(planned.settled_plan)
    return [f"no launch files say this layout; those that are written have the nearest ({why})"] if why else []


def _refused(plan: Plan, stated: dict[str, object]) -> PlanError | None:
    """Why a framework's usual program cannot be told what was given; None where it can, the rest chosen otherwise."""
    for _ in range(_MOST_CHANGES):
        try:
            render(plan, [usual_program(plan)])
            return None
        except PlanError as refused:
            why = refused
        stands = why.field.startswith("cluster.") or value_at(stated, why.field) is not None
        changed = None if stands else _changed(plan, why)
        if changed is None:
            return why
        plan = changed
    return None


def _changed(plan: Plan, why: PlanError) -> Plan | None:
    for value in why.valid:
        with suppress(PlanError):
            if value != "auto":
                return plan.patch({why.field: value})
    return None
