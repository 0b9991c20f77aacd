"""SkyPilot tasks, read into devices and commands."""

from __future__ import annotations

from collections.abc import Mapping

from launchers.reading.devices import accelerator
from launchers.reading.documents import Item
from launchers.reading.findings import Findings, as_number
from launchers.schedulers.containers import Data, Jobs, mapping_at, number_at, variables_of


def read(name: str, task: Data, findings: Findings) -> Jobs:
    nodes = number_at(task, "num_nodes", 1)
    resources = mapping_at(task, "resources")
    wanted, item = resources.get("accelerators"), Item(name, "accelerators", resources.get("accelerators"))
    if isinstance(wanted, str):
        label, _, number = wanted.partition(":")
        wanted = {label: number or 1}
    each: int | None = None
    if isinstance(wanted, Mapping) and len(wanted) == 1:
        label, number = next(iter(wanted.items()))
        each = int(as_number(number) or 1)
        accelerator(findings, item, str(label), "skypilot")
        findings.put("per_node", each, item)
    elif wanted:
        findings.block("cluster.accelerator", item, "lists several, of which the cheapest is taken when it starts")
    replicas = number_at(mapping_at(task, "service"), "replicas", 1)
    findings.put("nodes", nodes * replicas, Item(name, "num_nodes", nodes))
    known = {"SKYPILOT_NUM_NODES": str(nodes)} | ({"SKYPILOT_NUM_GPUS_PER_NODE": str(each)} if each else {})
    known |= variables_of(task.get("envs"))
    return Jobs("SkyPilot task", [(str(task["run"]), known)])
