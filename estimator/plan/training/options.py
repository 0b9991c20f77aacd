"""Options of a run that save time and take no memory: on wherever framework and layout have them, unless a plan says.

So the search need not try them both ways: what it finds for a layout is the layout with all that it can have switched
on.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from estimator.plan.layouts import RECOMPUTE, Layouts
from estimator.plan.training.job import Job

OPTIONS = ("dp_overlap", "tp_overlap", "moe_dispatcher", "moe_overlap")
"""By their names in a plan's workload."""
_ON: dict[str, bool | str] = {"moe_dispatcher": "flex"}
_OFF: dict[str, bool | str] = {"moe_dispatcher": "alltoall"}
_UNASKED = (False, "alltoall", "auto")
Mask = np.ndarray | bool


def left_open(job: Job, name: str) -> bool:
    """Whether the search decides an option: the framework has the switch, and the plan does not say."""
    return name in job.framework.limits.options and getattr(job.training, name) == "auto"


def switched_on(job: Job, layouts: Layouts, name: str) -> Mask:
    """Where an option is on, one value for all or shape (n,): as the plan says; where the search decides, wherever the
    layout can have it; else as the framework's recipes have it."""
    if left_open(job, name):
        return layouts.memoised(("option", job, name), lambda: possible(job, layouts, name))
    return job.chosen(name) not in _UNASKED


def possible(job: Job, layouts: Layouts, name: str) -> np.ndarray:
    """Where a layout can have an option on and has something to switch, shape (n,).

    Sources: Megatron-core validate_args and transformer_config.py. Tensor-parallel overlap needs sequence parallelism,
    and Transformer Engine's userbuffers one domain of fast links. Dispatch overlaps with another micro-batch, which
    needs virtual stages in a pipeline and layers that are not recomputed whole. DeepEP takes no padding to a capacity.
    """
    match name:
        case "dp_overlap":
            return _replicated(job, layouts)
        case "tp_overlap":
            inside = layouts.tp <= job.machine.fast_domain
            return (layouts.tp > 1) & (layouts.sequence_parallel > 0) & inside
        case "moe_dispatcher":
            padded = job.chosen("moe_capacity") and not job.hybrid_dispatch
            return (layouts.ep > 1) & (not padded)
        case "moe_overlap":
            whole = layouts.recompute >= RECOMPUTE.index("full")
            return (layouts.ep > 1) & ((layouts.pp == 1) | (layouts.vpp > 1)) & ~whole
    raise ValueError(name)


def _replicated(job: Job, layouts: Layouts) -> np.ndarray:
    """Where gradients are summed over devices: those of all weights, or of experts alone, which tensor ranks can hold
    copies of."""
    ranks = layouts.dp * layouts.cp
    copies = ranks * layouts.tp > layouts.ep * layouts.etp
    return (ranks > 1) | copies if job.architecture.experts else ranks > 1


def idle(job: Job, layouts: Layouts, name: str) -> np.ndarray:
    """Where there is nothing that an option could speed up, shape (n,)."""
    match name:
        case "dp_overlap":
            return ~_replicated(job, layouts)
        case "tp_overlap":
            return layouts.tp == 1
    return layouts.ep == 1


def decided(job: Job, layouts: Layouts, index: int) -> dict[str, bool | str]:
    """What the search decided of the options that one candidate has a use for, by name."""
    candidate = layouts.take(np.array([index]))
    names = [name for name in OPTIONS if left_open(job, name) and not idle(job, candidate, name)[0]]
    return {name: _on(job, name) if possible(job, candidate, name)[0] else _OFF.get(name, False) for name in names}


def _on(job: Job, name: str) -> bool | str:
    """What an option that is on is called: a dispatcher by the name that the framework's recipes have for it, whose
    kernels were estimated with."""
    usual = job.chosen(name)
    return usual if isinstance(usual, str) and usual not in _UNASKED else _ON.get(name, True)


def as_shipped(job: Job) -> Job:
    """The job with the options that a plan leaves open as the framework's recipes have them: a run of somebody else's
    that does not say is taken to be that."""
    shipped = {f"workload.{name}": job.chosen(name) for name in job.framework.limits.options if left_open(job, name)}
    return replace(job, plan=job.plan.patch(shipped)) if shipped else job


def asked_for(job: Job) -> list[str]:
    """Options that the plan wants on."""
    return [name for name in job.framework.limits.options if getattr(job.training, name) not in _UNASKED]


def agreeing(job: Job, layouts: Layouts) -> np.ndarray:
    """Where every option that the plan asks for can be, or has nothing to do; everywhere where that is nowhere."""
    keeps = np.ones(len(layouts), dtype=bool)
    for name in asked_for(job):
        keeps &= possible(job, layouts, name) | idle(job, layouts, name)
    return keeps if keeps.any() else np.ones(len(layouts), dtype=bool)
