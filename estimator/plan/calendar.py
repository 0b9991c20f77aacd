"""Runs by the calendar, where machines are free only a part of every week."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, timedelta

DAY_H, WEEK_D = 24.0, 7  # hours of a day, days of a week
_WEEKEND_D, _SATURDAY = 2, 5  # days of a weekend, and the day on which it begins, from Monday


@dataclass(frozen=True)
class FreeHours:
    """So many hours of a day on so many days in a row of every week."""

    hours_per_day: float
    days_per_week: int

    @property
    def always(self) -> bool:
        return self.hours_per_day == DAY_H and self.days_per_week == WEEK_D

    @property
    def share(self) -> float:
        """Of all hours."""
        return self.hours_per_day * self.days_per_week / (DAY_H * WEEK_D)

    def free_h(self, elapsed_h: float) -> float:
        """Hours of work that are done so many hours by the calendar after the start of the first free day of a week."""
        days, hours = divmod(elapsed_h, DAY_H)
        weeks, day = divmod(int(days), WEEK_D)
        today = min(hours, self.hours_per_day) if day < self.days_per_week else 0.0
        return (weeks * self.days_per_week + min(day, self.days_per_week)) * self.hours_per_day + today

    def elapsed_h(self, run_h: float) -> float:
        """Hours by the calendar until so many of work are done, from the start of the first free day of a week."""
        before = max(math.ceil(run_h / self.hours_per_day) - 1, 0)
        weeks, days = divmod(before, self.days_per_week)
        return (WEEK_D * weeks + days) * DAY_H + run_h - before * self.hours_per_day

    def free_between(self, first: date, end: date) -> float:
        """Hours of work from the beginning of one day to that of another: weeks of one or two free days are weekends,
        those of more begin on Monday."""
        starts = _SATURDAY if self.days_per_week <= _WEEKEND_D else 0
        weeks, rest = divmod(max(0, (end - first).days), WEEK_D)
        days = [first + timedelta(days=day) for day in range(rest)]
        free = sum((day.weekday() - starts) % WEEK_D < self.days_per_week for day in days)
        return (weeks * self.days_per_week + free) * self.hours_per_day
