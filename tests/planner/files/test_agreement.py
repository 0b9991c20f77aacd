"""What is estimated of a plan and of its own files read back is the same: every value that moves memory or time is in
the files as it was in the estimate, for every training target.

Eight plans a target, 40 of each with SHARDWISE_THOROUGH=1."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from samples import part

sys.path.insert(0, str(Path(__file__).parents[2] / "launchers"))
from test_reading_round_trip import SETS  # pyright: ignore[reportMissingImports]

from estimator.errors import PlanError
from launchers.render import render
from planner.estimates import estimate_plan
from planner.files.importing import imported
from planner.training.memory import memory_of
from planner.training.planned import Planned, time_of

PLANS = part(8, 40)


@pytest.mark.parametrize("target", SETS)
@settings(max_examples=PLANS, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(data=st.data())
def test_files_are_estimated_as_their_plan_was(target: str, data: Any) -> None:
    plan = data.draw(SETS[target])
    if plan.training.stage not in ("pretrain", "sft"):
        # Pairs are never packed: what a plan says of it is whether they are full, which no file has a word for.
        plan = plan.patch({"workload.packing": True})
    if target in ("torchtune", "verl") and plan.cluster.count == 1:
        # A recipe of one device shards nothing.
        plan = plan.patch({"layout.zero_stage": 0})
    try:
        estimate = estimate_plan(plan)
        assert isinstance(estimate, Planned)
        files = render(estimate.settled_plan, [target], model_id=estimate.job.architecture.id).files
    except PlanError:
        return
    found = imported({file.path: file.text for file in files}, {})
    assert found.per_device_bytes is not None, (found.refused, found.missing)
    assert found.per_device_bytes == pytest.approx(memory_of(estimate).per_device_bytes, rel=0.01)
    assert found.step_s == pytest.approx(time_of(estimate).step_s, rel=0.01)
