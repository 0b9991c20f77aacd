"""Collectives over the real hierarchy: scale-up domain first, then the network between nodes.

A group of g devices at stride s (the devices between two neighbours of the group) has some members inside one scale-up
domain and spans several domains. Rings move (g - 1)/g of the buffer past the slowest link (Thakur et al. 2005; NCCL);
rails carry the groups of one node side by side, so a group that has m members in a node gets m of its shares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from estimator.job import Job
from estimator.layouts import Layouts
from estimator.stages import Floats


@dataclass(frozen=True)
class Group:
    """A communication group of each candidate: size, members within one domain, bytes/s per device, and latency."""

    size: Floats
    inside: Floats
    bandwidth: Floats
    latency_s: Floats


def group(job: Job, size: np.ndarray, stride: np.ndarray) -> Group:
    """The group of `size` devices whose neighbours are `stride` apart in rank order; arrays of shape (n,)."""
    machine, device = job.machine, job.calibration.device
    accelerator = machine.accelerator
    domain = machine.fast_domain
    if accelerator.topology in ("pcie", "none"):
        domain = machine.per_node
    size = size.astype(np.float64)
    inside = np.clip(domain / stride, 1.0, size)
    total = accelerator.scaleup_bandwidth or accelerator.host_bandwidth
    if accelerator.topology == "mesh":
        # Each pair has its own link, so a group uses the links between its members and no more.
        scaleup = np.minimum(total, accelerator.peer_bandwidth * np.maximum(1.0, inside - 1))
    else:
        scaleup = np.full_like(size, total)
    scaleup = scaleup * device.scaleup
    share = machine.network.bandwidth_per_node / machine.per_node * device.scaleout
    scaleout = share * inside
    crosses = size > inside
    bandwidth = np.where(crosses, np.minimum(np.where(inside > 1, scaleup, np.inf), scaleout), scaleup)
    # A tree over the domains is as deep as their number needs binary digits.
    _, depth = np.frexp(np.maximum(1.0, size / inside - 1.0))
    hops = np.where(crosses, depth * machine.network.latency_s, 0.0)
    return Group(size, inside, bandwidth, hops + device.scaleup_latency_s)


def all_gather(members: Group, total_bytes: Floats) -> Floats:
    """Seconds until each member holds `total_bytes`, of which it had its share. Reduce-scatter takes the same time."""
    moved = total_bytes * (members.size - 1) / members.size
    return np.where(moved > 0, moved / members.bandwidth + members.latency_s, 0.0)


def all_reduce(members: Group, total_bytes: Floats) -> Floats:
    """A reduce-scatter and an all-gather."""
    return 2.0 * all_gather(members, total_bytes)


def all_to_all(members: Group, sent_bytes: Floats) -> Floats:
    """Seconds for each member to spread `sent_bytes` evenly over the group; the part that leaves the domain is slow."""
    return all_gather(members, sent_bytes)


def send(members: Group, message_bytes: Floats) -> Floats:
    """Seconds for one message between neighbours; nothing where the group has one member."""
    lanes = np.where(members.size > members.inside, members.bandwidth / members.inside, members.bandwidth)
    return np.where((members.size > 1) & (message_bytes > 0), message_bytes / lanes + members.latency_s, 0.0)


@dataclass(frozen=True)
class Groups:
    """The groups of each candidate, ranks ordered tp, cp, dp, pp from the inside out (Megatron's default)."""

    tensor: Group
    context: Group
    expert: Group
    data: Group
    shard: Group
    expert_data: Group
    pipeline: Group


def place(job: Job, layouts: Layouts) -> Groups:
    one = np.ones_like(layouts.tp)
    data_stride = layouts.tp
    expert_stride = layouts.etp
    expert_copies = layouts.tp * layouts.cp * layouts.dp // (layouts.ep * layouts.etp)
    return Groups(
        tensor=group(job, layouts.tp, one),
        context=group(job, layouts.cp, layouts.tp),
        expert=group(job, layouts.ep, expert_stride),
        data=group(job, layouts.dp * layouts.cp, data_stride),
        shard=group(job, layouts.shard_group, data_stride),
        expert_data=group(job, np.maximum(1, expert_copies), layouts.ep * layouts.etp),
        pipeline=group(job, layouts.pp, layouts.tp * layouts.cp * layouts.dp),
    )
