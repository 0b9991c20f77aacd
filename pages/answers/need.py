"""How much memory a model needs where no device is named: all of it on one device, and which cards hold it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from estimator.plan.schema import Inference
from pages import figures
from pages.answers import memory
from pages.answers.markdown import table
from pages.answers.plan import complete, model_words

if TYPE_CHECKING:
    from planner.results import Limit, TrainingEstimate
    from planner.serving.results import ServingEstimate


def describe(estimate: TrainingEstimate | ServingEstimate, fewest: Sequence[tuple[str, Limit | None]]) -> list[str]:
    """`fewest` are the limits in devices of some cards by name, None where there is none."""
    plan, found = complete(estimate.plan), estimate.memory
    count, workload = plan.cluster.count or 1, plan.workload
    whose = "if one GPU held all of it" if count == 1 else f"on each of {count} GPUs"
    how = "" if isinstance(workload, Inference) else f" ({workload.method} {workload.stage})"
    what = f"{'serve' if isinstance(workload, Inference) else 'train'} {model_words(plan)}{how}"
    return [
        f"**About {figures.gib(found.per_device_bytes)}** of device memory to {what}, {whose}.",
        table(("Card", "fewest", "memory on each"), [_card(name, limit) for name, limit in fewest]),
        memory.components(found.components, found.per_device_bytes),
        "Name your GPUs for speed, cost and the best layout.",
    ]


def _card(name: str, limit: Limit | None) -> tuple[str, str, str]:
    if limit is None or limit.value is None:
        return name, "none that I tried", ""
    return name, figures.plain(limit.value), figures.gib(limit.memory.per_device_bytes)
