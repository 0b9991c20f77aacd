"""Shell scripts of engines: serve.sh starts one node's part of a replica, on the port that PORT names."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from knowledge.engines import engine as engine_of
from launchers.devices import accelerator_of
from launchers.launch.heading import heading
from launchers.launch.serving import ServingLaunch
from launchers.pieces import File, Start
from launchers.shell.quoting import ENGINE_PORT, MASTER_ADDR, MASTER_PORT, NODE_RANK, quoted
from launchers.tables import table

PATH = "serve.sh"
PORT, HOST = '"$PORT"', '"$HOST"'
# Engines that claim a share of the whole device.
_CLAIM = ("vllm", "sglang")
_MEETING = ("NODE_RANK", "MASTER_ADDR", "MASTER_PORT")


class Verbatim(str):
    """A word that the script's shell expands; all others are quoted."""

    __slots__ = ()


def options(values: Mapping[str, object]) -> list[str]:
    """Command-line options: a name alone for True, none for None and False."""
    stated = {name: value for name, value in values.items() if value is not None and value is not False}
    return [name if value is True else f"{name} {_word(value)}" for name, value in stated.items()]


def _word(value: object) -> str:
    if isinstance(value, Verbatim):
        return value
    if isinstance(value, Sequence) and not isinstance(value, str):
        return quoted(value)
    return shlex.quote(str(value))


def command(program: str, parts: Iterable[str], indent: str = "") -> list[str]:
    """`program` with its parts, one a line."""
    return f" \\\n{indent}  ".join([f"{indent}{program}", *parts]).split("\n")


def serve_file(launch: ServingLaunch, target: str, body: Sequence[str], prepare: Sequence[str] = ()) -> File:
    """serve.sh: `body` runs with PORT set, and on several nodes with what tells them apart."""
    lines = ["#!/bin/sh", *(f"# {line}" for line in heading(launch, start_command(launch)))]
    key = _key(target)
    guard = f"; {key} is the key that requests must then bring" if key else ""
    lines.append(f"# Only this machine can reach it; HOST=0.0.0.0 lets others in{guard}.")
    lines += ["", "set -eu", *prepare, f': "${{PORT:={ENGINE_PORT}}}" "${{HOST:=127.0.0.1}}"']
    if launch.nodes > 1:
        lines += [f': "${{{name}:?set it on every node}}"' for name in _MEETING]
    return File(PATH, target, "\n".join([*lines, *body, ""]), executable=True)


def start_command(launch: ServingLaunch) -> str:
    """The command of one node; what differs between nodes goes in by name."""
    if launch.nodes == 1:
        return f"sh {PATH}"
    return f"NODE_RANK={NODE_RANK} MASTER_ADDR={MASTER_ADDR} MASTER_PORT={MASTER_PORT} sh {PATH}"


def start(launch: ServingLaunch, engine: str) -> Start:
    """How a scheduler starts the engine: its program and, on NVIDIA's devices, its official image."""
    words = table(f"engines/{engine}/fields")
    image = words["image"] if _is_nvidia(launch) else None
    command = start_command(launch)
    return Start(command, programs=(words["program"],), image=image, port=ENGINE_PORT, key_variable=_key(engine))


def _key(engine: str) -> str | None:
    """The variable from which the engine takes the key that requests must bring; None where there is none."""
    return table(f"engines/{engine}/fields").get("key_variable")


def notes(launch: ServingLaunch, engine: str) -> list[str]:
    """What the user must know beside the files: another version than the files are for, and replicas to start."""
    words = table(f"engines/{engine}/fields")
    program, version, wanted = words["program"], words["version"], launch.serving.software_version
    remarks = []
    if wanted is not None and wanted.lstrip("v").split(".")[:2] != version.split(".")[:2]:
        remarks.append(f"{PATH}: the options are those of {program} {version}; the plan says {wanted}")
    reserve = launch.plan.overrides.reserve_gib
    if reserve and engine not in _CLAIM:
        remarks.append(f"{program} has no option that keeps {reserve:g} GiB of a device free")
    if launch.replicas > 1 and not launch.scheduler_command:
        remarks.append(
            f"start {launch.replicas} replicas, each with {launch.replica_devices} devices of its own and, where they "
            "share a node, a PORT of its own"
        )
    return remarks


def claimed_share(launch: ServingLaunch, engine: str) -> float:
    """The part of a device that the engine may claim: the plan's or the engine's own, less what is to stay free."""
    share, reserve = launch.serving.memory_share or engine_of(engine).memory_share, launch.plan.overrides.reserve_gib
    if not reserve:
        return share
    usable = launch.plan.overrides.usable_gib or accelerator_of(launch).usable_bytes / 2**30
    return max(0.01, round(share * (1 - reserve / usable), 4))


def _is_nvidia(launch: ServingLaunch) -> bool:
    return launch.plan.cluster.accelerator is not None and accelerator_of(launch).vendor == "NVIDIA"
