"""The request that makes a SageMaker HyperPod cluster with Slurm: the plan's instances with EFA, a controller, health
checks, and a node that fails replaced (CreateCluster of the SageMaker API, 2017-07-24)."""

from __future__ import annotations

from launchers.launch.heading import scheduler_heading
from launchers.launch.of_plan import Launch
from launchers.pieces import File, Piece
from launchers.places.aws import instance, instances, lustre_gib, network_needs
from launchers.schedulers.node import plain_name
from launchers.yaml_text import Tree, YamlNote, tree

PATH = "hyperpod.yaml"
_LONGEST_NAME = 63


def render(launch: Launch) -> Piece:
    """The request and what a site must fill in. Raises PlanError for devices that no instance of AWS has."""
    machine, nodes = instance(launch), instances(launch)
    group: dict[str, Tree] = {
        "LifeCycleConfig": {"SourceS3Uri": "s3://SET_ME_BUCKET/lifecycle", "OnCreate": "on_create.sh"},
        "ExecutionRole": "arn:aws:iam::SET_ME_ACCOUNT:role/SET_ME_ROLE",
        YamlNote("the file system that all nodes share"): "",
        "InstanceStorageConfigs": [
            {
                "FsxLustreConfig": {
                    "DnsName": "SET_ME_FSX.fsx.SET_ME_REGION.amazonaws.com",
                    "MountName": "SET_ME_FSX_MOUNT",
                    "MountPath": "/fsx",
                }
            }
        ],
    }
    controller: dict[str, Tree] = {
        "InstanceGroupName": "controller",
        "InstanceType": "ml.m5.2xlarge",
        "InstanceCount": 1,
        "SlurmConfig": {"NodeType": "Controller"},
        **group,
    }
    workers: dict[str, Tree] = {
        "InstanceGroupName": "workers",
        "InstanceType": f"ml.{machine}",
        "InstanceCount": nodes,
        "SlurmConfig": {"NodeType": "Compute", "PartitionNames": [launch.site.partition or "gpu"]},
        "OnStartDeepHealthChecks": ["InstanceStress", "InstanceConnectivity"],
        **group,
    }
    document: dict[str, Tree] = {
        "ClusterName": plain_name(launch)[:_LONGEST_NAME].rstrip("-"),
        "Orchestrator": {"Slurm": {"SlurmConfigStrategy": "Managed"}},
        "NodeRecovery": "Automatic",
        "VpcConfig": {"SecurityGroupIds": ["SET_ME_SECURITY_GROUP"], "Subnets": ["SET_ME_SUBNET"]},
        "InstanceGroups": [controller, workers],
    }
    command = f"aws sagemaker create-cluster --cli-input-yaml file://{PATH}"
    lines = [f"# {line}" for line in scheduler_heading(launch, command)]
    text = "\n".join(
        [*lines, "# Then copy the files to /fsx, which all nodes share, and sbatch there.", *tree(document), ""]
    )
    needs = (
        f"{PATH}: role, subnet and security group (which lets EFA through), and a quota or a training plan of {nodes} "
        f"ml.{machine}",
        f"{PATH}: a file system of FSx for Lustre of {lustre_gib(launch):,} GiB in that subnet",
        f"{PATH}: a bucket with lifecycle scripts (AWS's awsome-distributed-training has them)",
        *network_needs(launch),
    )
    return Piece((File(PATH, "hyperpod", text),), needs)
