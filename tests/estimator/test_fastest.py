"""The fastest layout without the rest of the search is the very one that the search has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from estimator_jobs import open_job

from estimator.errors import PlanError
from estimator.plan.layouts import Layouts
from estimator.plan.training.job import Job
from estimator.search import fastest as fastest_module
from estimator.search.fastest import fastest
from estimator.search.layouts import least_bytes, roomy, search_whole
from estimator.training.memory import fits
from knowledge.jobs.training import job_of

# Model, framework, devices, sequences of a step, tokens of each: some fit easily, some only in parts of the space, with
# some blocks recomputed, in the splits that are usually left out, or not at all.
CASES = [
    ("meta-llama/Llama-3.1-8B", "megatron-lm", 16, 64, 4096),
    ("meta-llama/Llama-3.1-8B", "torchtitan", 12, 36, 16384),
    ("meta-llama/Llama-3.1-8B", "deepspeed", 6, 30, 8192),
    ("mistralai/Mixtral-8x7B-v0.1", "megatron-lm", 16, 32, 4096),
    ("mistralai/Mixtral-8x7B-v0.1", "torchtitan", 16, 16, 4096),
    ("Qwen/Qwen2.5-7B", "fsdp2", 2, 8, 65536),
    ("Qwen/Qwen3-30B-A3B", "deepspeed", 8, 16, 131072),
    ("meta-llama/Llama-3.1-70B", "megatron-lm", 32, 64, 8192),
    ("meta-llama/Llama-3.1-70B", "deepspeed", 8, 64, 4096),
    ("meta-llama/Llama-3.1-405B", "torchtitan", 16, 16, 8192),
]


def job_like(case: tuple[str, str, int, int, int]) -> Job:
    model, framework, count, batch, seq_len = case
    return open_job(
        model=model, workload_framework=framework, cluster_count=count, workload_global_batch=batch,
        workload_seq_len=seq_len,
    )  # fmt: skip


def written(layout: Layouts, index: int = 0) -> tuple[dict[str, Any], int]:
    return layout.row(index), int(layout.micro_batch[index])


@pytest.mark.parametrize("offload", [False, True])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
def test_it_is_the_one_that_the_whole_search_has(case: Any, offload: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # Small spaces are gone through in many short steps, as large ones are.
    monkeypatch.setattr(fastest_module, "FEW", 0)
    monkeypatch.setattr(fastest_module, "_FIRST", 2)
    job = job_like(case)
    found = search_whole(job, offload=offload)
    best = int(found.order[0])
    if not found.estimates.fits[best]:
        assert fastest(job, offload=offload) is None
        return
    seconds = float(found.estimates.step.seconds[best])
    for slowest_s in (np.inf, 1.3 * seconds, seconds * (1.0 + 1e-9)):
        layout = fastest(job, slowest_s, offload=offload)
        assert layout is not None
        assert written(layout) == written(found.estimates.layouts, best)
    for slowest_s in (seconds, 0.9 * seconds, 0.1 * seconds):
        assert fastest(job, slowest_s, offload=offload) is None


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
def test_states_alone_rule_out_nothing_that_fits(case: Any) -> None:
    for memory in (24.0, 40.0, 70.0):
        job = job_of(job_like(case).plan.patch({"overrides.usable_gib": memory}))
        try:
            least = least_bytes(job)
        except PlanError:
            continue
        if fits(job, np.array(least.bytes)):
            assert len(roomy(job))
