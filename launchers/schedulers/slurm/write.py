"""Slurm sbatch script that starts the program once on every node (Slurm 22.05 and newer).

Slurm ignores #SBATCH lines after the first command, so all stand before it. What differs between nodes ($SLURM_NODEID)
is in single quotes, so that it is expanded on the node and not where the script runs.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence

from launchers.devices import is_cpu, network_name
from launchers.launch.duration import SIGNAL_S, duration, restarts
from launchers.launch.heading import scheduler_heading
from launchers.launch.of_plan import Launch
from launchers.pieces import File, Piece, Start
from launchers.schedulers.node import CORES_PER_DEVICE, environment_of, node_cores
from launchers.shell.quoting import AS_WRITTEN, quoted

PATH = "job.sbatch"
# The time limit of a run of which neither an end nor a deadline is known, marked as such in the file.
_HOURS = 24.0
# SageMaker HyperPod's own option of srun (awsome-distributed-training, 3.test_cases/pytorch/FSDP/slurm, 7217859f of
# 2026-02-21): a node that failed is replaced and the step started again.
_HYPERPOD = (
    "# On SageMaker HyperPod a node that fails is replaced, and the step goes on from its last checkpoint.",
    "AUTO_RESUME=()",
    "if [[ -d /opt/sagemaker_cluster ]]; then AUTO_RESUME=(--auto-resume=1); fi",
)


def render(launch: Launch, start: Start, files: Sequence[File] = ()) -> Piece:
    """The script and what a site must fill in: partition, account, environment, memory on shared nodes.

    The replicas of a serving plan are the tasks of a job array, each with a port of its own, as they may share a node.
    The folder is taken to be shared by the nodes, so the set's `files` are where they are.
    """
    site = launch.site
    needs: list[str] = []
    hours, limit = _time_limit(launch)
    run = duration(launch)
    output = "slurm-%A-%a.out" if launch.replicas > 1 else "slurm-%j.out"
    options: list[tuple[str, object]] = [
        ("--job-name", launch.slug),
        ("--nodes", launch.nodes),
        ("--ntasks-per-node", 1),
        *([] if is_cpu(launch) else [("--gres", f"gpu:{launch.node_devices}")]),
        ("--cpus-per-task", node_cores(launch)),
        ("--time", slurm_time(hours)),
        ("--output", output),
        ("--open-mode", "append"),
    ]
    if launch.replicas > 1:
        options.append(("--array", f"0-{launch.replicas - 1}"))
    lines = ["#!/bin/bash", *(f"# {line}" for line in scheduler_heading(launch, f"sbatch {PATH}")), "#"]
    lines += [f"#SBATCH {name}={value}" for name, value in options]
    lines += _requeuing(launch, start)
    if launch.whole_nodes:
        lines += ["#SBATCH --exclusive", "#SBATCH --mem=0"]
    else:
        lines.append("##SBATCH --mem=SET_ME")
        needs.append(f"{PATH}: --mem, the host memory of your share of the node")
    for name, value in (("partition", site.partition), ("account", site.account)):
        if value is None:
            lines.append(f"##SBATCH --{name}=SET_ME")
            needs.append(f"{PATH}: --{name}, if your site asks for it")
        else:
            lines.append(f"#SBATCH --{name}={value}")
    cores = "is all cores of the processors" if is_cpu(launch) else f"assumes {CORES_PER_DEVICE} host cores per device"
    lines += [f"# --time is {limit}. --cpus-per-task {cores}.", ""]
    if run is not None and launch.site.time_limit_h is None:
        needs.append(f"{PATH}: --time, if your partition's limit is shorter: the job goes on from its last checkpoint")
    lines += [AS_WRITTEN, "set -euo pipefail", ""]
    lines += _environment(launch, start, needs)
    if launch.replicas > 1 and start.port is not None:
        lines.append(f"export PORT=$(({start.port} + SLURM_ARRAY_TASK_ID))")
    if launch.nodes > 1:
        lines += [
            'MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p)',
            "MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))",
            "export MASTER_ADDR MASTER_PORT",
        ]
    if _is_resumed(launch, start):
        lines += ["", *_self_requeue(launch), *_put_aside(start), "", *_srun(launch, start, " &"), *_AFTER_A_FAILURE]
    elif _is_for_good(launch, start):
        lines += ["", *_BEFORE_ITS_LIMIT, "", *_srun(launch, start, " &"), *_AFTER_A_SERVER]
    else:
        lines += [*([""] if lines[-1] else []), *_srun(launch, start), ""]
    return Piece((File(PATH, "slurm", "\n".join(lines)),), tuple(needs))


def _is_resumed(launch: Launch, start: Start) -> bool:
    return launch.kind == "training" and start.resumes


def _is_for_good(launch: Launch, start: Start) -> bool:
    """Whether it serves until somebody ends it, which no time limit is."""
    return launch.kind == "inference" and start.port is not None and launch.plan.goal.deadline_h is None


def _requeuing(launch: Launch, start: Start) -> list[str]:
    """A job that would start over is not started again."""
    if _is_resumed(launch, start) or _is_for_good(launch, start):
        return ["#SBATCH --requeue", f"#SBATCH --signal=B:USR1@{SIGNAL_S}"]
    return ["#SBATCH --requeue" if start.resumes else "#SBATCH --no-requeue"]


_BEFORE_ITS_LIMIT = (
    f"# {SIGNAL_S} s before its limit the server goes back into the queue, and starts again where devices are free;",
    "# until then it answers nothing. One that fails by itself stays down.",
    "# shellcheck disable=SC2329  # the trap calls it",
    "again() {",
    '  scontrol requeue "$SLURM_JOB_ID"',
    "  sleep 60",
    "}",
    "trap again USR1",
)
_AFTER_A_SERVER = ("code=0", 'wait "$!" || code=$?', 'exit "$code"', "")
_AFTER_A_FAILURE = (
    "code=0",
    'wait "$!" || code=$?',
    'saved=$(find saves -type f -size +100k -newer "$begun" -print -quit 2>/dev/null || true)',
    'rm -f "$begun"',
    "if ((code)) && [[ -n $saved ]]; then go_on; fi",
    'exit "$code"',
    "",
)


def _self_requeue(launch: Launch) -> list[str]:
    """The trap that puts the job back into its queue; a run that takes many more jobs than predicted hangs."""
    run = duration(launch)
    most = 2 * (run.jobs if run else 5) + restarts(launch)
    return [
        f"# {SIGNAL_S} s before its limit the job goes back into the queue and on from its last checkpoint, as it does",
        "# when it fails after it has saved one (before, it would only fail again).",
        'begun=".begun-$SLURM_JOB_ID"',
        'touch "$begun"',
        "go_on() {",
        f"  if ((${{SLURM_RESTART_COUNT:-0}} >= {most})); then",
        f'    echo "started {most} times: something is wrong" >&2',
        "    exit 1",
        "  fi",
        '  scontrol requeue "$SLURM_JOB_ID"',
        "  sleep 60",
        "}",
        "trap go_on USR1",
    ]


def _put_aside(start: Start) -> list[str]:
    """Checkpoints whose save was cut short are put out of the way of the program, which goes on from the newest."""
    if start.last_saved is None:
        return []
    return [
        "",
        f"# A checkpoint whose save was cut short has no {start.last_saved}; the run would go on from it, and fail.",
        "for folder in saves/*/checkpoint-*; do",
        f"  if [[ -d $folder && ! -e $folder/{start.last_saved} ]]; then",
        '    mv "$folder" "${folder%/*}/cut-$SLURM_JOB_ID-${SLURM_RESTART_COUNT:-0}-${folder##*/}"',
        "  fi",
        "done",
    ]


def _time_limit(launch: Launch) -> tuple[float, str]:
    """The time limit in hours, and where it is from."""
    if launch.site.time_limit_h is not None:
        return launch.site.time_limit_h, "as asked for"
    run = duration(launch)
    if run is not None:
        hours = math.ceil(run.job_s / 600) / 6
        if run.jobs > 1:
            return hours, f"the longest that queues usually have; the run is {run.jobs} such jobs"
        return (
            hours,
            "what the run takes at most: the interval's upper end, a tenth for saving, half an hour to start",
        )
    if launch.plan.goal.deadline_h is not None:
        return launch.plan.goal.deadline_h, "the plan's deadline"
    return _HOURS, f"a default of {_HOURS:g} h; neither an end nor a deadline is known"


def _environment(launch: Launch, start: Start, needs: list[str]) -> list[str]:
    lines = []
    if launch.site.image is None:
        programs = " and ".join(start.programs) or "your program"
        lines += ["# Load your environment here, for example: source /path/to/venv/bin/activate", ""]
        needs.append(f"{PATH}: the line that loads an environment with {programs} on every node")
    lines += [f"export {name}={shlex.quote(value)}" for name, value in environment_of(launch, start).items()]
    return lines


def _srun(launch: Launch, start: Start, end: str = "") -> list[str]:
    """The step that runs the command on every node; in a container where the site has an image (pyxis options)."""
    resumes = _is_resumed(launch, start) and launch.nodes > 1 and network_name(launch).startswith("efa")
    lines = [*_HYPERPOD] if resumes else []
    step = f"srun --nodes={launch.nodes} --ntasks={launch.nodes} --ntasks-per-node=1 "
    step += '"${AUTO_RESUME[@]}" ' if resumes else ""
    lines.append(step + '--cpus-per-task="$SLURM_CPUS_PER_TASK" --kill-on-bad-exit=1 \\')
    if launch.site.image is not None:
        image = quoted([f"--container-image={launch.site.image}"])
        lines.append(f'  {image} --container-mounts="$PWD:$PWD" --container-workdir="$PWD" \\')
    command = f"exec env {start.command}"
    if launch.nodes > 1:
        command = f"export NODE_RANK=$SLURM_NODEID; {command}"
    return [*lines, f"  bash -c {shlex.quote(command)}{end}"]


def slurm_time(hours: float) -> str:
    """Hours as Slurm's D-HH:MM:SS, rounded down to the minute (a limit must not pass a deadline) but at least one."""
    minutes = max(1, math.floor(hours * 60))
    days, minutes = divmod(minutes, 24 * 60)
    return f"{days}-{minutes // 60:02d}:{minutes % 60:02d}:00"
