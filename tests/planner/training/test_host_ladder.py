"""An estimate and a verdict look at host memory alike, and never at more of it than there is."""

from __future__ import annotations

import pytest

from estimator.plan.schema import Plan
from planner.fit.training import fit_of
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
