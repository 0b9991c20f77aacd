"""PyTorchJob (kubeflow.org/v1, Kubeflow Training Operator v1.9.0): a master pod and a worker pod for each other node.

The operator sets MASTER_ADDR, MASTER_PORT and PET_NODE_RANK (pkg/controller.v1/pytorch/envvar.go). It also sets RANK
(the node's) and WORLD_SIZE, which programs that start their own processes must not see.
"""

from __future__ import annotations

from collections.abc import Sequence

from launchers.devices import needs_torch
from launchers.launch.duration import restarts
from launchers.launch.of_plan import Launch
from launchers.pieces import File, Piece, Start
from launchers.schedulers import node
from launchers.schedulers.kubernetes.manifest import KEEP_S, begin, finish, metadata, pod
from launchers.yaml_text import Tree

PATH = "pytorchjob.yaml"
_CONTAINER = "pytorch"


def render(launch: Launch, start: Start, files: Sequence[File] = ()) -> Piece:
    """The manifest and what a site must fill in."""
    needs_torch(launch, "kubernetes-pytorchjob")
    manifest = begin(launch, start, PATH, "kubernetes-pytorchjob")
    template = pod(manifest, _CONTAINER, "OnFailure")
    # The operator's own field, above the pod's, which it replaces.
    del template["spec"]["restartPolicy"]  # type: ignore[index, attr-defined]
    replicas: dict[str, Tree] = {"Master": {"replicas": 1, "restartPolicy": "OnFailure", "template": template}}
    if launch.nodes > 1:
        replicas["Worker"] = {"replicas": launch.nodes - 1, "restartPolicy": "OnFailure", "template": template}
    # All pods or none, where a gang scheduler (Volcano, scheduler-plugins) is installed.
    policy: dict[str, Tree] = {
        "schedulingPolicy": {"minAvailable": launch.nodes},
        # Of all pods together, which fail together (common/job.go PastBackoffLimit).
        "backoffLimit": restarts(launch) * launch.nodes,
        "cleanPodPolicy": "Running",
        "ttlSecondsAfterFinished": KEEP_S,
    }
    limit = node.time_limit_s(launch)
    if limit is not None:
        policy["activeDeadlineSeconds"] = limit
    document = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": metadata(manifest, queued=True),
        "spec": {"nprocPerNode": str(launch.node_devices), "runPolicy": policy, "pytorchReplicaSpecs": replicas},
    }
    variables = {"NODE_RANK": '"$PET_NODE_RANK"'}
    return finish(manifest, files, variables, [document], forget=("RANK", "WORLD_SIZE"))
