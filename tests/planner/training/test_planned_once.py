"""What a report passes from one part to the next is what each part would have planned anew."""

from __future__ import annotations

from dataclasses import replace

import pytest

from estimator.plan.schema import Plan
from knowledge.offers import able_frameworks
from planner.asked.money import CostTerms
from planner.fit.frameworks import other_ways
from planner.fit.training import fit_of
from planner.money.cost import bill_of
from planner.training.planned import (
    Planned,
    first_that_fits,
    known_to_fit,
    on_every_framework,
    plan_to_fit,
    plan_training,
)

# On the devices, on another framework, in host memory, with something given up, and on none.
PLANS = [
    ("llama-3.1-8b", "h100-sxm", 8, {}),
    ("llama-3.1-8b", "rtx-4090", 2, {}),
    ("llama-3.1-8b", "l4", 8, {"seq_len": 131072}),
    ("llama-3.1-8b", "rtx-4090", 2, {"framework": "deepspeed"}),
    ("llama-3.1-70b", "h100-sxm", 2, {"framework": "deepspeed"}),
    ("mixtral-8x7b", "l4", 16, {}),
    ("qwen3-32b", "a100-sxm-40gb", 8, {}),
    ("deepseek-v3", "b200", 64, {}),
    ("deepseek-v3", "l4", 64, {}),
]


def same(one: Planned, other: Planned) -> bool:
    return (one.plan, one.summary, one.search.valid, one.hopeless) == (
        other.plan,
        other.summary,
        other.search.valid,
        other.hopeless,
    )


@pytest.mark.parametrize(("model", "accelerator", "count", "workload"), PLANS)
def test_known_plans_are_those_planned_anew(
    model: str, accelerator: str, count: int, workload: dict[str, object]
) -> None:
    cluster = {"accelerator": accelerator, "count": count}
    plan = Plan.parse({"model": model, "workload": workload | {"dataset_tokens": 1e9}, "cluster": cluster})
    whole = plan_training(plan)
    assert same(known_to_fit(plan, whole), plan_to_fit(plan))
    assert same(on_every_framework(plan, whole), plan_training(plan, every_framework=True))
    terms = CostTerms.model_validate({})
    assert bill_of(plan, terms, known=whole) == bill_of(plan, terms)


def test_what_was_hopeless_on_the_way_down_is_no_other_way() -> None:
    plan = Plan.parse({"model": "llama-3.1-8b", "cluster": {"accelerator": "rtx-4090", "count": 1}})
    planned = plan_to_fit(plan)
    names = able_frameworks(planned.job.training, planned.job.machine.accelerator)
    assert len(planned.hopeless) > 1
    for rung in planned.hopeless:
        assert first_that_fits(plan, rung.changes, list(names)) is None
    ways = other_ways(planned, plan)
    assert ways
    assert other_ways(replace(planned, hopeless=()), plan) == ways


@pytest.mark.parametrize(("model", "accelerator", "count"), [("deepseek-v3", "rtx-4090", 8), ("deepseek-v3", "l4", 8)])
def test_of_two_changes_at_once_no_more_devices_are_told_than_are_needed(
    model: str, accelerator: str, count: int
) -> None:
    plan = Plan.parse({"model": model, "cluster": {"accelerator": accelerator, "count": count}})
    pairs = [way for way in fit_of(plan).remedies if way.fits and "cluster.count" in way.patch]
    partners = [{k: v for k, v in way.patch.items() if k.startswith("workload.m")} for way in pairs]
    assert pairs
    assert all(partner not in partners[:at] for at, partner in enumerate(partners))
