"""A layout that Axolotl is searched one for is one that its files can say."""

from __future__ import annotations

import pytest

from estimator.plan.schema import Plan
from planner.training.planned import plan_training


@pytest.mark.parametrize(("model", "count"), [("Qwen/Qwen3-8B", 2), ("Qwen/Qwen3-14B", 4), ("Qwen/Qwen3-32B", 8)])
def test_split_runs_of_axolotl_shard_their_weights(model: str, count: int) -> None:
    cluster = {"accelerator": "rtx-a6000", "count": count}
    workload = {"kind": "training", "framework": "axolotl"}
    plan = Plan.model_validate({"model": model, "cluster": cluster, "workload": workload})
    split = plan_training(plan.patch({"layout.tp": 2})).plan.layout
    assert split.tp == 2
    assert split.zero_stage in (2, 3)
