"""The comment at the head of a launch file: the plan, what was predicted of it, and how it is run."""

from __future__ import annotations

from estimator.plan.schema import Plan
from launchers.launch.duration import warnings as duration_warnings
from launchers.launch.names import one_line
from launchers.launch.of_plan import Launch
from launchers.launch.serving import ServingLaunch
from launchers.launch.training import TrainingLaunch
from launchers.predictions import TrainingPrediction

_GIB = 2.0**30
# The unit of a figure set by hand, by the end of its name.
_UNITS = {"_gib": "GiB per device", "_gb_per_s": "GB/s", "_us": "us"}


def heading(launch: Launch, run: str) -> list[str]:
    """What a file says about itself, one plain line each and without comment signs: the plan, what was predicted, and
    how it is run (the set's scheduler, or `run`)."""
    return scheduler_heading(launch, launch.scheduler_command or launch.before_start + run)


def scheduler_heading(launch: Launch, run: str) -> list[str]:
    """The heading of a scheduler's file: the set may have several schedulers, and this one is run by `run`."""
    lines = _serving_lines(launch) if launch.kind == "inference" else _training_lines(launch)
    return [*warnings(launch), *lines, f"run, from this folder: {one_line(run)}"]


def bash_heading(launch: Launch, path: str) -> list[str]:
    """The first lines of a Bash script, which is run by its name and stops at the first command that fails."""
    return ["#!/bin/bash", *(f"# {line}" for line in heading(launch, f"bash {path}")), "", "set -euo pipefail"]


_OUT_OF_MEMORY = "WARNING: this plan is predicted to run out of memory"


def warnings(launch: Launch) -> list[str]:
    """What a person has to read before anything else: memory that is too little, a run that is too long."""
    lines: list[str] = []
    predicted = launch.prediction
    if isinstance(predicted, TrainingPrediction):
        if predicted.memory_bytes > predicted.capacity_bytes:
            lines.append(_OUT_OF_MEMORY)
        elif predicted.memory_high_bytes > predicted.capacity_bytes:
            lines.append("note: the upper end of the memory's interval is over the device's memory")
    elif predicted is not None and not predicted.fits:
        lines.append(_OUT_OF_MEMORY)
    return lines + duration_warnings(launch)


def _training_lines(launch: TrainingLaunch) -> list[str]:
    training, cluster = launch.training, launch.plan.cluster
    adapters = f" rank {training.lora.rank}" if launch.uses_adapters else ""
    weights = "" if training.weights == "auto" else f" ({training.weights} weights)"
    lines = [
        f"Shardwise: {one_line(launch.plan.name)}" if launch.plan.name else "Shardwise",
        f"plan: {one_line(launch.model or 'inline model')}, {training.stage} {training.method}{adapters} "
        f"{training.precision}{weights} {training.optimizer}, seq {launch.seq_len}, batch {launch.micro_batch} x "
        f"{launch.accumulation} x {launch.dp} = {launch.global_batch}, {launch.devices} x "
        f"{one_line(cluster.accelerator or 'accelerator')} ({launch.nodes} x {launch.node_devices}), "
        f"zero {launch.zero_stage}, recompute {launch.recompute}, offload {launch.offload}{_split(launch)}",
    ]
    lines += _hand_set(launch.plan)
    predicted = launch.prediction
    if predicted is not None:
        lines.append(
            f"predicted (80 % interval): {predicted.memory_bytes / _GIB:.1f} GiB per device "
            f"({predicted.memory_low_bytes / _GIB:.1f} to {predicted.memory_high_bytes / _GIB:.1f}) of "
            f"{predicted.capacity_bytes / _GIB:.1f} GiB; step {predicted.step_s:.4g} s ({predicted.step_low_s:.4g} to "
            f"{predicted.step_high_s:.4g})"
        )
    return lines


def _split(launch: TrainingLaunch) -> str:
    """The sizes of model parallelism above 1, for the plan's line."""
    layout = launch.plan.layout
    sizes = ((name, getattr(layout, name)) for name in ("tp", "pp", "vpp", "cp", "ep"))
    return "".join(f", {name} {size}" for name, size in sizes if size and size > 1)


def _serving_lines(launch: ServingLaunch) -> list[str]:
    serving, cluster, predicted = launch.serving, launch.plan.cluster, launch.prediction
    if serving.request_rate is not None:
        load = f"{serving.request_rate:g} requests/s"
    elif serving.concurrency is None and serving.scenario == "offline":
        load = "all requests at once"
    else:
        load = f"{serving.concurrency or 1} requests at once"
    copies = f"{launch.replicas} replicas of " if launch.replicas > 1 else ""
    lines = [
        f"Shardwise: {one_line(launch.plan.name)}" if launch.plan.name else "Shardwise",
        f"plan: {one_line(launch.model or 'inline model')}, {serving.engine}, weights {serving.weight_dtype}, "
        f"kv {serving.kv_dtype}, {load}, {serving.input_len:g} tokens in and {serving.output_len:g} out, "
        f"{copies}tp {launch.tp} pp {launch.pp} dp {launch.dp} ep {launch.ep}, {launch.devices} x "
        f"{one_line(cluster.accelerator or 'accelerator')}",
        *_hand_set(launch.plan),
    ]
    if predicted is not None:
        first = "first token: the load is more than can be served"
        if predicted.ttft_s is not None:
            first = f"first token {_interval(predicted.ttft_s, predicted.ttft_low_s, predicted.ttft_high_s)}"
        lines += [
            f"predicted (80 % interval): {first}; per token "
            f"{_interval(predicted.tpot_s, predicted.tpot_low_s, predicted.tpot_high_s)}; "
            f"{predicted.output_tokens_per_s:.4g} output tokens/s",
            f"predicted: {predicted.memory_bytes / _GIB:.1f} of {predicted.capacity_bytes / _GIB:.1f} GiB per device; "
            f"room for {predicted.max_concurrency} requests at once",
        ]
    return lines


def _interval(value: float, low: float | None, high: float | None) -> str:
    """Seconds as milliseconds, with the interval where there is one."""
    ends = "" if low is None or high is None else f" ({1e3 * low:.4g} to {1e3 * high:.4g})"
    return f"{1e3 * value:.4g} ms{ends}"


def _hand_set(plan: Plan) -> list[str]:
    """The line that names the figures which the user set; none where there are none."""
    figures = plan.overrides.model_dump(exclude_none=True)
    if not figures:
        return []
    return [f"figures set by hand: {', '.join(_figure(name, value) for name, value in figures.items())}"]


def _figure(name: str, value: float) -> str:
    ending, unit = next(((ending, unit) for ending, unit in _UNITS.items() if name.endswith(ending)), ("", ""))
    return f"{name.removesuffix(ending).replace('_', ' ')} {value:g} {unit}".rstrip()
