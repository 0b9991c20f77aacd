"""One step as it goes by: what the fullest stage holds at each moment, and what the first and the last stage do."""

from __future__ import annotations

import numpy as np

from estimator.plan.layouts import Floats, Layouts
from estimator.plan.training.job import Job
from estimator.plan.training.stages import sum_of
from estimator.training.memory import COMPONENTS, MOMENTS, pages_states, parts_by_moment, stage_memory
from estimator.training.schedule import MICRO, Step, micro_batch_seconds, passes

# Places of MOMENTS as they come in a step: samples are generated before anything is learnt from them.
_ORDER = (4, 0, 1, 2, 3)


def memory_by_moment(job: Job, layouts: Layouts, stage: np.ndarray) -> dict[str, dict[str, Floats]]:
    """The components of one stage (shape (n,)) at each of its moments, in the order of a step. What gives way when
    memory runs short is there at all of them, so that the largest sum is the total of `stage_memory`."""
    memory = stage_memory(job, layouts, stage)
    always, held, _ = parts_by_moment(job, layouts, stage)
    if pages_states(job):
        always["optimizer"] = memory.paged
    zero = layouts.zeros()
    rows = [{name: always.get(name, parts.get(name, zero)) for name in COMPONENTS} for parts in held]
    own = np.choose(memory.moment, [parts["allocator_slack"] for parts in rows])
    of_loss = np.maximum(0.0, memory.components["allocator_slack"] - own)
    moments: dict[str, dict[str, Floats]] = {}
    for place in sorted(range(len(held)), key=_ORDER.index):
        parts = rows[place]
        room = memory.total - sum_of(size for name, size in parts.items() if name != "allocator_slack")
        moments[MOMENTS[place]] = parts | {"allocator_slack": np.minimum(parts["allocator_slack"] + of_loss, room)}
    return moments


def step_by_stage(job: Job, layouts: Layouts, step: Step) -> list[dict[str, Floats]]:
    """The seconds of a step by component on the first stage and, in a pipeline, on the last. Each takes the whole step:
    where one has less to do than the slowest it waits, which is a part of its bubble."""
    micro_passes = passes(job, layouts)
    count = layouts.grad_accum.astype(np.float64) * job.calibration.device.step
    rows: list[dict[str, Floats]] = []
    for micro in micro_passes.ends:
        own = {name: count * micro[name] for name in MICRO}
        own["host"] = step.components["host"] + count * (micro["host"] - micro_passes.micro["host"])
        own["bubble"] = step.components["bubble"] + count * (micro_passes.per_micro - micro_batch_seconds(micro))
        rows.append(step.components | own)
    return rows
