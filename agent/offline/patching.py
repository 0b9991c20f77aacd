"""Lays what was said over the session's plan. The plan holds only what the user gave."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agent.offline.catalogue import Catalogue
from agent.offline.numbers import context_length
from agent.offline.reading import Reading
from agent.offline.serving_patching import ASKED, COMBINED, combine, loads_agree
from agent.offline.slots import Question, Relative, Slot
from estimator.plan.schema import merge
from planner.partial import get, is_serving

# Readings that become a Plan field only together with others.
_MOST_AT_ONCE, _OF_ITS_SIZE = 16, 4
_USUAL_LENGTH = 4096
_COMBINED = ("batch", "batch_tokens", "accumulation", "nodes", "recompute_block", "usd_per_device_hour",
             "usd_per_node_hour", "prompt_len", *COMBINED)  # fmt: skip


@dataclass
class Patched:
    """The new partial plan, what was assumed in reading it, what must be asked, and the path that changed last.

    `nodes` is a number of nodes whose size is not known yet; `usd_per_device_hour` the user's own price, which no
    Plan holds; `asked` what else the answer needs and no Plan holds.
    """

    plan: dict[str, Any]
    notes: list[str] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    recent: str | None = None
    nodes: int | None = None
    usd_per_device_hour: float | None = None
    asked: dict[str, Any] = field(default_factory=dict)


def patched(plan: Mapping[str, Any], reading: Reading, catalogue: Catalogue, nodes: int | None = None) -> Patched:
    """The plan after what was said. The first model and accelerator named win; alternatives are the planner's business.

    `nodes` was said in an earlier turn, before the accelerator was known.
    """
    result = Patched(merge(plan, {}), questions=list(reading.questions))
    serving = is_serving(plan)
    # In 'H100 or H200?' neither replaces the device that the session already has.
    kept = [path for path in ("model", "cluster.accelerator") if reading.compare and get(plan, path)]
    slots = [slot for slot in reading.slots if isinstance(slot, Slot) and slot.path not in kept]
    said = {slot.path for slot in slots}
    _free_what_depends(result, {slot.path: slot.value for slot in slots}, reading)
    given: set[str] = set()
    for slot in slots:
        if slot.path in _COMBINED or (slot.path in ("model", "cluster.accelerator") and slot.path in given):
            continue
        given.add(slot.path)
        result.plan = merge(result.plan, {slot.path: slot.value})
        result.recent = slot.path
        if slot.note:
            result.notes.append(slot.note)
    for change in reading.slots:
        if isinstance(change, Relative):
            _scale(result, change)
    if serving:
        changes, notes = loads_agree(result.plan.get("workload") or {}, said)
        result.plan, result.notes = merge(result.plan, changes), [*result.notes, *notes]
    for slot in slots:
        if slot.path in ASKED:
            result.asked[slot.path] = slot.value
        if slot.path in COMBINED:
            changes, notes, questions = combine(result.plan, slot)
            result.plan, result.questions = merge(result.plan, changes), [*result.questions, *questions]
            result.notes += notes
        elif slot.path in _COMBINED:
            _combine(result, slot, said, catalogue)
    if nodes and not {"nodes", "cluster.count"} & said:
        _nodes(result, nodes, f"{nodes} nodes", catalogue)
    if serving:
        return result
    _length_of_samples(result, slots)
    method = get(result.plan, "workload.method")
    said |= set(reading.over)
    if "workload.lora.quantisation" in said and method in (None, "full", "lora"):
        result.plan = merge(result.plan, {"workload.method": "qlora"})
    elif (
        any(path.startswith("workload.lora.") for path in said)
        and "workload.method" not in reading.over
        and (method is None or (method == "full" and "workload.method" not in said))
    ):
        result.plan = merge(result.plan, {"workload.method": "lora"})
    return result


def _free_what_depends(result: Patched, said: Mapping[str, Any], reading: Reading) -> None:
    """A new device comes with its own node size; a new number of devices with its own data parallel size."""
    device = said.get("cluster.accelerator")
    if device and device != get(result.plan, "cluster.accelerator"):
        usable = get(result.plan, "overrides.usable_gib")
        if usable and "overrides.usable_gib" not in said:
            result.notes.append(f"{usable:g} GiB usable were said of the device before, so they are set aside")
        for path in ("cluster.per_node", "cluster.interconnect", "overrides.usable_gib"):
            if path not in said:
                result.plan = merge(result.plan, {path: None})
    counted = "cluster.count" in said or any(isinstance(slot, Relative) for slot in reading.slots)
    each, number = get(result.plan, "cluster.per_node"), said.get("cluster.count")
    if number and each and number < each and "cluster.per_node" not in said:
        # Fewer than a node of them: the node size was that of more.
        result.plan = merge(result.plan, {"cluster.per_node": None})
    if counted and "layout.dp" not in said and (dp := get(result.plan, "layout.dp")):
        result.plan = merge(result.plan, {"layout.dp": None})
        result.notes.append(f"dp={dp} no longer holds for the new number of devices, so it is chosen again")


def _scale(result: Patched, change: Relative) -> None:
    if change.path == "load":
        # Of clients or of requests a second, whichever the plan has.
        clients = get(result.plan, "workload.request_rate") is None
        change = replace(change, path="workload.concurrency" if clients else "workload.request_rate")
    before = get(result.plan, change.path)
    if not before:
        result.questions.append(Question(change.path, f"{change.words!r} of how many?"))
        return
    exact = change.path == "workload.request_rate"
    value = before * change.factor if exact else max(int(before * change.factor), 1)
    result.plan = merge(result.plan, {change.path: value})
    result.recent = change.path


def _combine(result: Patched, slot: Slot, said: set[str], catalogue: Catalogue) -> None:
    seq_len = get(result.plan, "workload.seq_len")
    match slot.path:
        case "batch":
            own = get(result.plan, "workload.micro_batch")
            # Beside a micro-batch that was said, a batch of about its size is that of a device again.
            again = (
                own is not None and slot.value <= _OF_ITS_SIZE * own and not get(result.plan, "workload.global_batch")
            )
            whose = "micro_batch" if again or _of_one_device(result.plan, slot.value) else "global_batch"
            if whose == "micro_batch":
                result.notes.append(f"{slot.words} read as the batch of each device")
            result.plan = merge(result.plan, {f"workload.{whose}": slot.value})
            result.recent = f"workload.{whose}"
        case "recompute_block":
            result.plan = merge(result.plan, {"layout.recompute": f"block:{slot.value}"})
        case "usd_per_device_hour":
            result.usd_per_device_hour = slot.value
            result.notes += [slot.note] if slot.note else []
        case "accumulation":
            _accumulated(result, slot)
        case "prompt_len":
            _prompt(result, slot, said)
        case "usd_per_node_hour":
            device, most = get(result.plan, "cluster.accelerator"), get(result.plan, "cluster.count")
            each = get(result.plan, "cluster.per_node") or (catalogue.per_node(str(device)) if device else 1)
            each = min(each, most or each)
            result.usd_per_device_hour = slot.value / each
            result.notes.append(f"{slot.words} taken as the price of a machine of {each}, ${slot.value / each:g} each")
        case "nodes":
            _nodes(result, slot.value, slot.words.strip(), catalogue)
        case "batch_tokens":
            if seq_len is None:
                seq_len = _USUAL_LENGTH
                result.plan = merge(result.plan, {"workload.seq_len": seq_len})
                result.notes.append(f"sequences of {seq_len:,} tokens taken, since the batch is given in tokens")
            sequences = max(round(slot.value / seq_len), 1)
            result.plan = merge(result.plan, {"workload.global_batch": sequences})
            result.notes.append(f"{slot.words} read as a global batch of {sequences:,} sequences of {seq_len:,} tokens")


def _accumulated(result: Patched, slot: Slot) -> None:
    """Micro-batches that are summed before a step, as the global batch that they make on the devices there are."""
    micro, devices = get(result.plan, "workload.micro_batch") or 1, get(result.plan, "cluster.count")
    if not devices:
        result.questions.append(Question("cluster.count", f"how many devices are there? ({slot.words} depends on it)"))
        return
    split = math.prod(get(result.plan, f"layout.{name}") or 1 for name in ("tp", "pp", "cp"))
    batch = micro * slot.value * max(devices // split, 1)
    result.plan = merge(result.plan, {"workload.micro_batch": micro, "workload.global_batch": batch})
    result.notes.append(f"{slot.words} with micro-batches of {micro} read as a global batch of {batch:,}")


def _prompt(result: Patched, slot: Slot, said: set[str]) -> None:
    """The length of prompts, beside that of the answers, of whole sequences, or alone."""
    whole, answer = get(result.plan, "workload.seq_len"), get(result.plan, "workload.response_len")
    if answer and ("workload.seq_len" not in said or whole <= slot.value):
        changes = {"workload.seq_len": slot.value + answer}
        result.notes.append(f"sequences of {slot.value + answer:,} tokens: prompts of {slot.value:,} and their answers")
    elif whole and whole > slot.value:
        changes = {"workload.response_len": whole - slot.value}
        result.notes.append(f"answers of {whole - slot.value:,} tokens: what prompts of {slot.value:,} leave")
    else:
        changes = {"workload.seq_len": 2 * slot.value, "workload.response_len": slot.value}
        result.notes.append(f"answers taken as long as their prompts, {slot.value:,} tokens")
    result.plan = merge(result.plan, changes)


def _length_of_samples(result: Patched, slots: list[Slot]) -> None:
    """'8k tokens per sample' without a number of samples says how long the sequences are."""
    workload = result.plan.get("workload") or {}
    said = next((slot for slot in slots if slot.path == "workload.sample_tokens"), None)
    if said is None or workload.get("dataset_samples") or workload.get("seq_len"):
        return
    number = re.search(r"\d[\d,.]*\s?[km]?\b", said.words, re.IGNORECASE)
    length = (context_length(number[0]) if number else None) or int(said.value)
    changes = {"workload.sample_tokens": None, "workload.seq_len": length}
    result.plan, result.recent = merge(result.plan, changes), "workload.seq_len"
    result.notes.append(f"{said.words} read as the sequence length, {length:,} tokens")


def _of_one_device(plan: Mapping[str, Any], batch: int) -> bool:
    """Whether 'batch size 4' is what one device takes at a time: on one device, or where the devices are more."""
    count = get(plan, "cluster.count") or 0
    split = any((get(plan, f"layout.{name}") or 1) > 1 for name in ("tp", "pp", "cp"))
    return (count == 1 and batch <= _MOST_AT_ONCE) or (batch < count and not split)


def _nodes(result: Patched, nodes: int, words: str, catalogue: Catalogue) -> None:
    device, each = get(result.plan, "cluster.accelerator"), get(result.plan, "cluster.per_node")
    if device is None and each is None:
        result.nodes = nodes
        return
    if each is None:
        each = catalogue.per_node(str(device))
        result.notes.append(f"{words!r} read with {each} devices per node, as is usual for {device}")
    result.plan = merge(result.plan, {"cluster.count": nodes * each, "cluster.per_node": each})
