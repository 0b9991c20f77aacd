"""Configurations of Ray Serve whose applications are of Ray Serve LLM (ray.serve.llm 2.56), as the commands of vLLM
that it starts with the same arguments."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

from launchers.reading.devices import accelerator
from launchers.reading.documents import Item
from launchers.reading.findings import Findings
from launchers.schedulers.containers import Data, Jobs, list_at, mapping_at, number_at


def read(name: str, config: Data, findings: Findings, *, counted: bool = False) -> Jobs:
    """`counted`: something else says how many accelerators there are."""
    jobs = Jobs("Ray Serve")
    for application in list_at(config, "applications"):
        for row in list_at(mapping_at(application, "args"), "llm_configs"):
            if not isinstance(row, dict):
                findings.refers.setdefault(str(row), f"{name}: what Ray Serve LLM serves")
                continue
            kind = row.get("accelerator_type")
            if isinstance(kind, str):
                accelerator(findings, Item(name, "accelerator_type", kind), kind)
            engine, deployment = mapping_at(row, "engine_kwargs"), mapping_at(row, "deployment_config")
            least = number_at(mapping_at(deployment, "autoscaling_config"), "min_replicas", 1)
            copies = number_at(deployment, "num_replicas", least)
            size = number_at(engine, "tensor_parallel_size", 1) * number_at(engine, "pipeline_parallel_size", 1)
            if not counted:
                findings.put("devices", copies * size, Item(name, "num_replicas x size of an engine", copies * size))
            jobs.scripts.append((shlex.join(_words(row, engine)), {}))
    return jobs


def _words(row: Data, engine: Data) -> Iterator[str]:
    loading = mapping_at(row, "model_loading_config")
    yield from ("vllm", "serve", str(loading.get("model_source") or loading.get("model_id")))
    for key, value in engine.items():
        if value not in (None, False):
            yield f"--{str(key).replace('_', '-')}"
            if value is not True:
                yield json.dumps(value) if isinstance(value, dict | list) else str(value)
