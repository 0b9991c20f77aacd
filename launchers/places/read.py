"""Clusters on AWS, read into the devices of their instances: ParallelCluster's configuration and HyperPod's request."""

from __future__ import annotations

from collections.abc import Iterator

from launchers.places.aws import devices_of
from launchers.reading.documents import Item
from launchers.reading.findings import Findings
from launchers.schedulers.containers import Data, Jobs, list_at, mapping_at


def is_cluster(document: Data) -> bool:
    return bool(list_at(mapping_at(document, "Scheduling"), "SlurmQueues") or list_at(document, "InstanceGroups"))


def read(name: str, document: Data, findings: Findings) -> Jobs:
    """The devices, where all of its nodes that have some are alike; how many nodes a job takes, the job says."""
    known = {machine: devices for machine in _machines(document) if (devices := devices_of(machine)) is not None}
    for machine, (accelerator, count) in known.items():
        item = Item(name, "InstanceType", machine)
        findings.put("cluster.accelerator", accelerator, item)
        findings.put("per_node", count, item)
    return Jobs("cluster on AWS", [("", {})])


def _machines(document: Data) -> Iterator[str]:
    for queue in list_at(mapping_at(document, "Scheduling"), "SlurmQueues"):
        for resource in list_at(queue, "ComputeResources"):
            yield from (str(row.get("InstanceType")) for row in (resource, *list_at(resource, "Instances")))
    for group in list_at(document, "InstanceGroups"):
        yield str(group.get("InstanceType")).removeprefix("ml.")
