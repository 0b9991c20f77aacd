"""One estimate and many are the same figures, computed in other shapes, and one takes few calls."""

from __future__ import annotations

import cProfile
import pstats
from dataclasses import fields, replace

import numpy as np
import pytest
from estimator_jobs import open_job

from estimator.plan.layouts import FEW, Layouts, either
from estimator.plan.training.job import Job
from estimator.search.layouts import candidates
from estimator.training.estimates import estimate
from estimator.training.memory import device_memory, stage_memory

DENSE, EXPERTS = "meta-llama/Llama-3.1-8B", "Qwen/Qwen3-30B-A3B"
# A call of Python takes well under a microsecond: this many are a millisecond, and arithmetic as much again.
MOST_CALLS = 2_200


def job_of(model: str, framework: str = "megatron-lm") -> Job:
    return open_job(model=model, cluster_count=64, workload_framework=framework, workload_global_batch=128)


def calls(job: Job, layouts: Layouts) -> int:
    """Calls of one estimate for layouts of which nothing has been computed yet."""
    profiler = cProfile.Profile()
    profiler.runcall(estimate, job, replace(layouts))
    return int(vars(pstats.Stats(profiler))["total_calls"])


@pytest.mark.parametrize("model", [DENSE, EXPERTS])
@pytest.mark.parametrize("framework", ["megatron-lm", "deepspeed"])
def test_one_estimate_takes_few_calls(model: str, framework: str) -> None:
    job = job_of(model, framework)
    layouts = candidates(job)
    one = layouts.take(np.array([int(np.argmax(layouts.pp))]))
    estimate(job, replace(one))
    assert calls(job, one) < MOST_CALLS


@pytest.mark.parametrize("model", [DENSE, EXPERTS])
def test_few_candidates_get_the_figures_they_get_among_many(model: str) -> None:
    job = job_of(model)
    layouts = candidates(job)
    few = layouts.take(np.linspace(0, len(layouts) - 1, 40).astype(int))
    many = few.take(np.resize(np.arange(len(few)), FEW + 1))
    ours, theirs = estimate(job, few), estimate(job, many)
    assert (ours.step.seconds == theirs.step.seconds[: len(few)]).all()
    assert (ours.memory.total == theirs.memory.total[: len(few)]).all()
    assert (ours.fullest_stage == theirs.fullest_stage[: len(few)]).all()
    for name, values in ours.memory.components.items():
        assert (values == theirs.memory.components[name][: len(few)]).all(), name


@pytest.mark.parametrize("model", [DENSE, EXPERTS])
@pytest.mark.parametrize("framework", ["megatron-lm", "deepspeed", "torchtitan"])
def test_what_neighbours_share_is_what_each_has_alone(model: str, framework: str) -> None:
    """Candidates in their own order, where neighbours are alike, and mixed up, where none are."""
    job = job_of(model, framework)
    layouts = candidates(job)
    layouts = layouts.take(np.resize(np.arange(len(layouts)), max(len(layouts), 4 * FEW)))
    mixed = np.random.default_rng(7).permutation(len(layouts))
    ours, theirs = estimate(job, layouts), estimate(job, layouts.take(mixed))
    for of in (lambda found: found.memory.total, lambda found: found.step.seconds, lambda found: found.fullest_stage):
        assert (of(ours)[mixed] == of(theirs)).all()


def test_stages_of_one_candidate_are_not_taken_for_one_another() -> None:
    job = open_job(model=DENSE, cluster_count=64, workload_framework="megatron-lm")
    one = candidates(job).take(np.array([0]))
    many = one.take(np.zeros(4 * FEW, dtype=np.int64))
    many = replace(many, pp=np.full(4 * FEW, 32))
    stages = np.resize(np.arange(32), 4 * FEW)
    few = many.take(np.arange(32))
    assert (stage_memory(job, many, stages).total[:32] == stage_memory(job, few, stages[:32]).total).all()


def test_the_fullest_stage_is_as_full_as_it_is_alone() -> None:
    job = job_of(EXPERTS)
    layouts = candidates(job)
    some = layouts.take(np.flatnonzero(layouts.pp > 1)[:100])
    memory, stages = device_memory(job, some)
    assert (stage_memory(job, some, stages).total == memory.total).all()
    for stage in (some.pp * 0, some.pp - 1):
        assert (stage_memory(job, some, stage).total <= memory.total).all()


def test_estimates_leave_nothing_behind_that_grows() -> None:
    """What a stage of a pipeline computes is not kept: every estimate asks for stages of its own."""
    job = job_of(DENSE)
    layouts = replace(candidates(job))
    estimate(job, layouts)
    kept = len(layouts._memo)
    estimate(job, layouts)
    assert len(layouts._memo) == kept


def test_shared_constants_cannot_be_written_to() -> None:
    layouts = candidates(job_of(DENSE))
    for shared in (layouts.zeros(), layouts.ones()):
        with pytest.raises(ValueError, match="read-only"):
            shared += 1.0


def test_taking_the_only_candidate_keeps_what_was_computed_of_it() -> None:
    layouts = candidates(job_of(DENSE))
    one = layouts.take(np.array([3]))
    assert one.take(np.array([0])) is one
    assert len(one.take(np.array([False]))) == 0
    assert len(one.take(np.array([0, 0]))) == 2
    assert all(getattr(one, field.name)[0] == getattr(layouts, field.name)[3] for field in fields(Layouts))


def test_either_computes_only_what_is_taken() -> None:
    def refuse() -> np.ndarray:
        raise AssertionError("nothing takes this")

    values = np.array([1.0, 2.0])
    assert either(np.array([True, True]), lambda: values, refuse) is values
    assert either(np.array([False, False]), refuse, lambda: values) is values
    assert either(np.array([True, False]), lambda: values, lambda: -values).tolist() == [1.0, -2.0]
