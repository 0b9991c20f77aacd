"""Whether a run keeps the limits that were set, and by how much: the same words wherever a verdict is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from estimator.plan.schema import Goal
from knowledge import figures


@dataclass(frozen=True)
class LimitWords:
    """A sentence each: of limits that are broken, of those that the upper end of the interval breaks, and of others."""

    broken: Sequence[str]
    doubtful: Sequence[str]
    kept: Sequence[str]


def limit_words(goal: Goal | None, *rows: object) -> LimitWords:
    """Of each figure that has a limit, as the first of the results says it that knows it."""
    if goal is None:
        return LimitWords((), (), ())
    limits = (
        ("Late", "In time", "hours", goal.deadline_h),
        ("Over budget", "Within budget", "usd", goal.budget_usd),
        ("Over the device-hours", "Within the device-hours", "device_hours", goal.budget_device_hours),
    )
    broken, doubtful, kept = list[str](), list[str](), list[str]()
    for over, within, figure, most in limits:
        row = next((row for row in rows if getattr(row, figure, None) is not None), None)
        if most is None or row is None:
            continue
        value, high = getattr(row, figure), getattr(row, f"high_{figure}", None)
        by = figures.shown(figure, abs(value - most))
        limit = figures.shown(figure, most)
        if value > most:
            broken.append(f"{over} by {by}: {figures.shown(figure, value)} of {limit}.")
        elif high is not None and high > most:
            doubtful.append(f"{within} by {by}, but not surely: {figures.held(row, figure)} of {limit}.")
        else:
            kept.append(f"{within} by {by}: {figures.shown(figure, value)} of {limit}.")
    return LimitWords(broken, doubtful, kept)
