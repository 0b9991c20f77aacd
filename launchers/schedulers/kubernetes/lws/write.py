"""LeaderWorkerSet (leaderworkerset.x-k8s.io/v1, LWS v0.10.0): a group of pods for each replica of a served model.

LWS sets LWS_WORKER_INDEX and LWS_LEADER_ADDRESS in every pod (api/leaderworkerset/v1). Requests go to the leaders.
"""

from __future__ import annotations

from collections.abc import Sequence

from launchers.launch.of_plan import Launch
from launchers.pieces import File, Piece, Start
from launchers.schedulers import node
from launchers.schedulers.kubernetes.manifest import (
    begin,
    finish,
    listening,
    metadata,
    pod,
    scaling,
    service,
    serving_port,
)

PATH = "lws.yaml"
_CONTAINER = "engine"
_LABEL = "leaderworkerset.sigs.k8s.io"


def render(launch: Launch, start: Start, files: Sequence[File] = ()) -> Piece:
    """The manifest with a Service, and what a site must fill in. Raises PlanError for a program that does not serve."""
    manifest = begin(launch, start, PATH, "kubernetes-lws")
    port = serving_port(manifest)
    template = {
        "size": launch.nodes,
        "restartPolicy": "RecreateGroupOnPodRestart",
        "leaderTemplate": pod(manifest, _CONTAINER, "Always", listening(manifest, port)),
        "workerTemplate": pod(manifest, _CONTAINER, "Always"),
    }
    document = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": metadata(manifest, queued=True),
        "spec": {
            **scaling(manifest),
            "replicas": launch.replicas,
            "startupPolicy": "LeaderCreated",
            "leaderWorkerTemplate": template,
        },
    }
    leaders = {f"{_LABEL}/name": manifest.name, f"{_LABEL}/worker-index": "0"}
    variables = {
        "NODE_RANK": '"$LWS_WORKER_INDEX"',
        "MASTER_ADDR": '"$LWS_LEADER_ADDRESS"',
        "MASTER_PORT": str(node.PORT),
    }
    return finish(manifest, files, variables, [document, service(manifest, port, leaders)])
