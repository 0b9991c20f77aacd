"""InferenceService (serving.kserve.io/v1beta1, KServe 0.21) of a served model, one node a replica at most.

KServe makes Deployment, Service and route of it."""

from __future__ import annotations

from collections.abc import Sequence

from launchers.launch.of_plan import Launch
from launchers.pieces import File, Piece, Start
from launchers.schedulers.kubernetes.manifest import begin, finish, listening, metadata, pod, scaling, serving_port
from launchers.yaml_text import Tree

PATH = "kserve.yaml"
# The container that KServe takes for the model server (pkg/constants/constants.go).
CONTAINER = "kserve-container"
# Without Knative, which would stop replicas that nobody asks and start them on the first request; and with as many
# replicas as the plan has.
_MODES = {"serving.kserve.io/deploymentMode": "Standard", "serving.kserve.io/autoscalerClass": "none"}


def render(launch: Launch, start: Start, files: Sequence[File] = ()) -> Piece:
    """The manifest and what a site must fill in. Raises PlanError for a program that does not serve."""
    manifest = begin(launch, start, PATH, "kubernetes-kserve")
    template = pod(manifest, CONTAINER, "Always", listening(manifest, serving_port(manifest)))["spec"]
    assert isinstance(template, dict)
    predictor: dict[str, Tree] = {
        **scaling(manifest),
        "minReplicas": launch.replicas,
        "maxReplicas": launch.replicas,
        # A new pod waits for the devices of an old one.
        "deploymentStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        **template,
    }
    document: dict[str, Tree] = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": metadata(manifest, queued=True) | {"annotations": dict[str, Tree](_MODES)},
        "spec": {"predictor": predictor},
    }
    return finish(manifest, files, {}, [document])
