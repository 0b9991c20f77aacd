"""An estimate and a verdict look at host memory alike, and never at more of it than there is."""

from __future__ import annotations

import numpy as np
import pytest

from estimator.errors import PlanError
from estimator.plan.layouts import Layouts
from estimator.plan.schema import Plan
from estimator.search.layouts import least_bytes
from estimator.search.space import enumerated
from estimator.training.estimates import totals
from estimator.training.host import host_memory
from estimator.training.memory import fits
from knowledge.jobs.training import job_of
from knowledge.machines.host import host_facts
from knowledge.offers import able_frameworks
from planner.fit.training import fit_of
from planner.training.ladder import Grower
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


def test_weights_are_updated_within_the_backward_pass_where_nothing_else_fits() -> None:
    # torchtune README: all weights of Llama 3.1 8B on one of either, with paged states and optimizer_in_bwd.
    asked = {"framework": "torchtune", "method": "full", "seq_len": 2048}
    verdict = fit_of(plan_of("llama-3.1-8b", "rtx-a6000", 1, **asked))
    assert verdict.fits
    assert verdict.plan["workload"]["optimizer_in_backward"]
    # A machine with one 4090 has less host memory than states in 32 bits take: torchtune's own config has 8 bits.
    verdict = fit_of(plan_of("llama-3.1-8b", "rtx-4090", 1, **asked))
    assert not verdict.fits
    eight_bits = {"optimizer": "paged_adamw_8bit", "optimizer_in_backward": True}
    assert fit_of(plan_of("llama-3.1-8b", "rtx-4090", 1, **asked, **eight_bits)).fits


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


@pytest.mark.parametrize("count", [1, 4, 8])
@pytest.mark.parametrize("framework", ["deepspeed", "fsdp2", "megatron-lm", "torchtune", "nemo-automodel"])
@pytest.mark.parametrize("workload", [{}, {"seq_len": 65_536}, {"micro_batch": 8}], ids=str)
def test_no_layout_between_the_extremes_takes_less_of_a_host(
    framework: str, count: int, workload: dict[str, object]
) -> None:
    try:
        job = job_of(plan_of("qwen2.5-7b", "rtx-4090", count, framework=framework, **workload))
        least = least_bytes(job)
    except PlanError:
        return
    if not least.offloads:
        return
    every, extremes = enumerated(job, least.space).layouts(), least.hopeful(job)

    def peak(layouts: Layouts) -> float:
        inside = layouts.take(np.flatnonzero(fits(job, totals(job, layouts))))
        return float(host_memory(job, inside, host_facts(framework)).peak.min(initial=np.inf))

    assert peak(extremes) == pytest.approx(peak(every))


def test_what_grows_is_told_as_if_it_were_asked_for_alone() -> None:
    """Larger micro-batches and longer sequences, on the devices, in host memory and beyond both."""
    grower, told = Grower(), 0
    for seq_len, micro_batch in [(4096, 1), (4096, 64), (4096, 96), (131_072, 2), (131_072, 4), (262_144, 4)]:
        for framework in ("deepspeed", "megatron-lm", "torchtitan"):
            job = job_of(plan_of("qwen2.5-7b", "h100-sxm", 2, framework=framework, seq_len=seq_len,
                                 micro_batch=micro_batch))  # fmt: skip
            known, alone = grower.lightest(job, {}), lightest_of(job, offload=True)
            assert known
            assert (known.fits, known.holds) == (alone.fits, alone.holds)
            assert not alone.fits or known.bytes == pytest.approx(alone.bytes)
            told += known.least.fitting is not alone.least.fitting
    assert told


@pytest.mark.parametrize(("framework", "way"), [("fsdp2", "load their own shards"), ("torchtitan", "over more nodes")])
def test_more_nodes_help_only_ranks_that_load_their_shards(framework: str, way: str) -> None:
    """accelerate casts the whole model on every rank (fsdp2_prepare_model); torchtitan reads shards."""
    asked = plan_of("llama-3.1-405b", "h100-sxm", 256, framework=framework, stage="pretrain").given()
    planned = plan_training(Plan.parse(asked | {"overrides": {"host_gib": 40}}))
    assert planned.host_needs.host.phase == "loading"
    assert way in planned.host_needs.warnings[0]
