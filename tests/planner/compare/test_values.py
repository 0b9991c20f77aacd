"""Values of a swept field."""

from __future__ import annotations

import pytest
from pace import within

from estimator.errors import PlanError
from planner.compare.values import MOST_POINTS, values_of


def test_too_many_values_are_refused_soon() -> None:
    with within(0.5), pytest.raises(PlanError, match=f"up to {MOST_POINTS}"):
        values_of(list(range(60_000)), "values")


def test_each_value_is_taken_once() -> None:
    assert values_of([8, 16, 8, "8", 16.0], "values") == [8, 16, "8"]
