"""Commands that start one process per device on a node: torchrun's options, and accelerate's launcher."""

from __future__ import annotations

from launchers.job import Job
from launchers.shell.quoting import MASTER_ADDR, MASTER_PORT, NODE_RANK, quoted


def torchrun_options(job: Job) -> str:
    """Options of torchrun (torch 2.x, static rendezvous), the same on every node."""
    if job.nodes == 1:
        return f"--standalone --nproc_per_node {job.node_devices}"
    return (
        f"--nnodes {job.nodes} --nproc_per_node {job.node_devices} --node_rank {NODE_RANK} "
        f"--master_addr {MASTER_ADDR} --master_port {MASTER_PORT}"
    )


def accelerate_launch(job: Job, *words: str) -> str:
    """`accelerate launch` of a script or of `-m module`, with the file of the accelerate target."""
    from launchers.accelerate.write import PATH

    rank = ""
    if job.nodes > 1:
        rank = f" --machine_rank {NODE_RANK} --main_process_ip {MASTER_ADDR} --main_process_port {MASTER_PORT}"
    return f"accelerate launch --config_file {PATH}{rank} {quoted(words)}"


# The node's number in a script of ours: what the scheduler sets, or Slurm's own where it is run by srun itself.
_RANK_HERE = '"${NODE_RANK:-${SLURM_NODEID:?set NODE_RANK to the number of this node}}"'


def torchrun_in_script(job: Job) -> str:
    """torchrun_options for a Bash script that the user may also start himself."""
    return torchrun_options(job).replace(NODE_RANK, _RANK_HERE)


def script_command(job: Job, path: str) -> str:
    """The start of such a script on a node."""
    return f"{in_environment(job)}bash {path}"


def in_environment(job: Job) -> str:
    """What differs between nodes as settings before a command that takes it from the environment; '' for one node."""
    if job.nodes == 1:
        return ""
    return f"NODE_RANK={NODE_RANK} MASTER_ADDR={MASTER_ADDR} MASTER_PORT={MASTER_PORT} "
