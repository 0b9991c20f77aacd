"""TorchX 0.7.0: the `torchx run` line, for its Slurm or its Kubernetes (Volcano) scheduler.

On Slurm a plain torchrun command becomes the component dist.ddp, which sets up the rendezvous itself. Any other program
is run by utils.sh on each node through a script, and on Kubernetes every one, as what it saves has to lie on a claim.
It takes the node's rank and the name of the variable that holds the first node's address from TorchX's macros
(torchx/specs/api.py); the line itself then holds nothing that TorchX would expand.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from launchers.launch.duration import restarts
from launchers.launch.heading import scheduler_heading
from launchers.launch.of_plan import Launch
from launchers.launch.training import TrainingLaunch
from launchers.pieces import File, Piece, Start
from launchers.schedulers import node
from launchers.schedulers.kubernetes.network import network_resources
from launchers.schedulers.slurm.write import slurm_time
from launchers.shell.quoting import AS_WRITTEN, quoted

PATH, SCRIPT = "torchx.sh", "torchx-node.sh"
_WORK = "/work"
_WITH_VALUE = re.compile(
    r"--(nnodes|nproc[-_]per[-_]node|node[-_]rank|master[-_]addr|master[-_]port|rdzv[-_](id|backend|endpoint|conf))"
)


def render(launch: Launch, start: Start, files: Sequence[File] = ()) -> Piece:
    """The line in a shell file, the script of a node where one is needed, and what a site must fill in."""
    cores, gib = node.host_cores(launch), node.host_gib(launch)
    needs = [f"{PATH}: --cpu and --memMB, which assume that a node has {cores} cores and {gib} GiB for the run"]
    on_kubernetes = launch.site.queue is not None or launch.site.namespace is not None
    words = [
        "torchx",
        "run",
        "-s",
        "kubernetes" if on_kubernetes else "slurm",
        *_scheduler(launch, on_kubernetes, needs),
    ]
    size = [
        *("--cpu", cores),
        *("--gpu", launch.node_devices),
        *("--memMB", gib * 1024),
        *(("--max_retries", restarts(launch)) if isinstance(launch, TrainingLaunch) and start.resumes else ()),
    ]
    image = []
    if on_kubernetes:
        image = ["--image", node.container_image(launch, start, PATH, needs), "--mounts", _volume(launch, needs)]
    else:
        needs.append(f"{PATH}: run it in an environment with TorchX and {node.programs(start)}, which the job inherits")
    made: list[File] = []
    ddp = None if on_kubernetes else _ddp(launch, start)
    if ddp is not None:
        component = ["dist.ddp", "-j", f"{launch.nodes}x{launch.node_devices}", *size, *image, *ddp]
    else:
        component = ["utils.sh", "--num_replicas", launch.nodes, *size, *image, "sh", SCRIPT]
        if launch.nodes > 1:
            component += ["${replica_id}", "${rank0_env}"]
        made.append(_script(launch, start, on_kubernetes))
    head = ["#!/bin/sh", *_heading(launch)]
    if on_kubernetes:
        head.append("# The image is patched with this folder (TorchX's workspace, which needs Docker here) and pushed.")
    else:
        head.append("# TorchX's Slurm jobs run in this folder, in the environment that is active here.")
    line = f"{quoted(words)} \\\n  {quoted(component)}"
    head.append(AS_WRITTEN)
    text = "\n".join([*head, line, ""])
    return Piece((File(PATH, "torchx", text, executable=True), *made), tuple(needs))


def _heading(launch: Launch) -> list[str]:
    return [*(f"# {line}" for line in scheduler_heading(launch, f"sh {PATH}")), "#"]


def _scheduler(launch: Launch, on_kubernetes: bool, needs: list[str]) -> list[str]:
    site = launch.site
    options: dict[str, str | None] = {}
    if on_kubernetes:
        options = {"queue": site.queue or "default", "namespace": site.namespace}
        if site.queue is None:
            needs.append(f"{PATH}: queue, the Volcano queue (default stands there)")
    else:
        options = {"partition": site.partition}
        seconds = node.time_limit_s(launch)
        if seconds is not None:
            options["time"] = slurm_time(seconds / 3600)
        if site.partition is None:
            needs.append(f"{PATH}: -cfg partition=…, if your site asks for it")
    arguments = ",".join(f"{name}={value}" for name, value in options.items() if value is not None)
    return ["-cfg", arguments] if arguments else []


def _ddp(launch: Launch, start: Start) -> list[str] | None:
    """Options of dist.ddp that run the same script as a torchrun command; None where the command is another, or holds
    what TorchX would expand."""
    words = shlex.split(start.command)
    if words[:1] != ["torchrun"] or not all(re.fullmatch(r"[\w./:-]+", value) for value in start.environment.values()):
        return None
    rest = words[1:]
    while rest and rest[0].startswith("--"):
        name, equals, _ = rest[0].partition("=")
        if name == "--standalone":
            rest = rest[1:]
        elif _WITH_VALUE.fullmatch(name):
            rest = rest[1 if equals else 2 :]
        else:
            return None
    if rest[:1] == ["-m"]:
        entry, rest = rest[:2], rest[2:]
    else:
        entry, rest = ["--script", *rest[:1]], rest[1:]
    if len(entry) < 2 or any("$" in word for word in rest):
        return None
    variables = ",".join(f"{name}={value}" for name, value in start.environment.items())
    environment = ["--env", variables] if variables else []
    return [*environment, "--name", f"/{launch.slug}", *entry, *(["--", *rest] if rest else [])]


def _volume(launch: Launch, needs: list[str]) -> str:
    """The claim where checkpoints and caches outlive containers (torchx/schedulers/kubernetes_scheduler.py)."""
    name = f"{node.plain_name(launch)}-work"
    needs.append(f"{PATH}: the claim {name}, of a storage class that many nodes write to at once")
    if network_resources(launch, PATH, []):
        needs.append(
            f"{PATH}: a named resource that has the network's devices (-h aws_p5.48xlarge in place of --cpu, --gpu and "
            "--memMB), or kubernetes-volcano: TorchX asks for none itself, and NCCL goes over TCP"
        )
    return f"type=volume,src={name},dst={_WORK}"


def _script(launch: Launch, start: Start, on_kubernetes: bool) -> File:
    head = ["#!/bin/sh", *_heading(launch), f"# What {PATH} runs on every node."]
    preparation = []
    if launch.nodes > 1:
        head[-1] += " $1 is the node's rank, $2 the name of the variable with the first node's address, unset on one."
        preparation = ['eval "FIRST=\\${$2:-localhost}"', 'FIRST="${FIRST%%,*}"']
    if on_kubernetes:
        preparation += [f"export HF_HOME={_WORK}/cache"]
        if launch.kind == "training":
            preparation += [f"mkdir -p {_WORK}/saves", f"ln -sfnT {_WORK}/saves saves"]
    variables = {"NODE_RANK": '"$1"', "MASTER_ADDR": '"$FIRST"', "MASTER_PORT": str(node.PORT)}
    lines = [*head, AS_WRITTEN, *node.script(launch, start, variables, preparation), ""]
    return File(SCRIPT, "torchx", "\n".join(lines), executable=True)
