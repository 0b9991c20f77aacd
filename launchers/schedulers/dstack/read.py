"""dstack tasks and services, read into devices and commands."""

from __future__ import annotations

from collections.abc import Mapping

from launchers.reading.devices import accelerator
from launchers.reading.documents import Item
from launchers.reading.findings import Findings, as_number
from launchers.schedulers.containers import Data, Jobs, mapping_at, number_at, variables_of
from launchers.tables import table

TYPES = ("task", "service")


def read(name: str, job: Data, findings: Findings) -> Jobs:
    nodes = number_at(job, "nodes", 1) * number_at(job, "replicas", 1)
    wanted = mapping_at(job, "resources").get("gpu")
    item = Item(name, "gpu", wanted)
    labels, count = _asked(wanted)
    if count is not None:
        findings.put("per_node", count, item)
    if len(labels) == 1:
        accelerator(findings, item, labels[0], "dstack")
    elif labels:
        findings.block("cluster.accelerator", item, "lists several, of which the cheapest is taken when it starts")
    findings.put("nodes", nodes, Item(name, "nodes", nodes))
    known = {"DSTACK_NODES_NUM": str(nodes)} | ({"DSTACK_GPUS_PER_NODE": str(count)} if count else {})
    commands = job.get("commands")
    lines = [str(line) for line in commands] if isinstance(commands, list) else []
    return Jobs("dstack configuration", [("\n".join(lines), known | variables_of(job.get("env")))])


def _asked(gpu: object) -> tuple[list[str], int | None]:
    """(Names with their memory where that is given, devices of a node) of `H100:80GB:8` or the same as a mapping."""
    if isinstance(gpu, Mapping):
        names = gpu.get("name")
        parts = [",".join(map(str, names)) if isinstance(names, list) else str(names or "")]
        parts += [str(gpu[key]) for key in ("memory", "count") if key in gpu]
    else:
        parts = str(gpu if gpu is not None else "").replace(" ", "").split(":")
    names = next((part for part in parts if part[:1].isalpha()), "")
    memory = next((part for part in parts if part[:1].isdigit() and part[-1:].isalpha()), "")
    counts = [int(number) for part in parts if part.isdigit() and (number := as_number(part))]
    exact = memory if ".." not in memory else ""
    known = {label.lower() for label in table("data/devices")["dstack"].values()}
    labels = [both if (both := f"{label}:{exact}").lower() in known else label for label in names.split(",") if label]
    return labels, counts[-1] if counts else (1 if labels else None)
