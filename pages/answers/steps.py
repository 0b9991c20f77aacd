"""What to do next: one or two sentences that people can say, or press in the app."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from estimator.plan.schema import Inference, Training
from knowledge import figures
from knowledge.machines.catalogue import find_accelerator
from pages.answers.plan import complete
from pages.blocks import Block, Steps

if TYPE_CHECKING:  # advice has the tools that it tries behind it
    from planner.advice.advise import Advice
    from planner.explain.results import Explanation
    from planner.result import Decisive
    from planner.results import Limit, TrainingEstimate
    from planner.serving.results import BestServing, ServingEstimate

_MOST = 2
# How a choice is said that is better than the one that was assumed.
_SAID = {
    "workload.framework": "use {}", "workload.engine": "use {}", "workload.compile": "with torch.compile",
    "workload.attention": "with flash attention 3", "workload.weight_dtype": "weights in {}",
    "workload.kv_dtype": "KV cache in {}", "workload.method": "with LoRA", "workload.precision": "with {}",
    "workload.global_batch": "global batch {}",
}  # fmt: skip


def next_steps(sentences: Sequence[str]) -> list[Block]:
    """The line that offers them."""
    words = list(dict.fromkeys(sentences))[:_MOST]
    return [Steps(words)] if words else []


def training(estimate: TrainingEstimate, priced: bool, written: bool, slow: bool = False) -> list[Block]:
    """After an estimate: a better choice than what was assumed, then what was not asked yet; `slow` says that what
    would be faster was told."""
    workload = complete(estimate.plan).workload
    assert isinstance(workload, Training)
    if not estimate.memory.fits:
        winning = [_said(row) for row in estimate.decides if row.fits]
        return next_steps([*winning, _how_many(estimate)])
    known = estimate.run is not None
    open_ = [] if priced else ["what does it cost?"] if known else []
    written = written or "files" in estimate.warning_kinds.values()  # none can be
    faster = ["explain the step time"] if slow else ["make it faster"]
    return next_steps([*_better(estimate.decides), *open_, *([] if written else ["write the files"]), *faster])


def serving(
    estimate: ServingEstimate, written: bool, priced: bool = False, search: BestServing | None = None
) -> list[Block]:
    """After a deployment, which a `search` may have found within the limits, or not."""
    missed = search is not None and search.meets_slo is False
    workload = complete(estimate.plan).workload
    assert isinstance(workload, Inference)
    if not estimate.memory.fits or estimate.meets_slo is False or missed:
        return next_steps([*_better(estimate.decides), _how_many(estimate)])
    # What a card of one's own costs an hour is not the next question.
    own = find_accelerator(str(complete(estimate.plan).cluster.accelerator)).value.personal
    last = "how many users can it serve?" if own or priced else "what does it cost?"
    return next_steps([*_better(estimate.decides), *([] if written else ["write the files"]), last])


def _how_many(estimate: TrainingEstimate | ServingEstimate) -> str:
    """Of the same devices: a question for GPUs is for any of them."""
    return f"how many {complete(estimate.plan).cluster.accelerator} do I need?"


def limit(extent: Limit) -> list[Block]:
    """After a limit: how fast the fewest devices are, or the limit on twice as many, and with less to hold."""
    plan = complete(extent.plan)
    workload, cluster = plan.workload, plan.cluster
    twice = f"on {2 * (cluster.count or 1)} x {cluster.accelerator}"
    if extent.goal == "devices":
        return next_steps(["how fast is that?", twice])
    if isinstance(workload, Inference):
        less = ["weights in fp8"] if workload.weight_dtype == "bf16" else []
    else:
        less = ["with LoRA"] if workload.method == "full" and workload.stage != "pretrain" else []
    return next_steps([twice, *less])


def advised(tips: Advice) -> list[Block]:
    """After advice: the settings that gain, as they are said."""
    patches = [row.patch for row in tips.entries if row.gain and row.patch and len(row.patch) == 1]
    # Of several values of a field the first gains most.
    settings = {field: value for patch in reversed(patches) for field, value in patch.items() if field in _SAID}
    sentences = [_SAID[field].format(value) for field, value in reversed(settings.items())]
    return next_steps(sentences or ["does it fit?" if not tips.fits else "make it faster"])


def explained(figure: Explanation) -> list[Block]:
    """After an explanation: what would better the figure."""
    served = isinstance(complete(figure.plan).workload, Inference)
    if figure.figure.startswith("memory."):
        return next_steps(["how many users can it serve?" if served else "does it fit?"])
    if figure.unit == "USD":
        return next_steps(["where is it cheapest?" if served else "make it cheaper"])
    return next_steps(["which engine is best?" if served else "make it faster"])


def _better(rows: Sequence[Decisive]) -> list[str]:
    """The choice that gains most."""
    choices = [row for row in rows if row.field in _SAID and row.fits and row.started and _gains(row)]
    return [_said(row) for row in choices[:1]]


def _gains(row: Decisive) -> bool:
    more = row.change(row.figure) > 0
    return more == (figures.better(row.figure) == "higher")


def _said(row: Decisive) -> str:
    return _SAID.get(row.field, "with {}").format(row.other)
