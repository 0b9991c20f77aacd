"""PyTorchJob (kubeflow.org/v1, Kubeflow Training Operator v1.9.0): a master pod and a worker pod for each other node.

The operator sets MASTER_ADDR, MASTER_PORT and PET_NODE_RANK (pkg/controller.v1/pytorch/envvar.go). It also sets RANK
(the node's) and WORLD_SIZE, which programs that start their own processes must not see.
"""

from __future__ import annotations

from collections.abc import Sequence

from launchers.devices import needs_torch, network_name
from launchers.launch.duration import restarts
from launchers.launch.of_plan import Launch
from launchers.pieces import File, Piece, Start
from launchers.schedulers import node
from launchers.schedulers.kubernetes.manifest import KEEP_S, begin, finish, metadata, pod
from launchers.yaml_text import Tree

PATH = "pytorchjob.yaml"
_CONTAINER = "pytorch"
# What SageMaker HyperPod on EKS reads: it replaces a node that fails and starts the job again (AWS's
# awsome-distributed-training, 1.architectures/7.sagemaker-hyperpod-eks/task-governance, 2026-02).
_HYPERPOD = "sagemaker.amazonaws.com/"


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
    about = metadata(manifest, queued=True)
    if network_name(launch).startswith("efa"):
        retries = str(restarts(launch))
        about["annotations"] = {
            f"{_HYPERPOD}enable-job-auto-resume": "true",
            f"{_HYPERPOD}job-max-retry-count": retries,
        }
    document = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": about,
        "spec": {"nprocPerNode": str(launch.node_devices), "runPolicy": policy, "pytorchReplicaSpecs": replicas},
    }
    variables = {"NODE_RANK": '"$PET_NODE_RANK"'}
    return finish(manifest, files, variables, [document], forget=("RANK", "WORLD_SIZE"))
