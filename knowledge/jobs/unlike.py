"""A serving job over the unlike devices of one machine: cards of several kinds, and a processor that holds the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from estimator.errors import PlanError
from estimator.machine.hardware import Accelerator
from estimator.model.parts import expert_layers
from estimator.plan.assumptions import Assumption
from estimator.plan.schema import Overrides, Plan
from estimator.plan.serving.job import HeldPart, ServingJob
from estimator.serving.space import deployments
from estimator.serving.unlike import UnlikeDevices, split
from estimator.units import GIB
from knowledge.engines import engine, engines_known
from knowledge.machines.catalogue import find_accelerator

_PROCESSORS = "CPU"
_RATE = 1e9


def with_parts(job: ServingJob, job_of: Callable[[Plan], ServingJob]) -> ServingJob:
    """`job` cut over its own accelerators and those of cluster.beside. Raises PlanError where its engine does not."""
    plan = job.plan
    names = Counter(find_accelerator(name).value.id for name in plan.cluster.beside or ())
    if not job.engine.splits_layers:
        able = [name for name in engines_known() if engine(name, None, job.machine.accelerator).splits_layers]
        alone = f"{job.engine.name} does not by itself split layers over unlike devices, and no other way is estimated"
        raise PlanError("cluster.beside", alone, able)
    if any((getattr(plan.layout, name) or 1) > 1 for name in ("tp", "dp", "ep")):
        raise PlanError("cluster.beside", "unlike devices hold layers one after the other, whole", ["tp, dp, ep of 1"])
    cards, processors = [job], list[ServingJob]()
    for name, count in names.items():
        other = job_of(_alone(plan, name, count))
        if other.machine.accelerator.family == _PROCESSORS:
            processors.append(_as_known(other, plan.overrides))
        else:
            cards.append(other)
    if len(processors) > 1 or any(other.machine.count > 1 for other in processors):
        raise PlanError("cluster.beside", "has more than one processor", ["one name for all sockets of a machine"])
    processor = processors[0] if processors else None
    if processor is not None and not processor.engine.lends_from:
        raise PlanError("cluster.beside", f"{job.engine.name} holds nothing in the memory of a processor", ["llamacpp"])
    devices = UnlikeDevices(cards, processor, plan.inference.device_layers, plan.inference.host_experts)
    whole = split(job, devices, deployments(job))
    held = "; ".join(_held(part) for part in whole.parts)
    told = [Assumption("cluster.beside", list(names.elements()), f"llama.cpp's split by memory: {held}")]
    chosen = {} if processor is None else _chosen(whole)
    for name, size in chosen.items():
        if getattr(plan.inference, name) is None:
            told.append(Assumption(f"workload.{name}", size, "as many as cards have room for"))
    plan = plan.patch({f"workload.{name}": size for name, size in chosen.items()})
    return replace(whole, plan=plan, assumptions=(*job.assumptions, *told))


def _chosen(job: ServingJob) -> dict[str, int]:
    """The split in the plan's words."""
    held = [part.job.architecture for part in job.parts if part.lent is None]
    on_cards = sum(expert_layers(part) for part in held)
    return {
        "device_layers": sum(part.layers for part in held),
        "host_experts": expert_layers(job.architecture) - on_cards,
    }


def _alone(plan: Plan, name: str, count: int) -> Plan:
    """The same plan on devices of another kind: what the user knows of the plan's own does not hold there."""
    changes = {"cluster.accelerator": name, "cluster.count": count, "cluster.per_node": count, "cluster.beside": None}
    return plan.patch(changes | {"overrides.usable_gib": None, "overrides.reserve_gib": None, "layout": {"pp": None}})


def usual_processor(accelerator: Accelerator) -> str:
    """The processor that is taken to be beside a device: a desktop's of two channels beside one person's card, a
    server's beside others."""
    return "cpu-core-i9-13900k" if accelerator.personal else "cpu-xeon-8480plus"


def _as_known(job: ServingJob, known: Overrides) -> ServingJob:
    """The job on a processor with the memory and bandwidth that the person knows."""
    device = job.machine.accelerator
    if known.host_gb_per_s is not None:
        device = replace(device, memory_bandwidth=known.host_gb_per_s * _RATE)
    if known.host_gib is not None:
        device = replace(device, memory_bytes=known.host_gib * GIB, usable_bytes=known.host_gib * GIB)
    return replace(job, machine=replace(job.machine, accelerator=device))


def _held(part: HeldPart) -> str:
    """What a device holds, in words."""
    job, held = part.job, part.job.architecture
    name = job.machine.accelerator.name
    if part.lent is not None and not held.heads:
        return f"{name} the experts of {held.layers} layers"
    bare = sum(not block.experts and block.feed == "moe" for block in (held.blocks[kind] for kind in held.pattern))
    without = f", {bare} of them without experts" if bare else ""
    several = f"{job.machine.count} x " if job.machine.count > 1 else ""
    return f"{several}{name} {held.layers} layers{without}"
