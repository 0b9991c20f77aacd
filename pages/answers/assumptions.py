"""What an answer rests on: warnings, what was assumed, and whose measurements are behind the times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from knowledge import figures
from pages.blocks import READ_AS, Block, Prose
from pages.results import basis
from planner.money.results import CostEstimate
from planner.result import Assumption, Evidence
from planner.serving.results import ServingEstimate
from planner.training.length import DATA

# Assumptions whose reason is that everybody does so: their values are told together.
_USUAL = frozenset(
    f"workload.{name}"
    for name in ("precision", "optimizer", "packing", "attention", "compile", "epochs", "micro_batch", "lora.rank",
                 "lora.alpha", "lora.targets", "lora.dropout", "lora.quantisation", "lora.train_embeddings")
) | {"goal.objective"}  # fmt: skip
_AS_USUAL = "as usual"
_OF_SPOT = ("interruptions_per_day", "restart_minutes", "checkpoint_save_s", "checkpoint_interval_minutes")
# Warnings that stand among the limits of latency already.
_LIMITED = ("time to first token ", "time per output token ")
_TIMED_PARTS = ("engine", "device")


@runtime_checkable
class Warning(Protocol):
    """A result with warnings."""

    warnings: list[str]


@runtime_checkable
class Assuming(Protocol):
    """A result with assumptions."""

    assumptions: list[Assumption]


def warnings(results: Iterable[object]) -> list[Block]:
    """Each once; of a deployment without those about what its answer says in other words."""
    rows = list(results)
    texts = dict.fromkeys(text for result in rows if isinstance(result, Warning) for text in result.warnings)
    estimates = [result for result in rows if isinstance(result, ServingEstimate)]
    told = tuple(text for estimate in estimates for text in (*(_LIMITED if estimate.slo else ()), "does not fit"))
    left = [text for text in texts if not (told and text.removeprefix("p99 ").startswith(told))]
    return basis.notes("Watch out", left)


def assumed(results: Iterable[object], notes: Sequence[str], layout: bool = True) -> list[Block]:
    """What was not said: how words were read, then the defaults with their reasons. A layout that a search chose is
    told apart already, as is every `layout` of a deployment, and what stays with the framework ('auto') is nothing to
    decide.

    Of each field the first result counts because its values were chosen freely; later ones carry them as given.
    """
    told: dict[str, Assumption] = {}
    for result in results:
        spot = isinstance(result, CostEstimate) and result.price == "spot"
        for item in result.assumptions if isinstance(result, Assuming) else ():
            elsewhere = item.field.startswith("layout.") and (not layout or "search" in item.why)
            # What interruptions cost is no part of another price.
            of_spot = not spot and item.field.rpartition(".")[2] in _OF_SPOT
            if not elsewhere and not of_spot and item.value not in ("auto", None):
                told.setdefault(item.field, item)
    reasons = [item.model_copy(update={"why": _AS_USUAL} if item.field in _USUAL else {}) for item in told.values()]
    reasons.sort(key=lambda item: item.why == _AS_USUAL)
    return basis.notes("Assumed", [*notes, *basis.assumed(reasons)])


def taken_data(assumptions: Iterable[Assumption]) -> str:
    """How many tokens were taken for a run of which nobody said it: hours and money are in proportion to them."""
    taken = next((item for item in assumptions if item.field == DATA), None)
    if taken is None:
        return ""
    return f"{READ_AS} {figures.count(taken.value)} tokens, {taken.why.partition(' (')[0]}; say how many you have."


def how_sure(evidence: Iterable[Evidence]) -> Block:
    """Whose measurements the times of a deployment rest on."""
    timed = [row for row in evidence if row.figure == "time" and row.part in _TIMED_PARTS]
    parts = [f"{figures.whole(row.runs)} runs on {row.measured}" for row in timed if row.runs]
    if not parts:
        return Prose("**How sure**: not very; nothing like this was measured.")
    text = f"**How sure**: the times rest on measured runs ({', '.join(parts)})"
    missing = ", but not of this engine on this kind of device" if len(parts) < len(timed) else ""
    return Prose(f"{text}{missing}.")
