"""JobSet (jobset.x-k8s.io/v1alpha2, JobSet v0.12.0): one indexed job of a pod per node, restarted as a whole.

Pods find the first one under the name <set>-<job>-0-0.<set> (JobSet's headless service).
"""

from __future__ import annotations

from collections.abc import Sequence

from launchers.launch.duration import restarts
from launchers.launch.of_plan import Launch
from launchers.pieces import File, Piece, Start
from launchers.schedulers import node
from launchers.schedulers.kubernetes.manifest import KEEP_S, begin, finish, metadata, pod
from launchers.yaml_text import Tree

PATH = "jobset.yaml"
_JOB = "node"


def render(launch: Launch, start: Start, files: Sequence[File] = ()) -> Piece:
    """The manifest and what a site must fill in."""
    manifest = begin(launch, start, PATH, "kubernetes-jobset")
    spec: dict[str, Tree] = {
        "parallelism": launch.nodes,
        "completions": launch.nodes,
        "completionMode": "Indexed",
        "backoffLimit": 0,
    }
    limit = node.time_limit_s(launch)
    if limit is not None:
        spec["activeDeadlineSeconds"] = limit
    spec["template"] = pod(manifest, _JOB, "Never")
    jobs = [{"name": _JOB, "replicas": launch.replicas, "template": {"spec": spec}}]
    document = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": metadata(manifest, queued=True),
        "spec": {
            "ttlSecondsAfterFinished": KEEP_S,
            "failurePolicy": {"maxRestarts": restarts(launch) if start.resumes else 0},
            "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
            "replicatedJobs": jobs,
        },
    }
    # Pods are called <set>-<job>-<replica>-<node>.
    first = f"{manifest.name}-{_JOB}-0-0" if launch.replicas == 1 else "\"$(uname -n | sed 's/-[0-9]*$/-0/')\""
    variables = {
        "NODE_RANK": '"$JOB_COMPLETION_INDEX"',
        "MASTER_ADDR": f"{first}.{manifest.name}",
        "MASTER_PORT": str(node.PORT),
    }
    return finish(manifest, files, variables, [document])
