"""TrainJob (trainer.kubeflow.org/v1alpha1, Kubeflow Trainer v2.3.0) on the runtime torch-distributed.

Its torch plugin sets PET_NODE_RANK, PET_MASTER_ADDR and PET_MASTER_PORT (pkg/runtime/framework/plugins/torch/torch.go);
volumes reach the pods through runtimePatches, which name the runtime's job and container, both `node`.
"""

from __future__ import annotations

from collections.abc import Sequence

from launchers.devices import needs_torch
from launchers.launch.of_plan import Launch
from launchers.pieces import File, Piece, Start
from launchers.schedulers import node
from launchers.schedulers.kubernetes.manifest import (
    begin,
    command,
    environment,
    finish,
    image,
    metadata,
    mounts,
    placement,
    resources,
)
from launchers.yaml_text import Tree

PATH = "trainjob.yaml"
_RUNTIME, _NODE = "torch-distributed", "node"


def render(launch: Launch, start: Start, files: Sequence[File] = ()) -> Piece:
    """The manifest and what a site must fill in."""
    needs_torch(launch, "kubernetes-trainjob")
    manifest = begin(launch, start, PATH, "kubernetes-trainjob")
    reference = {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime", "name": _RUNTIME}
    spec: dict[str, Tree] = {"runtimeRef": reference}
    limit = node.time_limit_s(launch)
    if limit is not None:
        spec["activeDeadlineSeconds"] = limit
    spec["trainer"] = {
        "image": image(manifest),
        "command": command(),
        "numNodes": launch.nodes,
        "numProcPerNode": launch.node_devices,
        "resourcesPerNode": resources(manifest),
        "env": environment(manifest),
    }
    pods = {"containers": [{"name": _NODE, **mounts(manifest)}], **placement(manifest)}
    jobs = [{"name": _NODE, "template": {"spec": {"template": {"spec": pods}}}}]
    patch = {
        "manager": "shardwise.dev/launcher",
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}},
    }
    document = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": metadata(manifest, queued=True),
        "spec": {**spec, "runtimePatches": [patch]},
    }
    variables = {
        "NODE_RANK": '"$PET_NODE_RANK"',
        "MASTER_ADDR": '"$PET_MASTER_ADDR"',
        "MASTER_PORT": '"$PET_MASTER_PORT"',
    }
    return finish(manifest, files, variables, [document])
