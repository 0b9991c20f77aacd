"""Sums over tensor groups beside timings of them alone that others published and nothing was fitted to."""

from __future__ import annotations

import numpy as np
import pytest

from estimator.plan.schema import Plan
from estimator.serving.exchanges import collectives
from estimator.serving.operators import sums
from estimator.serving.space import deployments
from knowledge.jobs.serving import serving_job

# Accelerator, devices, microseconds by KiB under vLLM (its pulls 19744, "baseline", and 39080, "vllm").
PUBLISHED: list[tuple[str, int, dict[int, float]]] = [
    ("mi300x", 4, {2: 7.18, 16: 7.26, 32: 7.58, 256: 14.39, 512: 14.65, 1024: 22.91, 2048: 36.64, 4096: 63.86}),
    ("mi355x", 8, {24: 6.3, 48: 6.7, 96: 7.6, 192: 10.0, 384: 13.1, 768: 16.0, 1536: 24.2}),
]


@pytest.mark.parametrize(("accelerator", "count", "timed_us"), PUBLISHED)
def test_sums_take_what_was_published_of_them(accelerator: str, count: int, timed_us: dict[int, float]) -> None:
    plan = {
        "model": "llama-3.1-70b",
        "cluster": {"accelerator": accelerator, "count": count},
        "layout": {"tp": count},
        "workload": {"kind": "inference", "engine": "vllm", "weight_dtype": "bf16", "input_len": 1, "output_len": 1},
    }
    job = serving_job(Plan.parse(plan))
    tokens = np.array([[kib * 1024 / (job.running.hidden * job.wide_bytes)] for kib in timed_us])
    passes = job.factors.collective * collectives(job, deployments(job), tokens)
    ratios = 1e6 * passes[:, 0] / sum(sums(job.running)) / np.array(list(timed_us.values()))
    assert np.all((ratios > 0.6) & (ratios < 1.3)), ratios
