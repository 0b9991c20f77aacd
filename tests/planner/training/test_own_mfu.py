"""An MFU of one's own: time and money follow from it, memory and layout do not."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from estimator.errors import PlanError
from planner.explain.explain import ExplainRequest, explain
from planner.money.cost import CostRequest, estimate_cost
from planner.training.estimate import EstimateRequest, estimate_training

RUN = {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "count": 8, "stage": "pretrain", "dataset_tokens": 1e9}


def test_the_step_takes_what_the_mfu_says() -> None:
    expected = estimate_training(EstimateRequest.model_validate(RUN))
    own = estimate_training(EstimateRequest.model_validate(RUN | {"overrides": {"mfu": 0.4}}))
    assert own.throughput.mfu == pytest.approx(0.4)
    assert own.throughput.expected_mfu == pytest.approx(expected.throughput.mfu)
    assert expected.throughput.expected_mfu is None
    assert own.time.step_s == pytest.approx(expected.time.step_s * expected.throughput.mfu / 0.4)
    assert own.time.low_s == own.time.step_s == own.time.high_s
    assert sum(own.time.components.values()) == pytest.approx(own.time.step_s)
    assert own.memory == expected.memory


def test_six_flops_a_parameter_and_token_take_so_long() -> None:
    """Kaplan et al. 2020, section 2.1: training takes about 6 FLOP a parameter and token; attention adds some."""
    run = RUN | {"dataset_tokens": 1e12, "overrides": {"mfu": 0.4}}
    own = estimate_training(EstimateRequest.model_validate(run)).run
    assert own is not None
    hours = 6 * 8.03e9 * 1e12 / (8 * 0.4 * 989.4e12) / 3600
    assert hours < own.step_hours < 1.2 * hours


def test_a_bill_follows() -> None:
    slow, fast = (
        estimate_cost(CostRequest.model_validate(RUN | {"overrides": {"mfu": mfu}})).usd for mfu in (0.25, 0.5)
    )
    assert slow is not None
    assert fast is not None
    assert slow == pytest.approx(2 * fast)


@pytest.mark.parametrize("figure", ["time.step_s", "throughput.mfu", "run.hours"])
def test_what_is_explained_has_no_interval_either(figure: str) -> None:
    told = explain(ExplainRequest.model_validate(RUN | {"overrides": {"mfu": 0.3}, "figure": figure}))
    assert told.low == told.value == told.high


@pytest.mark.parametrize("mfu", [0, -0.1, 1.2, 40])
def test_an_mfu_is_a_share(mfu: float) -> None:
    with pytest.raises((PlanError, ValidationError)):
        estimate_training(EstimateRequest.model_validate(RUN | {"overrides": {"mfu": mfu}}))
