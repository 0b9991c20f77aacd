"""Deployment and Service (apps/v1, v1) of a served model whose replicas have one node, or a part of one, each."""

from __future__ import annotations

from collections.abc import Sequence

from launchers.launch.of_plan import Launch
from launchers.pieces import File, Piece, Start
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

PATH = "deployment.yaml"


def render(launch: Launch, start: Start, files: Sequence[File] = ()) -> Piece:
    """The manifest and what a site must fill in. Raises PlanError for a program that does not serve."""
    manifest = begin(launch, start, PATH, "kubernetes-deployment")
    port = serving_port(manifest)
    labels = {"app.kubernetes.io/name": manifest.name}
    document = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(manifest, queued=True),
        "spec": {
            **scaling(manifest),
            "replicas": launch.replicas,
            "selector": {"matchLabels": labels},
            # A new pod waits for the devices of an old one.
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "template": pod(manifest, "engine", "Always", listening(manifest, port)),
        },
    }
    return finish(manifest, files, {}, [document, service(manifest, port, labels)])
