"""Values of the vLLM production stack's chart: replicas of at most one node behind its router. Words: fields.yaml.

The chart starts vLLM itself, so the options that it has no value for stand among its further arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from launchers.devices import word_of
from launchers.engines.vllm.arguments import arguments, options_of
from launchers.launch.heading import scheduler_heading
from launchers.launch.of_plan import Launch
from launchers.pieces import File, Piece, Start
from launchers.schedulers.kubernetes.manifest import LOADING_S, claim_size, host_memory, tolerations
from launchers.schedulers.node import container_image, host_cores, plain_name
from launchers.tables import table
from launchers.targets import TARGETS
from launchers.yaml_text import Tree, tree

PATH = "vllm-stack.yaml"
_TABLE = "schedulers/kubernetes/production_stack/fields"


def render(launch: Launch, start: Start, files: Sequence[File] = ()) -> Piece:
    """The values and what a site must fill in. Raises PlanError for another program than vLLM."""
    needs: list[str] = []
    options = options_of(files, "the chart starts vLLM, and the set has another program")
    repository, _, tag = container_image(launch, start, PATH, needs).rpartition(":")
    cores, memory = host_cores(launch), host_memory(launch)
    engine: dict[str, Tree] = {
        "name": plain_name(launch),
        "repository": repository,
        "tag": tag,
        "modelURL": options.pop("model"),
        "replicaCount": launch.replicas,
        "requestCPU": cores,
        "requestMemory": memory,
        # Limits that are the requests: its pods are the last to be put out.
        "limitCPU": str(cores),
        "limitMemory": memory,
        "requestGPU": launch.node_devices,
        "requestGPUType": word_of(launch, "kubernetes"),
        "tolerations": tolerations(str(word_of(launch, "kubernetes"))),
        "pvcStorage": claim_size(launch),
        "pvcAccessMode": ["ReadWriteMany"],
        "hf_token": {"secretName": "hf-token", "secretKey": "token"},
        "vllmConfig": _config(launch, options),
    }
    health: dict[str, Tree] = {"httpGet": {"path": "/health", "port": start.port}}
    probe = {"initialDelaySeconds": 15, "periodSeconds": 10, "failureThreshold": LOADING_S // 10}
    values: dict[str, Tree] = {
        "servingEngineSpec": {
            "vllmApiKey": {"secretName": "api-key", "secretKey": "key"},
            "containerPort": start.port,
            "startupProbe": {**probe, **health},
            # A new pod waits for the devices of an old one.
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "modelSpec": [engine],
        }
    }
    needs += [
        f"{PATH}: secrets hf-token (key token) and api-key (key key), without which its pods do not start",
        f"{PATH}: storageClass of the weights' claim, if not the cluster's own",
    ]
    text = [f"# {line}" for line in scheduler_heading(launch, TARGETS["production-stack"].launch)]
    return Piece((File(PATH, "production-stack", "\n".join([*text, *tree(values), ""])),), tuple(needs))


def _config(launch: Launch, options: dict[str, Any]) -> dict[str, Tree]:
    """Its own values; all others are arguments. It caches prefixes only where it is told, vLLM unless told not to."""
    assert launch.kind == "inference"
    options.setdefault("enable-prefix-caching", True)
    if launch.serving.chunked_prefill is False:
        options["enable-chunked-prefill"] = False
    names = table(_TABLE)["options"]
    own: dict[str, Tree] = {name: options.pop(option) for name, option in names.items() if option in options}
    more = arguments(options)
    return own | ({"extraArgs": more} if more else {})
