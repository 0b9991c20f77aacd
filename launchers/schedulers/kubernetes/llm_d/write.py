"""LLMInferenceService (serving.kserve.io/v1alpha2, KServe 0.21) of a served model: llm-d's scheduler before vLLM.

KServe starts vLLM itself, and gives it what stands in VLLM_ADDITIONAL_ARGS (docs/samples/llmisvc/single-node-gpu)."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from launchers.devices import word_of
from launchers.engines.vllm.arguments import arguments, options_of
from launchers.launch.heading import scheduler_heading
from launchers.launch.of_plan import Launch
from launchers.pieces import File, Piece, Start
from launchers.schedulers.kubernetes.manifest import begin, metadata, quoted_resources, tolerations
from launchers.targets import TARGETS
from launchers.yaml_text import Tree, tree

PATH = "llm-d.yaml"


def render(launch: Launch, start: Start, files: Sequence[File] = ()) -> Piece:
    """The service and what a site must fill in. Raises PlanError for another program than vLLM."""
    options = options_of(files, "llm-d's servers are vLLM's, and the set has another program")
    manifest = begin(launch, start, PATH, "llm-d")
    model = options.pop("model")
    document: dict[str, Tree] = {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "kind": "LLMInferenceService",
        "metadata": metadata(manifest, queued=True),
        "spec": {
            "model": {"uri": f"hf://{model}", "name": model},
            "replicas": launch.replicas,
            "router": {"route": {}, "gateway": {}, "scheduler": {}},
            "template": {
                "containers": [_main(launch, shlex.join(arguments(options)))],
                "tolerations": tolerations(str(word_of(launch, "kubernetes"))),
            },
        },
    }
    needs = [
        f"{PATH}: KServe 0.21 with its LLMInferenceService and a gateway in the cluster",
        f"{PATH}: for a gated model a secret with HF_TOKEN at the service account that fetches it",
        f"{PATH}: its gateway takes requests without a key: let only what may ask reach it",
    ]
    if launch.site.namespace is None:
        needs.append(f"{PATH}: metadata.namespace, if not the one that kubectl is set to")
    lines = [f"# {line}" for line in scheduler_heading(launch, TARGETS["llm-d"].launch)]
    return Piece((File(PATH, "llm-d", "\n".join([*lines, *tree(document), ""])),), (*manifest.needs, *needs))


def _main(launch: Launch, options: str) -> dict[str, Tree]:
    image: dict[str, Tree] = {} if launch.site.image is None else {"image": launch.site.image}
    return {
        "name": "main",
        **image,
        "env": [{"name": "VLLM_ADDITIONAL_ARGS", "value": options}],
        "resources": quoted_resources(launch),
    }
