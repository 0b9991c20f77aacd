"""One copy of a model over the unlike devices of a machine, as llama.cpp splits it: layers one after the other on cards
of several kinds, and what these have no room for in the memory of a processor, experts first; one works at a time.

Every part is a job of its own with what it holds for a model, so that its memory and time are those of any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from estimator.model.architecture import Architecture
from estimator.model.parts import expert_layers, layers_of, only_experts, without_experts
from estimator.plan.serving.deployments import Deployments
from estimator.plan.serving.job import HeldPart, ServingJob
from estimator.serving.memory import serving_memory


@dataclass(frozen=True)
class UnlikeDevices:
    """Jobs of one plan on each kind of card, the plan's own accelerator first, and on a processor that holds the rest.

    `device_layers` are layers that the cards are to hold, `host_experts` layers whose experts they are not to (None: as
    many as fit, as few as have to be).
    """

    cards: Sequence[ServingJob]
    processor: ServingJob | None = None
    device_layers: int | None = None
    host_experts: int | None = None


def split(job: ServingJob, devices: UnlikeDevices, these: Deployments) -> ServingJob:
    """The job with the parts of the first split that fits, or of the last one where none does."""
    tried = list(_tried(job.architecture, devices))
    low, high = 0, len(tried) - 1
    while low < high:
        middle = (low + high) // 2
        parts = _parts(job.architecture, devices, *tried[middle])
        if serving_memory(replace(job, parts=parts), these).fits.all():
            high = middle
        else:
            low = middle + 1
    return replace(job, parts=_parts(job.architecture, devices, *tried[low]))


def _tried(architecture: Architecture, devices: UnlikeDevices) -> Iterator[tuple[int, int]]:
    """(First layers that the processor holds whole, first layers whose experts it holds), the fewest first."""
    layers, routed = architecture.layers, expert_layers(architecture)
    named, experts = devices.device_layers, devices.host_experts
    whole = None if named is None else max(0, layers - max(1, named))
    if devices.processor is None or (whole is not None and experts is not None):
        yield whole or 0, experts or 0
    elif experts is not None:
        yield from ((away, experts) for away in range(layers))
    elif whole is not None:
        yield from ((whole, away) for away in range(routed + 1))
    else:
        yield from ((0, away) for away in range(routed + 1))
        yield from ((away, routed) for away in range(1, layers))


def _parts(architecture: Architecture, devices: UnlikeDevices, whole: int, experts: int) -> tuple[HeldPart, ...]:
    layers, cards, parts = architecture.layers, devices.cards, list[HeldPart]()
    at = whole
    for card, size in zip(cards, _sizes(layers - whole, cards), strict=True):
        # Embedding and head stand with the last layers.
        last = at + size == layers and size > 0
        before = expert_layers(layers_of(architecture, 0, at, outside=False))
        held = without_experts(layers_of(architecture, at, at + size, outside=last), max(0, experts - before))
        if size:
            parts.append(HeldPart(_holding(card, held, alone=not parts), None, 0.0 if not parts else 1.0))
        at += size
    if devices.processor is None:
        return tuple(parts)
    first = layers_of(architecture, 0, whole, outside=False)
    if whole:
        parts.append(_hosted(devices, first, 2.0))
    routed = only_experts(architecture, experts)
    routed = layers_of(routed, min(routed.layers, expert_layers(first)), routed.layers, outside=False)
    if routed.layers:
        parts.append(_hosted(devices, routed, 2.0 * routed.layers))
    return tuple(parts)


def _sizes(layers: int, cards: Sequence[ServingJob]) -> list[int]:
    """Layers of each kind of card, in proportion to its memory (llama.cpp, --tensor-split: by free memory)."""
    room = np.cumsum([card.usable_bytes * card.machine.count for card in cards])
    ends = np.floor(room / room[-1] * layers + 0.5).astype(int)
    return [int(size) for size in np.diff(ends, prepend=0)]


def _holding(job: ServingJob, held: Architecture, alone: bool) -> ServingJob:
    """The job with what it holds; the host's work between two passes is there once."""
    part = replace(job, architecture=held)
    if alone:
        return part
    idle = replace(part.engine, host_step_s=0.0, host_sequence_s=0.0)
    return replace(part, engine=idle, factors=replace(part.factors, step_s=0.0))


def _hosted(devices: UnlikeDevices, held: Architecture, crossings: float) -> HeldPart:
    assert devices.processor is not None
    card = _holding(devices.cards[0], held, alone=False)
    return HeldPart(_holding(devices.processor, held, alone=False), card, crossings)
