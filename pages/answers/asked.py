"""The figures that a question names: said first, whichever result holds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from estimator.search.strategies import COMMUNICATION
from knowledge import figures
from knowledge.figure_facts import known_figure
from pages.answers.lead import TOLD
from pages.blocks import Block, Headline, Prose, capitalised
from planner.results import TrainingEstimate
from planner.serving.results import ServingEstimate

# Figures that answer the same question, each where there is one.
_TOGETHER = {
    "memory.components.kv_cache": (
        "memory.request_model_bytes",
        "memory.request_bytes",
        "memory.kv_bytes_per_token",
        "kv_bytes_per_token",
    ),
    "run.goodput.share": tuple(
        f"run.goodput.{name}"
        for name in ("share", "interruptions", "redone_hours", "restart_hours", "checkpoint_hours")
    ),
    "memory.save.checkpoint_bytes": ("memory.save.checkpoint_bytes", "memory.save.resumable_bytes"),
}


def named_figures(results: Iterable[object], paths: Sequence[str]) -> str:
    """One sentence of those of the figures at `paths` that the first lines do not say anyway."""
    wanted = [path for path in dict.fromkeys(paths) if path.rpartition(".")[2] not in TOLD]
    results = list(results)
    words = [
        text
        for path in wanted
        for each in _TOGETHER.get(path, (path,))
        if (text := next((text for result in results if (text := _sentence(result, each))), ""))
    ]
    return f"{'; '.join(words)}." if words else ""


def with_named(head: Block, results: Iterable[object], paths: Sequence[str]) -> list[Block]:
    """The first line with these figures: before a verdict that holds, surely or not, behind one that does not."""
    text = named_figures(results, paths)
    if isinstance(head, Headline) and head.tone in ("good", "beware") and text:
        return [replace(head, text=f"{text.replace('**', '')} {head.text}")]
    return [head, *([Prose(text)] if text else [])]


def _sentence(result: object, path: str) -> str:
    """'Optimizer states: **7.5 GiB** per device'; '' where a result has no such figure."""
    if path == "communication" or path.startswith("time.components."):
        return _of_a_step(result, path)
    *parents, key = path.split(".")
    part: object = result
    for name in parents:
        part = _value(part, name)
    value = _value(part, key)
    row = known_figure(path)
    if value is None or row is None:
        return ""
    shown = figures.shown(path, value) if isinstance(part, Mapping) else figures.held(part, key)
    each = " per device" if parents[-1:] == ["components"] and parents[:1] == ["memory"] else ""
    return f"{capitalised(row.name)}: **{shown}**{each}"


def _of_a_step(result: object, path: str) -> str:
    """'Pipeline bubble: **12 % of a step** (1.04 s)': parts of a step are told as shares of it."""
    name, row = path.rpartition(".")[2], known_figure(path)
    title = "Exposed communication" if row is None else capitalised(row.name)
    if isinstance(result, TrainingEstimate):
        whole, parts = result.time.step_s, result.time.components
        taken = [parts.get(part, 0.0) for part in (COMMUNICATION if name == "communication" else (name,))]
    elif isinstance(result, ServingEstimate):
        whole = sum(row.seconds for row in result.limits)
        taken = [row.seconds for row in result.limits if row.limit == name]
    else:
        return ""
    if not (whole and taken):
        return ""
    return f"{title}: **{figures.percent(sum(taken) / whole)} of a step** ({figures.seconds(sum(taken))})"


def _value(part: object, name: str) -> object:
    return part.get(name) if isinstance(part, Mapping) else getattr(part, name, None)
