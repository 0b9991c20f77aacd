"""Memory per device: a sum of named components for the fullest pipeline stage, at the worst moment of a step.

Five moments can be the worst. While the loss is made, all that was kept for backward stands beside the logits, and
gradients do not exist yet unless an earlier micro-batch or a buffer holds them. When backward begins, everything kept
stands beside what the last block needs; when it ends, the gradients are there and the activations are gone. The
optimizer step has its own temporaries, and generation of samples its KV cache. Every array has shape (n,).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cache, reduce
from typing import TypeVar

import numpy as np

from estimator.kernels.activations import final_norm_elements
from estimator.plan.layouts import FEW, Ints, Layouts
from estimator.plan.training.job import Job
from estimator.plan.training.run_length import full_sample
from estimator.plan.training.shards import held_parameters, world_size
from estimator.plan.training.stages import Floats, StageShape, micro_batch_tokens, stage_shape, sum_of
from estimator.training.activations_held import activations_held
from estimator.training.extra_models import extra_models
from estimator.training.optimizers import masters_held
from estimator.training.states import States, model_states

COMPONENTS = (
    "weights",
    "gradients",
    "optimizer",
    "activations",
    "logits_and_loss",
    "extra_models",
    "communication_buffers",
    "step_temporaries",
    "framework_and_context",
    "allocator_slack",
)
Entries = TypeVar("Entries")
# Cached blocks fill what is left to the last byte but for rounding.
_ROUNDED = 1.0 + 1e-9
MOMENTS = ("loss", "backward_start", "backward_end", "optimizer_step", "generation")


@dataclass(frozen=True)
class Memory:
    """`components[name]` and `total` have shape (n,); `moment` indexes MOMENTS: when the peak is.

    `component_peaks[name]` is what a component takes at its own worst moment, `resident` is there from step to step.
    `cached` is what the allocator gives back when memory runs short, `paged` the part of the
    optimizer states that the driver moves to the host then. Without detail the mappings are empty and what is resident
    is 0.
    """

    components: dict[str, Floats]
    component_peaks: dict[str, Floats]
    resident: Floats
    total: Floats
    moment: np.ndarray
    cached: Floats
    paged: Floats


def device_memory(job: Job, layouts: Layouts, detail: bool = True) -> tuple[Memory, np.ndarray]:
    """The fullest stage of every candidate, and which stage that is; without `detail` totals only.

    Fewer micro-batches are in flight on later stages, so among stages of the same layers the first is the fullest.
    """
    options = fullest_stages(job, layouts)
    if len(options) > 1 and len(layouts) <= FEW:
        return _of_few(job, layouts, options, detail)
    candidates = [_where_new(job, layouts, options[: place + 1], detail) for place in range(len(options))]
    if len(candidates) == 1:
        return candidates[0], options[0]
    fullest, total = _worst([memory.total for memory in candidates])
    places = _places(fullest, len(candidates))

    def pick(values: list[Floats]) -> Floats:
        return _picked(values, places)

    names = COMPONENTS if detail else ()
    components = {name: pick([memory.components[name] for memory in candidates]) for name in names}
    component_peaks = {name: pick([memory.component_peaks[name] for memory in candidates]) for name in names}
    moment = pick([memory.moment for memory in candidates])
    cached, paged, resident = (
        pick([getattr(memory, name) for memory in candidates]) for name in ("cached", "paged", "resident")
    )
    return Memory(components, component_peaks, resident, total, moment, cached, paged), pick(options)


def fitting(job: Job, layouts: Layouts) -> tuple[Ints, Floats]:
    """(Indices of the candidates that fit, bytes of the fullest stage of each): as `device_memory` has them, where the
    first stage alone rules most out."""
    options = fullest_stages(job, layouts)
    total = stage_memory(job, layouts, options[0], detail=False).total
    index = np.flatnonzero(fits(job, total))
    if len(options) == 1 or not len(index):
        return index, total[index]
    some, count = layouts.take(index), len(index)
    stages, total = [stage[index] for stage in options], total[index]
    if count <= FEW:
        each = some.take(np.tile(np.arange(count), len(stages) - 1))
        others = list(stage_memory(job, each, np.concatenate(stages[1:]), detail=False).total.reshape(-1, count))
    else:
        others = [_where_new(job, some, stages[: place + 1], detail=False).total for place in range(1, len(stages))]
    for other in others:
        total = np.maximum(total, other)
    inside = fits(job, total)
    return index[inside], total[inside]


def fits(job: Job, total: Floats) -> np.ndarray:
    """Whether the upper end of the interval is within what the device can allocate."""
    return total * (1.0 + job.memory_above) <= job.usable_bytes * _ROUNDED


def allocator_slack(job: Job) -> float:
    """What the allocator holds beyond what is used, as a part of activations and temporaries."""
    return job.calibration.slack if job.framework.allocator == "caching" else 0.0


def context_bytes(job: Job, layouts: Layouts) -> Floats:
    """What the framework and the device's context take, with the buffers of collectives where there are any.

    What XLA may use of a TPU is what is left after both.
    """
    if job.machine.accelerator.family == "TPU":
        return layouts.zeros()
    context = job.framework.context_bytes or job.calibration.context_bytes
    return np.where(world_size(layouts) > 1, context + job.calibration.collective_bytes, context)


def _where_new(job: Job, layouts: Layouts, options: list[np.ndarray], detail: bool) -> Memory:
    """Memory of the last of `options`. Of totals only, where most candidates have that stage among those before it, of
    the others alone, and nothing for these."""
    *before, stage = options
    known = reduce(np.logical_or, [stage == other for other in before], np.zeros(len(stage), dtype=bool))
    if detail or 2 * np.count_nonzero(known) <= len(stage):
        return stage_memory(job, layouts, stage, detail)
    index = np.flatnonzero(~known)
    part = stage_memory(job, layouts.take(index), stage[index], detail)

    def put(values: np.ndarray) -> np.ndarray:
        whole = np.zeros(len(stage), dtype=values.dtype)
        whole[index] = values
        return whole

    total, moment, cached, paged = (put(values) for values in (part.total, part.moment, part.cached, part.paged))
    return Memory({}, {}, layouts.zeros(), total, moment, cached, paged)


def _of_few(job: Job, layouts: Layouts, options: list[np.ndarray], detail: bool) -> tuple[Memory, np.ndarray]:
    """The same with all stages of all candidates side by side, as one evaluation."""
    count, stages = len(layouts), np.concatenate(options)
    memory = stage_memory(job, layouts.take(np.tile(np.arange(count), len(options))), stages, detail)
    fullest = memory.total.reshape(-1, count).argmax(axis=0) * count + np.arange(count)
    return taken(memory, fullest), stages[fullest]


def taken(entries: Entries, index: np.ndarray) -> Entries:
    """A dataclass of arrays of shape (n,), and of mappings of such, with the entries that `index` selects."""
    values = [getattr(entries, name) for name in _names(type(entries))]
    return type(entries)(
        *[
            {key: part[index] for key, part in value.items()} if isinstance(value, dict) else value[index]
            for value in values
        ]
    )


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def fullest_stages(job: Job, layouts: Layouts) -> list[np.ndarray]:
    """Stages that can be the fullest, shape (n,) each: the first, second and last, and where the kind of layer changes
    the first stage behind each change."""
    last = layouts.pp - 1
    options = [np.zeros_like(last)]
    if layouts.max_of("pp") <= 1:
        return options
    options += [np.minimum(1, last), last]
    pattern = job.architecture.pattern
    if len(job.architecture.blocks) > 1:
        changes = [at for at in range(1, len(pattern)) if pattern[at] not in pattern[:at]]
        for at in changes:
            behind = -(-at * layouts.pp // len(pattern))
            options += [np.minimum(behind, last), np.minimum(behind + 1, last)]
    return options


def stage_memory(job: Job, layouts: Layouts, stage: np.ndarray, detail: bool = True) -> Memory:
    """Memory of one pipeline stage (shape (n,)) of every candidate; without `detail` totals only."""
    always, moments, states = parts_by_moment(job, layouts, stage)
    zero = layouts.zeros()
    bare = [
        sum_of(parts[name] for name in COMPONENTS if name in parts and name != "allocator_slack") for parts in moments
    ]
    sums = [size + parts.get("allocator_slack", zero) for size, parts in zip(bare, moments, strict=True)]
    worst, most = _worst(sums)
    rest = sum_of(always.values())
    if "allocator_slack" in job.overridden_bytes or job.framework.allocator != "caching":
        total = needed = rest + most
    else:
        needed, loss = rest + reduce(np.maximum, bare), MOMENTS.index("loss")
        most = most + _cached(job, most - sums[loss], moments[loss]["logits_and_loss"])
        total = np.maximum(needed, np.minimum(rest + most, usable_beside_spread(job)))
    cached, pages = total - needed, zero
    if pages_states(job):
        pages = np.maximum(0.0, np.minimum(states.optimizer, usable_beside_spread(job) - total))
        always["optimizer"] = pages
    total = total + pages
    if not detail:
        return Memory({}, {}, zero, total, worst, cached, pages)
    places = _places(worst, len(moments))
    varying = {name: [parts.get(name, zero) for parts in moments] for name in COMPONENTS if name not in always}
    components = always | {name: _picked(values, places) for name, values in varying.items()}
    components["allocator_slack"] = np.maximum(0.0, total - pages - rest - _picked(bare, places))
    components = {name: components[name] for name in COMPONENTS}
    component_peaks = always | {name: reduce(np.maximum, values) for name, values in varying.items()}
    between = moments[MOMENTS.index("optimizer_step")]
    stays = ["extra_models", "communication_buffers", *(["gradients"] if job.framework.gradients.stay else [])]
    resident = sum_of([*always.values(), *(between[name] for name in stays if name in between)]) - pages
    return Memory(components, component_peaks, resident, total, worst, cached, pages)


def pages_states(job: Job) -> bool:
    """Whether the driver moves optimizer states to the host when memory runs short."""
    return job.pages_states and "optimizer" not in job.overridden_bytes


def parts_by_moment(
    job: Job, layouts: Layouts, stage: np.ndarray
) -> tuple[dict[str, Floats], list[dict[str, Floats]], States]:
    """What is always there, but for states that are paged, and what there is besides at each of MOMENTS."""
    job = job.healing or job  # whose weights are the wider ones
    shape = stage_shape(job.architecture, layouts, stage)
    states = model_states(job, layouts, shape)
    always = {
        "weights": states.weights, "optimizer": layouts.zeros() if pages_states(job) else states.optimizer,
        "framework_and_context": context_bytes(job, layouts),
    }  # fmt: skip
    moments = _moments(job, layouts, shape, states)
    if job.first_step:
        held = masters_held(job, held_parameters(job, layouts, shape))
        optimizer = always.pop("optimizer")
        for at, parts in enumerate(moments):
            parts["optimizer"] = optimizer if at == MOMENTS.index("optimizer_step") else np.minimum(held, optimizer)
    _override(_given(job, layouts, shape), always, moments)
    return always, moments, states


def _moments(job: Job, layouts: Layouts, shape: StageShape, states: States) -> list[dict[str, Floats]]:
    """What there is at each of MOMENTS besides what is always there: the components that stand then, by name."""
    kept, working = activations_held(job, layouts, shape)
    logits = _logits_and_loss(job, layouts, shape)
    extra = extra_models(job, layouts, states, shape, kept)
    # Gradients that are freed after each step are there in its first forward pass only if a micro-batch came before.
    left = states.gradients if job.framework.gradients.stay else np.where(layouts.grad_accum > 1, states.gradients, 0)
    step: dict[str, Floats] = {}
    if job.training.optimizer_in_backward:
        # From the head's on there is a gradient in every part of the backward pass, and a step.
        left, step = states.gradients, {"step_temporaries": states.step}
    slack = allocator_slack(job)
    at_work = kept + working
    moments = [
        step | {
            "gradients": left, "activations": kept, "logits_and_loss": logits,
            "communication_buffers": states.head_buffers, "allocator_slack": slack * kept,
        },
        step | {
            "gradients": left, "activations": at_work, "communication_buffers": states.buffers,
            "allocator_slack": slack * at_work,
        },
        step | {
            "gradients": states.gradients, "activations": working, "communication_buffers": states.buffers,
            "allocator_slack": slack * working,
        },
        {
            "gradients": states.gradients, "communication_buffers": resident_buffers(job, layouts, states),
            "step_temporaries": states.step, "allocator_slack": slack * states.step,
        },
    ]  # fmt: skip
    if extra.generates:
        moments.append({"extra_models": extra.resident + extra.generation})
    if extra.any:
        passing = extra.resident + extra.working
        for parts, size in zip(moments, (passing, passing, extra.resident, extra.resident), strict=False):
            parts["extra_models"] = size
    return moments


def _given(job: Job, layouts: Layouts, shape: StageShape) -> dict[str, Floats]:
    """The user's figures for this stage; logits are only where the head is."""
    overridden = {name: np.full(len(layouts), value) for name, value in job.overridden_bytes.items()}
    if "logits_and_loss" in overridden:
        overridden["logits_and_loss"] = overridden["logits_and_loss"] * shape.has_head
    return overridden


def _worst(totals: list[Floats]) -> tuple[np.ndarray, Floats]:
    """For each candidate the place of the largest total, the first where several are, and that total."""
    worst, largest = np.zeros(len(totals[0]), dtype=np.int64), totals[0]
    for place, total in enumerate(totals[1:], 1):
        more = total > largest
        if more.any():
            worst, largest = np.where(more, place, worst), np.maximum(largest, total)
    return worst, largest


def _places(choice: np.ndarray, count: int) -> list[tuple[int, np.ndarray]]:
    """Of the choices 1 to `count` - 1, those that any candidate makes, with the mask of the candidates that do."""
    masks = [(index, choice == index) for index in range(1, count)]
    return [(index, mask) for index, mask in masks if mask.any()]


def _picked(values: list[Floats], places: list[tuple[int, np.ndarray]]) -> Floats:
    """For each candidate the value that it chose, the first where it is in no place."""
    picked = values[0]
    if all(value is picked for value in values):
        return picked
    for index, mask in places:
        picked = np.where(mask, values[index], picked)
    return picked


def _override(overridden: dict[str, Floats], always: dict[str, Floats], moments: list[dict[str, Floats]]) -> None:
    """Puts the user's figures in place of what is estimated, at the moments where a component is at its largest."""
    for name, value in overridden.items():
        if name in always:
            always[name] = value
            continue
        estimated = [parts.get(name, np.zeros_like(value)) for parts in moments]
        largest = np.max(estimated, axis=0)
        for parts, size in zip(moments, estimated, strict=True):
            parts[name] = np.where(size >= largest, value, np.minimum(size, value))


def resident_buffers(job: Job, layouts: Layouts, states: States) -> Floats:
    """Buffers that outlive the backward pass: all but what FSDP gathers."""
    if not job.framework.gathering.live_units or layouts.max_of("zero_stage") < 3:
        return states.buffers
    return np.where(layouts.zero_stage >= 3, 0.0, states.buffers)


# Logits' worth of blocks that a text leaves behind which was the longest until a longer one came: none of its fp32
# blocks is large enough for the next, its 16-bit ones lie in theirs. By going through CUDACachingAllocator (c10:
# best fit, blocks split and joined) with the tensors of transformers' loss: 0.51 to 0.63 over lengths, vocabularies.
_LEFT_BEHIND = 0.57
# Texts after which a peak is read, where lengths are spread evenly up to the limit.
_TEXTS = 1000.0


def varying_lengths(job: Job) -> float:
    """Logits' worth of blocks that earlier, shorter micro-batches leave behind: those of one length leave none.

    A text leaves its blocks if it was the longest so far. With lengths spread evenly up to the limit that are together
    ln(n) + 0.58 - 2 texts of full length in n, the last and longest aside. With a known mean m lengths are taken to
    fall off exponentially and to be cut at the limit L: the longest so far pass each length x at the rate of 1/m, the
    hazard, until one has reached L, so that together they are the integral of x/L over dx/m, L/(2m).
    """
    training = job.training
    if training.packing or job.fused_loss:
        return 0.0
    longest = math.log(_TEXTS) + np.euler_gamma - 2.0
    if training.sample_tokens is not None:
        longest = min(longest, full_sample(training) / (2.0 * training.sample_tokens))
    return _LEFT_BEHIND * longest


def _cached(job: Job, below_peak: Floats, logits: Floats) -> Floats:
    """What the allocator has cached beside the logits and of earlier, shorter micro-batches, as far as the loss, which
    is `below_peak`, becomes the peak by it. Each new longest sequence needs larger blocks than any that are free."""
    return np.maximum(0.0, (job.calibration.loss_slack + varying_lengths(job)) * logits - below_peak)


def usable_beside_spread(job: Job) -> float:
    """What an estimate may come to so that the upper end of its interval is within what the device can allocate.

    What is cached gives way to that: a block of 10 MiB or more is a segment of its own, and those that are free go back
    to the device before an allocation fails (c10, CUDACachingAllocator, kMinLargeAlloc and release_cached_blocks).
    """
    return job.usable_bytes / (1.0 + job.memory_above)


def _logits_and_loss(job: Job, layouts: Layouts, shape: StageShape) -> Floats:
    """Output head and loss on the last stage.

    Unfused, `logit_bytes` per logit at the peak: 16-bit logits, fp32 log-softmax, and their gradients. Fused (Liger,
    cut cross-entropy) the logits exist one chunk at a time, and the gradient of the hidden states is kept.
    """
    per_logit, columns, hidden_bytes = loss_parts(job, layouts)
    return shape.has_head * (per_logit * columns * job.head_outputs / layouts.tp + hidden_bytes)


def loss_parts(job: Job, layouts: Layouts) -> tuple[Floats, Floats, Floats]:
    """(Bytes per logit at the peak, tokens whose logits exist at once, bytes that the norm before the head keeps)."""
    architecture = job.architecture
    tokens = micro_batch_tokens(job, layouts)
    hidden_bytes = final_norm_elements(job) * job.activation_bytes * tokens * architecture.hidden
    per_logit = _logit_bytes(job, layouts, tokens)
    columns = tokens
    if job.fused_loss and job.fused_logit_bytes is None:
        # Liger's chunk of tokens makes a matrix of about the size of the hidden states.
        columns = np.minimum(tokens, np.maximum(1.0, tokens * architecture.hidden / architecture.vocab))
    return per_logit, columns, hidden_bytes


# Bytes per logit that are there while a quantised head is unpacked (Lightning, BitsandbytesPrecision).
_UNPACKED_HEAD_BYTES = 6.0


def _logit_bytes(job: Job, layouts: Layouts, tokens: Floats) -> Floats:
    """The peak per logit."""
    framework = job.framework
    if job.fused_loss and job.fused_logit_bytes is not None:
        return np.full(len(layouts), job.fused_logit_bytes)
    frozen = job.uses_adapters and not job.training.lora.train_embeddings
    size = (framework.loss.adapter_logit_bytes if frozen else None) or framework.loss.logit_bytes
    if job.training.compile and framework.loss.compiled_logit_bytes is not None:
        size = framework.loss.compiled_logit_bytes
    per_logit = np.full(len(layouts), size)
    if framework.loss.parallel_logit_bytes is not None and size >= framework.loss.logit_bytes:
        per_logit = np.where(layouts.tp > 1, framework.loss.parallel_logit_bytes, per_logit)
    if framework.adapters.quantised_head and job.quantised:
        # The head is unpacked twice, to fp16 and to bf16.
        per_logit = np.maximum(
            per_logit, _UNPACKED_HEAD_BYTES + 2.0 * job.activation_bytes * job.architecture.hidden / tokens
        )
    if job.architecture.logit_softcap and not job.fused_loss:
        per_logit = per_logit + job.activation_bytes
    return per_logit
