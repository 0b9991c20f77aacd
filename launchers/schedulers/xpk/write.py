"""xpk 1.16.0 (AI-Hypercomputer): the command that makes a JobSet of TPU slices on a cluster of GKE.

The folder is put into an image over the base image (--script-dir), so that every host has the files.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from estimator.errors import PlanError
from launchers.devices import accelerator_of
from launchers.launch.duration import restarts
from launchers.launch.heading import scheduler_heading
from launchers.launch.of_plan import Launch
from launchers.pieces import File, Piece, Start
from launchers.schedulers.node import container_image, environment_of, plain_name
from launchers.shell.quoting import AS_WRITTEN, quoted
from launchers.tables import table

PATH = "xpk.sh"
# GKE's limit of 63 letters holds for what xpk makes of the name (xpk/parser/workload.py: 40).
_NAME = 39


def render(launch: Launch, start: Start, files: Sequence[File] = ()) -> Piece:
    """The command in a shell file, and what a site must fill in."""
    needs = [
        f"{PATH}: CLUSTER, PROJECT and ZONE, of a cluster that `xpk cluster create` has made",
        "environment: pip install xpk==1.16.0, gcloud and kubectl on the machine that runs it",
    ]
    kind, slices = device_type(launch)
    image = container_image(launch, start, PATH, needs)
    settings = [f"export {name}={shlex.quote(value)}" for name, value in environment_of(launch, start).items()]
    words = [
        *("xpk", "workload", "create"),
        *(f"--workload={plain_name(launch, _NAME)}", f"--device-type={kind}", f"--num-slices={slices}"),
        *(
            f"--max-restarts={restarts(launch) if start.resumes else 0}",
            f"--base-docker-image={image}",
            "--script-dir=.",
        ),
    ]
    site = '--cluster="${CLUSTER:?}" --project="${PROJECT:?}" --zone="${ZONE:?}"'
    command = " && ".join([*settings, f"exec env {start.command}"])
    head = ["#!/bin/sh", *(f"# {line}" for line in scheduler_heading(launch, f"sh {PATH}")), "#", AS_WRITTEN]
    lines = [*head, f"{quoted(words)} \\", f"  {site} \\", f"  --command={shlex.quote(command)}", ""]
    return Piece((File(PATH, "xpk", "\n".join(lines), executable=True),), tuple(needs))


def device_type(launch: Launch) -> tuple[str, int]:
    """xpk's name of a slice, and how many of them. Raises PlanError for slices that there are not."""
    device, kinds = accelerator_of(launch), table("data/devices")["xpk"]
    if device.id not in kinds:
        raise PlanError("cluster.accelerator", f"xpk has no slices of {device.id}", list(kinds))
    row = kinds[device.id]
    chips = launch.devices // launch.replicas
    slices = max(1, -(-chips // device.scaleup_domain))
    if chips % slices:
        raise PlanError("cluster.count", f"{chips} chips do not fill slices of {device.scaleup_domain} evenly")
    if chips // slices not in row.get("chips", [chips // slices]):
        raise PlanError("cluster.count", f"GKE has no slice of {chips // slices} {device.id}", row["chips"])
    return f"{row['prefix']}-{chips // slices * row['cores']}", slices * launch.replicas
