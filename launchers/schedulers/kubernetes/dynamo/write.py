"""DynamoGraphDeployment (nvidia.com/v1beta1, Dynamo 1.3.1) of vLLM workers that each read prompts and write answers,
behind Dynamo's frontend (examples/backends/vllm/deploy/v1beta1; components/src/dynamo/vllm/args.py)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from estimator.errors import PlanError
from launchers.devices import accelerator_of, word_of
from launchers.engines.vllm.arguments import arguments
from launchers.engines.vllm.write import CONFIG
from launchers.launch.heading import scheduler_heading
from launchers.launch.of_plan import Launch
from launchers.pieces import File, Piece, Start
from launchers.schedulers.kubernetes.manifest import CORES, begin, claim, metadata
from launchers.targets import TARGETS
from launchers.yaml_text import Tree, tree

PATH = "dynamo.yaml"
_IMAGE = "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.3.1"
_SECRET = "hf-token-secret"
_CACHE = "/work"


def render(launch: Launch, start: Start, files: Sequence[File] = ()) -> Piece:
    """The deployment and what a site must fill in. Raises PlanError for another program than vLLM."""
    import yaml

    config = next((file.text for file in files if file.path == CONFIG), None)
    if config is None:
        raise PlanError("targets", "its workers are vLLM's, and the set has another program", ["vllm"])
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
                "containers": [_main(launch) | _engine(launch, arguments(yaml.safe_load(config)))],
                "volumes": [{"name": "work", "persistentVolumeClaim": {"claimName": manifest.name + "-work"}}],
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
    memory_gib = math.ceil(launch.node_devices * accelerator_of(launch).memory_bytes / 2**30)
    device: dict[str, Tree] = {str(word_of(launch, "kubernetes")): str(launch.node_devices)}
    host: dict[str, Tree] = {"cpu": str(launch.node_devices * CORES), "memory": f"{memory_gib}Gi"}
    return {
        "command": ["python3", "-m", "dynamo.vllm"],
        "args": list(words),
        "env": [{"name": "HF_HOME", "value": f"{_CACHE}/cache"}],
        "resources": {"limits": device, "requests": device | host},
        "volumeMounts": [{"name": "work", "mountPath": _CACHE}],
    }
