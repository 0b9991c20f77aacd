"""AWS ParallelCluster 3 configuration: a Slurm cluster of the plan's instances with EFA, and a file system that its
nodes share (docs.aws.amazon.com/parallelcluster, cluster configuration file v3)."""

from __future__ import annotations

import math

from estimator.errors import PlanError
from knowledge.prices.book import shipped
from launchers.devices import accelerator_of
from launchers.launch.duration import stored_bytes
from launchers.launch.heading import scheduler_heading
from launchers.launch.of_plan import Launch
from launchers.pieces import File, Piece
from launchers.schedulers.node import plain_name
from launchers.yaml_text import Tree, YamlNote, tree

PATH = "parallelcluster.yaml"
_PROVIDER = "AWS"
# FSx for Lustre, PERSISTENT_2: sizes are multiples of 2,400 GiB (its CreateFileSystem API).
_LUSTRE_GIB = 2400


def render(launch: Launch) -> Piece:
    """The configuration and what a site must fill in. Raises PlanError for devices that no instance of AWS has."""
    instance = _instance(launch)
    nodes = launch.nodes * launch.replicas if launch.whole_nodes else launch.nodes
    resource: dict[str, Tree] = {"Name": "nodes", "InstanceType": instance, "MinCount": 0, "MaxCount": nodes}
    networking: dict[str, Tree] = {"SubnetIds": ["SET_ME_SUBNET"]}
    if launch.nodes > 1:
        resource["Efa"] = {"Enabled": True}
        networking["PlacementGroup"] = {"Enabled": True}
    queue: dict[str, Tree] = {
        "Name": launch.site.partition or "gpu",
        YamlNote(
            "CapacityType: SPOT, or CAPACITY_BLOCK with a CapacityReservationTarget, where that is what you have"
        ): "",
        "CapacityType": "ONDEMAND",
        "Networking": networking,
        "ComputeResources": [resource],
    }
    size = _LUSTRE_GIB * math.ceil(stored_bytes(launch) / 2**30 / _LUSTRE_GIB)
    storage: dict[str, Tree] = {
        "Name": "shared",
        "StorageType": "FsxLustre",
        "MountDir": "/fsx",
        "FsxLustreSettings": {
            "StorageCapacity": size,
            "DeploymentType": "PERSISTENT_2",
            "PerUnitStorageThroughput": 250,
            "DeletionPolicy": "Retain",
        },
    }
    document: dict[str, Tree] = {
        "Region": "SET_ME_REGION",
        "Image": {"Os": "ubuntu2204"},
        "HeadNode": {"InstanceType": "m6i.2xlarge", "Networking": {"SubnetId": "SET_ME_SUBNET"}},
        "Scheduling": {"Scheduler": "slurm", "SlurmQueues": [queue]},
        "SharedStorage": [storage],
    }
    command = f"pcluster create-cluster --cluster-name {plain_name(launch)} --cluster-configuration {PATH}"
    lines = [f"# {line}" for line in scheduler_heading(launch, command)]
    text = "\n".join(
        [*lines, "# Then copy the files to /fsx, which all nodes share, and sbatch there.", *tree(document), ""]
    )
    needs = (
        f"{PATH}: region and subnets, with a quota or a reservation of {nodes} {instance}",
        f"{PATH}: HeadNode.Ssh.KeyName, if you reach it by ssh and not by Session Manager",
    )
    return Piece((File(PATH, "parallelcluster", text),), needs)


def _instance(launch: Launch) -> str:
    """The smallest instance of AWS with a node's devices."""
    device, wanted = accelerator_of(launch).id, launch.node_devices
    rows = [row for row in shipped() if row.provider == _PROVIDER and row.accelerator == device]
    fitting = sorted((row.count, row.instance) for row in rows if row.count >= wanted)
    if not fitting:
        valid = sorted({row.accelerator for row in shipped() if row.provider == _PROVIDER})
        raise PlanError("cluster.accelerator", f"AWS has no instance with {wanted} {device}", valid)
    return fitting[0][1]
