"""A step as it goes by is the estimate: its fullest moment is the peak, and each stage's parts are the whole step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from estimator_jobs import MODELS, estimate_of, make_job

from estimator.plan.training.stages import sum_of
from estimator.search.layouts import candidates
from estimator.training.estimates import Estimates, estimate
from estimator.training.memory import MOMENTS
from estimator.training.timeline import memory_by_moment, step_by_stage

PIPED: dict[str, Any] = {"tp": 1, "pp": 4, "dp": 4, "ep": 1, "etp": 1, "recompute": "full"}
CHANGES: list[dict[str, Any]] = [
    {"workload.stage": "dpo"},
    {"workload.stage": "grpo"},
    {"workload": {"optimizer": "paged_adamw_8bit", "framework": "deepspeed"},
     "layout": {"tp": 1, "pp": 1, "dp": 16, "zero_stage": 0}},
    {"overrides": {"activations_gib": 3.0, "logits_and_loss_gib": 40.0}},
    {"overrides": {"allocator_slack_gib": 2.0}},
]  # fmt: skip


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("layout", [{"tp": 1, "pp": 1, "dp": 16, "ep": 1, "etp": 1}, PIPED])
def test_the_fullest_moment_is_the_peak(model: str, layout: dict[str, Any]) -> None:
    _holds(estimate_of({"model": model, "layout": layout}))


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_of_every_kind_of_training(change: dict[str, Any]) -> None:
    _holds(estimate_of(change))


def test_of_many_layouts_at_once() -> None:
    job = make_job({"layout": {"tp": None, "pp": None, "dp": None, "vpp": None}})
    layouts = candidates(job)
    found = estimate(job, layouts.take(np.arange(0, len(layouts), 37)))
    for row in step_by_stage(job, found.layouts, found.step):
        np.testing.assert_allclose(sum_of(row.values()), found.step.seconds)
        assert all((part >= -1e-12).all() for part in row.values())


def test_a_stage_with_less_to_do_waits_longer() -> None:
    found = estimate_of({"layout": PIPED})
    first, last = step_by_stage(found.job, found.layouts, found.step)
    busy = [row["forward"] + row["backward"] + row["recompute"] for row in (first, last)]
    assert (busy[0] < busy[1]) == (first["bubble"] > last["bubble"])


def _holds(found: Estimates) -> None:
    moments = memory_by_moment(found.job, found.layouts, found.fullest_stage)
    totals = {name: float(sum_of(parts.values())[0]) for name, parts in moments.items()}
    assert max(totals.values()) == pytest.approx(float(found.memory.total[0]))
    peak = MOMENTS[found.memory.moment[0]]
    assert totals[peak] == pytest.approx(max(totals.values()))
    assert {name: float(size[0]) for name, size in moments[peak].items()} == pytest.approx(
        {name: float(size[0]) for name, size in found.memory.components.items()}
    )
    for row in step_by_stage(found.job, found.layouts, found.step):
        assert float(sum_of(row.values())[0]) == pytest.approx(float(found.step.seconds[0]))
