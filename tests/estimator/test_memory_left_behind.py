"""What stays with the allocator of texts of unlike lengths, and what FSDP gathers of embedding and head at once."""

from __future__ import annotations

import pytest

from estimator.plan.schema import Plan
from estimator.plan.training.job import Job
from estimator.search.layouts import candidates
from estimator.training.estimates import estimate
from estimator.training.memory import varying_lengths
from knowledge.jobs.training import job_of

GIB = 2**30


def tuned(**workload: object) -> Job:
    """Qwen-7B's adapters on one A100, the lengths of samples left open."""
    usual = {"framework": "ms-swift", "method": "lora", "packing": False, "seq_len": 8192, "global_batch": 16}
    cluster = {"accelerator": "a100-sxm-80gb", "count": 1}
    return job_of(Plan.parse({"model": "Qwen/Qwen-7B", "workload": usual | workload, "cluster": cluster}))


def test_texts_of_one_length_leave_nothing_behind() -> None:
    assert varying_lengths(tuned(packing=True)) == 0


def test_the_more_texts_are_cut_the_less_is_left_behind() -> None:
    left = [varying_lengths(tuned(sample_tokens=mean)) for mean in (100, 500, 2000, 8000, 32000)]
    assert left == sorted(left, reverse=True)
    assert left[-1] < 0.1
    assert varying_lengths(tuned()) == left[0]


def test_a_pair_has_the_length_of_both_its_answers() -> None:
    one = tuned(sample_tokens=1000)
    two = tuned(stage="dpo", sample_tokens=2000)
    assert varying_lengths(two) == varying_lengths(one)


def test_published_peak_of_torchtune_with_weights_on_the_host() -> None:
    # torchtune's README: Llama 3.1 70B, full finetune, 8x A100, 13.9 GiB active.
    plan = Plan.parse({
        "model": "meta-llama/Llama-3.1-70B", "cluster": {"accelerator": "a100-sxm-80gb", "count": 8},
        "workload": {"framework": "torchtune", "compile": True, "seq_len": 2048, "micro_batch": 2, "global_batch": 16},
        "layout": {"zero_stage": 3, "recompute": "full", "offload": "params", "dp": 8},
    })  # fmt: skip
    job = job_of(plan)
    memory = estimate(job, candidates(job)).memory
    apart = memory.components["framework_and_context"] + memory.components["allocator_slack"]
    assert (memory.total - apart)[0] / GIB == pytest.approx(13.9, rel=0.2)
