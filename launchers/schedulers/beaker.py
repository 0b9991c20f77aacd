"""Experiments of AI2's Beaker (version v2), read into devices and commands."""

from __future__ import annotations

from collections.abc import Mapping

from launchers.reading.documents import Item
from launchers.reading.findings import Findings
from launchers.schedulers.containers import Data, Jobs, command_line, list_at, mapping_at, number_at, variables_of


def is_experiment(part: Data) -> bool:
    return str(part.get("version", "")).startswith("v2") and any(
        isinstance(row, Mapping) and "image" in row for row in list_at(part, "tasks")
    )


def read(name: str, experiment: Data, findings: Findings) -> Jobs:
    """Tasks with their arguments; replicas are nodes of one run."""
    jobs = Jobs("Beaker experiment")
    for task in list_at(experiment, "tasks"):
        if not isinstance(task, Mapping):
            continue
        variables = variables_of(task.get("envVars"))
        container = {"args": task.get("arguments")} | ({"command": task["command"]} if "command" in task else {})
        if script := command_line(container, variables):
            jobs.scripts.append((script, variables))
        devices = number_at(mapping_at(task, "resources"), "gpuCount", 0)
        if devices:
            findings.put("per_node", devices, Item(name, "resources.gpuCount", devices))
            nodes = number_at(task, "replicas", 1)
            findings.imply("nodes", nodes, Item(name, "replicas", nodes))
    return jobs
