"""Memory of single layouts for the estimator's memory tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from estimator_jobs import make_job, with_layout

from estimator.plan.layouts import Layouts
from estimator.plan.training.job import Job
from estimator.plan.training.stages import stage_shape
from estimator.search.layouts import candidates
from estimator.training.activations_held import activations_held
from estimator.training.memory import Memory, stage_memory

ONE_DEVICE: dict[str, Any] = {
    "cluster.count": 1, "layout": {"tp": 1, "pp": 1, "dp": 1, "zero_stage": 0}, "workload.global_batch": 1,
    "workload.group_size": 1,
}  # fmt: skip
# Rows and columns of the seven matrices of one layer of Llama-3.1-8B, of which there are 32.
LLAMA_8B_MATRICES = (
    (4096, 4096), (1024, 4096), (1024, 4096), (4096, 4096), (14336, 4096), (14336, 4096), (4096, 14336),
)  # fmt: skip
LLAMA_8B = 8_030_261_248
LLAMA_8B_TABLE = 128_256 * 4096


def layouts_of(job: Job, **changes: int) -> Layouts:
    """A candidate of the job with the named fields set."""
    return with_layout(candidates(job).take(np.array([0])), **changes)


def first_stage(job: Job, layouts: Layouts) -> Memory:
    return stage_memory(job, layouts, np.zeros_like(layouts.pp))


def on_one_device(**workload: Any) -> Job:
    """Llama-3.1-8B on one device, by Hugging Face's Trainer unless another framework is named."""
    return make_job(ONE_DEVICE | {"workload": {"framework": "hf-trainer"} | workload})


def most(job: Job, name: str, **layout: int) -> float:
    """What a component of the one device takes at its own worst moment."""
    return float(first_stage(job, layouts_of(job, **layout)).component_peaks[name][0])


def kept(job: Job, layouts: Layouts, stage: int = 0) -> float:
    """Activations that one stage keeps for its backward passes, without what a block at work needs besides."""
    return float(activations_held(job, layouts, stage_shape(job.architecture, layouts, np.array([stage])))[0][0])
