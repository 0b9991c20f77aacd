"""Ways to pay less: each is a plan of its own, and costs what it says."""

from __future__ import annotations

import pytest

from estimator.plan.schema import Plan
from planner.money.cost import bill_of
from planner.money.terms import CostTerms
from planner.training.planned import plan_training
from planner.training.run import run_of


def _plan(model: str, count: int, budget: float | None = None, **workload: object) -> Plan:
    return Plan.parse(
        {
            "model": model,
            "cluster": {"accelerator": "h100-sxm", "count": count},
            "workload": {"kind": "training", "dataset_tokens": 1e9} | workload,
            "goal": {} if budget is None else {"budget_usd": budget},
        }
    )


@pytest.mark.parametrize(
    "plan",
    [
        _plan("llama-3.1-8b", 8),
        _plan("llama-3.1-70b", 16, 300.0),
        _plan("qwen2.5-14b", 8, 50.0, stage="pretrain"),
        _plan("llama-3.1-8b", 1, 5.0, method="lora"),
    ],
    ids=["any", "over", "pretraining", "adapters"],
)
def test_savings_are_true(plan: Plan) -> None:
    cost = bill_of(plan, CostTerms.model_validate({}), cheaper=True)
    assert cost.usd is not None
    assert cost.usd_per_hour is not None
    held = {"workload.framework": plan_training(plan).job.framework.name}
    assert len({saving.way for saving in cost.savings}) == len(cost.savings)
    for saving in cost.savings:
        assert saving.usd < cost.usd
        assert saving.gives_up
        assert saving.within_budget == (None if plan.goal.budget_usd is None else saving.usd <= plan.goal.budget_usd)
        if not saving.patch:
            continue
        run = run_of(plan_training(plan.patch(held | saving.patch)))
        assert run is not None
        assert saving.hours == pytest.approx(run.hours)
        assert saving.usd == pytest.approx(run.hours * cost.usd_per_hour)


def test_savings_have_the_failures_of_the_bill() -> None:
    """A person's own rate holds for what they would change too, or each would seem to save what failures cost."""
    plan = _plan("llama-3.1-70b", 64, dataset_tokens=1e11)
    terms = CostTerms.model_validate({"device_hours_between_failures": 2000.0})
    cost = bill_of(plan, terms, cheaper=True)
    held = {"workload.framework": plan_training(plan).job.framework.name}
    patched = [saving for saving in cost.savings if saving.patch]
    assert patched
    for saving in patched:
        assert saving.hours == pytest.approx(bill_of(plan.patch(held | saving.patch), terms).hours)


def test_over_the_budget_some_way_is_within_it() -> None:
    """Fewer tokens always are, where nothing else is."""
    cost = bill_of(_plan("llama-3.1-70b", 16, 300.0), CostTerms.model_validate({}))
    assert cost.within_budget is False
    assert any(saving.within_budget for saving in cost.savings)


def test_within_the_budget_nothing_is_looked_for() -> None:
    assert bill_of(_plan("llama-3.1-8b", 8, 1e6), CostTerms.model_validate({})).savings == []
