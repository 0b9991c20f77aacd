"""One call from a job and its candidate layouts to memory, time and throughput; a single estimate is a batch of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np

from estimator.plan.layouts import Layouts, keep_pages
from estimator.plan.training.job import Job
from estimator.plan.training.run_length import full_sample, padded_share
from estimator.plan.training.stages import Floats, stage_shape
from estimator.training.memory import Memory, device_memory, fits, stage_memory, taken
from estimator.training.schedule import Step, step_time
from estimator.units import GIB, PERCENT

# Candidates estimated at a time: few calls, of arrays of which a few fit in a core's cache. Of larger batches only
# totals are kept.
_PIECE = 32_768
# Part of a step from which padding is told.
_MUCH_PADDING = 0.15
Entries = TypeVar("Entries", Memory, Step)


def least_of(seconds: Floats, model_flop: Floats, job: Job) -> Floats:
    """The lower end of a step's interval: the spread's, or the time of its model FLOP at the peak where that is more
    (and no more than what is estimated)."""
    at_peak = model_flop / max(job.peak_flops, 1.0)
    return np.minimum(seconds, np.maximum(seconds / (1.0 + job.time_spread), at_peak))


@dataclass(frozen=True)
class Estimates:
    """What is estimated for n candidates; arrays of shape (n,), bytes per device, seconds per optimizer step.

    Components are there for small batches; `of` gives the estimate of chosen candidates with all components in any
    case. Times are NaN for candidates that do not fit where `estimate` was told to leave them out.
    """

    job: Job
    layouts: Layouts
    memory: Memory
    fullest_stage: np.ndarray
    step: Step

    def of(self, *index: int) -> Estimates:
        """The estimates of these candidates alone, everything included."""
        if len(self.layouts) == 1 and index == (0,):
            return self
        chosen = np.array(index, dtype=np.int64)
        layouts = self.layouts.take(chosen)
        if not (self.memory.components and self.step.components):
            return estimate(self.job, layouts)
        memory, step = taken(self.memory, chosen), taken(self.step, chosen)
        return Estimates(self.job, layouts, memory, self.fullest_stage[chosen], step)

    def joined(self, *more: Estimates) -> Estimates:
        """These estimates with those of other candidates of the job behind them."""
        parts = [self, *more]
        memory, step = _joined([part.memory for part in parts]), _joined([part.step for part in parts])
        stages = np.concatenate([part.fullest_stage for part in parts])
        layouts = self.layouts.joined(*(part.layouts for part in more))
        return Estimates(self.job, layouts, memory, stages, step)

    @property
    def low_bytes(self) -> Floats:
        return self.memory.total / (1.0 + self.job.memory_below)

    @property
    def high_bytes(self) -> Floats:
        """What fits to the last byte is not a rounded one over."""
        high = self.memory.total * (1.0 + self.job.memory_above)
        return np.where(self.fits, np.minimum(high, self.job.usable_bytes), high)

    @property
    def fits(self) -> np.ndarray:
        """The upper end of the interval is within what the device can allocate."""
        return fits(self.job, self.memory.total)

    @property
    def low_s(self) -> Floats:
        """No device is faster than its peak, however wide the interval."""
        return least_of(self.step.seconds, self.step.model_flop, self.job)

    @property
    def high_s(self) -> Floats:
        return self.step.seconds * (1.0 + self.job.time_spread)

    @property
    def tokens_per_s(self) -> Floats:
        return self.job.tokens_per_step / self.step.seconds

    @property
    def mfu(self) -> Floats:
        return self.step.model_flop / (self.step.seconds * self.job.peak_flops)

    @property
    def hfu(self) -> Floats:
        return self.step.hardware_flop / (self.step.seconds * self.job.peak_flops)


def at_own_mfu(estimates: Estimates) -> Estimates:
    """With the step as long as it is at the MFU that the plan names, where it names one; parts keep their shares."""
    mfu = estimates.job.plan.overrides.mfu
    if mfu is None:
        return estimates
    step, times = estimates.step, estimates.mfu / mfu
    components = {name: seconds * times for name, seconds in step.components.items()}
    return replace(estimates, step=replace(step, components=components, seconds=step.seconds * times))


def estimate(job: Job, layouts: Layouts, *, misfit_times: bool = True) -> Estimates:
    """Estimates of all candidates, made in pieces that stay in the processor's cache; each entry is independent.

    Without `misfit_times` the time of candidates that do not fit is left out, which no order of candidates asks for.
    """
    keep_pages()
    if len(layouts) <= _PIECE and misfit_times:
        return _whole(job, layouts)
    memories, stages, steps = [], [], []
    for piece in layouts.pieces(_PIECE):
        memory, stage = device_memory(job, piece, detail=False)
        memories.append(memory)
        stages.append(stage)
        steps.append(_totals(step_time(job, piece)) if misfit_times else _step_of_fitting(job, piece, memory))
    return Estimates(job, layouts, _joined(memories), np.concatenate(stages), _joined(steps))


def _whole(job: Job, layouts: Layouts) -> Estimates:
    memory, stages = device_memory(job, layouts)
    return Estimates(job, layouts, memory, stages, step_time(job, layouts))


def totals(job: Job, layouts: Layouts) -> Floats:
    """Each candidate's memory, without its time."""
    pieces = (device_memory(job, piece, detail=False)[0] for piece in layouts.pieces(_PIECE))
    return np.concatenate([memory.total for memory in pieces])


def step_seconds(job: Job, layouts: Layouts) -> Floats:
    """Seconds of one step of every candidate, whether it fits or not."""
    return np.concatenate([step_time(job, piece).seconds for piece in layouts.pieces(_PIECE)])


def _totals(step: Step) -> Step:
    """Without the arrays of single components."""
    return replace(step, components={})


def _step_of_fitting(job: Job, layouts: Layouts, memory: Memory) -> Step:
    """Totals of the step, NaN for candidates that do not fit."""
    index = np.flatnonzero(fits(job, memory.total))
    some = step_time(job, layouts.take(index)) if len(index) else None

    def spread(name: str) -> Floats:
        values = np.full(len(layouts), np.nan)
        if some is not None:
            values[index] = getattr(some, name)
        return values

    return Step({}, spread("seconds"), spread("model_flop"), spread("hardware_flop"))


def _joined(parts: Sequence[Entries]) -> Entries:
    """Dataclasses of arrays of shape (n,) laid end to end; of mappings of arrays the names that all have."""
    first = parts[0]
    if len(parts) == 1:
        return first
    joined: dict[str, Any] = {}
    for field in fields(first):
        values = [getattr(part, field.name) for part in parts]
        if isinstance(values[0], dict):
            shared = [key for key in values[0] if all(key in value for value in values)]
            joined[field.name] = {key: _end_to_end([value[key] for value in values]) for key in shared}
        else:
            joined[field.name] = _end_to_end(values)
    return type(first)(**joined)


def _end_to_end(values: Sequence[np.ndarray]) -> np.ndarray:
    """Arrays laid end to end; a constant stays one. An empty one says nothing of it."""
    filled = [value for value in values if len(value)] or values[:1]
    if all(value.strides == (0,) and np.array_equal(value[:1], filled[0][:1]) for value in filled):
        return np.broadcast_to(filled[0][:1], (sum(map(len, filled)),))
    return np.concatenate(filled)


def stages_of(job: Job, layouts: Layouts) -> list[dict[str, Any]]:
    """Memory of every pipeline stage of a single candidate."""
    stages = np.arange(int(layouts.pp[0]))
    each = layouts.take(np.zeros_like(stages))
    memory = stage_memory(job, each, stages)
    counts = stage_shape(job.architecture, each, stages).layer_count
    return [
        {
            "stage": stage,
            "layers": int(counts[stage]),
            "per_device_bytes": float(memory.total[stage]),
            "components": {name: float(value[stage]) for name, value in memory.components.items()},
        }
        for stage in stages.tolist()
    ]


def _stand_in(job: Job) -> str:
    family = job.framework.fallback_family
    return f"{family}'s are used" if family != job.framework.name else "typical ones are used"


def unmeasured(job: Job) -> list[str]:
    """What of the job no run of its kind was measured for."""
    sentences, calibration = [], job.calibration
    if not calibration.device_measured:
        family = job.machine.accelerator.family
        few = "no" if calibration.node == family else "hardly any"
        sentences.append(f"{few} {calibration.node} runs measured: timing is less certain")
    if not calibration.time_measured:
        sentences.append(f"no {job.framework.name} speeds measured ({_stand_in(job)}): timing is less certain")
    if job.unmeasured_memory:
        named = [text.rpartition(" ") for text in job.unmeasured_memory]
        missing = " or ".join(value.upper() if what == "stage" else value for what, _, value in named)
        sentences.append(f"no memory peaks measured for {missing}: memory is less certain")
    return sentences


def warnings(estimates: Estimates, index: int) -> list[str]:
    """What the user should know before trusting or running candidate `index`."""
    job, layouts = estimates.job, estimates.layouts
    sentences = []
    training = job.training
    if not estimates.fits[index]:
        need, have = estimates.high_bytes[index] / GIB, job.usable_bytes / GIB
        sentences.append(f"does not fit safely: up to {need:.1f} GiB per device of {have:.1f} GiB usable")
    if (empty := padded_share(training)) > _MUCH_PADDING:
        length, rows = (1.0 - empty) * full_sample(training), full_sample(training)
        sentences.append(
            f"samples of {length:,.0f} tokens are taken as padded to {rows:,}: up to {PERCENT * empty:.0f} % of a step "
            "is padding, less where rows end with the longest of a micro-batch"
        )
    sentences += unmeasured(job)
    if training.stage in ("ppo", "grpo"):
        if training.rollout == "separate":
            sentences.append("generating samples on other devices is not in this estimate")
        else:
            sentences.append(
                f"samples are taken as {training.response_len:,} tokens each: a step waits for the longest"
            )
    domain = job.machine.fast_domain
    if layouts.tp[index] > domain:
        sentences.append(f"tp={layouts.tp[index]} crosses the fast domain of {domain} devices: communication dominates")
    if job.machine.count % job.machine.per_node:
        sentences.append(
            f"{job.machine.count} devices do not fill {job.machine.nodes} nodes of {job.machine.per_node}: "
            "the last node is partly used"
        )
    if job.healing and job.plan.overrides.mfu is None:
        share = training.fp8_healing
        healed = float(step_time(job.healing, layouts.take(np.array([index]))).seconds[0])
        before = (float(estimates.step.seconds[index]) - share * healed) / (1.0 - share)
        sentences.append(
            f"the first {PERCENT * (1.0 - share):.0f} % of the steps take {before:.3g} s in {training.precision}, the "
            f"others {healed:.3g} s in fp8: a step is their mean, memory that of the latter"
        )
    if job.quantised and job.quantised_part < 1.0:
        sentences.append(f"{job.framework.name} leaves routed experts in 16 bits: it packs linear modules alone")
    if job.seq_len > job.architecture.context > 0:
        sentences.append(
            f"a sequence length of {job.seq_len:,} is beyond the model's context of {job.architecture.context:,}"
        )
    if job.peak_flops and training.precision in ("fp8", "mxfp8", "mxfp4", "nvfp4"):
        accelerator = job.machine.accelerator
        kinds = accelerator.peak_flops
        if not any(kinds.get(kind) for kind in ("fp8", "mxfp4", "nvfp4", "fp4")):
            sentences.append(f"{accelerator.name} has no {training.precision} matmuls: the bf16 rate is used")
    sentences.extend(job.architecture.notes)
    return sentences
