"""The memory of a planned run, in the shape of the results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from estimator.plan.layouts import Layouts
from estimator.training.estimates import stages_of
from estimator.training.memory import MOMENTS, stage_memory
from estimator.training.timeline import memory_by_moment
from estimator.units import GIB
from planner.results import MemoryEstimate, MomentMemory, Overridden, StageMemory
from planner.training.planned import Planned

# A fit that leaves less than this part of the usable memory free is tight: an assumption, about what a driver, another
# process or a fragmented allocator takes (an RTX 4090 shows 23.6 of 24 GiB).
_TIGHT_SHARE = 0.03


def is_tight(planned: Planned) -> bool:
    """Whether it fits, but its memory's upper end, without states that are paged out then, leaves too little free to be
    sure of. Blocks that an allocator has cached are freed before it fails, but not those that are used in part."""
    capacity, index = planned.job.usable_bytes, planned.index
    paged = float(planned.estimates.memory.paged[index]) * (1.0 + planned.job.memory_above)
    return planned.fits and capacity - float(planned.estimates.high_bytes[index]) + paged < _TIGHT_SHARE * capacity


def memory_of(planned: Planned) -> MemoryEstimate:
    estimates, index = planned.estimates, planned.index
    layout = estimates.layouts.take(np.array([index]))
    components = {name: float(values[index]) for name, values in estimates.memory.components.items()}
    decisive = {name: size for name, size in components.items() if name != "allocator_slack"}
    return MemoryEstimate(
        per_device_bytes=float(estimates.memory.total[index]),
        low_bytes=float(estimates.low_bytes[index]),
        high_bytes=float(estimates.high_bytes[index]),
        capacity_bytes=planned.job.usable_bytes,
        fits=planned.fits,
        tight=is_tight(planned),
        components=components,
        own_peaks={
            name: max(components[name], float(values[index]))
            for name, values in estimates.memory.component_peaks.items()
        },
        stages=_stages(planned, layout, components),
        moments=_moments(planned, layout),
        fullest_stage=int(estimates.fullest_stage[index]),
        decided_by=max(decisive, key=lambda name: decisive[name]),
        peak=MOMENTS[estimates.memory.moment[index]],
        overridden=_overridden(planned, layout),
        host=planned.host_needs.host,
        save=planned.host_needs.save,
    )


def _stages(planned: Planned, layout: Layouts, components: dict[str, float]) -> list[StageMemory]:
    """Every pipeline stage; without a pipeline the only one, which has been estimated already."""
    if int(layout.pp[0]) > 1:
        return [StageMemory(**stage) for stage in stages_of(planned.job, layout)]
    total = float(planned.estimates.memory.total[planned.index])
    layers = planned.job.architecture.layers
    return [StageMemory(stage=0, layers=layers, per_device_bytes=total, components=components)]


def _moments(planned: Planned, layout: Layouts) -> list[MomentMemory]:
    moments = memory_by_moment(planned.job, layout, planned.estimates.fullest_stage[[planned.index]])
    rows = {name: {part: float(size[0]) for part, size in parts.items()} for name, parts in moments.items()}
    return [
        MomentMemory(moment=name, per_device_bytes=sum(parts.values()), components=parts)
        for name, parts in rows.items()
    ]


def _overridden(planned: Planned, layout: Layouts) -> list[Overridden]:
    """What the user set, each beside what it would be: of components at the fullest stage and their worst moment."""
    job, overrides = planned.job, planned.job.plan.overrides
    rows: list[tuple[str, float, float]] = []
    if overrides.usable_gib is not None:
        rows.append(("usable_gib", overrides.usable_gib * GIB, job.machine.accelerator.torch_bytes))
    if overrides.reserve_gib is not None:
        rows.append(("reserve_gib", overrides.reserve_gib * GIB, 0.0))
    if job.overridden_bytes:
        plain = replace(job, plan=job.plan.patch({"overrides": None}))
        stage = planned.estimates.fullest_stage[[planned.index]]
        memory = stage_memory(plain, layout, stage)
        for name, value in job.overridden_bytes.items():
            estimated = max(float(memory.component_peaks[name][0]), float(memory.components[name][0]))
            rows.append((f"{name}_gib", value, estimated))
    return [
        Overridden(field=f"overrides.{name}", value_bytes=value, estimated_bytes=estimated)
        for name, value, estimated in rows
    ]
