"""An estimate and a verdict look at host memory alike, and never at more of it than there is."""

from __future__ import annotations

import pytest

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.jobs.training import job_of
from knowledge.offers import able_frameworks
from planner.fit.training import fit_of
from planner.training.lightest import lightest_of, may_fit
from planner.training.planned import plan_training


def plan_of(model: str, accelerator: str, count: int, **workload: object) -> Plan:
    cluster = {"accelerator": accelerator, "count": count}
    return Plan.parse({"model": model, "workload": workload, "cluster": cluster})


@pytest.mark.parametrize(
    ("model", "accelerator", "count", "framework", "fits"),
    [
        # 12 bytes and more a parameter are 1.6 TiB, of 0.5 that two devices' part of a node usually has.
        ("llama-3.1-70b", "h100-sxm", 2, "deepspeed", False),
        ("llama-3.1-8b", "rtx-4090", 2, "auto", True),
    ],
)
def test_verdict_and_estimate_agree(model: str, accelerator: str, count: int, framework: str, fits: bool) -> None:
    plan = plan_of(model, accelerator, count, framework=framework)
    planned, verdict = plan_training(plan), fit_of(plan)
    assert planned.fits == verdict.fits == fits
    assert planned.has_host_memory or not planned.fits
    if fits:
        assert verdict.plan == planned.complete_plan
    else:
        assert not any(remedy.fits and remedy.patch == {"layout.offload": "params"} for remedy in verdict.remedies)


def test_a_million_tokens_of_32b_fit_on_one_node() -> None:
    # TRL pull request 6845: 60.8 GiB of each of eight H100.
    planned = plan_training(plan_of("Qwen/Qwen3-32B", "h100-sxm", 8, seq_len=1_048_576, global_batch=1))
    assert planned.fits
    assert planned.has_host_memory


@pytest.mark.parametrize(
    ("model", "accelerator", "count"),
    [
        ("llama-3.1-8b", "rtx-4090", 2),
        ("llama-3.1-70b", "h100-sxm", 4),
        ("llama-3.1-70b", "h100-sxm", 8),
        ("Qwen/Qwen3-30B-A3B", "a100-sxm-80gb", 4),
        ("Qwen/Qwen3-32B", "l40s", 8),
    ],
)
def test_what_is_known_before_a_search_refuses_nothing_that_fits(model: str, accelerator: str, count: int) -> None:
    plan = plan_of(model, accelerator, count)
    first = job_of(plan)
    found = 0
    for framework in able_frameworks(first.training, first.machine.accelerator):
        named = plan.patch({"workload.framework": framework})
        try:
            planned = plan_training(named)
        except PlanError:
            continue
        if planned.fits and planned.has_host_memory:
            found += 1
            assert may_fit(planned.job)
            assert lightest_of(planned.job, offload=True).hosted
    assert found
