"""Runs that name neither data nor steps: pretraining takes its model's tokens, anything else asks."""

from __future__ import annotations

import pytest

from estimator.errors import PlanError
from planner.clusters.recommend import ClusterRequest, recommend_cluster
from planner.money.cost import CostRequest, estimate_cost
from planner.training.length import DATA


def recommended(**arguments: object):
    asked = {"accelerators": ["h100-sxm"], "limit": 1} | arguments
    return recommend_cluster(ClusterRequest.model_validate(asked))


def test_a_deadline_of_pretraining_is_held_against_the_makers_tokens():
    found = recommended(model="meta-llama/Llama-3.2-1B", stage="pretrain", deadline_h=720.0)
    taken = next(item for item in found.assumptions if item.field == DATA)
    assert taken.value == 9e12
    option = found.options[0]
    assert option.hours is not None
    assert option.hours == pytest.approx(taken.value / option.tokens_per_s / 3600.0, rel=0.25)
    assert option.fits_deadline == (option.hours <= 720.0)


def test_a_deadline_of_fine_tuning_needs_its_data():
    with pytest.raises(PlanError) as caught:
        recommended(model="meta-llama/Llama-3.2-1B", method="lora", deadline_h=5.0)
    assert caught.value.field == DATA


def test_named_data_is_what_is_billed():
    plan = {"model": "meta-llama/Llama-3.2-1B", "stage": "pretrain", "accelerator": "h100-sxm", "count": 8}
    whole = estimate_cost(CostRequest.model_validate(plan))
    named = estimate_cost(CostRequest.model_validate(plan | {"dataset_tokens": 9e12}))
    assert whole.usd == named.usd
    assert DATA in {item.field for item in whole.assumptions} - {item.field for item in named.assumptions}
