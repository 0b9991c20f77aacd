"""SkyPilot 0.14.1 task: the nodes and devices, this folder as the working folder, and the command of every node."""

from __future__ import annotations

from collections.abc import Sequence

from estimator.errors import PlanError
from launchers import File, Piece, Start
from launchers.devices import skypilot_name
from launchers.engines.job import ServingJob
from launchers.job import Job, own_heading
from launchers.schedulers import node
from launchers.shell.quoting import AS_WRITTEN
from launchers.yaml_text import Block, Note, Tree, tree

PATH = "skypilot.yaml"
_IDLE_MINUTES = 30
_LOADING_S = 1800


def render(job: Job | ServingJob, start: Start, files: Sequence[File] = ()) -> Piece:
    """The task, with a service where an engine is served, and what a site must fill in. Raises PlanError."""
    needs: list[str] = []
    resources: dict[str, Tree] = {"accelerators": {skypilot_name(job): job.node_devices}}
    resources[Note("infra: SET_ME  # a cloud, region or Kubernetes context; the cheapest that has them otherwise")] = ""
    image = job.site.image or start.image
    if image is not None:
        resources["image_id"] = f"docker:{image}"
    document: dict[str, Tree] = {"name": node.plain_name(job), "num_nodes": job.nodes, "resources": resources}
    if job.kind == "inference":
        if start.port is None:
            raise PlanError("targets", f"skypilot serves engines, and {node.programs(start)} is none", ["slurm"])
        resources["ports"] = start.port
        probe = {"path": "/health", "initial_delay_seconds": _LOADING_S}
        document["service"] = {"readiness_probe": probe, "replicas": job.replicas}
    else:
        resources["autostop"] = {"idle_minutes": _IDLE_MINUTES, "down": False}
    document["workdir"] = "."
    document[Note("secrets: {HF_TOKEN: null}  # for gated models; then add --secret HF_TOKEN to the command")] = ""
    if image is None:
        document[Note("setup: SET_ME  # commands that install what the run needs, once on every node")] = ""
        needs.append(f"{PATH}: setup, the commands that install {node.programs(start)}")
    variables = {
        "NODE_RANK": '"$SKYPILOT_NODE_RANK"',
        "MASTER_ADDR": '"$FIRST"',
        "MASTER_PORT": str(node.PORT),
    }
    first = ['FIRST="$(echo "$SKYPILOT_NODE_IPS" | head -n 1)"'] if job.nodes > 1 else []
    document["run"] = Block("\n".join([AS_WRITTEN, *node.script(job, start, variables, first), ""]))
    launch = f"sky serve up {PATH}" if job.kind == "inference" else f"sky launch {PATH}"
    text = [*(f"# {line}" for line in own_heading(job, launch)), *tree(document), ""]
    needs.append(f"{PATH}: infra, where it is to run, if not wherever it is cheapest")
    return Piece((File(PATH, "skypilot", "\n".join(text)),), tuple(needs))
