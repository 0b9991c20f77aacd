"""SkyPilot 0.14.1 task: the nodes and devices, this folder as the working folder, and the command of every node.

The same file is a managed job (`sky jobs launch`), which goes on elsewhere when machines fail or are taken away.
"""

from __future__ import annotations

from collections.abc import Sequence

from estimator.errors import PlanError
from launchers.devices import skypilot_name
from launchers.launch.duration import restarts
from launchers.launch.heading import scheduler_heading
from launchers.launch.of_plan import Launch
from launchers.launch.serving import ServingLaunch, replica_rate
from launchers.pieces import File, Piece, Start
from launchers.schedulers import node
from launchers.shell.quoting import AS_WRITTEN
from launchers.targets import TARGETS
from launchers.yaml_text import TextBlock, Tree, YamlNote, tree

PATH = "skypilot.yaml"
_IDLE_MINUTES = 30
_LOADING_S = 1800
# The secret with the key of a server, by a name that no engine has of its own.
_KEY = "API_KEY"
# Where SkyPilot puts the working folder, and so where checkpoints are.
_SAVES = "~/sky_workdir/saves"


def render(launch: Launch, start: Start, files: Sequence[File] = ()) -> Piece:
    """The task, with a service where an engine is served, and what a site must fill in. Raises PlanError."""
    needs: list[str] = []
    resources: dict[str, Tree] = {"accelerators": {skypilot_name(launch): launch.node_devices}}
    resources |= {"cpus": f"{node.host_cores(launch)}+", "memory": f"{node.host_gib(launch)}+"}
    resources[
        YamlNote("infra: SET_ME  # a cloud, region or Kubernetes context; the cheapest that has them otherwise")
    ] = ""
    image = launch.site.image or start.image
    if image is not None:
        resources["image_id"] = f"docker:{image}"
    document: dict[str, Tree] = {"name": node.plain_name(launch), "num_nodes": launch.nodes, "resources": resources}
    if launch.nodes > 1:
        # The cloud's RDMA network, where it has one.
        resources["network_tier"] = "best"
    if launch.kind == "inference":
        if start.port is None:
            raise PlanError("targets", f"skypilot serves engines, and {node.programs(start)} is none", ["slurm"])
        resources["ports"] = start.port
        probe = {"path": "/health", "initial_delay_seconds": _LOADING_S}
        document["service"] = {"readiness_probe": probe, **_scaling(launch), "replicas": launch.replicas}
    else:
        resources["autostop"] = {"idle_minutes": _IDLE_MINUTES, "down": False}
        resources["job_recovery"] = {"max_restarts_on_errors": restarts(launch)}
        bucket = f"{{{_SAVES}: {{name: SET_ME, mode: MOUNT_CACHED}}}}"
        document[
            YamlNote(f"file_mounts: {bucket}  # for sky jobs launch: a bucket where checkpoints outlive machines")
        ] = ""
        needs.append(
            f"{PATH}: file_mounts, a bucket for checkpoints, where machines may be taken away; then start it with "
            f"sky jobs launch {PATH}, which replaces them"
        )
    document["workdir"] = "."
    if launch.kind == "inference":
        document[YamlNote("the key that requests bring; for gated models add HF_TOKEN, here and to the command")] = ""
        document["secrets"] = {_KEY: None}
        needs.append(f"environment: {_KEY}, the key that requests to the service bring")
        if start.key_variable is None:
            needs.append(f"{PATH}: {node.programs(start)} asks for no key: let only what may ask reach its port")
    else:
        gated = "secrets: {HF_TOKEN: null}  # for gated models; then add --secret HF_TOKEN to the command"
        document[YamlNote(gated)] = ""
    if image is None:
        document[YamlNote("setup: SET_ME  # commands that install what the run needs, once on every node")] = ""
        needs.append(f"{PATH}: setup, the commands that install {node.programs(start)}")
    variables = {
        "NODE_RANK": '"$SKYPILOT_NODE_RANK"',
        "MASTER_ADDR": '"$FIRST"',
        "MASTER_PORT": str(node.PORT),
    }
    first = ['FIRST="$(echo "$SKYPILOT_NODE_IPS" | head -n 1)"'] if launch.nodes > 1 else []
    opened = ["export HOST=0.0.0.0"] if start.port is not None else []
    if start.key_variable is not None:
        opened.append(f'export {start.key_variable}="${_KEY}"')
    document["run"] = TextBlock("\n".join([AS_WRITTEN, *node.script(launch, start, variables, [*opened, *first]), ""]))
    command = TARGETS["skypilot"].serve if launch.kind == "inference" else TARGETS["skypilot"].launch
    text = [*(f"# {line}" for line in scheduler_heading(launch, command)), *tree(document), ""]
    needs.append(f"{PATH}: infra, where it is to run, if not wherever it is cheapest")
    return Piece((File(PATH, "skypilot", "\n".join(text)),), tuple(needs))


def _scaling(launch: ServingLaunch) -> dict[str, Tree]:
    """A comment with what to say in place of a number of replicas, where the load of one is known."""
    rate = replica_rate(launch)
    if rate is None:
        return {}
    most = f"max_replicas: SET_ME, target_qps_per_replica: {rate:.3g}"
    return {YamlNote(f"in place of replicas: replica_policy: {{min_replicas: {launch.replicas}, {most}}}"): ""}
