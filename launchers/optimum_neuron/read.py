"""Optimum Neuron's arguments in a Python script: what differs from TRL's own. Words: fields.yaml."""

from __future__ import annotations

import re

from launchers.optimum_neuron.write import CORES
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, as_truth, inverted
from launchers.tables import table


def processes_of_a_device(source: str) -> int | None:
    """How many processes run on a device of a script: one but on Trainium, where each logical core has one; None
    where such a script does not say how many a chip has."""
    if "optimum.neuron" not in source:
        return 1
    match = re.search(rf"^{CORES} = (\d+)\b", source, re.MULTILINE)
    return int(match[1]) if match else None


def settle(keys: Keys, findings: Findings, source: str) -> None:
    """Takes what TRL and the Trainer have not, before these are read."""
    cores = processes_of_a_device(source)
    findings.word(
        "workload.attention", keys.take("attn_implementation"), inverted(table("optimum_neuron/fields")["attention"])
    )
    findings.default("workload.attention", "eager", "attn_implementation is eager unless given")
    _tensor_ranks(keys.take("tensor_parallel_size"), findings, cores)
    _pipeline(keys, findings)
    shards = keys.take("zero_1")
    if shards is not None and (on := as_truth(shards.value)) is not None:
        findings.put("layout.zero_stage", int(on), shards)
    findings.default("layout.zero_stage", 1, "zero_1 is on unless given")
    off = keys.take("disable_sequence_parallel")
    if off is not None and as_truth(off.value):
        findings.put("layout.sequence_parallel", False, off)
    findings.default("layout.cp", 1, "Optimum Neuron does not split sequences")
    findings.default("layout.offload", "none", "nothing is moved to the host")


def _tensor_ranks(item: Item | None, findings: Findings, cores: int | None) -> None:
    """Tensor ranks are cores, and a plan's are chips."""
    if item is None or cores is None:
        where = item or Item("script", "tensor_parallel_size", None)
        findings.block("layout.tp", where, "counts cores, and how many a chip has is not said; give layout.tp in chips")
        return
    size = as_number(item.value)
    if size is None or size % cores:
        findings.block("layout.tp", item, f"is no whole number of chips of {cores} cores")
    else:
        findings.put("layout.tp", int(size) // cores, item)


def _pipeline(keys: Keys, findings: Findings) -> None:
    """A pipeline takes a step's batches as one, cut into micro-batches: of one sequence unless it is told how many."""
    stages, pieces = keys.take("pipeline_parallel_size"), keys.take("pipeline_parallel_num_microbatches")
    count = findings.whole("layout.pp", stages)
    findings.default("layout.pp", 1, "pipeline_parallel_size is 1 unless given")
    batch, rounds = keys.items.get("per_device_train_batch_size"), keys.items.get("gradient_accumulation_steps")
    if (count or 1) == 1 or stages is None:
        return
    rows = int((as_number(batch.value) if batch else None) or 1) * int(
        (as_number(rounds.value) if rounds else None) or 1
    )
    number = as_number(pieces.value) if pieces is not None else None
    cut = int(number) if number and number > 0 else rows
    if rows % cut:
        findings.block("workload.micro_batch", pieces or stages, f"does not divide the {rows} sequences of a step")
        return
    keys.put("per_device_train_batch_size", rows // cut, (pieces or stages).line)
    keys.put("gradient_accumulation_steps", cut, (pieces or stages).line)
