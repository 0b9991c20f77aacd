"""Files that start containers, told from each other: Kubernetes objects, values of a Helm chart, Ray Serve, SkyPilot
tasks, dstack configurations, Beaker experiments, Docker Compose, Dockerfiles; and clusters on AWS that jobs run on."""

from __future__ import annotations

import re
from collections.abc import Mapping

from launchers.places import read as clusters
from launchers.reading.documents import nested_documents
from launchers.reading.findings import Findings
from launchers.schedulers import beaker, dockerfile, ray_serve
from launchers.schedulers.compose import read as compose
from launchers.schedulers.containers import Jobs, list_at, mapping_at
from launchers.schedulers.dstack import read as dstack
from launchers.schedulers.kubernetes import read as kubernetes
from launchers.schedulers.kubernetes.production_stack import read as production_stack
from launchers.schedulers.skypilot import read as skypilot


def read_jobs(name: str, text: str, findings: Findings) -> Jobs | None:
    """What the file starts, its counts put into the findings; None for what is none of these files."""
    if dockerfile.is_dockerfile(text):
        return dockerfile.read(text)
    if not re.search(
        r"^(apiVersion|applications|resources|services|run|kind|type|servingEngineSpec|Scheduling|InstanceGroups|tasks)\s*:",
        text,
        re.MULTILINE,
    ):
        return None
    documents = nested_documents(name, text)
    objects = [part for part in documents if "apiVersion" in part and "kind" in part]
    if objects:
        return kubernetes.read(name, objects, findings)
    for part in documents:
        if isinstance(part.get("servingEngineSpec"), Mapping):
            return production_stack.read(name, part, findings)
        if any("llm_configs" in mapping_at(row, "args") for row in list_at(part, "applications")):
            return ray_serve.read(name, part, findings)
        if beaker.is_experiment(part):
            return beaker.read(name, part, findings)
        if clusters.is_cluster(part):
            return clusters.read(name, part, findings)
        if isinstance(part.get("services"), Mapping):
            return compose.read(name, part["services"], findings)
        if part.get("type") in dstack.TYPES and "commands" in part:
            return dstack.read(name, part, findings)
        if isinstance(part.get("run"), str) and any(key in part for key in ("resources", "num_nodes", "setup")):
            return skypilot.read(name, part, findings)
    return None
