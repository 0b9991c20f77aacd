"""Reads dstack configurations with the real parser. A question is {"text": the configuration}."""

from __future__ import annotations

import yaml
from dstack._internal.core.models.configurations import parse_run_configuration


def answer(question):
    job = parse_run_configuration(yaml.safe_load(question["text"]))
    gpu = job.resources.gpu
    served = job.type == "service"
    return {
        "nodes": 1 if served else job.nodes,
        "replicas": job.replicas.max if served else 1,
        "names": gpu.name,
        "each": gpu.count.max,
        "image": job.image,
        "commands": list(job.commands),
        "files": [row.local_path for row in job.files],
        "retry": bool(job.retry),
        "max_duration": job.max_duration,
    }
