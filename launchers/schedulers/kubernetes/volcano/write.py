"""Volcano Job (batch.volcano.sh/v1alpha1, Volcano v1.15): a pod per node, all placed together or none, and restarted as
a whole.

Its plugins give pods names (svc: <job>-<task>-<index>.<job>) and their index (env: VC_TASK_INDEX).
"""

from __future__ import annotations

from collections.abc import Sequence

from launchers.launch.duration import restarts
from launchers.launch.of_plan import Launch
from launchers.pieces import File, Piece, Start
from launchers.schedulers import node
from launchers.schedulers.kubernetes.manifest import KEEP_S, begin, finish, metadata, pod
from launchers.yaml_text import Tree

PATH = "volcano.yaml"
_TASK = "node"


def render(launch: Launch, start: Start, files: Sequence[File] = ()) -> Piece:
    """The manifest and what a site must fill in."""
    manifest = begin(launch, start, PATH, "kubernetes-volcano", is_gang=True)
    template = pod(manifest, _TASK, "Never")
    limit = node.time_limit_s(launch)
    if limit is not None:
        # The job has none: it is that of each start.
        template["spec"]["activeDeadlineSeconds"] = limit  # type: ignore[index, call-overload]
    task = {"name": _TASK, "replicas": launch.nodes, "template": template}
    spec: dict[str, Tree] = {
        "schedulerName": "volcano",
        "minAvailable": launch.nodes,
        "queue": launch.site.queue or "default",
        "maxRetry": restarts(launch) if start.resumes else 0,
        "ttlSecondsAfterFinished": KEEP_S,
        "plugins": {"svc": ["--publish-not-ready-addresses=true"], "env": list[Tree]()},
        # A run whose pods are not all there waits for ever.
        "policies": [{"event": event, "action": "RestartJob"} for event in ("PodFailed", "PodEvicted")],
        "tasks": [task],
    }
    document = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": metadata(manifest),
        "spec": spec,
    }
    variables = {
        "NODE_RANK": '"$VC_TASK_INDEX"',
        "MASTER_ADDR": f"{manifest.name}-{_TASK}-0.{manifest.name}",
        "MASTER_PORT": str(node.PORT),
    }
    return finish(manifest, files, variables, [document])
