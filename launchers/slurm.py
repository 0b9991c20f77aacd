"""Slurm sbatch script that starts llamafactory-cli once per node, which starts torchrun there (Slurm 22.05 and newer).

Slurm ignores #SBATCH lines after the first command, so all stand before it. What differs between nodes ($SLURM_NODEID)
is in single quotes, so that it is expanded on the node and not where the script runs.
"""

from __future__ import annotations

import math

from launchers import File, Piece
from launchers.job import Job, heading
from launchers.llamafactory import PATH as CONFIG

PATH = "job.sbatch"
# Site defaults, marked as such in the file: host cores per device for the data loaders, and the time limit of a plan
# without a deadline.
_CORES_PER_DEVICE = 8
_HOURS = 24.0

_BODY = """\
set -euo pipefail

# Load your environment here, for example: source /path/to/venv/bin/activate

MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p)
MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
export MASTER_ADDR MASTER_PORT
export FORCE_TORCHRUN=1 NNODES={nodes} NPROC_PER_NODE={devices}

srun --ntasks={nodes} --ntasks-per-node=1 --cpus-per-task="$SLURM_CPUS_PER_TASK" --kill-on-bad-exit=1 \\
  bash -c 'NODE_RANK=$SLURM_NODEID exec llamafactory-cli train {config}'
"""


def render(job: Job) -> Piece:
    """The script and what a site must fill in: partition, account, environment, memory on shared nodes."""
    deadline_h = job.plan.goal.deadline_h
    hours = _HOURS if deadline_h is None else deadline_h
    options = [
        ("--job-name", job.slug),
        ("--nodes", job.nodes),
        ("--ntasks-per-node", 1),
        ("--gres", f"gpu:{job.node_devices}"),
        ("--cpus-per-task", job.node_devices * _CORES_PER_DEVICE),
        ("--time", slurm_time(hours)),
        ("--output", "slurm-%j.out"),
        ("--open-mode", "append"),
    ]
    lines = ["#!/bin/bash", *(f"# {line}" for line in heading(job)), f"# run, from this folder: sbatch {PATH}", "#"]
    lines += [f"#SBATCH {name}={value}" for name, value in options]
    lines.append("#SBATCH --requeue")
    needs = [
        f"{PATH}: --partition and --account, if your site asks for them",
        f"{PATH}: the line that loads an environment with llamafactory on every node",
    ]
    if job.whole_nodes:
        lines += ["#SBATCH --exclusive", "#SBATCH --mem=0"]
    else:
        lines.append("##SBATCH --mem=SET_ME")
        needs.append(f"{PATH}: --mem, the host memory of your share of the node")
    lines += ["##SBATCH --partition=SET_ME", "##SBATCH --account=SET_ME"]
    limit = "the plan's deadline" if deadline_h is not None else f"a default of {_HOURS:g} h; the plan sets no deadline"
    lines += [f"# --time is {limit}. --cpus-per-task assumes {_CORES_PER_DEVICE} host cores per device.", ""]
    body = _BODY.format(nodes=job.nodes, devices=job.node_devices, config=CONFIG)
    return Piece(File(PATH, "slurm", "\n".join(lines) + "\n" + body), f"sbatch {PATH}", tuple(needs))


def slurm_time(hours: float) -> str:
    """Hours as Slurm's D-HH:MM:SS, rounded down to the minute (a limit must not pass a deadline) but at least one."""
    minutes = max(1, math.floor(hours * 60))
    days, minutes = divmod(minutes, 24 * 60)
    return f"{days}-{minutes // 60:02d}:{minutes % 60:02d}:00"
