"""How much data a run gets through before its time, money or device-hours end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from estimator.errors import PlanError
from planner.limits import LimitRequest, find_limit
from planner.results import Limit
from planner.training.estimate import EstimateRequest, estimate_training

RUN = {"model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm", "count": 16, "stage": "pretrain"}


def most(**limits: Any) -> Limit:
    return find_limit(LimitRequest.model_validate({"goal": "tokens", **RUN, **limits}))


@settings(max_examples=examples(8), deadline=None)
@given(st.floats(2.0, 3000.0))
def test_the_most_data_are_done_just_in_time(hours: float) -> None:
    limit = most(deadline_h=hours)
    assert isinstance(limit.value, int)
    assert limit.low_value
    assert limit.high_value
    assert limit.low_value <= limit.value <= limit.high_value
    run = estimate_training(EstimateRequest.model_validate({**RUN, "dataset_tokens": limit.value})).run
    assert run is not None
    assert run.hours == pytest.approx(hours, rel=0.03)


def test_the_tightest_limit_decides() -> None:
    time, device_hours = most(deadline_h=100), most(budget_device_hours=800)
    both = most(deadline_h=100, budget_device_hours=800)
    assert (time.limited_by, device_hours.limited_by, both.limited_by) == ("deadline", "device_hours", "device_hours")
    assert both.value == device_hours.value
    assert isinstance(time.value, int)
    assert isinstance(both.value, int)
    assert time.value > both.value > 0


def test_money_buys_as_much_as_its_hours() -> None:
    less, more = most(budget_usd=1000), most(budget_usd=2000)
    assert less.limited_by == more.limited_by == "budget"
    assert isinstance(less.value, int)
    assert isinstance(more.value, int)
    assert 1.8 * less.value < more.value <= 2.0 * less.value * (1 + 1e-6)


def test_what_does_not_fit_gets_through_nothing() -> None:
    limit = most(model="meta-llama/Llama-3.1-405B", count=8, method="full", deadline_h=100)
    assert limit.value is None


def test_a_run_without_an_end_and_a_deployment_are_refused() -> None:
    with pytest.raises(PlanError, match="deadline_h"):
        most()
    with pytest.raises(PlanError, match="goal"):
        find_limit(LimitRequest.model_validate({"goal": "tokens", "model": RUN["model"], "input_len": 1000}))
