"""What failures add to a run: parts that add up, in the right direction."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.money.goodput import Disturbance, goodput

HOURS = st.floats(0.1, 5000.0)
RATE = st.floats(1e-6, 2.0)
RESTART = st.floats(0.0, 1.5)
SAVE = st.floats(1e-5, 0.2)


@given(HOURS, RATE, RESTART, SAVE, st.none() | st.floats(0.05, 50.0))
def test_the_parts_are_the_hours(run_h, rate, restart_h, save_h, interval_h) -> None:
    elapsed = goodput(run_h, Disturbance(rate, restart_h, save_h, interval_h))
    if elapsed is None:
        return
    parts = elapsed.run_h + elapsed.checkpoint_h + elapsed.redone_h + elapsed.restart_h
    assert parts == pytest.approx(elapsed.hours, rel=1e-6)
    assert 0.0 < elapsed.share <= 1.0 + 1e-9
    assert min(elapsed.checkpoint_h, elapsed.redone_h, elapsed.restart_h) >= 0.0


@given(HOURS, RATE, RESTART, SAVE, st.floats(1.01, 5.0))
def test_worse_machines_never_shorten_a_run(run_h, rate, restart_h, save_h, factor) -> None:
    before = goodput(run_h, Disturbance(rate, restart_h, save_h))
    for worse in (
        Disturbance(rate * factor, restart_h, save_h),
        Disturbance(rate, restart_h * factor, save_h),
        Disturbance(rate, restart_h, save_h * factor),
    ):
        after = goodput(run_h, worse)
        assert after is None or (before is not None and after.hours >= before.hours * (1.0 - 1e-9))


def test_a_run_nobody_disturbs_takes_its_steps() -> None:
    elapsed = goodput(100.0, Disturbance(0.0, 0.25, 0.1))
    assert elapsed is not None
    assert (elapsed.hours, elapsed.interruptions, elapsed.interval_h, elapsed.share) == (100.0, 0.0, None, 1.0)


def test_failures_faster_than_work_have_no_end() -> None:
    assert goodput(100.0, Disturbance(1000.0, 0.25, 0.01)) is None
