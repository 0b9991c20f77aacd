"""AWS ParallelCluster 3 configuration: a Slurm cluster of the plan's instances with EFA, and a file system that its
nodes share (docs.aws.amazon.com/parallelcluster, cluster configuration file v3)."""

from __future__ import annotations

from launchers.launch.heading import scheduler_heading
from launchers.launch.of_plan import Launch
from launchers.pieces import File, Piece
from launchers.places.aws import instance, instances, lustre_gib, network_needs
from launchers.schedulers.node import plain_name
from launchers.yaml_text import Tree, YamlNote, tree

PATH = "parallelcluster.yaml"


def render(launch: Launch) -> Piece:
    """The configuration and what a site must fill in. Raises PlanError for devices that no instance of AWS has."""
    machine, nodes = instance(launch), instances(launch)
    resource: dict[str, Tree] = {"Name": "nodes", "InstanceType": machine, "MinCount": 0, "MaxCount": nodes}
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
    storage: dict[str, Tree] = {
        "Name": "shared",
        "StorageType": "FsxLustre",
        "MountDir": "/fsx",
        "FsxLustreSettings": {
            "StorageCapacity": lustre_gib(launch),
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
        f"{PATH}: region and subnets, with a quota or a reservation of {nodes} {machine}",
        f"{PATH}: HeadNode.Ssh.KeyName, if you reach it by ssh and not by Session Manager",
        *network_needs(launch),
    )
    return Piece((File(PATH, "parallelcluster", text),), needs)
