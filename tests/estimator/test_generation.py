"""Generation of samples in reinforcement training: against published engine timings, by hand, and what adds to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from estimator_jobs import make_job
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from estimator.errors import PlanError
from estimator.plan.layouts import Layouts
from estimator.plan.training.job import Job
from estimator.rl.generation import (
    engine_seconds,
    engine_size,
    engines,
    gather_seconds,
    generation_seconds,
    lengths,
)
from estimator.search.layouts import candidates
from estimator.serving.estimates import estimate

RL: dict[str, Any] = {
    "workload": {"framework": "deepspeed", "stage": "grpo", "rollout": "colocated", "global_batch": 64},
    "cluster": {"count": 8},
    "layout": {"tp": 1, "pp": 1, "dp": 8, "zero_stage": 3, "recompute": "full"},
}


def rl_job(**changes: Any) -> Job:
    return make_job(RL | {name.replace("__", "."): value for name, value in changes.items()})


def seconds(job: Job) -> float:
    layouts = candidates(job)
    assert len(layouts) == 1
    return float(generation_seconds(job, layouts)[0])


def engine_job(model: str, accelerator: str, count: int, share: float, batch: int, **workload: Any) -> Job:
    work = {"framework": "megatron-bridge", "rollout": "colocated", "engine_share": share, "global_batch": batch}
    return make_job(
        {
            "model": model,
            "workload": {"stage": "grpo", "group_size": 1, "micro_batch": 1} | work | workload,
            "cluster": {"accelerator": accelerator, "count": count},
            "layout": {"tp": None, "pp": None, "dp": None},
        }
    )


# Devices of one engine (NeMo RL 0.6, performance summary; six tenths of each device's memory).
RECIPES = [("meta-llama/Llama-3.1-8B", "h100-sxm", 16, 1), ("Qwen/Qwen3-30B-A3B", "h100-sxm", 32, 2),
           ("Qwen/Qwen3-235B-A22B", "h100-sxm", 128, 16), ("deepseek-ai/DeepSeek-V3", "h100-sxm", 256, 32),
           ("Qwen/Qwen3-30B-A3B", "gb200", 16, 1), ("Qwen/Qwen3-235B-A22B", "gb200", 64, 8)]  # fmt: skip


@pytest.mark.parametrize(("model", "accelerator", "count", "devices"), RECIPES)
def test_an_engine_is_as_large_as_in_published_recipes(model: str, accelerator: str, count: int, devices: int) -> None:
    assert engine_size(engine_job(model, accelerator, count, 0.6, 512)) == devices


def test_nothing_is_added_where_nothing_is_generated() -> None:
    assert seconds(rl_job(workload__stage="sft")) == 0.0
    assert seconds(rl_job(workload__stage="dpo")) == 0.0
    assert seconds(rl_job(workload__rollout="separate")) == 0.0


def test_an_engine_is_the_serving_model_with_all_samples_sent_at_once() -> None:
    job = rl_job(workload__group_size=1, workload__seq_len=512, workload__response_len=256)
    assert job.rollout is not None
    found = estimate(job.rollout, engines(job, job.rollout))
    assert float(found.steady.running[0]) == pytest.approx(64 / 8, rel=0.1)
    assert engine_seconds(job, job.rollout) == pytest.approx(64.0 / float(found.requests_per_s[0]))
    tokens = 256 * float(found.steady.tpot_s[0])
    assert tokens < engine_seconds(job, job.rollout) < 1.5 * tokens


def test_other_rollouts_have_no_engine() -> None:
    assert rl_job(workload__rollout="trainer").rollout is None
    assert rl_job(workload__stage="sft").rollout is None


def test_the_trainer_is_bound_by_its_host_and_an_engine_is_not() -> None:
    for rollout, times in (("trainer", 2.0), ("colocated", 1.0)):
        job = rl_job(model="Qwen/Qwen3-0.6B", workload__rollout=rollout)
        factors = replace(job.calibration.framework, kernel_host_s=2.0 * job.calibration.framework.kernel_host_s)
        slower = replace(job, calibration=replace(job.calibration, framework=factors))
        assert seconds(slower) == pytest.approx(times * seconds(job), rel=0.05)


def test_the_trainer_is_slower_than_an_engine() -> None:
    assert seconds(rl_job(workload__rollout="trainer")) > 1.5 * seconds(rl_job())


def test_generation_is_most_of_a_step() -> None:
    """Published splits: 72 to 77 % of a step (verl issues 6747 and 1208), 80 % (OpenRLHF README), with an engine."""
    from estimator.training.estimates import estimate as estimate_training

    job = rl_job(workload__rollout="colocated")
    layouts = candidates(job)
    components = estimate_training(job, layouts).step.components
    training = sum(float(part[0]) for name, part in components.items() if name != "generation")
    generating = seconds(job)
    assert 0.5 < generating / (generating + training) < 0.9


def test_samples_that_do_not_fit_wait_for_others() -> None:
    batch = {"workload__global_batch": 4096, "workload__group_size": 1}
    running = []
    for share in (0.3, 0.6):
        job = rl_job(**batch, workload__engine_share=share)
        assert job.rollout is not None
        running.append(float(estimate(job.rollout, engines(job, job.rollout)).steady.running[0]))
    assert running[0] < running[1] <= 512
    small, large = (rl_job(**batch, workload__engine_share=share) for share in (0.3, 0.6))
    assert seconds(small) > 1.05 * seconds(large)


def test_an_engine_reads_the_prompt_of_a_group_once() -> None:
    long = {"workload__seq_len": 8192, "workload__response_len": 64}
    assert seconds(rl_job(**long, workload__group_size=8)) < 0.6 * seconds(rl_job(**long, workload__group_size=1))


def test_sharded_weights_are_gathered_once() -> None:
    whole = rl_job(workload__rollout="trainer", layout__zero_stage=2)
    sharded = rl_job(workload__rollout="trainer")
    assert float(gather_seconds(whole, candidates(whole))[0]) == 0.0
    moved = sharded.architecture.parameters * 2.0 * 7 / 8
    assert (
        float(gather_seconds(sharded, candidates(sharded))[0]) > moved / sharded.machine.accelerator.scaleup_bandwidth
    )


def test_half_of_the_sequence_is_generated_unless_said() -> None:
    job = rl_job(workload__seq_len=4096)
    assert lengths(job) == (2048.0, 2048.0)
    assert [found.value for found in job.assumptions if found.field == "workload.response_len"] == [2048]
    assert lengths(rl_job(workload__seq_len=4096, workload__response_len=1000)) == (3096.0, 1000.0)
    assert not any(found.field == "workload.response_len" for found in rl_job(workload__stage="sft").assumptions)


def test_samples_need_a_prompt() -> None:
    with pytest.raises(PlanError, match="leave no prompt") as raised:
        rl_job(workload__seq_len=1024, workload__response_len=1024)
    assert raised.value.field == "workload.response_len"


@settings(max_examples=examples(25), deadline=None)
@given(
    st.sampled_from(["trainer", "colocated"]),
    st.sampled_from(["meta-llama/Llama-3.1-8B", "mistralai/Mixtral-8x7B-v0.1", "google/gemma-2-9b"]),
    st.integers(64, 2000),
    st.sampled_from([64, 128, 256]),
)
def test_more_tokens_and_more_samples_take_longer(rollout: str, model: str, response: int, batch: int) -> None:
    def made(length: int, samples: int) -> float:
        return seconds(
            rl_job(
                model=model, workload__rollout=rollout, workload__seq_len=length + 512, workload__response_len=length,
                workload__global_batch=samples,
            )
        )  # fmt: skip

    base = made(response, batch)
    assert 0.0 < base < np.inf
    assert made(2 * response, batch) > 1.5 * base
    assert base < made(response, 2 * batch) < 2.2 * base


@pytest.mark.parametrize("rollout", ["trainer", "colocated"])
def test_many_candidates_are_as_each_alone_and_factors_may_be_arrays(rollout: str) -> None:
    job = rl_job(workload__rollout=rollout, layout__zero_stage=None, layout__recompute=None, layout__dp=None)
    layouts = candidates(job)
    together = generation_seconds(job, layouts)
    assert together.shape == (len(layouts),)
    for index in range(0, len(layouts), max(1, len(layouts) // 5)):
        assert generation_seconds(job, layouts.take(np.array([index])))[0] == together[index]
    factor = np.linspace(0.5, 1.0, len(layouts))
    device = replace(job.calibration.device, memory=factor, scaleup=factor)
    framework = replace(job.calibration.framework, kernel_host_s=factor * 1e-5)
    fitted = replace(job, calibration=replace(job.calibration, device=device, framework=framework))
    assert generation_seconds(fitted, layouts).shape == (len(layouts),)
    assert len(generation_seconds(job, _none(layouts))) == 0


def _none(layouts: Layouts) -> Layouts:
    return layouts.take(np.zeros(0, dtype=np.int64))
