"""RayJob (ray.io/v1, KubeRay v1.7.0): a Ray cluster of a worker per node, and a driver that runs on its head.

A program that works on Ray is started by the driver itself. Any other one is started on each worker by Ray Train
(ray_nodes.py), which starts all of them again when one is lost.
"""

from __future__ import annotations

from collections.abc import Sequence

from launchers.devices import word_of
from launchers.launch.duration import restarts
from launchers.launch.of_plan import Launch
from launchers.pieces import File, Piece, Start
from launchers.schedulers import node
from launchers.schedulers.kubernetes.manifest import (
    KEEP_S,
    WORK,
    Manifest,
    begin,
    command,
    container,
    finish,
    metadata,
    placement,
)
from launchers.yaml_text import Tree

PATH, NODES = "rayjob.yaml", "ray_nodes.py"
# What the head, which holds no devices, asks for.
_HEAD: dict[str, Tree] = {"cpu": 4, "memory": "16Gi"}
_DRIVER = '''\
"""Runs the command that it is given once on every node of the Ray cluster it is in, by Ray Train."""

import os
import subprocess
import sys

from ray.train import FailureConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer

NODES, RESOURCES, PORT, RESTARTS = {nodes}, {resources}, "{port}", {restarts}
OWN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


def run_node(config):
    # Ray Train's workers are the nodes; the program's own processes are counted by what the command starts.
    told = {{name: value for name, value in os.environ.items() if name not in OWN}}
    told |= {{"NODE_RANK": os.environ["RANK"], "MASTER_PORT": PORT}}
    subprocess.run(config["command"], check=True, env=told)


if __name__ == "__main__":
    TorchTrainer(
        run_node,
        train_loop_config={{"command": sys.argv[1:]}},
        torch_config=TorchConfig(backend="gloo"),
        scaling_config=ScalingConfig(
            num_workers=NODES, resources_per_worker=RESOURCES, placement_strategy="STRICT_SPREAD"
        ),
        run_config=RunConfig(failure_config=FailureConfig(max_failures=RESTARTS)),
    ).fit()
'''


def render(launch: Launch, start: Start, files: Sequence[File] = ()) -> Piece:
    """The manifest with the driver in it, and what a site must fill in."""
    manifest = begin(launch, start, PATH, "kubernetes-rayjob")
    again = restarts(launch) if start.resumes else 0
    word = word_of(launch, "kubernetes")
    gpu = word in ("nvidia.com/gpu", "amd.com/gpu")
    resources = {"GPU": launch.node_devices} if gpu else {"CPU": 1}
    driver = _DRIVER.format(nodes=launch.nodes, resources=resources, port=node.PORT, restarts=again)
    started = " ".join(command())
    entry = started if start.on_ray else f"python {NODES} {started}"
    if not start.on_ray:
        files = [*files, File(NODES, "kubernetes-rayjob", driver)]
        entry = f"python /launch/{NODES} {started}"
    head = _pod(manifest, "ray-head", {"requests": dict(_HEAD), "limits": dict(_HEAD)})
    worker: dict[str, Tree] = {
        "groupName": "nodes",
        "replicas": launch.nodes,
        "minReplicas": launch.nodes,
        "maxReplicas": launch.nodes,
        "rayStartParams": {},
        "template": _pod(manifest, "ray-worker", None),
    }
    spec: dict[str, Tree] = {
        "entrypoint": entry,
        "shutdownAfterJobFinishes": True,
        "ttlSecondsAfterFinished": KEEP_S,
        "backoffLimit": again,
    }
    limit = node.time_limit_s(launch)
    if limit is not None:
        spec["activeDeadlineSeconds"] = limit
    spec["rayClusterSpec"] = {
        "headGroupSpec": {"rayStartParams": {"num-gpus": "0", "num-cpus": "0"}, "template": head},
        "workerGroupSpecs": [worker],
    }
    manifest.needs.append(f"environment: KubeRay on the cluster, and ray[train] in the image ({node.programs(start)})")
    document = {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": metadata(manifest, queued=True),
        "spec": spec,
    }
    variables = {
        "NODE_RANK": '"${NODE_RANK:-0}"',
        "MASTER_ADDR": '"${MASTER_ADDR:-127.0.0.1}"',
        "MASTER_PORT": f'"${{MASTER_PORT:-{node.PORT}}}"',
    }
    return finish(manifest, files, variables, [document])


def _pod(manifest: Manifest, name: str, resources: dict[str, Tree] | None) -> dict[str, Tree]:
    """A pod whose container runs what KubeRay gives it (ray start), on the devices of a node or on `resources`."""
    fields = {key: value for key, value in container(manifest, name).items() if key != "command"}
    # Where Ray's processes start, in whose folder relative paths are: tasks of a run save its checkpoints.
    fields["workingDir"] = WORK
    placed = placement(manifest)
    if resources is not None:
        fields["resources"] = resources
        placed.pop("tolerations", None)
    labels = {"app.kubernetes.io/name": manifest.name}
    spec: dict[str, Tree] = {"restartPolicy": "Never", "containers": [fields], **placed}
    return {"metadata": {"labels": labels}, "spec": spec}
