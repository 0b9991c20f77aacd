"""What an answer rests on: warnings, what was assumed, and whose measurements are behind the times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

from pages import figures
from pages.answers.markdown import bullets, label
from planner.money.results import CostEstimate
from planner.result import Assumption, Evidence
from planner.serving.results import ServingEstimate

# Assumptions whose reason is that everybody does so: their values are told together.
_USUAL = frozenset(
    f"workload.{name}"
    for name in ("precision", "optimizer", "packing", "attention", "compile", "epochs", "micro_batch", "lora.rank",
                 "lora.alpha", "lora.targets", "lora.dropout", "lora.quantisation", "lora.train_embeddings")
) | {"goal.objective"}  # fmt: skip
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


def warnings(results: Iterable[object]) -> list[str]:
    """Each once; of a deployment without those about what its answer says in other words."""
    rows = list(results)
    texts = dict.fromkeys(text for result in rows if isinstance(result, Warning) for text in result.warnings)
    estimates = [result for result in rows if isinstance(result, ServingEstimate)]
    told = tuple(text for estimate in estimates for text in (*(_LIMITED if estimate.slo else ()), "does not fit"))
    return bullets("Beware:", [text for text in texts if not (told and text.removeprefix("p99 ").startswith(told))])


def training(results: Iterable[object], notes: Sequence[str]) -> list[str]:
    """What was not said: how words were read, then each default with its reason. The layout is told apart already, and
    what stays with the framework ('auto') is nothing to decide.

    The first result comes first because its values were chosen freely; later ones carry them as given.
    """
    lines, usual = list(notes), list[str]()
    for item in _first(results, lambda item: not _searched(item) and item.value != "auto"):
        name, value = label(item.field), figures.plain(item.value)
        if item.field in _USUAL:
            usual.append(f"{name} {value}")
        else:
            lines.append(f"{name}: {value} ({item.why})")
    return bullets("Assumed:", [*lines, *([f"as usual: {', '.join(usual)}"] if usual else [])])


def serving(results: Iterable[object], notes: Sequence[str]) -> list[str]:
    """The same of a deployment; what is as usual with its engine is nothing to decide either."""
    shown = _first(results, lambda item: not _of_deployment(item) and item.value not in ("auto", None))
    lines = [f"{label(item.field)}: {_value(item.value)} ({item.why})" for item in shown]
    return bullets("Assumed:", [*notes, *lines])


def in_short(result: Assuming, notes: Sequence[str]) -> list[str]:
    """How words were read, and the values that were not said in one line: for answers about something else."""
    values: dict[str, str] = {}
    for item in result.assumptions:
        if not _searched(item) and item.value != "auto" and item.field.startswith(("workload.", "cluster.")):
            values.setdefault(label(item.field), figures.plain(item.value))
    line = ", ".join(f"{name} {value}" for name, value in values.items())
    return bullets("Assumed:", [*notes, *([line] if line else [])])


def how_sure(evidence: Iterable[Evidence]) -> list[str]:
    """Whose measurements the times of a deployment rest on."""
    timed = [row for row in evidence if row.figure == "time" and row.part in _TIMED_PARTS]
    parts = [f"{figures.whole(row.runs)} runs on {row.measured}" for row in timed if row.runs]
    if not parts:
        return ["**How sure**: not sure; nothing like this was measured."]
    text = f"**How sure**: the times rest on measured runs ({', '.join(parts)})"
    missing = len(parts) < len(timed)
    return [f"{text}, but not of this engine on this kind of device." if missing else f"{text}."]


def _first(results: Iterable[object], told: Callable[[Assumption], bool]) -> Iterable[Assumption]:
    """The assumptions that are to be told, the first of each field."""
    seen: dict[str, Assumption] = {}
    for result in results:
        spot = isinstance(result, CostEstimate) and result.price == "spot"
        for item in result.assumptions if isinstance(result, Assuming) else ():
            # What interruptions cost is no part of another price.
            if (spot or item.field.rpartition(".")[2] not in _OF_SPOT) and told(item):
                seen.setdefault(item.field, item)
    return seen.values()


def _searched(item: Assumption) -> bool:
    return item.field.startswith("layout.") and "search" in item.why


def _of_deployment(item: Assumption) -> bool:
    return item.field.startswith("layout.") or item.why == "as usual" or item.field == "goal.objective"


def _value(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else figures.plain(value)
