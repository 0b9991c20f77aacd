"""Values of the vLLM production stack's Helm chart, read into the command that its template makes of them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from launchers.reading.documents import Item
from launchers.reading.findings import Findings
from launchers.schedulers.containers import Data, Jobs, list_at, mapping_at, number_at, variables_of
from launchers.tables import table

KIND = "vLLM production stack values"


def read(name: str, values: Data, findings: Findings) -> Jobs:
    """One model; several are several plans."""
    spec = mapping_at(values, "servingEngineSpec")
    engines = [row for row in list_at(spec, "modelSpec") if isinstance(row, Mapping)]
    if len(engines) != 1:
        item = Item(name, "servingEngineSpec.modelSpec", len(engines))
        findings.block("model", item, "is not one model; give the values of one")
        return Jobs(KIND)
    engine = engines[0]
    each, copies = number_at(engine, "requestGPU", 1), number_at(engine, "replicaCount", 1)
    nodes = _nodes(engine)
    findings.put("per_node", each, Item(name, "requestGPU", each))
    findings.put("nodes", nodes, Item(name, "replicaCount", nodes))
    if copies > 1:
        findings.put("copies", copies, Item(name, "replicaCount", copies))
    if mapping_at(engine, "lmcacheConfig").get("enablePD"):
        findings.block("workload.disaggregation", Item(name, "enablePD", True), "splits prefill from decode")
    variables = variables_of(spec.get("env")) | variables_of(engine.get("env"))
    return Jobs(KIND, [(shlex.join(["vllm", "serve", *_arguments(engine)]), variables)])


def _nodes(engine: Data) -> int:
    """Nodes of a replica: Ray's head and its workers."""
    ray = mapping_at(engine, "raySpec")
    return 1 + number_at(ray, "workerNum", 0) if ray and ray.get("enabled", True) else 1


def _arguments(engine: Data) -> list[str]:
    config, rows = mapping_at(engine, "vllmConfig"), table("schedulers/kubernetes/production_stack/fields")
    words = [str(engine.get("modelURL", ""))]
    for key, option in (rows["options"] | (rows["ray_options"] if _nodes(engine) > 1 else {})).items():
        value: Any = config.get(key)
        if value is True:
            words.append(f"--{option}")
        elif value is False:
            words.append(f"--no-{option}")
        elif value is not None:
            words += [f"--{option}", str(value)]
    return [*words, *(str(word) for word in list_at(config, "extraArgs"))]
