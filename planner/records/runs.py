"""What was measured of a run that ships, beside what is estimated of it."""

from __future__ import annotations

from measure.history.nearest import compared_run, plan_of_run
from measure.history.shipped import ShippedRun
from planner.explain.results import MeasuredFigure


def compared(run: ShippedRun) -> list[MeasuredFigure]:
    """What was measured beside what is estimated; empty where the two cannot be compared."""
    figures = compared_run(run.place, run.file)
    return [
        MeasuredFigure(name=row.name, unit=row.unit, measured=row.measured, estimated=row.estimated, error=row.error)
        for row in figures
    ]


def plan_of(run: ShippedRun) -> dict[str, object] | None:
    """The plan that was run, where one can be made of what is known."""
    plan = plan_of_run(run.place, run.file)
    return None if plan is None else plan.given()
