"""Clusters where nothing fits in the usual ways: less usual frameworks, host memory, and what a verdict gives up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from estimator.errors import PlanError
from planner.clusters.candidates import Candidate, Place, Shape, hourly_rows
from planner.clusters.request import Asked
from planner.clusters.training.outlay import money_of, took_of
from planner.training.pinned import chosen
from planner.training.planned import Planned, plan_to_fit

# Clusters that are looked at, those of the most memory first: where none of them will do, smaller ones seldom do.
_MOST = 8


def beyond_usual(ask: Asked, shapes: list[Shape], known: dict[Place, Planned | None]) -> Iterator[Candidate]:
    """Of clusters on which no usual framework has a usual layout that fits those of which `check_fit` says that it
    does; `known` keeps what it said."""
    ordered = sorted(shapes, key=lambda shape: -shape.count * shape.accelerator.memory_bytes)
    for shape in ordered[:_MOST]:
        if shape.place not in known:
            known[shape.place] = _fitting(ask, shape)
        if planned := known[shape.place]:
            job = planned.job
            rows = hourly_rows(ask, shape, shape.node, shape.count > shape.node)
            best = rows[0] if rows else None
            took = took_of(job, float(planned.estimates.step.seconds[planned.index]))
            layouts, at = planned.estimates.layouts, planned.index
            yield Candidate(
                shape=shape,
                changes=shape.changes
                | chosen(job, layouts.row(at), int(layouts.micro_batch[at]))
                | {item.field: item.value for item in planned.conceded},
                best=best,
                hours=None if job.steps is None else took,
                money=money_of(job, took, best),
                time=took,
                measured=job.calibration.device_measured,
                settled=True,
            )


def _fitting(ask: Asked, shape: Shape) -> Planned | None:
    with suppress(PlanError):
        planned = plan_to_fit(ask.plan.patch(shape.changes))
        return planned if planned.fits and planned.has_host_memory else None
    return None
