"""Collectives over the real hierarchy: scale-up domain first, then the network between nodes.

A group of g devices at stride s (the devices between two neighbours of the group) has some members inside one scale-up
domain and spans several domains. Every collective takes

    latency + moved + 2 sqrt(moved x chunk)

seconds, where `moved` is what passes the slowest link over its bandwidth. The last term is what a pipeline of chunks
costs when the number of chunks is the best one (Sanders, Speck and Traff 2009, section 2): it is the ramp of bandwidth
with message size. Steps and hops are those of NCCL's own model (src/graph/tuning.cc): a ring has g - 1 steps, n - 1 of
them between its n domains; a tree has twice the chain inside a domain and the binary tree over domains. A library takes
the faster one, and so do the estimates.

Rails carry the groups of one node side by side, so a group that has m members in a node gets m shares of its network.
All arrays have shape (n,), one entry a candidate; a factor may be such an array too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from estimator.machine.hardware import Machine
from estimator.machine.links import KernelLimits, NetworkFactors
from estimator.plan.layouts import Layouts
from estimator.plan.training.job import Job
from estimator.plan.training.stages import Floats


class Path(NamedTuple):
    """One algorithm on one group: seconds to start, seconds per byte of the buffer, and four chunks' seconds."""

    latency_s: Floats
    s_per_byte: Floats
    chunk_s: Floats | float

    def seconds(self, size_bytes: Floats) -> Floats:
        moved = self.s_per_byte * size_bytes
        return self.latency_s + moved + np.sqrt(moved * self.chunk_s)


@dataclass(frozen=True, eq=False)
class Group:
    """A communication group of each candidate; a group of one member takes no time.

    It has `size` members `stride` devices apart, on links whose bandwidths are multiplied by `scaleup` and `scaleout`.
    Everything else is found on first use: many groups have no member or nothing to send.
    """

    machine: Machine
    factors: NetworkFactors
    size: Floats
    stride: np.ndarray
    scaleup: Floats | float
    scaleout: Floats | float

    @cached_property
    def idle(self) -> bool:
        """Whether no candidate has two members."""
        return float(self.size.max(initial=1.0)) <= 1.0

    @cached_property
    def many(self) -> Floats:
        """1 where the group has two members or more, else 0."""
        return (self.size > 1.0).astype(np.float64)

    @cached_property
    def inside(self) -> Floats:
        """Members within one scale-up domain. Groups lie one behind another: where a node is no whole number of them,
        one in between lies in two, with no more together than divide both. Of a rack a job takes the nodes that suit
        it."""
        domain = _domain(self.machine)
        inside = np.minimum(np.maximum(domain / self.stride, 1.0), self.size)
        if self.machine.count <= domain or domain > self.machine.per_node:
            return inside
        block = np.minimum(self.size * self.stride, domain).astype(np.int64)
        split = np.flatnonzero((domain % np.maximum(np.arange(domain + 1), 1) != 0)[block])
        if not len(split):
            return inside
        room = np.maximum(domain // self.stride[split], 1).astype(np.int64)
        inside[split] = np.gcd(self.size[split].astype(np.int64), room)
        return inside

    @cached_property
    def domains(self) -> Floats:
        return self.size / self.inside

    @cached_property
    def crosses(self) -> np.ndarray:
        """Where the group leaves a domain."""
        return self.size > self.inside

    @cached_property
    def spans(self) -> bool:
        """Whether any group of a candidate leaves a domain."""
        return self.machine.count > _domain(self.machine) and bool(self.crosses.any())

    @cached_property
    def links(self) -> tuple[Floats | float, Floats | float]:
        """Bytes/s of one device to all members inside its domain, and to one neighbour, one way."""
        full, peer = _links(self.machine, self.factors.host, self.size, self.inside, self.stride)
        return full * self.scaleup, peer * self.scaleup

    @property
    def up(self) -> Floats | float:
        return self.links[0]

    @property
    def peer(self) -> Floats | float:
        return self.links[1]

    @cached_property
    def out(self) -> Floats | float:
        """Bytes/s of one device's share of the network, one way."""
        machine = self.machine
        return self.scaleout * (self.factors.out * machine.network.bandwidth_per_node / machine.per_node)

    @cached_property
    def ring_s(self) -> Floats:
        """Seconds per byte round a ring."""
        within = (self.inside > 1.0) / (self.up * self.factors.ring)
        return np.maximum(within, self.crosses / (self.out * self.inside)) if self.spans else within

    @cached_property
    def chunk_s(self) -> Floats | float:
        """Four chunks' seconds."""
        within = 4.0 * self.factors.chunk_s
        if not self.spans:
            return within
        return within + self.crosses * (4.0 * self.factors.out_chunk * self.machine.network.latency_s)

    @cached_property
    def start_s(self) -> Floats:
        """Seconds that anything takes to start."""
        return self.factors.base_s * self.many

    @cached_property
    def gather(self) -> Path:
        """A ring that carries the buffer once, of which the own share is copied."""
        per_byte = self.ring_s * (self.size + (self.factors.own - 1.0)) / self.size
        latency = self.start_s + self.factors.step_s * self._steps()
        if self.spans:
            # One member a domain lets NCCL gather by parallel trees (PAT, since 2.23): as many hops as they are deep.
            hops = np.where(self.inside > 1.0, self.domains - 1.0, _doublings(self.domains))
            latency = latency + self.machine.network.latency_s * hops
        return Path(latency, per_byte, self.chunk_s)

    @cached_property
    def ring(self) -> Path:
        """A ring that carries the buffer twice: to add it up, and to spread the sum."""
        per_byte = self.ring_s * (2.0 * self.size + (self.factors.own - 2.0)) / self.size
        latency = self.start_s + (2.0 * self.factors.step_s) * self._steps()
        if self.spans:
            latency = latency + (2.0 * self.machine.network.latency_s) * (self.domains - 1.0)
        return Path(latency, per_byte, self.chunk_s)

    @cached_property
    def tree(self) -> Path | None:
        """All-reduce by a double binary tree over domains, inside by chains or by the switch; None where a chain would
        be all of it, which is no better than the ring.

        Each domain sends its bytes up and others' down: once where there are two domains, twice where there are more.
        A chain moves the buffer up and down; a switch reads it from all members and writes the sum to all, (g + 1)/g
        times, twice where a domain has a parent and children (NCCL's NVLSTree).
        """
        f, inside = self.factors, self.inside
        if not (f.adds_in_switch or self.spans):
            return None
        times = np.where(self.domains > 2.0, 2.0, 1.0) if self.spans else 1.0
        if f.adds_in_switch:
            wide = np.where(inside > self.machine.per_node, f.switch_wide, 1.0)
            within = times * (1.0 + 1.0 / inside) / (self.up * f.switch * wide)
        else:
            within = 2.0 / (self.up * f.ring)
        within = np.where(inside > 1.0, within, 0.0)
        if not self.spans:
            return Path(f.switch_s * self.many, within, self.chunk_s)
        hops = self.machine.network.latency_s * _doublings(self.domains)
        latency = self.start_s + 2.0 * (f.step_s * (inside - 1.0) + hops)
        per_byte = np.maximum(within, self.crosses * times / (self.out * inside))
        if f.adds_in_switch:
            return Path(np.where(self.crosses, latency, f.switch_s * self.many), per_byte, self.chunk_s)
        latency = np.where(self.crosses, latency, self.ring.latency_s)
        return Path(latency, np.where(self.crosses, per_byte, self.ring.s_per_byte), self.chunk_s)

    @cached_property
    def near(self) -> Path:
        """All-to-all's part inside the domain. Every peer is reached at once, so that the start grows with the
        doublings of the group only."""
        f = self.factors
        latency = self.start_s + f.step_s * (self.many + _doublings(self.size))
        if self.spans:
            latency = latency + self.machine.network.latency_s * self.crosses
        moved = (self.inside + (f.own - 1.0)) * self.many / self.size
        return Path(latency, moved / (self.up * f.spread), self.chunk_s)

    @cached_property
    def away(self) -> Floats:
        """Seconds per byte of all-to-all's part that leaves the domain, over the network of its own device."""
        return (self.size - self.inside) / self.size / self.out

    @cached_property
    def dispatched(self) -> Floats:
        """The same where kernels of the devices themselves drive the network."""
        machine = self.machine
        link = _DISPATCHED * machine.network.bandwidth_per_node / machine.per_node
        return (self.size - self.inside) / self.size / link

    @cached_property
    def pair(self) -> Path:
        """One message between neighbours, the farthest ones deciding."""
        per_byte = self.many / (self.peer * self.factors.pair)
        if not self.spans:
            return Path(self.start_s, per_byte, self.chunk_s)
        latency = self.start_s + self.machine.network.latency_s * self.crosses
        return Path(latency, np.where(self.crosses, 1.0 / self.out, per_byte), self.chunk_s)

    @cached_property
    def one_shot(self) -> Path:
        """Every member reads all of every peer's buffer."""
        f, peers = self.factors, self.size - 1.0
        latency = (f.direct_s + f.direct_peer_s * peers) * self.many
        return Path(latency, peers / (self.up * f.direct), np.zeros_like(peers))

    @cached_property
    def two_shot(self) -> Path:
        """Every member reads its share of the peers' buffers, and then the sums."""
        latency = self.one_shot.latency_s + self.factors.direct_sync_s * (self.size - 1.0)
        return Path(latency, self.one_shot.s_per_byte * (2.0 / self.size), self.one_shot.chunk_s)

    @cached_property
    def in_switch(self) -> Path:
        """Every member lets the switch add its share of all buffers, and spread the sums (multimem instructions)."""
        f = self.factors
        per_byte = self.many * (1.0 + 1.0 / self.size) / (self.up * f.direct_switch)
        return Path(f.direct_switch_s * self.many, per_byte, np.zeros_like(per_byte))

    @cached_property
    def direct(self) -> np.ndarray:
        """Where all members reach each other's memory at the full speed of their links."""
        joined = self.machine.accelerator.topology not in ("pcie", "none")
        return ~self.crosses & ((self.size <= 2.0) | joined)

    def _steps(self) -> Floats:
        """Of a ring, inside domains."""
        steps = self.size - self.domains if self.spans else self.size - 1.0
        if self.machine.accelerator.topology == "torus":
            # A ring along each of two axes, one after the other.
            steps = 2.0 * (np.sqrt(steps + 1.0) - 1.0)
        return steps


def group(job: Job, size: np.ndarray, stride: np.ndarray) -> Group:
    """The group of `size` devices whose neighbours are `stride` apart in rank order; arrays of shape (n,)."""
    device = job.calibration.device
    return connect(job.machine, device.network, size, stride, device.scaleup, device.scaleout)


def connect(
    machine: Machine,
    factors: NetworkFactors,
    size: np.ndarray,
    stride: np.ndarray,
    scaleup: Floats | float = 1.0,
    scaleout: Floats | float = 1.0,
) -> Group:
    """The group of `size` devices `stride` apart on `machine`; `scaleup` and `scaleout` multiply bandwidths."""
    return Group(machine, factors, size.astype(np.float64), stride, scaleup, scaleout)


def _domain(machine: Machine) -> int:
    """Devices that reach each other without the network."""
    return machine.per_node if machine.accelerator.topology in ("pcie", "none") else machine.fast_domain


def _links(
    machine: Machine, through_host: float, size: Floats, inside: Floats, stride: np.ndarray
) -> tuple[Floats | float, Floats | float]:
    """(bytes/s that one device has to the members inside its domain, bytes/s to one neighbour), one way."""
    accelerator = machine.accelerator
    total = accelerator.scaleup_bandwidth or accelerator.host_bandwidth
    link = min(accelerator.peer_bandwidth or total, total)
    full: Floats | float = total
    peer: Floats | float = link if accelerator.topology in ("mesh", "torus") else total
    if accelerator.topology == "mesh":
        # Each pair has its own links, so a group uses those between its members and no more.
        full = np.minimum(total, link * np.maximum(1.0, inside - 1.0))
    elif accelerator.topology == "torus":
        # Two links an axis; a group of up to 4 lies along one axis, of up to 16 along two.
        full = np.minimum(total, 2.0 * link * np.maximum(1.0, np.ceil(_doublings(size) / 2.0)))
    if accelerator.topology in ("switch", "mesh") and accelerator.scaleup_domain < machine.per_node:
        # Devices joined by bridges reach the others of their node through the host's PCIe.
        host = min(through_host * (accelerator.host_bandwidth or total), total)
        bridged = inside * stride <= accelerator.scaleup_domain
        full, peer = np.where(bridged, full, host), np.where(bridged, peer, host)
    return full, peer


def _doublings(count: Floats) -> Floats:
    """How often 1 must be doubled to reach `count`: the logarithm to base 2, rounded up."""
    _, exponent = np.frexp(np.maximum(count - 1.0, 0.5))
    return exponent.astype(np.float64)


def _taken(path: Path, size_bytes: Floats) -> Floats:
    """Seconds of an algorithm; nothing where there is nothing to move."""
    return np.where(size_bytes > 0, path.seconds(size_bytes), 0.0)


def all_gather(members: Group, total_bytes: Floats) -> Floats:
    """Seconds until each member holds `total_bytes`, of which it had its share. Reduce-scatter takes the same time."""
    return np.zeros_like(members.size) if members.idle else _taken(members.gather, total_bytes)


def reduce_scatter(members: Group, total_bytes: Floats) -> Floats:
    """Seconds until each member holds the sum of its share of `total_bytes`."""
    return all_gather(members, total_bytes)


def all_reduce(members: Group, total_bytes: Floats) -> Floats:
    """Seconds until each member holds the sum of all `total_bytes`: by a ring, a tree or the switch."""
    if members.idle:
        return np.zeros_like(members.size)
    seconds = members.ring.seconds(total_bytes)
    if members.tree is not None:
        seconds = np.minimum(seconds, members.tree.seconds(total_bytes))
    return np.where(total_bytes > 0, seconds, 0.0)


def algorithm(members: Group, size_bytes: Floats, what: str) -> str:
    """How a library does a collective of one candidate: what all-reduce is fastest by, and what the others are."""
    if not what.startswith("all-reduce"):
        kinds = {"all-to-all": "direct to every member", "send": "point to point", "ring": "point to point"}
        return next((how for name, how in kinds.items() if what.startswith(name)), "ring")
    if members.tree is None or float(members.ring.seconds(size_bytes)[0]) <= float(members.tree.seconds(size_bytes)[0]):
        return "ring"
    return "switch" if members.factors.adds_in_switch and not members.spans else "tree"


# Part of a network that kernels reach which drive it themselves: tokens of 14 KiB leave eight H100 at 43 of 50 GB/s
# (DeepEP and HybridEP, 85 GB/s with what stays in the node; NVIDIA-NeMo/Automodel,
# docs/deepep_vs_hybridep_benchmark.md@18007663, 2026-07-22), and H800 at 43 to 45 over 4 and 8 nodes (DeepEP,
# README).
_DISPATCHED = 0.87
# Seconds that a copy of a token takes there besides its bytes, inside a domain and to another: tokens of 2 and 4 KiB
# reach 272 and 325 GB/s for 367, and 61 and 72 for 86 (HybridEP, the same), 210 and 302 for 323 and 335, and 36 and 59
# for 80 and 85 (DeepEP).
COPIES_S = {"hybridep": (1.6e-9, 9.0e-9), "deepep": (2.4e-9, 2.6e-8)}


def dispatch(members: Group, rows: Floats, row_bytes: float, copies: float, kernels: str, reach: float = 1.0) -> Floats:
    """Seconds for each member to send `rows` of so many bytes, each to `copies` random members of a part of all.

    A row goes once to each domain and is spread there, and once to each member however many of its experts are there.
    `kernels` are DeepEP's or HybridEP's; `reach` is the part of the group that routing lets a row's members be in.
    """
    if members.idle:
        return np.zeros_like(members.size)
    path, (near_s, away_s) = members.near, COPIES_S[kernels]
    # Timed alone: what whole steps cost collectives of a library is no part of them.
    per_byte = members.domains * path.s_per_byte * members.scaleup
    per_row = _distinct(reach * members.size, copies) * (per_byte * row_bytes + near_s)
    if members.spans:
        away = _distinct(reach * members.domains, copies) * members.crosses
        per_row = np.maximum(per_row, away * (members.dispatched * row_bytes + away_s))
    return _taken(Path(path.latency_s, per_row, 0.0), rows)


def _distinct(places: Floats, draws: float) -> Floats:
    """How many of so many places some of the draws fall into, on average."""
    places = np.maximum(1.0, places)
    return places * (1.0 - (1.0 - 1.0 / places) ** draws)


def all_to_all(members: Group, sent_bytes: Floats, node_copies: Floats | float = 1.0) -> Floats:
    """Seconds for each member to spread `sent_bytes` evenly over the group, its own share included.

    What stays in the domain and what leaves it move side by side. `node_copies` is the part of what leaves that has to
    cross the network (`copies_by_node`), 1 for plain all-to-all.
    """
    if members.idle:
        return np.zeros_like(members.size)
    path = members.near
    if members.spans:
        slower = np.maximum(path.s_per_byte, members.away * node_copies)
        path = Path(path.latency_s, slower, path.chunk_s)
    return _taken(path, sent_bytes)


def copies_by_node(members: Group, copies: float, most: float | None = None) -> Floats:
    """Domains reached by a row that goes to `copies` random members, per copy: the part of an all-to-all's traffic that
    is left when a row crosses to a domain once (DeepEP). Routing may limit the domains of a row to `most`."""
    reached = members.domains * (1.0 - (1.0 - 1.0 / members.domains) ** copies)
    return np.minimum(reached, copies if most is None else most) / copies


def send(members: Group, message_bytes: Floats) -> Floats:
    """Seconds for one message between neighbours; nothing where the group has one member."""
    return np.zeros_like(members.size) if members.idle else _taken(members.pair, message_bytes)


def one_shot_all_reduce(members: Group, total_bytes: Floats, limits: KernelLimits | None = None) -> Floats:
    """All-reduce by the kernels of serving engines, which read peers' memory (vLLM custom_all_reduce, TensorRT-LLM), or
    let the switch add (PyTorch's symmetric memory, as vLLM uses it).

    In one phase every member reads all of every peer's buffer, in two phases its share and then the sums. `limits` say
    up to which sizes an engine uses them; beyond, where the library is faster, and over PCIe but for pairs, it is the
    library's all-reduce. `total_bytes` has the shape of the group, or ends in it.
    """
    library, size = all_reduce(members, total_bytes), members.size
    once, twice = members.one_shot.seconds(total_bytes), members.two_shot.seconds(total_bytes)
    if limits is None or not limits.one_shot:
        kernel = np.minimum(once, twice)
    else:
        kernel = np.where(total_bytes < _limit(limits.one_shot, size), once, twice)
    if limits is not None:
        beyond = library
        if limits.switch and members.factors.adds_in_switch:
            switched, switch = total_bytes < _limit(limits.switch, size), members.in_switch.seconds(total_bytes)
            beyond = np.where(switched, switch, library)
            # Limits stand where the switch becomes the faster one: below, the engine's kernel takes no longer.
            kernel = np.where(switched, np.minimum(kernel, switch), kernel)
        kernel = np.where(total_bytes < _limit(limits.direct, size), kernel, beyond)
    return np.where(members.direct & (total_bytes > 0), np.minimum(kernel, library), library)


def _limit(limits: tuple[tuple[int, float], ...], size: Floats) -> Floats:
    """Bytes that are listed for groups of `size`; 0 for other sizes."""
    most = _by_size(limits)
    return most[np.minimum(size, len(most) - 1).astype(np.intp)]


@lru_cache
def _by_size(limits: tuple[tuple[int, float], ...]) -> Floats:
    """The same listed bytes by size of group, one size more than any listed."""
    most = np.zeros(max((devices for devices, _ in limits), default=0) + 2)
    for devices, size_bytes in limits:
        most[devices] = size_bytes
    return most


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
    ones = np.ones_like(layouts.tp)
    experts = layouts.ep * layouts.etp
    replicas = layouts.tp * layouts.cp * layouts.dp

    def of(size: np.ndarray, stride: np.ndarray) -> Group:
        return group(job, size, stride)

    return Groups(
        tensor=of(layouts.tp, ones),
        context=of(layouts.cp, layouts.tp),
        expert=of(layouts.ep, layouts.etp),
        data=of(layouts.dp * layouts.cp, layouts.tp),
        shard=of(layouts.shard_group, layouts.tp),
        expert_data=of(np.maximum(1, replicas // experts), experts),
        pipeline=of(layouts.pp, replicas),
    )
