"""dstack 0.22 configuration: a task on every node of a cluster fleet, or a service where an engine is served."""

from __future__ import annotations

from collections.abc import Sequence

from estimator.errors import PlanError
from launchers.devices import dstack_name
from launchers.launch.heading import scheduler_heading
from launchers.launch.of_plan import Launch
from launchers.launch.serving import ServingLaunch, replica_rate
from launchers.pieces import File, Piece, Start
from launchers.schedulers import node
from launchers.shell.quoting import AS_WRITTEN
from launchers.yaml_text import TextBlock, Tree, YamlNote, tree

PATH = "job.dstack.yml"
_FOLDER = "/work"
# How long it looks for machines, and tries again after an error or an interruption.
_TRIES_FOR = "1d"
# Weights outlive a container, where the machine has a place for them.
_CACHE = {"instance_path": "/dstack-cache", "path": "/root/.cache", "optional": True}
# Loading weights takes long: so often is a server asked whether it is there.
_PROBE = {"type": "http", "url": "/health", "interval": "15s", "timeout": "10s", "until_ready": True}


def render(launch: Launch, start: Start, files: Sequence[File] = ()) -> Piece:
    """The configuration and what a site must fill in. Raises PlanError."""
    needs: list[str] = []
    document: dict[str, Tree] = {
        "type": "service" if launch.kind == "inference" else "task",
        "name": node.plain_name(launch),
    }
    document |= _service(launch, start) if launch.kind == "inference" else {"nodes": launch.nodes}
    image = launch.site.image or start.image
    if image is None:
        document["python"] = "3.12"
        needs.append(f"{PATH}: image, or commands that install {node.programs(start)} before the run")
    else:
        document["image"] = image
    document["working_dir"] = _FOLDER
    document["files"] = [f".:{_FOLDER}"]
    document[YamlNote("env: [HF_TOKEN]  # for gated models, from your own environment")] = ""
    document["commands"] = [TextBlock("\n".join([AS_WRITTEN, *_script(launch, start), ""]))]
    resources: dict[str, Tree] = {"gpu": f"{dstack_name(launch)}:{launch.node_devices}"}
    resources |= {"cpu": f"{node.host_cores(launch)}..", "memory": f"{node.host_gib(launch)}GB.."}
    if launch.node_devices > 1:
        resources["shm_size"] = f"{2 * launch.node_devices}GB"
    document["resources"] = resources
    volumes: list[Tree] = [_CACHE]
    if launch.kind == "training":
        volumes.append(YamlNote(f"SET_ME:{_FOLDER}/saves  # where checkpoints outlive a machine that is taken away"))
    document["volumes"] = volumes
    if launch.kind == "training":
        document["retry"] = {"on_events": ["no-capacity", "interruption", "error"], "duration": _TRIES_FOR}
        if (limit := node.time_limit_s(launch)) is not None:
            document["max_duration"] = f"{limit}s"
        needs.append(f"{PATH}: a volume for {_FOLDER}/saves, from which a run that is tried again goes on")
    text = [*(f"# {line}" for line in scheduler_heading(launch, f"dstack apply -f {PATH}")), *tree(document), ""]
    placed = "one whose placement is cluster" if launch.nodes > 1 else "of machines or of offers"
    needs.append(f"dstack: a fleet, {placed}")
    return Piece((File(PATH, "dstack", "\n".join(text)),), tuple(needs))


def _service(launch: ServingLaunch, start: Start) -> dict[str, Tree]:
    if start.port is None:
        raise PlanError("targets", f"dstack serves engines, and {node.programs(start)} is none", ["slurm"])
    fields: dict[str, Tree] = {"port": start.port}
    if (rate := replica_rate(launch)) is not None:
        # As planned; dstack scales where replicas are a range.
        fields[YamlNote(f"with a range of replicas: scaling: {{metric: rps, target: {rate:.3g}}}")] = ""
    fields |= {"replicas": launch.replicas, "probes": [_PROBE]}
    return fields | ({"model": launch.model} if launch.model else {})


def _script(launch: Launch, start: Start) -> list[str]:
    variables = {
        "NODE_RANK": '"$DSTACK_NODE_RANK"',
        "MASTER_ADDR": '"$DSTACK_MASTER_NODE_IP"',
        "MASTER_PORT": str(node.PORT),
    }
    return node.script(launch, start, variables, ["export HOST=0.0.0.0"] if start.port is not None else [])
