"""Candidate layouts as arrays: an estimate is the same number alone and in a batch, and a row says what a plan says."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from estimator_jobs import open_job, with_layout
from hypothesis import given
from hypothesis import strategies as st

from estimator.plan.layouts import Layouts, recompute_code, recompute_name
from estimator.search.layouts import candidates
from estimator.training.estimates import Estimates, estimate
from knowledge.jobs.training import job_of

JOBS = [
    open_job(workload_framework=framework, workload_global_batch=64, **more)
    for framework, more in (
        ("megatron-lm", {}),
        ("megatron-lm", {"model": "deepseek-ai/DeepSeek-V3"}),
        ("deepspeed", {"workload_method": "qlora"}),
        ("torchtitan", {"model": "google/gemma-2-9b", "workload_stage": "dpo"}),
    )
]
BATCHES = [estimate(job, candidates(job)) for job in JOBS]


def numbers(estimates: Estimates, index: int) -> list[float]:
    step, memory = estimates.step, estimates.memory
    values = [*memory.components.values(), memory.total, memory.moment, memory.cached, *step.components.values()]
    values += [step.seconds, step.model_flop, step.hardware_flop, estimates.fullest_stage, estimates.fits]
    return [float(value[index]) for value in values]


@given(st.integers(0, len(JOBS) - 1), st.integers(0, 10**6))
def test_one_estimate_is_exactly_its_entry_in_a_batch(which: int, draw: int) -> None:
    batch = BATCHES[which]
    index = draw % len(batch.layouts)
    alone = estimate(batch.job, batch.layouts.take(np.array([index])))
    assert numbers(alone, 0) == numbers(batch, index)


def test_the_order_of_a_batch_changes_nothing() -> None:
    batch = BATCHES[1]
    order = np.random.default_rng(7).permutation(len(batch.layouts))
    shuffled = estimate(batch.job, batch.layouts.take(order))
    assert (shuffled.memory.total == batch.memory.total[order]).all()
    assert (shuffled.step.seconds == batch.step.seconds[order]).all()


@given(st.integers(0, len(JOBS) - 1), st.integers(0, 10**6))
def test_a_row_put_back_into_the_plan_is_that_candidate(which: int, draw: int) -> None:
    batch = BATCHES[which]
    index = draw % len(batch.layouts)
    row, micro = batch.layouts.row(index), int(batch.layouts.micro_batch[index])
    named = candidates(job_of(batch.job.plan.patch({"layout": row, "workload.micro_batch": micro})))
    assert len(named) == 1
    assert named.row(0) == row
    for field in fields(Layouts):
        assert getattr(named, field.name)[0] == getattr(batch.layouts, field.name)[index], field.name


def test_take_selects_by_index_and_by_mask() -> None:
    layouts = BATCHES[0].layouts
    mask = layouts.tp == 2
    assert 0 < mask.sum() < len(layouts)
    assert len(layouts.take(mask)) == mask.sum()
    assert (layouts.take(mask).tp == 2).all()
    picked = layouts.take(np.array([2, 0]))
    assert [picked.row(i) for i in range(2)] == [layouts.row(2), layouts.row(0)]


@pytest.mark.parametrize("name", ["none", "selective", "full", "block:1", "block:40"])
def test_recompute_has_one_name(name: str) -> None:
    assert recompute_name(*recompute_code(name)) == name


def test_a_summary_is_short_and_leaves_out_what_is_not_used() -> None:
    one = BATCHES[0].layouts.take(np.array([0]))
    plain = with_layout(one, tp=1, pp=1, vpp=1, cp=1, ep=1, dp=16, zero_stage=3, shard_group=16, recompute=0, offload=0)
    plain = with_layout(plain, micro_batch=4)
    assert plain.summary(0) == "DP 16, ZeRO-3, no recompute, micro-batch 4"
    assert with_layout(plain, tp=2, dp=8).summary(0).endswith("no sequence parallelism, micro-batch 4")
    plain = with_layout(plain, sequence_parallel=1)
    split = with_layout(plain, tp=2, pp=4, vpp=2, dp=2, shard_group=1, recompute=3, recompute_layers=2, offload=1)
    assert split.summary(0) == (
        "TP 2, PP 4, VPP 2, DP 2, ZeRO-3, sharded over 1, recompute of 2 layers, optimizer offloaded, micro-batch 4"
    )


def test_a_batch_of_many_pieces_is_the_same_as_its_pieces() -> None:
    few = BATCHES[0]
    count = len(few.layouts)
    many = estimate(few.job, few.layouts.take(np.arange(40_000) % count))
    picked = np.arange(40_000) % count
    assert np.array_equal(many.step.seconds, few.step.seconds[picked])
    assert np.array_equal(many.memory.total, few.memory.total[picked])
    assert np.array_equal(many.fullest_stage, few.fullest_stage[picked])
    detail = many.of(39_999)
    for name, values in detail.memory.components.items():
        assert values[0] == few.memory.components[name][picked[39_999]], name


@pytest.mark.parametrize("which", range(len(JOBS)))
@pytest.mark.parametrize("cuts", [(0, 3), (3, 0), (0, 0), (0, 2, 0, 3)])
def test_batches_joined_are_the_whole_and_one_may_be_empty(which: int, cuts: tuple[int, ...]) -> None:
    batch = BATCHES[which]
    ends = np.cumsum(cuts)
    parts = [
        estimate(batch.job, batch.layouts.take(np.arange(end - cut, end))) for cut, end in zip(cuts, ends, strict=True)
    ]
    whole = parts[0].joined(*parts[1:])
    assert len(whole.layouts) == sum(cuts)
    for index in range(sum(cuts)):
        assert numbers(whole, index) == numbers(batch, index)
