"""How long a run takes on machines that fail: its steps, checkpoints, work that is done again, and restarts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from estimator.money.cost import checkpoint_interval_h, interrupted_hours


@dataclass(frozen=True)
class Disturbance:
    """What stops a run: `per_hour` interruptions of the whole run an hour, `restart_h` from each until it trains again,
    `save_h` for a checkpoint, one every `interval_h` hours of work (None: the interval that loses least)."""

    per_hour: float
    restart_h: float
    save_h: float
    interval_h: float | None = None


@dataclass(frozen=True)
class ElapsedTime:
    """Expected hours by the clock and what they go to: `run_h` + `checkpoint_h` + `redone_h` + `restart_h`."""

    run_h: float
    hours: float
    interruptions: float
    interval_h: float | None
    checkpoint_h: float
    redone_h: float
    restart_h: float

    @property
    def share(self) -> float:
        """Part of the hours in which steps of the run are made: effective training time."""
        return self.run_h / self.hours if self.hours else 1.0


def goodput(run_h: float, of: Disturbance) -> ElapsedTime | None:
    """A run of `run_h` hours of steps; None where it would hardly ever end (Daly 2006, see interrupted_hours).

    Interruptions come at random at all times, also while the run restarts, so that their expected number is the rate
    times all hours. `interval_h` is None where the run is too short to save on the way.
    """
    if of.interval_h is None and of.per_hour > 0.0:
        # Young's interval is for runs of many; a run of one or two may do better to save nothing on its way.
        young = checkpoint_interval_h(of.save_h, 1.0 / of.per_hour, run_h)
        choices = [goodput(run_h, replace(of, interval_h=interval)) for interval in (young, run_h)]
        return min(filter(None, choices), key=lambda elapsed: elapsed.hours, default=None)
    interval = of.interval_h
    hours = interrupted_hours(run_h, of.per_hour, of.restart_h, of.save_h, interval)
    if hours is None:
        return None
    at_once = interrupted_hours(run_h, of.per_hour, 0.0, of.save_h, interval)
    assert at_once is not None
    saves = interval is not None and interval < run_h
    saved_h = of.save_h * run_h / interval if saves and interval else 0.0
    return ElapsedTime(
        run_h=run_h,
        hours=hours,
        interruptions=of.per_hour * hours,
        interval_h=interval if saves else None,
        checkpoint_h=saved_h,
        redone_h=max(0.0, at_once - run_h - saved_h),
        restart_h=hours - at_once,
    )
