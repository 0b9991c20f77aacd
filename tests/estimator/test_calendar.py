"""Runs on machines that are free a part of every week."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.plan.calendar import FreeHours

FREE = st.builds(FreeHours, st.floats(0.5, 24.0), st.integers(1, 7))


@pytest.mark.parametrize(
    ("free", "run_h", "elapsed_h"),
    [
        (FreeHours(8, 5), 8.0, 8.0),
        (FreeHours(8, 5), 9.0, 25.0),
        (FreeHours(8, 5), 41.0, 7 * 24 + 1.0),
        (FreeHours(24, 2), 49.0, 7 * 24 + 1.0),
        (FreeHours(10, 7), 25.0, 2 * 24 + 5.0),
        (FreeHours(24, 7), 100.0, 100.0),
    ],
)
def test_work_goes_on_when_machines_are_free_again(free: FreeHours, run_h: float, elapsed_h: float) -> None:
    assert free.elapsed_h(run_h) == pytest.approx(elapsed_h)


@given(free=FREE, run_h=st.floats(0.1, 2000.0))
def test_a_deadline_leaves_the_hours_that_end_with_it(free: FreeHours, run_h: float) -> None:
    elapsed_h = free.elapsed_h(run_h)
    assert elapsed_h >= run_h * (1 - 1e-9)
    assert free.free_h(elapsed_h + 1e-6) == pytest.approx(run_h, abs=1e-5)
    assert free.free_h(elapsed_h - 0.05) < run_h


@given(free=FREE, hours=st.lists(st.floats(0.1, 2000.0), min_size=2, max_size=2))
def test_longer_runs_end_later(free: FreeHours, hours: list[float]) -> None:
    short, long = sorted(hours)
    assert free.elapsed_h(short) <= free.elapsed_h(long)
