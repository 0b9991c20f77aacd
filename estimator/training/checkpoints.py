"""Saving a checkpoint: what it takes of a node's host memory and of a device, and how large it is on disk.

Arrays have shape (n,), one entry a candidate; sizes are bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from estimator.account import Account, Accounts, Term, product, times, total
from estimator.plan.training.job import Job
from estimator.plan.training.stages import Floats
from estimator.training.memory import Memory
from estimator.training.node import HALF_BYTES, HostFacts, Node, Whole, adapter_bytes, whole_model

_FP32_BYTES = 4.0


@dataclass(frozen=True)
class CheckpointSize:
    """Bytes on disk, of what they are made: what it takes to use the trained weights, and to resume the run."""

    of_weights: Account
    of_resumable: Account

    @property
    def weights(self) -> float:
        return self.of_weights.recomputed or 0.0

    @property
    def resumable(self) -> float:
        return self.of_resumable.recomputed or 0.0


def checkpoint_size(job: Job, facts: HostFacts, zero_stage: int = 0, whole: Whole | None = None) -> CheckpointSize:
    """A checkpoint of the whole model, however it is split into files; at ZeRO-3 no rank has weights to write twice.

    `whole` is `whole_model(job)`, for a caller that needs it as well.
    """
    states, held = whole or whole_model(job)
    if job.uses_adapters:
        merged = float(held.total[0]) * HALF_BYTES * facts.merges_adapters
        adapters = Term("checkpoint.adapters", float(adapter_bytes(job, held)[0]))
        weights, copies = total(adapters, Term("checkpoint.merged_model", merged)), 1.0
    else:
        parameters = times("checkpoint.parameters", float(states.parameters[0]))
        weights = product(parameters, times("bytes_per_parameter", float(job.weight_bytes)))
        copies = 1.0 if zero_stage >= 3 else facts.disk_weight_copies
    size = weights.recomputed or 0.0
    resumable = total(
        Term("memory.save.checkpoint_bytes", size),
        Term("checkpoint.weights_again", size * (copies - 1.0)),
        Term("checkpoint.optimizer", float(states.optimizer[0])),
    )
    return CheckpointSize(weights, resumable)


def save_accounts(size: CheckpointSize, resident_bytes: float, gathered_bytes: float) -> Accounts:
    """Of what a result says of saving."""
    stays, gathered = Term("checkpoint.between_steps", resident_bytes), Term("checkpoint.gathered", gathered_bytes)
    return {
        "memory.save.checkpoint_bytes": lambda: size.of_weights,
        "memory.save.resumable_bytes": lambda: size.of_resumable,
        "memory.save.device_bytes": lambda: total(stays, gathered),
    }


def device_bytes_at_save(memory: Memory, device_at_save: Floats) -> Floats:
    """Bytes on the device while a checkpoint is saved: what stands between steps, and gathered weights."""
    return memory.resident + device_at_save


def saved(node: Node, asynchronous: bool) -> tuple[dict[str, Floats], Floats]:
    """(what saving adds on the fullest node, by name, and what it gathers on a device)."""
    facts = node.facts
    mode = np.where(node.sharded, facts.save_sharded, facts.save)
    if asynchronous and facts.can_stage:
        mode = np.full(len(node.layouts), "staged")
    weights, optimizer = _gathered(node)
    added = {
        "gathered_weights": np.where(mode == "gathered", weights, 0.0),
        "gathered_optimizer": np.where(mode == "gathered", optimizer, 0.0),
        "staged_copy": _staged(node, mode),
        "serialisation": np.where(np.isin(mode, ("copied", "gathered", "streamed")), _largest_storage(node), 0.0),
    }
    # A rank writes its own file before or after the first one has gathered or copied the weights.
    other = added["gathered_weights"] + added["gathered_optimizer"] + added["staged_copy"]
    own_file = added["serialisation"] > other
    added = {name: np.where(own_file == (name == "serialisation"), value, 0.0) for name, value in added.items()}
    nothing = node.job.uses_adapters and not facts.gathers_frozen
    gathers = (mode == "gathered") & (node.held.group > 1) & (not nothing)
    return added, np.where(gathers, _gathered_unit(node), 0.0)


def _element_bytes(node: Node) -> float:
    """Bytes per gathered parameter: what 4-bit weights take on average, the given size, or what is kept."""
    if node.job.quantised:
        return (float(node.whole.weights[0]) - node.adapters) / float(node.whole.parameters[0])
    return node.facts.gathered_bytes or node.job.weight_bytes


def _gathered(node: Node) -> tuple[Floats, Floats]:
    """Weights and optimizer states that the first rank collects, as far as it holds them at the same time."""
    facts, nothing = node.facts, np.zeros(len(node.layouts))
    if node.job.uses_adapters and not facts.gathers_frozen:
        weights = nothing + node.adapters
    else:
        weights = nothing + _element_bytes(node) * node.whole.parameters
    optimizer = nothing + node.whole.optimizer * facts.gathers_optimizer
    if facts.gathers_together:
        return weights, optimizer
    return np.where(weights >= optimizer, weights, 0.0), np.where(weights >= optimizer, 0.0, optimizer)


def _staged(node: Node, mode: np.ndarray) -> Floats:
    """Copies per node: of what every rank holds, of its part of what is written, or of what the first rank holds.

    States that are offloaded are on the host already; asynchronous saving copies them nevertheless, since the next step
    changes them.
    """
    job, states = node.job, node.states
    weights = adapter_bytes(job, node.held) if job.uses_adapters else states.weights
    everything = (weights + states.optimizer) * node.ranks
    written = node.adapters if job.uses_adapters else job.weight_bytes * node.whole.parameters
    optimizer = np.where(node.layouts.optimizer_offloaded, 0.0, node.whole.optimizer)
    part = (written + optimizer) / job.machine.count * node.ranks
    first = np.minimum(weights, node.facts.file_bytes)
    return np.select([mode == "staged", mode == "deduplicated", mode == "copied"], [everything, part, first], 0.0)


def _largest_storage(node: Node) -> Floats:
    """DeepSpeed's ranks each write a file of their own, storage by storage (torch.save): the largest one is the flat
    fp32 partition, cut into groups at ZeRO-3."""
    limit = node.job.framework.gathering.live_parameters
    if limit is None:
        return np.zeros(len(node.layouts))
    elements = np.where(node.layouts.zero_stage >= 3, np.minimum(node.trained, limit), node.trained)
    return np.where(node.layouts.optimizer_offloaded, 0.0, _FP32_BYTES * elements * node.ranks)


def _gathered_unit(node: Node) -> Floats:
    """What is on the device at a time. FSDP1 gathers the root unit and one block as state_dict walks the modules;
    DeepSpeed the parameters of one module (zero.GatheredParameters); FSDP2 one tensor (DTensor.full_tensor)."""
    architecture, facts, layouts = node.job.architecture, node.facts, node.layouts
    if facts.gathered_unit == "unit":
        return _element_bytes(node) * (node.held.outside + node.held.unit)
    largest = float(architecture.embedding_parameters)
    for block in architecture.blocks:
        # The experts of a layer are one module of two tensors: gate and up, and down.
        share = 1.0 if facts.gathered_unit == "module" else 2.0 / 3.0 if block.gated else 0.5
        largest = max(largest, share * block.expert_parameters)
    return _element_bytes(node) * np.full(len(layouts), largest)
