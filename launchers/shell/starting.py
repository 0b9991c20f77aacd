"""Commands that start one process per device on a node: torchrun's options, and what they stand in."""

from __future__ import annotations

from launchers.launch.training import TrainingLaunch
from launchers.shell.quoting import MASTER_ADDR, MASTER_PORT, NODE_RANK


def torchrun_options(launch: TrainingLaunch) -> str:
    """Options of torchrun (torch 2.x, static rendezvous), the same on every node."""
    if launch.nodes == 1:
        return f"--standalone --nproc_per_node {launch.node_devices}"
    return (
        f"--nnodes {launch.nodes} --nproc_per_node {launch.node_devices} --node_rank {NODE_RANK} "
        f"--master_addr {MASTER_ADDR} --master_port {MASTER_PORT}"
    )


# The node's number in a script of ours: what the scheduler sets, or Slurm's own where it is run by srun itself.
RANK_HERE = '"${NODE_RANK:-${SLURM_NODEID:?set NODE_RANK to the number of this node}}"'


def torchrun_in_script(launch: TrainingLaunch) -> str:
    """torchrun_options for a Bash script that the user may also start himself."""
    return torchrun_options(launch).replace(NODE_RANK, RANK_HERE)


def script_command(launch: TrainingLaunch, path: str) -> str:
    """The start of such a script on a node."""
    return f"{in_environment(launch)}bash {path}"


def in_environment(launch: TrainingLaunch) -> str:
    """What differs between nodes as settings before a command that takes it from the environment; '' for one node."""
    if launch.nodes == 1:
        return ""
    return f"NODE_RANK={NODE_RANK} MASTER_ADDR={MASTER_ADDR} MASTER_PORT={MASTER_PORT} "
