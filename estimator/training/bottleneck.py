"""What limits a step: its seconds by the resource that they wait for, and where its passes stand under the roofline.

The device's own time is told apart by asking again with a resource made boundless: what endless memory bandwidth would
save is bound by memory bandwidth, what neither bandwidth nor arithmetic would save is the launching of kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from estimator.kernels.compute import block_time, head_time, memory_time
from estimator.plan.layouts import Layouts
from estimator.plan.training.job import Job
from estimator.plan.training.stages import Floats
from estimator.training.schedule import Step

# Components of a step that are the device's own work, without what full or selective recompute repeats.
_DEVICE = ("forward", "backward", "extra_models")
# Everything else by the component's name; a component that is not here goes by its own.
_NAMES = {
    "recompute": "recompute",
    "tensor_parallel": "tensor-parallel communication",
    "context_parallel": "context-parallel communication",
    "expert_parallel": "expert-parallel communication",
    "data_parallel": "data-parallel communication",
    "pipeline": "pipeline communication",
    "bubble": "pipeline bubble",
    "optimizer": "optimizer step",
    "host": "host",
    "offload": "offloading",
    "generation": "generation",
}
# So many times the real rate is as good as no limit, and still a finite number.
_BOUNDLESS = 1e12
# Times the real (memory bandwidth, arithmetic) of the device as it is, without either limit, and without both.
_RATES = ((1.0, _BOUNDLESS, 1.0, _BOUNDLESS), (1.0, 1.0, _BOUNDLESS, _BOUNDLESS))


@dataclass(frozen=True)
class DeviceWork:
    """A device's passes over one micro-batch and an average stage, by what binds them; arrays of shape (n,).

    `arithmetic_s`, `memory_s` and `launch_s` are seconds before the framework's factor; `traffic_bytes` is what is read
    from and written to device memory, hidden behind arithmetic or not. The optimizer's step is not among them.
    """

    arithmetic_s: Floats
    memory_s: Floats
    launch_s: Floats
    traffic_bytes: Floats


@dataclass(frozen=True)
class StepRoofline:
    """Williams et al. 2009: FLOP/s that the arithmetic intensity (FLOP a byte of device memory) allows.

    Work and traffic are those of the forward and backward passes of one step on one device, recompute included;
    `achieved_flops` is that work over the whole step, waiting and communication included.
    """

    arithmetic_intensity_flop_per_byte: float
    ridge_flop_per_byte: float
    attainable_flops: float
    achieved_flops: float
    peak_flops: float
    memory_bandwidth_bytes_per_s: float
    traffic_bytes: float
    bound: str


@dataclass(frozen=True)
class Diagnosis:
    """`limits` are seconds of the step by what they wait for, the largest first; they sum to the step."""

    limits: dict[str, float]
    roofline: StepRoofline

    @property
    def bottleneck(self) -> str:
        """What most of the step's time goes to."""
        return next(iter(self.limits))


def device_work(job: Job, layouts: Layouts) -> DeviceWork:
    """What one micro-batch costs an average device, told apart by resource."""
    count = len(layouts)
    # All four devices in one evaluation, whose cost is that of one: factors may be arrays.
    memory, arithmetic = (np.repeat(rates, count) for rates in _RATES)
    seconds = _passes_s(_with_rates(job, memory, arithmetic), layouts.take(np.tile(np.arange(count), len(_RATES[0]))))
    whole, no_memory, no_arithmetic, neither = seconds.reshape(-1, count)
    # The seconds of a byte as compute.py has them.
    byte_s = memory_time(job, np.ones(1), 0.0)
    return DeviceWork(
        arithmetic_s=no_memory - neither,
        memory_s=np.maximum(0.0, whole - no_memory),
        launch_s=neither,
        traffic_bytes=(no_arithmetic - neither) / byte_s,
    )


def _passes_s(job: Job, layouts: Layouts) -> Floats:
    """Seconds of one micro-batch's forward and backward passes with recompute, an even share of layers and head."""
    head = head_time(job, layouts)
    total = head.forward + head.backward
    repeated = np.minimum(1.0, layouts.recompute_layers * layouts.pp / job.architecture.layers)
    for kind, block in enumerate(job.architecture.blocks):
        time = block_time(job, block, layouts)
        count = job.architecture.pattern.count(kind)
        total = total + count * (time.forward * (1.0 + repeated) + time.backward + time.recompute)
    return total / layouts.pp


def _with_rates(job: Job, memory: Floats, arithmetic: Floats) -> Job:
    """The same job on devices of so many times the memory bandwidth and the arithmetic, one for each candidate."""
    device, fitted = job.machine.accelerator, job.calibration.device
    machine = replace(job.machine, accelerator=replace(device, memory_bandwidth=device.memory_bandwidth * memory))
    factors = replace(fitted, matmul=fitted.matmul * arithmetic, attention=fitted.attention * arithmetic)
    return replace(job, machine=machine, calibration=replace(job.calibration, device=factors))


def limits(components: Mapping[str, Floats], work: DeviceWork) -> dict[str, Floats]:
    """Seconds of each step by what they wait for; they sum to the components. Arrays of shape (n,).

    The device's own time is dealt to arithmetic, memory bandwidth and launches (which the host pays for) in the
    proportions of `work`; recompute is a choice and stands for itself.
    """
    busy = sum((components[name] for name in _DEVICE if name in components), np.zeros_like(work.arithmetic_s))
    whole = work.arithmetic_s + work.memory_s + work.launch_s
    seconds_of = {
        "compute": busy * work.arithmetic_s / whole,
        "memory bandwidth": busy * work.memory_s / whole,
        "host": busy * work.launch_s / whole,
    }
    for name, seconds in components.items():
        if name not in _DEVICE:
            limit = _NAMES.get(name, name.replace("_", " "))
            seconds_of[limit] = seconds_of[limit] + seconds if limit in seconds_of else seconds
    return seconds_of


def diagnosis(job: Job, layouts: Layouts, step: Step, index: int) -> Diagnosis:
    """What limits candidate `index` of `layouts`, whose step times are `step`."""
    layout = layouts.take(np.array([index]))
    work = device_work(job, layout)
    by_limit = limits({name: values[[index]] for name, values in step.components.items()}, work)
    seconds = {name: float(value[0]) for name, value in by_limit.items()}
    ordered = dict(sorted(seconds.items(), key=lambda item: -item[1]))
    return Diagnosis(ordered, _roofline(job, layout, work, step, index))


def _roofline(job: Job, layout: Layouts, work: DeviceWork, step: Step, index: int) -> StepRoofline:
    device = job.machine.accelerator
    traffic = float(work.traffic_bytes[0]) * float(layout.grad_accum[0])
    flop = float(step.hardware_flop[index])
    ridge = job.peak_flops / device.memory_bandwidth
    # Work without traffic never waits for memory.
    intensity = flop / max(traffic, 1.0)
    return StepRoofline(
        arithmetic_intensity_flop_per_byte=intensity,
        ridge_flop_per_byte=ridge,
        attainable_flops=min(job.peak_flops, intensity * device.memory_bandwidth),
        achieved_flops=flop / float(step.seconds[index]),
        peak_flops=job.peak_flops,
        memory_bandwidth_bytes_per_s=device.memory_bandwidth,
        traffic_bytes=traffic,
        bound="compute" if intensity >= ridge else "memory bandwidth",
    )
