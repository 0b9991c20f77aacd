"""Device memory by component and stage, what the user set of it, host memory, and how many requests have room."""

from __future__ import annotations

from collections.abc import Sequence

from estimator.plan.schema import Inference, Training
from knowledge import figures
from pages.answers.plan import complete, model_words, run_words
from pages.blocks import Block, Prose, Table
from pages.results.basis import notes
from pages.results.estimate import HOST_PHASES, component, components
from planner.results import Limit, MemoryEstimate, Overridden, TrainingEstimate
from planner.serving.results import ServingEstimate, ServingMemoryEstimate

_MOMENTS = {
    "loss": "while the loss is computed",
    "backward_start": "as the backward pass begins",
    "backward_end": "as the backward pass ends",
    "optimizer_step": "in the optimizer step",
    "generation": "while samples are generated",
}
# A component counts as absent at the peak below this part of its own most, and is told from this part of the total on.
_ABSENT, _TOLD = 0.1, 0.02
_MOST_STAGES = 8


def training(memory: MemoryEstimate) -> list[Block]:
    """All that is told of the memory of a run."""
    peak = Prose(" ".join([peak_words(memory), *_absent(memory)]))
    as_set = notes("As you set it", [_set(row) for row in memory.overridden])
    return [*components(memory), peak, Prose(_stages(memory)), *as_set, Prose(_host(memory))]


def serving(memory: ServingMemoryEstimate, engine: str) -> list[Block]:
    """The fullest device by component, and how many requests it holds."""
    if not memory.fits:
        return components(memory)
    text = (
        f"A device can allocate {figures.gib(memory.capacity_bytes)}, of which {engine} claims "
        f"{figures.gib(memory.claimed_bytes)}. **Users**: {figures.whole(memory.max_concurrency)} whole requests have "
        f"room at once"
    )
    if memory.kv_tokens is not None:
        each = figures.whole(memory.kv_bytes_per_token)
        text += f", {figures.whole(memory.kv_tokens)} tokens of cache at {each} bytes each"
    if memory.longest_request is not None:
        text += f"; the longest that fits alone is {figures.whole(memory.longest_request)} tokens"
    return [*components(memory), Prose(f"{text}.")]


def besides(memory: MemoryEstimate) -> str:
    """For a run that fits its devices: what it fails for besides the host's memory, as a sentence; empty where nothing
    is known to."""
    return "" if memory.save.fits else "But saving a checkpoint may run out of device memory."


def peak_words(memory: MemoryEstimate) -> str:
    """When and why memory is highest, with its interval."""
    span = figures.gib_range(memory.low_bytes, memory.high_bytes)
    stages = f" of pipeline stage {memory.fullest_stage}" if len(memory.stages) > 1 else ""
    return f"Memory{stages} peaks {_MOMENTS[memory.peak]} ({span}); the largest part is {component(memory.decided_by)}."


def _absent(memory: MemoryEstimate) -> list[str]:
    """What takes memory at another moment of the step only, and is not in the table for that."""
    absent = [
        f"{component(name)} ({figures.gib(most)})"
        for name, most in memory.own_peaks.items()
        if memory.components[name] < _ABSENT * most and most >= _TOLD * memory.per_device_bytes
    ]
    return [f"Not part of the peak: {_listed(absent)}."] if absent else []


def _listed(parts: Sequence[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _stages(memory: MemoryEstimate) -> str:
    stages = memory.stages
    if len(stages) < 2:
        return ""
    fullest = f"Stage {memory.fullest_stage} decides."
    if len(stages) > _MOST_STAGES:
        sizes = [stage.per_device_bytes for stage in stages]
        least = sizes.index(min(sizes))
        return f"By pipeline stage: {figures.gib(min(sizes))} (stage {least}) to {figures.gib(max(sizes))}. {fullest}"
    each = _listed([f"{figures.gib(stage.per_device_bytes)} (stage {stage.stage})" for stage in stages])
    return f"By pipeline stage: {each}. {fullest}"


def _set(row: Overridden) -> str:
    name = row.field.rpartition(".")[2].removesuffix("_gib")
    value, otherwise = figures.gib(row.value_bytes), figures.gib(row.estimated_bytes)
    match name:
        case "usable":
            return f"a device can allocate {value} ({otherwise} otherwise)"
        case "reserve":
            return f"{value} of it stays free"
        case _:
            return f"{component(name)}: {value} (estimated: {otherwise})"


def _host(memory: MemoryEstimate) -> str:
    """Host memory of a node, and the size of a checkpoint. What does not fit stands among the warnings."""
    host, save = memory.host, memory.save
    text = f"**Host memory**: about {figures.gib(host.per_node_bytes)} per node {HOST_PHASES[host.phase]}"
    if host.capacity_bytes is not None:
        text += f", of {figures.gib(host.capacity_bytes)}{'' if host.is_named else ' that such a node usually has'}"
    weights, resumable = figures.gib(save.checkpoint_bytes), figures.gib(save.resumable_bytes)
    return f"{text}. A checkpoint takes {weights} on disk, {resumable} with all that it needs to resume."


def need(estimate: TrainingEstimate | ServingEstimate, fewest: Sequence[tuple[str, Limit | None]]) -> list[Block]:
    """All of a model on one device; `fewest` are the limits in devices of some cards by name, None where none holds."""
    plan, found = complete(estimate.plan), _of_all(estimate.memory)
    count, workload = plan.cluster.count or 1, plan.workload
    whose = "if one GPU held all of it" if count == 1 else f"on each of {count} GPUs"
    if isinstance(workload, Inference):
        what = f"to serve {model_words(plan)}{_load(workload)}"
    else:
        at_once = workload.micro_batch or 1
        samples = f"{at_once} sequences" if at_once > 1 else "one sequence"
        what = f"for {run_words(plan)} with {workload.framework}, {samples} of {workload.seq_len:,} tokens at a time"
    cache = found.components.get("kv_cache")
    cache = "" if cache is None else f"; the KV cache is {figures.gib(cache)} of it"
    head = ("card", "fewest", figures.label("per_device_bytes"), "with")
    return [
        Prose(f"**About {figures.gib(found.per_device_bytes)}** of device memory {what}, {whose}{cache}."),
        Table(head, [_card(name, limit) for name, limit in fewest], right=head[1:3]),
        *components(found),
        Prose("Name your GPUs for speed, cost and the best layout."),
    ]


def _of_all(memory: MemoryEstimate | ServingMemoryEstimate) -> MemoryEstimate | ServingMemoryEstimate:
    """Memory with the whole requests of all clients at once; a deployment's own is that of those that run."""
    if not isinstance(memory, ServingMemoryEstimate) or memory.clients_cache_bytes is None:
        return memory
    parts = memory.components | {"kv_cache": memory.clients_cache_bytes}
    return memory.model_copy(update={"components": parts, "per_device_bytes": memory.clients_bytes})


def _load(workload: Training | Inference) -> str:
    """How many requests of which length are held at once."""
    if not isinstance(workload, Inference) or workload.concurrency is None:
        return ""
    size = f"{workload.input_len:,} tokens in and {workload.output_len:,} out"
    if workload.max_context:
        size = f"{workload.max_context:,} tokens"
    several = "one request" if workload.concurrency == 1 else f"{workload.concurrency:,} requests at once"
    return f" to {several} of {size}"


def _card(name: str, limit: Limit | None) -> tuple[str, str, str, str]:
    if limit is None or limit.value is None:
        return name, "none tried", figures.NONE, figures.NONE
    workload = complete(limit.plan).workload
    program = workload.engine if isinstance(workload, Inference) else workload.framework
    return name, figures.plain(limit.value), figures.gib(_of_all(limit.memory).per_device_bytes), str(program)
