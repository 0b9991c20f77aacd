"""Host (CPU) memory of a node while weights are loaded, while training runs and while a checkpoint is saved.

Loading a whole model once per device, or gathering a full state dict on one node, ends runs whose device memory fits.
How each framework loads, offloads and saves is data (`knowledge/data/host.yaml`). Arrays have shape (n,), one entry a
candidate; sizes are bytes per node. Checkpoints that are loaded are taken to hold 16 bits per parameter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from estimator.plan.layouts import Layouts
from estimator.plan.training.job import Job
from estimator.plan.training.stages import Floats, sum_of
from estimator.training.checkpoints import saved
from estimator.training.memory import stage_memory
from estimator.training.node import (
    HALF_BYTES,
    HostFacts,
    Node,
    Whole,
    node_of,
    rounded,
    rounding_of_states,
    rounding_of_weights,
    whole_model,
)

Phase = Literal["loading", "steady", "saving"]
PHASES: tuple[Phase, ...] = ("loading", "steady", "saving")


@dataclass(frozen=True)
class HostMemory:
    """`components[phase][name]` are bytes on the fullest node, shape (n,), that cannot be reclaimed.

    `page_cache` is what loading reads through mapped files: used while it is free, given back under pressure.
    `device_at_save` are bytes that saving needs on a device besides what stays there between steps.
    """

    components: dict[Phase, dict[str, Floats]]
    page_cache: Floats
    device_at_save: Floats

    def total(self, phase: Phase) -> Floats:
        return sum_of(self.components[phase].values())

    @property
    def peak(self) -> Floats:
        """Bytes per node of the worst phase."""
        return np.max(np.stack([self.total(phase) for phase in PHASES]), axis=0)

    @property
    def peak_phase(self) -> list[Phase]:
        """The worst phase of every candidate; the earlier one where two are equal."""
        worst = np.stack([self.total(phase) for phase in PHASES]).argmax(axis=0)
        return [PHASES[int(index)] for index in worst]


def host_memory(
    job: Job, layouts: Layouts, facts: HostFacts, asynchronous: bool = False, whole: Whole | None = None
) -> HostMemory:
    """Host memory of every candidate. `asynchronous` saving is taken up where the framework has it as an option.

    `whole` is `whole_model(job)`, for a caller that needs it as well.

    Of the first and the last pipeline stage the larger one stands for the whole node.
    """
    last = layouts.pp - 1
    whole = whole or whole_model(job)
    first = _of_node(node_of(job, layouts, facts, np.zeros_like(last), whole), asynchronous)
    if not int(last.max(initial=0)):
        return first
    other = _of_node(node_of(job, layouts, facts, last, whole), asynchronous)
    phases: dict[Phase, dict[str, Floats]] = {}
    for phase in PHASES:
        larger = other.total(phase) > first.total(phase)
        theirs = other.components[phase]
        phases[phase] = {name: np.where(larger, theirs[name], ours) for name, ours in first.components[phase].items()}
    return HostMemory(
        components=phases,
        page_cache=np.maximum(first.page_cache, other.page_cache),
        device_at_save=np.maximum(first.device_at_save, other.device_at_save),
    )


def _of_node(node: Node, asynchronous: bool) -> HostMemory:
    facts, zero = node.facts, node.layouts.zeros()
    processes = zero + node.processes * facts.process_bytes
    copies, rounding = _weight_copies(node)
    rounding = rounding + rounding_of_weights(node)
    weights = np.where(node.layouts.weights_offloaded, node.states.weights * node.ranks, 0.0)
    steady = {
        "processes": processes,
        "workers": zero + node.processes * facts.workers * facts.worker_bytes,
        "weights": weights + copies,
        **_states_there(node),
        "pinned_rounding": rounding + rounding_of_states(node),
    }
    loaded, page_cache = _loaded(node)
    loading = {"processes": processes, "weights": loaded + weights + copies, "pinned_rounding": rounding}
    added, device_at_save = saved(node, asynchronous)
    components: dict[Phase, dict[str, Floats]] = {
        "loading": loading,
        # No activations are kept between steps, when a checkpoint is saved.
        "steady": steady | {"activations": _offloaded_activations(node)},
        "saving": steady | added,
    }
    return HostMemory(components, page_cache, device_at_save)


def _loaded(node: Node) -> tuple[Floats, Floats]:
    """(bytes held while weights are loaded, page cache that they are read through).

    Weights in the file's own dtype are views of the mapped file and take no memory of their own; a cast, and experts
    that are put together, do (measured, see the data file). 4-bit weights are made on the device; where they are
    sharded, the first rank of a node then takes them back to the host (transformers, create_quantized_param).
    """
    job, facts, whole = node.job, node.facts, node.whole
    architecture, models = job.architecture, _models(job)
    size = job.weight_bytes
    casts = (facts.casts and size != HALF_BYTES) or job.activation_bytes != HALF_BYTES or not facts.maps_files
    experts = sum(architecture.blocks[kind].expert_parameters for kind in architecture.pattern)
    fused = 0.0 if job.quantised else size * experts * facts.fuses_experts
    copy = 0.0 if job.quantised else size * architecture.parameters * casts + fused
    who = np.where(node.sharded, facts.loads_sharded, facts.loads)
    weights = node.states.weights * node.ranks
    kinds = [who == "own_shard", who == "by_tensor", who == "every_rank"]
    held = np.select(kinds, [weights, fused, copy * node.processes], copy)
    if job.quantised:
        held = np.where(node.sharded & ~kinds[0], whole.weights, held)
    file = np.full(len(held), HALF_BYTES * architecture.parameters)
    read = np.where(kinds[0], np.minimum(weights, file), file * facts.maps_files)
    return held * models, read * models


def _models(job: Job) -> int:
    """Models that are loaded before training moves them: the policy, and its reference, reward and critic models."""
    return 1 + job.has_reference + 2 * (job.training.stage == "ppo")


def _weight_copies(node: Node) -> tuple[Floats, Floats]:
    """(16-bit copies of offloaded trained weights, what page-locking adds to them).

    DeepSpeed moves the partitions that zero.Init page-locked into one flat buffer; PyTorch keeps the freed blocks.
    """
    copies = node.facts.offload_weight_copies * node.ranks
    size = HALF_BYTES * node.trained
    there = node.layouts.weights_offloaded * copies
    return there * size, there * (rounded(size) - size)


def _states_there(node: Node) -> dict[str, Floats]:
    """Optimizer states as they would be on the device, and the gradients that the optimizer reads on the host; of
    states that are pages what the device has no room for.

    Where weights are offloaded and no optimizer of its own is (FSDP), their gradients follow them.
    """
    buffers = node.facts.offload_extra_bytes * node.trained
    gradients = np.where(node.layouts.weights_offloaded & (buffers == 0.0), node.states.gradients, buffers)
    there = node.layouts.optimizer_offloaded * node.ranks
    optimizer = node.states.optimizer * there
    if node.job.pages_states:
        paged = stage_memory(node.job, node.layouts, node.shape.stage, detail=False).paged
        optimizer = np.where(there > 0, optimizer, (node.states.optimizer - paged) * node.ranks)
    return {"optimizer": optimizer, "gradients": gradients * there}


def _offloaded_activations(node: Node) -> Floats:
    """What all devices would keep of activations, less what stays on them, where activations are offloaded."""
    layouts = node.layouts
    there = layouts.activations_offloaded
    if not there.any():
        return np.zeros(len(layouts))
    # Each at its own worst moment, as the peak of the whole may be at another one (the optimizer step, say).
    resident = replace(layouts, offload=np.zeros_like(layouts.offload))
    before, after = (
        stage_memory(node.job, each, node.shape.stage).component_peaks["activations"] for each in (resident, layouts)
    )
    return np.where(there, np.maximum(0.0, before - after) * node.ranks, 0.0)
