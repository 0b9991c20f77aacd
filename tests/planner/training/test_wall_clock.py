"""The length of a run by the clock, the same on every face."""

from __future__ import annotations

import pytest

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.machines.failures import interruption_rate, spot_share
from planner.asked.money import CostTerms
from planner.money.training import bill_of
from planner.training.planned import plan_training
from planner.training.run import LONG_RUN_H, MANY_DEVICES, run_of


def _plan(count: int, tokens: float, **goal: float) -> Plan:
    return Plan.parse(
        {
            "model": "llama-3.1-8b",
            "cluster": {"accelerator": "h100-sxm", "count": count},
            "workload": {"kind": "training", "dataset_tokens": tokens, "seq_len": 4096, "global_batch": 256},
            "goal": goal,
        }
    )


@pytest.mark.parametrize(("count", "tokens"), [(8, 1e9), (8, 5e10), (64, 1e9), (256, 1e12)])
def test_failures_count_from_a_day_or_64_devices_on(count: int, tokens: float) -> None:
    run = run_of(plan_training(_plan(count, tokens)))
    assert run is not None
    counted = run.step_hours >= LONG_RUN_H or count >= MANY_DEVICES
    assert (run.goodput is not None) == counted
    if run.goodput is None:
        assert run.hours == run.step_hours
        return
    lost = run.goodput.checkpoint_hours + run.goodput.redone_hours + run.goodput.restart_hours
    assert run.hours == pytest.approx(run.step_hours + lost)
    assert run.goodput.share == pytest.approx(run.step_hours / run.hours)
    assert run.low_hours < run.hours < run.high_hours
    assert run.goodput.interruptions == pytest.approx(run.hours * count / interruption_rate().device_hours)


@pytest.mark.parametrize("price", ["on_demand", "spot", "own"])
@pytest.mark.parametrize(("count", "tokens"), [(8, 1e9), (256, 1e12)])
def test_money_is_paid_for_hours_by_the_clock(price: str, count: int, tokens: float) -> None:
    plan = _plan(count, tokens)
    run = run_of(plan_training(plan))
    terms = CostTerms.model_validate({"price": price, "usd_per_device_hour": 2.0 if price == "own" else None})
    cost = bill_of(plan, terms)
    assert run is not None
    assert cost.usd is not None
    assert cost.usd_per_hour is not None
    assert cost.hours >= run.hours * (1.0 - 1e-9) if price == "spot" else cost.hours == pytest.approx(run.hours)
    assert cost.usd == pytest.approx(cost.hours * cost.usd_per_hour)
    assert sum(part.usd for part in cost.parts) == pytest.approx(cost.usd_total)
    interrupted = [part for part in cost.parts if part.part == "interruptions"]
    assert bool(interrupted) == (cost.hours > run.step_hours * (1.0 + 1e-12))
    assert cost.within_deadline is None


def test_ones_own_interruption_rate_is_used() -> None:
    plan = _plan(256, 1e12)
    usual, never, often = (
        bill_of(plan, CostTerms.model_validate({"device_hours_between_failures": between})).hours
        for between in (None, 1e9, 1000.0)
    )
    assert never < usual < often


def test_a_deadline_is_one_by_the_clock() -> None:
    run = run_of(plan_training(_plan(256, 1e12)))
    assert run is not None
    between = (run.step_hours + run.hours) / 2
    assert bill_of(_plan(256, 1e12, deadline_h=between), CostTerms.model_validate({})).within_deadline is False


def test_a_run_that_would_never_end_is_refused() -> None:
    with pytest.raises(PlanError, match="faster than the run advances") as error:
        bill_of(_plan(256, 1e12), CostTerms.model_validate({"device_hours_between_failures": 0.5}))
    assert error.value.field == "device_hours_between_failures"


def test_published_rates() -> None:
    rate = interruption_rate()
    assert 1e3 < rate.low_device_hours < rate.device_hours < rate.high_device_hours < 1e6
    share = spot_share("AWS", "p5.48xlarge")
    assert share is not None
    assert 0.0 < share.value < 1.0
    assert spot_share("Vast", "p5.48xlarge") is None
