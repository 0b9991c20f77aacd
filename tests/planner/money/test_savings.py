"""Ways to pay less: each is a plan of its own, and costs what it says."""

from __future__ import annotations

import math

import pytest

from estimator.plan.schema import Plan
from planner.asked.money import CostTerms
from planner.money.cost import bill_of
from planner.money.training import Wanted
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
    cost = bill_of(plan, CostTerms.model_validate({}), Wanted(cheaper=True))
    assert cost.usd is not None
    assert cost.usd_per_hour is not None
    held = {"workload.framework": plan_training(plan).job.framework.name}
    assert len({saving.what for saving in cost.savings}) == len(cost.savings)
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
    cost = bill_of(plan, terms, Wanted(cheaper=True))
    held = {"workload.framework": plan_training(plan).job.framework.name}
    patched = [saving for saving in cost.savings if saving.patch]
    assert patched
    for saving in patched:
        assert saving.hours == pytest.approx(bill_of(plan.patch(held | saving.patch), terms).hours)


@pytest.mark.parametrize("budget", [300.0, 50.0])
@pytest.mark.parametrize("model", ["llama-3.1-70b", "qwen2.5-32b"])
def test_over_the_budget_three_plans_are_within_it(model: str, budget: float) -> None:
    """Fewer tokens always are; with what is cheaper alone it is not as many fewer."""
    cost = bill_of(_plan(model, 16, budget), CostTerms.model_validate({}))
    assert cost.within_budget is False
    within = [saving for saving in cost.savings if saving.within_budget]
    assert len(within) >= 3
    tokens = {saving.what: saving.patch.get("workload.dataset_tokens", math.inf) for saving in within}
    alone = next(saving for saving in within if set(saving.patch) == {"workload.dataset_tokens"})
    assert min(tokens.values()) == tokens[alone.what]


def test_within_the_budget_nothing_is_looked_for() -> None:
    assert bill_of(_plan("llama-3.1-8b", 8, 1e6), CostTerms.model_validate({})).savings == []


@pytest.mark.parametrize(
    "plan",
    [_plan("llama-3.1-8b", 8), _plan("llama-3.1-70b", 16, stage="pretrain")],
    ids=["fine-tuning", "pretraining"],
)
def test_what_is_faster_is_a_plan_of_its_own_with_its_price(plan: Plan) -> None:
    cost = bill_of(plan, CostTerms.model_validate({}), Wanted(faster=True))
    assert any(row.way == "devices" for row in cost.faster)
    held = {"workload.framework": plan_training(plan).job.framework.name}
    for row in cost.faster:
        assert row.hours < cost.hours
        assert row.gives_up
        changed = plan.patch(held | row.patch)
        run = run_of(plan_training(changed))
        assert run is not None
        assert row.hours == pytest.approx(run.hours)
        if row.way in ("devices", "device"):
            assert row.usd == pytest.approx(bill_of(changed, CostTerms.model_validate({})).usd)


def test_past_the_deadline_what_is_faster_is_looked_for() -> None:
    plan = _plan("llama-3.1-8b", 8).patch({"goal.deadline_h": 1.0})
    cost = bill_of(plan, CostTerms.model_validate({}))
    assert cost.within_deadline is False
    assert any(row.within_deadline for row in cost.faster)


def test_more_money_buys_what_it_pays_for() -> None:
    plan = _plan("qwen2.5-7b", 8)
    less, more = (
        bill_of(plan, CostTerms.model_validate({}), Wanted(more_usd=amount)) for amount in (50.0, 5000.0)
    )  # fmt: skip
    assert less.usd is not None
    for bill, amount in ((less, 50.0), (more, 5000.0)):
        assert bill.bought
        for row in bill.bought:
            assert row.usd <= less.usd + amount
    tokens = [next(row for row in bill.bought if row.way == "data").patch for bill in (less, more)]
    assert 1e9 < tokens[0]["workload.dataset_tokens"] < tokens[1]["workload.dataset_tokens"]
    assert any(row.way == "model" for row in more.bought)


def test_what_is_late_by_each_way_alone_is_in_time_by_two() -> None:
    """A smaller model was all that was named, where another framework on more devices is soon enough."""
    plan = _plan("llama-3.1-70b", 32, dataset_tokens=5e9).patch({"goal.deadline_h": 10.0})
    cost = bill_of(plan, CostTerms.model_validate({}))
    in_time = [row for row in cost.faster if row.within_deadline and row.way != "model"]
    assert in_time
    for row in in_time:
        assert row.patch["workload.framework"]
        assert row.patch["cluster.count"] > 32
        run = run_of(plan_training(plan.patch(row.patch)))
        assert run is not None
        assert row.hours == pytest.approx(run.hours)
