"""TrainJob (trainer.kubeflow.org/v1alpha1, Kubeflow Trainer v2.3.0) on the runtime torch-distributed.

Its torch plugin sets PET_NODE_RANK, PET_MASTER_ADDR and PET_MASTER_PORT (pkg/runtime/framework/plugins/torch/torch.go);
volumes reach the pods through runtimePatches, which name the runtime's job and container, both `node`.
"""

from __future__ import annotations

from collections.abc import Sequence

from launchers.devices import needs_torch
from launchers.launch.duration import restarts
from launchers.launch.of_plan import Launch
from launchers.pieces import File, Piece, Start
from launchers.schedulers import node
from launchers.schedulers.kubernetes.manifest import (
    Manifest,
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
_RUNTIME, _NODE = "-runtime", "node"


def render(launch: Launch, start: Start, files: Sequence[File] = ()) -> Piece:
    """The manifest and what a site must fill in."""
    needs_torch(launch, "kubernetes-trainjob")
    manifest = begin(launch, start, PATH, "kubernetes-trainjob")
    runtime = _runtime(manifest)
    reference = {"apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": f"{manifest.name}{_RUNTIME}"}
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
    return finish(manifest, files, variables, [runtime, document])


def _runtime(manifest: Manifest) -> dict[str, Tree]:
    """Kubeflow's own for torch (manifests/base/runtimes/torch_distributed.yaml), which starts the nodes together again
    when one fails: a TrainJob has no field for that."""
    launch, start = manifest.launch, manifest.start
    container = {"name": _NODE, "image": image(manifest)}
    job = {
        "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
        "spec": {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }
    named = metadata(manifest, _RUNTIME)
    labels = named["labels"]
    assert isinstance(labels, dict)
    jobs = {
        "failurePolicy": {"maxRestarts": restarts(launch) if start.resumes else 0},
        "replicatedJobs": [{"name": _NODE, "template": job}],
    }
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {**named, "labels": {**labels, "trainer.kubeflow.org/framework": "torch"}},
        "spec": {"mlPolicy": {"numNodes": launch.nodes, "torch": {}}, "template": {"spec": jobs}},
    }
