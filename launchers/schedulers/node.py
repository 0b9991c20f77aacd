"""The script that starts the program on one node, for schedulers that bring files to nodes which share no folder."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence

from launchers.devices import accelerator_of, is_cpu
from launchers.launch.duration import duration
from launchers.launch.names import one_line
from launchers.launch.of_plan import Launch
from launchers.pieces import File, Start

CORES_PER_DEVICE = 8
"""Host cores for each device's process and its data loaders, where a site says nothing."""
_SYSTEM_CORES = 2
"""Of these what the system is left, of each device's, or of all where the processors are the devices (assumed)."""
# What a host holds besides what is planned for it (assumed): page cache, data loaders, the program itself.
_BESIDES = 1.25
PORT = 29500
"""Where the nodes of a run meet, on the first of them: torchrun's usual port."""


def script(launch: Launch, start: Start, variables: Mapping[str, str], preparation: Sequence[str] = ()) -> list[str]:
    """Lines of POSIX shell that run the program in place of the shell: what is prepared, then for several nodes
    `variables` (NODE_RANK, MASTER_ADDR and MASTER_PORT as shell words of ours), then the program's own environment."""
    lines = ["set -eu", *preparation]
    if launch.nodes > 1:
        lines += [f"{name}={word}" for name, word in variables.items()]
        lines.append(f"export {' '.join(variables)}")
    lines += [f"export {name}={shlex.quote(value)}" for name, value in environment_of(launch, start).items()]
    return [*lines, f"exec env {start.command}"]


def environment_of(launch: Launch, start: Start) -> dict[str, str]:
    """The program's own variables, and for training the threads of a process: torchrun sets one where nothing does,
    with which states on the host are updated by one core."""
    if launch.kind == "inference":
        return dict(start.environment)
    threads = _cores_each(launch)
    if not is_cpu(launch) and launch.offload not in ("optimizer", "params"):
        threads //= 2
    return {"OMP_NUM_THREADS": str(threads)} | dict(start.environment)


def _cores_each(launch: Launch) -> int:
    """Host cores of a device's process: all of a processor that is the device itself."""
    return (accelerator_of(launch).cores if is_cpu(launch) else None) or CORES_PER_DEVICE


def node_cores(launch: Launch) -> int:
    """Host cores of a node's part of the run."""
    return launch.node_devices * _cores_each(launch)


def host_cores(launch: Launch) -> int:
    """Of these what it asks for, where the system needs some beside it."""
    return max(1, node_cores(launch) - _SYSTEM_CORES * (1 if is_cpu(launch) else launch.node_devices))


def host_gib(launch: Launch) -> int:
    """Memory of the host that it asks for: as much as its devices have, or what is planned to lie there and more."""
    planned = 0.0 if launch.kind == "inference" or launch.prediction is None else launch.prediction.host_bytes or 0.0
    return math.ceil(max(launch.node_devices * accelerator_of(launch).memory_bytes, _BESIDES * planned) / 2**30)


def programs(start: Start) -> str:
    """What has to be installed, in words."""
    return " and ".join(one_line(program) for program in start.programs) or "your program"


def container_image(launch: Launch, start: Start, path: str, needs: list[str]) -> str:
    """The site's image, or the program's own; a placeholder where neither is known, which is then asked for."""
    image = launch.site.image or start.image
    if image is None:
        image = "SET_ME_IMAGE"
        needs.append(f"{path}: SET_ME_IMAGE, a container image with {programs(start)}")
    return image


def plain_name(launch: Launch, length: int = 40) -> str:
    """The job's name as Kubernetes, Compose and SkyPilot take names: small letters, digits and dashes, a letter first,
    with room for what they append."""
    name = re.sub(r"[^a-z0-9]+", "-", launch.slug.lower()).strip("-")
    if not name[:1].isalpha():
        name = f"run-{name}".rstrip("-")
    return name[:length].rstrip("-")


def by_name(files: Sequence[File]) -> dict[str, File]:
    """The files by a name without folders, as ConfigMaps take them."""
    names: dict[str, File] = {}
    for file in files:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", file.path)
        assert name not in names, name
        names[name] = file
    return names


def time_limit_s(launch: Launch) -> int | None:
    """What the site limits the run to, or the longest that it is predicted to take, or its deadline; None where none is
    known."""
    if launch.site.time_limit_h is None and (run := duration(launch)) is not None:
        return int(run.longest_s)
    hours = launch.site.time_limit_h or launch.plan.goal.deadline_h
    return None if hours is None else max(60, int(hours * 3600))
