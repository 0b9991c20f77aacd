"""Pages of one plan: what it comes to, and whether it fits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from estimator.plan.schema import Plan
from estimator.units import GIB
from knowledge import figures
from knowledge.figures import gib, percent
from pages.blocks import Block, Chart, Figures, Folded, Headline, Note, Row, Table
from pages.results import deciding
from pages.results.basis import notes, tail
from pages.results.columns import Column, listed, table
from pages.results.limits import doubt_words, limit_words, untold
from pages.results.needs import needs
from pages.results.overview import figure_rows, latency_limit
from pages.results.plan import flags, plan_figures
from planner.plots import Plot, Series, stacked
from planner.result import TimeLimit
from planner.results import FitCheck, HostMemoryEstimate, MemoryEstimate, Remedy, Roofline, TrainingEstimate
from planner.serving.results import PassSplit, ServingEstimate, ServingMemoryEstimate

Estimate = TrainingEstimate | ServingEstimate
Memory = MemoryEstimate | ServingMemoryEstimate
# Changes that stand at first; the others are behind them.
_MOST_REMEDIES = 4
# What the room of a plan that fits is good for.
ROOM = ("largest_micro_batch", "largest_seq_len", "max_concurrency")
_FLAGS: Column = ("flags", lambda row: flags(row.patch))
_COMPONENTS = {
    "optimizer": "optimizer states", "extra_models": "models beside the trained one", "kv_cache": "KV cache",
    "cuda_graphs": "CUDA graphs",
}  # fmt: skip
HOST_PHASES = {
    "loading": "while the weights are loaded", "steady": "in training", "saving": "while a checkpoint is saved",
}  # fmt: skip
# Moments of a step, and its parts as they come in it; a part that is not here goes by its own name, at the end.
_MOMENTS = {
    "generation": "samples", "loss": "loss", "backward_start": "backward begins", "backward_end": "backward ends",
    "optimizer_step": "optimizer step",
}  # fmt: skip
_STEP_PARTS = {
    "generation": "generating samples", "extra_models": "models beside the trained one", "forward": "forward",
    "recompute": "recompute", "backward": "backward", "tensor_parallel": "TP communication",
    "context_parallel": "CP communication", "expert_parallel": "EP communication", "pipeline": "pipeline sends",
    "bubble": "bubble", "data_parallel": "DP communication", "offload": "offload", "optimizer": "optimizer step",
}  # fmt: skip
# Parts of a step that keep their colour.
_COLOURED = ("forward", "backward", "recompute", "bubble", "TP communication", "DP communication", "pipeline sends",
             "optimizer step", "host", "stragglers", "CP communication", "EP communication", "offload",
             "generating samples", "models beside the trained one")  # fmt: skip


def estimate(result: Estimate) -> list[Block]:
    return [
        fit_verdict(result),
        *plan_figures(result.plan),
        Figures(estimate_rows(result), "Figures (80 % interval)"),
        *memory(result.memory),
        *where_time_goes(result.limits),
        *improvements(result),
        *deciding.table(result.decides, result.memory.fits),
        Folded(notes("Why this layout", result.why)),
        *charts(result),
        *tail(result.warnings, result.assumptions, result.evidence),
    ]


def fit(result: FitCheck) -> list[Block]:
    room, wish = "What would make room", "What would make it fit"
    return [
        fit_verdict(result),
        *plan_figures(result.plan),
        *memory(result.memory),
        *listed(result, ROOM, "The most that fits"),
        *remedies(result.remedies[:_MOST_REMEDIES], room if result.fits else wish),
        Folded(
            [
                *remedies(result.remedies[_MOST_REMEDIES:], "And"),
                *remedies(result.relaxations, "What more room would allow"),
            ]
        ),
        *memory_chart(result.memory),
        *tail(result.warnings, result.assumptions, result.evidence),
    ]


def fit_verdict(result: Estimate | FitCheck) -> Headline:
    """'Late by 2.1 days: 9.1 days of 7.0 days. It fits: 65.0 GiB (55.1–76.7) of 79.7 GiB per device.'"""
    words = memory_words(result.memory)
    if isinstance(result.memory, MemoryEstimate) and result.memory.fits and result.memory.host.fits is False:
        return Headline(host_runs_out(result.memory.host), False)
    if result.memory.fits if not isinstance(result, FitCheck) else result.fits:
        missed = [row.limit.upper() for row in result.slo if not row.met] if isinstance(result, ServingEstimate) else []
        tight = isinstance(result.memory, MemoryEstimate) and result.memory.tight
        goal = None if isinstance(result, FitCheck) else Plan.model_validate(result.plan).goal
        limits = limit_words(goal, getattr(result, "run", None))
        but = f", but misses the limit of {' and '.join(missed)}" if missed else ", but tightly" if tight else ""
        how = "" if isinstance(result, ServingEstimate) else needs(result)
        verdict = " ".join(filter(None, (f"It fits{but}: {words}.", how)))
        told = " ".join([*limits.broken, *limits.doubtful, verdict, *limits.kept])
        beware = tight or bool(result.warnings or limits.doubtful)
        return Headline(told, not (missed or limits.broken), doubt_words(untold(result)), beware)
    if isinstance(result.memory, ServingMemoryEstimate):
        return Headline(f"It does not fit: {lacking(result.memory, Plan.model_validate(result.plan))}.", False)
    return Headline(f"It {misfit(result.memory)}: {words}.", False)


def host_runs_out(host: HostMemoryEstimate) -> str:
    """Of a run that fits its devices and not the memory of its nodes: what that takes, and when."""
    whose = "the node has" if host.is_named else "such a node usually has"
    has = "" if host.capacity_bytes is None else f", {whose} {gib(host.capacity_bytes)}"
    takes = f"{gib(host.per_node_bytes)} per node {HOST_PHASES[host.phase]}"
    return f"It fits the GPUs, but host memory runs out: it takes {takes}{has}."


def misfit(memory: MemoryEstimate) -> str:
    """Of a run without room: 'may not fit' where only the upper end of what it needs is more than there is."""
    return "may not fit" if memory.per_device_bytes <= memory.capacity_bytes else "does not fit"


def lacking(memory: ServingMemoryEstimate, plan: Plan) -> str:
    """Of what does not fit: '151 GiB of 140.4 GiB per device', or by how much it is more than an engine takes of it."""
    need, has = gib(memory.per_device_bytes), gib(memory.capacity_bytes)
    over = memory.per_device_bytes - memory.claimed_bytes
    if memory.per_device_bytes > memory.capacity_bytes or over <= 0:
        return f"{need} of {has} per device"
    return f"{need} per device, {gib(over)} more than {plan.inference.engine} takes of {has}"


def memory_words(memory: Memory) -> str:
    """'65.0 GiB (55.1–76.7) of 79.7 GiB per device': an interval is of 80 %."""
    span = figures.interval(memory, "per_device_bytes")
    return f"{figures.with_interval(gib(memory.per_device_bytes), span)} of {gib(memory.capacity_bytes)} per device"


def estimate_rows(result: Estimate) -> list[Row]:
    slo = result.slo if isinstance(result, ServingEstimate) else ()
    limits = [("limits", latency_limit(row)) for row in slo]
    return [*figure_rows(result), ("waits for", result.bottleneck), *limits]


def component(name: str) -> str:
    """What a part of memory is called."""
    return _COMPONENTS.get(name, name.replace("_", " "))


def components(memory: Memory) -> list[Block]:
    """The parts of the fullest device, largest first."""
    parts = sorted(memory.components.items(), key=lambda part: -part[1])
    total = sum(size for _, size in parts)
    rows = [[component(name), gib(size), percent(size / total)] for name, size in parts if size > 0]
    head = ("memory per device", "size", "share")
    return [Table(head, rows, right=head[1:])] if rows else []


def memory(estimate: Memory) -> list[Block]:
    """The parts of the fullest device, and whether the host is short."""
    blocks = components(estimate)
    host = estimate.host if isinstance(estimate, MemoryEstimate) else None
    if host and host.fits is False and host.capacity_bytes is not None:
        sentence = f"{gib(host.per_node_bytes)} needed of {gib(host.capacity_bytes)} per node"
        blocks.append(Note("Host memory is short", [f"{sentence}, most of it while {host.phase}"]))
    return blocks


def where_time_goes(limits: Sequence[TimeLimit]) -> list[Block]:
    waits = [row for row in limits if row.seconds > 0]
    return table(waits, [("a step waits for", lambda row: row.limit), "seconds", "share"])


def improvements(result: Estimate, last: Column = _FLAGS) -> list[Block]:
    """What would make a run faster, each change by itself, and how it is made or why it helps."""
    rows = result.improvements or [] if isinstance(result, TrainingEstimate) else []
    return table(rows, [("change", "what"), "gain", "tokens_per_s", last], "What would be faster")


def remedies(rows: Sequence[Remedy], title: str, last: Column = _FLAGS, timed: bool = True) -> list[Block]:
    """`timed` is false where the plan itself has no speed to compare with."""
    time = ["slowdown"] if timed else []
    return table(rows, [("change", "what"), "per_device_bytes", "fits", *time, last], title)


# ------------------------------------------------------------------------------------------------------------ charts


def charts(result: Estimate) -> list[Block]:
    return [
        *memory_chart(result.memory),
        *time_chart(result),
        *(roofline(result.roofline) if isinstance(result, TrainingEstimate) else ()),
    ]


def memory_plots(memory: Memory) -> list[Plot]:
    """The fullest device at each moment of a step, and a bar a pipeline stage where there are several."""
    capacity, several = memory.capacity_bytes / GIB, isinstance(memory, MemoryEstimate) and len(memory.stages) > 1
    rows = [("Memory per device", {"fullest device": memory.components})]
    if isinstance(memory, MemoryEstimate) and memory.moments:
        of = f", fullest stage ({memory.fullest_stage})" if several else ""
        moments = {_MOMENTS[row.moment]: row.components for row in memory.moments}
        rows = [(f"Memory over a step{of}", moments)]
    if isinstance(memory, MemoryEstimate) and several:
        stages = {f"stage {stage.stage}": stage.components for stage in memory.stages}
        rows.append(("Memory by pipeline stage", stages))
    return [
        plot
        for title, bars in rows
        for plot in stacked(title, "", "GiB", list(bars), list(map(_named, bars.values())), GIB, capacity, "usable")
    ]


def memory_chart(memory: Memory) -> list[Chart]:
    """The plots, each component in the colour that it has in every estimate."""
    return [Chart(plot, _places(plot, _named(memory.components))) for plot in memory_plots(memory)]


def time_chart(result: Estimate) -> list[Chart]:
    return [Chart(plot, _places(plot, _COLOURED)) for plot in time_plot(result)]


def _places(plot: Plot, known: Iterable[str]) -> list[int]:
    """Where each series stands among all parts that have a colour of their own; nothing where one is not among them."""
    names = list(known)
    parts = [series.name for series in plot.series]
    return [names.index(part) for part in parts] if set(parts) <= set(names) else []


def step_parts(parts: Mapping[str, float]) -> dict[str, float]:
    """The parts of a step under their names, as they come in it."""
    order = [name for name in _STEP_PARTS if name in parts]
    order += [name for name in parts if name not in _STEP_PARTS]
    return {_STEP_PARTS.get(name, name.replace("_", " ")): parts[name] for name in order}


def step_place(name: str, other: int) -> int:
    """Where a part of a step stands among those that keep their colour; `other` where it is none."""
    return _COLOURED.index(name) if name in _COLOURED else other


def in_words(plot: Plot) -> Plot:
    """A plot whose series are parts of memory by their keys, with what these are called."""
    return plot.model_copy(
        update={"series": [each.model_copy(update={"name": component(each.name)}) for each in plot.series]}
    )


def _named(components: Mapping[str, float]) -> dict[str, float]:
    return {component(name): size for name, size in components.items()}


def time_plot(result: Estimate) -> list[Plot]:
    if isinstance(result, TrainingEstimate):
        rows = {f"stage {stage.stage}": stage.components for stage in result.time.stages}
        rows = rows or {"step": result.time.components}
        title = "Step timeline, micro-batches added up"
        return stacked(title, "", "s", list(rows), list(map(step_parts, rows.values())))
    passes = {"decode": _split(result.time.generating), "prefill": _split(result.time.reading)}
    return stacked("One pass through the model", "", "ms", list(passes), list(passes.values()), 1e-3)


def _split(part: PassSplit) -> Mapping[str, float]:
    return {name.removesuffix("_s"): value for name, value in part if name != "total_s"}


def roofline(roof: Roofline) -> list[Block]:
    """The roof of the device, and where the step is under it."""
    if not roof.ridge_flop_per_byte or not roof.peak_flops:
        return []
    ridge, here = roof.ridge_flop_per_byte, roof.arithmetic_intensity_flop_per_byte
    peak = roof.peak_flops / 1e12
    left, right = min(ridge, here) / 4, max(ridge, here) * 4
    curve = Series(name="roof", x=[left, ridge, right], y=[peak * left / ridge, peak, peak])
    point = Series(name="this step", x=[here], y=[roof.achieved_flops / 1e12])
    return [
        Chart(Plot(title="Roofline", kind="line", x_label="FLOP per byte", y_label="TFLOP/s per device",
                   series=[curve, point], x_log=True, y_log=True))
    ]  # fmt: skip
