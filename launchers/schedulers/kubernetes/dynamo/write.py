"""DynamoGraphDeployment (nvidia.com/v1beta1, Dynamo 1.3.1) of vLLM workers that each read prompts and write answers,
behind Dynamo's frontend (examples/backends/vllm/deploy/v1beta1; components/src/dynamo/vllm/args.py)."""

from __future__ import annotations

from collections.abc import Sequence

from launchers.devices import word_of
from launchers.engines.vllm.arguments import arguments, options_of
from launchers.launch.heading import scheduler_heading
from launchers.launch.of_plan import Launch
from launchers.pieces import File, Piece, Start
from launchers.schedulers.kubernetes.manifest import begin, claim, metadata, quoted_resources, tolerations
from launchers.targets import TARGETS
from launchers.yaml_text import Tree, tree

PATH = "dynamo.yaml"
_IMAGE = "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.3.1"
_SECRET = "hf-token-secret"
_CACHE = "/work"


def render(launch: Launch, start: Start, files: Sequence[File] = ()) -> Piece:
    """The deployment and what a site must fill in. Raises PlanError for another program than vLLM."""
    options = options_of(files, "its workers are vLLM's, and the set has another program")
    manifest = begin(launch, start, PATH, "dynamo")
    frontend: dict[str, Tree] = {
        "name": "Frontend",
        "type": "frontend",
        "replicas": 1,
        "podTemplate": {"spec": {"containers": [_main(launch)]}},
    }
    worker: dict[str, Tree] = {
        "name": "Worker",
        "type": "worker",
        "replicas": launch.replicas,
        "podTemplate": {
            "spec": {
                "containers": [_main(launch) | _engine(launch, arguments(options))],
                "volumes": [{"name": "work", "persistentVolumeClaim": {"claimName": manifest.name + "-work"}}],
                "tolerations": tolerations(str(word_of(launch, "kubernetes"))),
            }
        },
    }
    document: dict[str, Tree] = {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeployment",
        "metadata": metadata(manifest),
        "spec": {"components": [frontend, worker]},
    }
    needs = [
        f"{PATH}: the Dynamo platform (operator and CRDs, 1.3) in the cluster",
        f"{PATH}: the secret {_SECRET} with HF_TOKEN, without which its pods do not start",
        f"{PATH}: the claim {manifest.name}-work, a storage class that many nodes write to at once, and its size",
        f"{PATH}: its frontend takes requests without a key: let only what may ask reach its Service",
    ]
    if launch.site.namespace is None:
        needs.append(f"{PATH}: metadata.namespace, if not the one that kubectl is set to")
    lines = [f"# {line}" for line in scheduler_heading(launch, TARGETS["dynamo"].launch)]
    for part in (claim(manifest), document):
        lines += ["---", *tree(part)]
    return Piece((File(PATH, "dynamo", "\n".join([*lines, ""])),), tuple(needs))


def _main(launch: Launch) -> dict[str, Tree]:
    """The container that the operator completes with ports and probes."""
    return {"name": "main", "image": launch.site.image or _IMAGE, "envFrom": [{"secretRef": {"name": _SECRET}}]}


def _engine(launch: Launch, words: Sequence[str]) -> dict[str, Tree]:
    return {
        "command": ["python3", "-m", "dynamo.vllm"],
        "args": list(words),
        "env": [{"name": "HF_HOME", "value": f"{_CACHE}/cache"}],
        "resources": quoted_resources(launch),
        "volumeMounts": [{"name": "work", "mountPath": _CACHE}],
    }
