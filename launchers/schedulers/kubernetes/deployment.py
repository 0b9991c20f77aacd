"""Deployment and Service (apps/v1, v1) of a served model whose replicas have one node, or a part of one, each."""

from __future__ import annotations

from collections.abc import Sequence

from launchers import File, Piece, Start
from launchers.engines.job import ServingJob
from launchers.job import Job
from launchers.schedulers.kubernetes.manifest import begin, finish, listening, metadata, pod, service, serving_port

PATH = "deployment.yaml"


def render(job: Job | ServingJob, start: Start, files: Sequence[File] = ()) -> Piece:
    """The manifest and what a site must fill in. Raises PlanError for a program that does not serve."""
    manifest = begin(job, start, PATH, "kubernetes-deployment")
    port = serving_port(manifest)
    labels = {"app.kubernetes.io/name": manifest.name}
    document = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(manifest, queued=True),
        "spec": {
            "replicas": job.replicas,
            "selector": {"matchLabels": labels},
            # A new pod waits for the devices of an old one.
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "template": pod(manifest, "engine", "Always", listening(port)),
        },
    }
    return finish(manifest, files, {}, [document, service(manifest, port, labels)])
