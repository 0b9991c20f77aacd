"""Reads SkyPilot tasks with the real sky.Task.from_yaml. A question is {"text": the task}."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

HOME = tempfile.mkdtemp()
os.environ.update(SKYPILOT_DISABLE_USAGE_COLLECTION="1", HOME=HOME)
os.chdir(HOME)

import sky  # noqa: E402


def answer(question):
    path = Path(HOME, "task.yaml")
    path.write_text(question["text"])
    task = sky.Task.from_yaml(str(path))
    resources = next(iter(task.resources))
    service = task.service
    return {
        "nodes": task.num_nodes,
        "accelerators": resources.accelerators,
        "ports": resources.ports,
        "image": resources.image_id,
        "run": task.run,
        "replicas": service and service.min_replicas,
        "restarts": resources.job_recovery and resources.job_recovery["max_restarts_on_errors"],
        "mounts": sorted(task.storage_mounts),
    }
