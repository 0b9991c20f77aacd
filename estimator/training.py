"""One call from a job and its candidate layouts to memory, time and throughput; a single estimate is a batch of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from estimator.job import Job
from estimator.layouts import Layouts
from estimator.memory import Memory, device_memory, stage_memory
from estimator.schedule import Step, step_time
from estimator.stages import Floats, stage_shape

# Candidates estimated at a time: some dozens of arrays of this length fit in a core's cache.
_PIECE = 16_384
Entries = TypeVar("Entries", Memory, Step)


@dataclass(frozen=True)
class Estimates:
    """Everything estimated for n candidates; arrays of shape (n,), bytes per device, seconds per optimizer step."""

    job: Job
    layouts: Layouts
    memory: Memory
    fullest_stage: np.ndarray
    step: Step

    @property
    def low_bytes(self) -> Floats:
        return self.memory.total / (1.0 + self.job.memory_below)

    @property
    def high_bytes(self) -> Floats:
        return self.memory.total * (1.0 + self.job.memory_above)

    @property
    def fits(self) -> np.ndarray:
        """The upper end of the interval is within what the device can allocate."""
        return self.high_bytes <= self.job.usable_bytes

    @property
    def low_s(self) -> Floats:
        return self.step.seconds / (1.0 + self.job.calibration.time_spread)

    @property
    def high_s(self) -> Floats:
        return self.step.seconds * (1.0 + self.job.calibration.time_spread)

    @property
    def tokens_per_s(self) -> Floats:
        return self.job.tokens_per_step / self.step.seconds

    @property
    def mfu(self) -> Floats:
        return self.step.model_flop / (self.step.seconds * self.job.peak_flops)

    @property
    def hfu(self) -> Floats:
        return self.step.hardware_flop / (self.step.seconds * self.job.peak_flops)


def estimate(job: Job, layouts: Layouts) -> Estimates:
    """Estimates of all candidates, made in pieces that stay in the processor's cache; each entry is independent."""
    starts = range(0, max(1, len(layouts)), _PIECE)
    pieces = [layouts.take(np.arange(start, min(start + _PIECE, len(layouts)))) for start in starts]
    memories, stages = zip(*(device_memory(job, piece) for piece in pieces), strict=True)
    steps = [step_time(job, piece) for piece in pieces]
    return Estimates(job, layouts, _joined(memories), np.concatenate(stages), _joined(steps))


def _joined(parts: Sequence[Entries]) -> Entries:
    """Dataclasses of arrays (or mappings of arrays) of shape (n,), laid end to end."""
    first = parts[0]
    if len(parts) == 1:
        return first
    joined: dict[str, Any] = {}
    for field in fields(first):
        values = [getattr(part, field.name) for part in parts]
        if isinstance(values[0], dict):
            joined[field.name] = {key: np.concatenate([value[key] for value in values]) for key in values[0]}
        else:
            joined[field.name] = np.concatenate(values)
    return type(first)(**joined)


def stages_of(job: Job, layouts: Layouts) -> list[dict[str, Any]]:
    """Memory of every pipeline stage of a single candidate."""
    rows = []
    for index in range(int(layouts.pp[0])):
        stage = np.array([index])
        memory = stage_memory(job, layouts, stage)
        rows.append(
            {
                "stage": index,
                "layers": int(stage_shape(job.architecture, layouts, stage).layer_count[0]),
                "per_device_bytes": float(memory.total[0]),
                "components": {name: float(value[0]) for name, value in memory.components.items()},
            }
        )
    return rows


_BOTTLENECKS = {
    "compute": ("forward", "backward", "recompute", "extra_models"),
    "tensor-parallel communication": ("tensor_parallel",),
    "context-parallel communication": ("context_parallel",),
    "expert-parallel communication": ("expert_parallel",),
    "data-parallel communication": ("data_parallel",),
    "pipeline communication": ("pipeline",),
    "pipeline bubble": ("bubble",),
    "optimizer step": ("optimizer",),
    "host": ("host",),
}


def bottleneck(step: Step, index: int) -> str:
    """What most of the step's time goes to."""
    shares = {name: sum(float(step.components[part][index]) for part in parts) for name, parts in _BOTTLENECKS.items()}
    return max(shares, key=lambda name: shares[name])


def _stand_in(job: Job) -> str:
    kin = job.framework.kin
    return f"{kin} stands in" if kin != job.framework.name else "defaults stand in"


def warnings(estimates: Estimates, index: int) -> list[str]:
    """What the user should know before trusting or running candidate `index`."""
    job, layouts = estimates.job, estimates.layouts
    found = []
    accelerator, training = job.machine.accelerator, job.training
    if not estimates.fits[index]:
        need, have = estimates.high_bytes[index] / 2**30, job.usable_bytes / 2**30
        found.append(f"does not fit safely: up to {need:.1f} GiB per device of {have:.1f} GiB usable")
    calibration, name = job.calibration, job.framework.name
    if not calibration.device_measured:
        found.append(f"no measured run on {accelerator.family} devices is behind the time: its interval is wider")
    if not calibration.time_measured:
        found.append(f"no measured speed of {name} is behind the time ({_stand_in(job)}): its interval is wider")
    if job.unmeasured_memory:
        missing = ", ".join(job.unmeasured_memory)
        found.append(f"no measured memory of {missing} is behind this: its interval is wider")
    if training.stage in ("ppo", "grpo"):
        found.append("the time of generating samples is not in this estimate")
    domain = job.machine.fast_domain
    if layouts.tp[index] > domain:
        found.append(f"tp={layouts.tp[index]} crosses the fast domain of {domain} devices: communication dominates")
    if job.machine.count % job.machine.per_node:
        found.append(
            f"{job.machine.count} devices do not fill {job.machine.nodes} nodes of {job.machine.per_node}: "
            "the last node is partly used"
        )
    if job.seq_len > job.architecture.context > 0:
        found.append(f"seq_len {job.seq_len} is beyond the model's context of {job.architecture.context}")
    if job.peak_flops and training.precision in ("fp8", "mxfp8", "nvfp4"):
        kinds = accelerator.peak_flops
        if not any(kinds.get(kind) for kind in ("fp8", "nvfp4", "fp4")):
            found.append(f"{accelerator.name} has no {training.precision} matmuls: the bf16 rate is used")
    found.extend(job.architecture.notes)
    return found
