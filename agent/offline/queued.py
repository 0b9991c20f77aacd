"""Several runs in one turn, one after the other on one cluster: 'fine-tune A on 1B tokens, then B on 2B on 16 H100'."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent.offline.catalogue import Catalogue
from agent.offline.form import Reading
from agent.offline.patching import Before, patched
from planner.asked.portfolio import PortfolioRun
from planner.partial import get

# What stands between two runs of which the second begins when the first is done.
_THEN = re.compile(
    r"[\s,;.]+(?:(?:and|und|y|et|e)\s+)?(?:then|after(?:wards|\s+that)|next|finally|danach|dann|luego|ensuite|puis|poi|"
    r"depois)\b[,:]?\s+",
    re.IGNORECASE,
)
# What asks for all of them: what is only told may be about the first.
_WHEN = re.compile(r"\b(?:when|how long|done|finish\w*|schedule|wann|fertig|cuándo|quand|quando)\b", re.IGNORECASE)
_OF_DEVICES = ("accelerator", "count", "nodes", "per_node", "interconnect")
# Limits of the whole turn, not of a run in it.
_OF_ALL = ("deadline_h", "budget_usd", "budget_device_hours", "provider")
_LONGEST_NAME = 70
_LENGTHS = ("dataset_tokens", "dataset_samples", "steps")


def in_a_row(
    reading: Reading, read: Callable[[str], Reading], plan: Mapping[str, Any], catalogue: Catalogue
) -> Reading:
    """The turn as a question for when each of its runs is done, where at least two have a model and a length of their
    own and the cluster is known; else as it is, of one run. `read` reads a part by itself."""
    parts = _THEN.split(reading.text)
    if "runs" in reading.own or len(parts) < 2 or reading.serving or not _WHEN.search(reading.text):
        return reading
    alone = replace(reading, tool="estimate_training") if reading.tool == "schedule_runs" else reading
    accelerator, count = _cluster(reading, plan, catalogue)
    runs = _runs([read(part) for part in parts], catalogue)
    if accelerator is None or count is None or len(runs) < 2:
        return alone
    own = {
        "accelerator": accelerator,
        "count": max([count, *(run.devices or 0 for run in runs)]),
        "runs": [run.model_dump(exclude_defaults=True) for run in runs],
    }
    edits = [edit for edit in reading.edits if edit.field in _OF_DEVICES]
    return replace(reading, tool="schedule_runs", own=own, edits=edits, options=[], needs=[], focus=[], lost=[])


def _cluster(reading: Reading, plan: Mapping[str, Any], catalogue: Catalogue) -> tuple[str | None, int | None]:
    edits = [edit for edit in reading.edits if edit.field in _OF_DEVICES]
    here = patched({"cluster": dict(plan.get("cluster") or {})}, edits, reading.text, catalogue, Before()).plan
    accelerator, count = get(here, "cluster.accelerator"), get(here, "cluster.count")
    return (str(accelerator) if accelerator else None), (int(count) if count else None)


def _runs(readings: Sequence[Reading], catalogue: Catalogue) -> list[PortfolioRun]:
    """A run of each part that says how long one is, of the model before it where it names none, after the one before;
    nothing where a part is a run and does not say so."""
    runs: list[PortfolioRun] = []
    model: Any = None
    for reading in readings:
        named = reading.values("model")
        if not any(reading.values(name) for name in _LENGTHS):
            if named and named[-1] != model:
                return []
            continue
        model = named[-1] if named else model
        if model is None:
            return []
        name = _name(str(model), [run.name for run in runs])
        runs.append(_run(name, model, [run.name for run in runs[-1:]], reading, catalogue))
    return runs


def _run(name: str, model: Any, after: list[str], reading: Reading, catalogue: Catalogue) -> PortfolioRun:
    edits = [edit for edit in reading.edits if edit.field not in (*_OF_DEVICES, *_OF_ALL, "model")]
    counts, deadlines = reading.values("count"), reading.values("deadline_h")
    return PortfolioRun(
        name=name,
        plan=patched({"model": model}, edits, reading.text, catalogue, Before()).plan,
        devices=counts[-1] if counts else None,
        priority=0.0,
        after=after,
        ready_h=0.0,
        deadline_h=deadlines[-1] if deadlines else None,
    )


def _name(model: str, taken: Sequence[str]) -> str:
    name = model.rpartition("/")[2][:_LONGEST_NAME]
    again = sum(other == name or other.startswith(f"{name} (") for other in taken)
    return f"{name} ({again + 1})" if again else name
