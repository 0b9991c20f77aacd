"""Devices, nodes and networks as plain numbers in SI units; `knowledge` makes them from its tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Topology = Literal["switch", "mesh", "torus", "pcie", "none"]


@dataclass(frozen=True)
class Accelerator:
    """One device as a framework sees it.

    `peak_flops` holds dense matrix rates in FLOP/s by precision (only those that the device has). Bandwidths are
    bytes/s in one direction; `scaleup_bandwidth` is all links of the device together, `peer_bandwidth` what one pair
    of devices gets (equal to it behind a switch). `usable_bytes` is what the driver says there is, `torch_bytes` what a
    training process can allocate of it, where somebody printed that; else they are equal.
    """

    id: str
    name: str
    vendor: str
    family: str
    memory_bytes: float
    usable_bytes: float
    torch_bytes: float
    memory_bandwidth: float
    peak_flops: dict[str, float]
    vector_flops: float
    scaleup_link: str
    scaleup_bandwidth: float
    peer_bandwidth: float
    scaleup_domain: int
    topology: Topology
    per_node: int
    host_bandwidth: float
    tdp_w: float | None
    cores: int | None = None
    clock_hz: float | None = None
    form_factor: str = ""
    year: int | None = None
    source: str = ""
    notes: str = ""
    like: str = ""
    """The accelerator whose timings of single operators stand for its own; its own where empty."""
    memory_type: str = ""
    announced: bool = False
    """Whether its figures are from before release."""
    host_slowness: float = 1.0
    """How much longer its usual host takes for launches than a server's x86 processor."""

    @property
    def timed_as(self) -> str:
        return self.like or self.id

    @property
    def personal(self) -> bool:
        """Whether it is usually one person's: a laptop, a small machine with one chip, a card for games."""
        return self.form_factor == "SoC" or self.name.startswith(_PERSONAL)


# Makers' lines of products that are no servers and no workstations.
_PERSONAL = ("GeForce", "Radeon RX", "Arc A", "Arc B", "Core i")


@dataclass(frozen=True)
class Network:
    """The network between nodes: bytes/s one way per node over all its ports, and the one-way latency of a message."""

    name: str
    bandwidth_per_node: float
    latency_s: float
    source: str = ""


@dataclass(frozen=True)
class Machine:
    """`count` accelerators in nodes of `per_node`, joined by `network` (None when there is one node)."""

    accelerator: Accelerator
    count: int
    per_node: int
    network: Network

    @property
    def nodes(self) -> int:
        return -(-self.count // self.per_node)

    @property
    def fast_domain(self) -> int:
        """Devices that reach each other without the network between nodes: a node, or more where links leave it."""
        if self.accelerator.scaleup_domain <= self.accelerator.per_node:
            return self.per_node
        return max(self.per_node, min(self.accelerator.scaleup_domain, self.count))


@dataclass(frozen=True)
class Price:
    """A rentable (or owned) machine. `usd_per_hour` is for the whole instance of `count` accelerators, on demand."""

    provider: str
    instance: str
    accelerator: str
    count: int
    usd_per_hour: float | None
    spot_usd_per_hour: float | None
    price_date: str | None
    region: str | None = None
    capex_usd: float | None = None
    power_kw: float | None = None
    network: str = ""
    network_bandwidth_per_node: float | None = None
    max_devices: int | None = None
    """The largest cluster that the provider states."""
    vcpus: int | None = None
    ram_bytes: float | None = None
    source: str = ""
    sources: dict[str, str] = field(default_factory=dict)
    """Of kinds of price (`knowledge.prices.kinds`) that are from elsewhere than `source`."""
    notes: str = ""
    extra: dict[str, str] = field(default_factory=dict)
    spot_price_date: str | None = None
    """Where it is not `price_date`; empty where the spot price is undated."""
    reserved_usd_per_hour: float | None = None
    reserved_term: str | None = None
    reserved_price_date: str | None = None
    reserved_most: int | None = None
    """Instances that are reserved together at the most, where the provider states it, and for how long."""
    reserved_least_h: float | None = None
    """The shortest term, which is paid for as a whole, where the provider states it."""
    reserved_most_h: float | None = None
    long_usd_per_hour: float | None = None
    """Reserved for three years."""
    long_price_date: str | None = None
    flex_usd_per_hour: float | None = None
    """Queued until capacity is free, for `flex_most_h` hours at the most."""
    flex_price_date: str | None = None
    flex_most_h: float | None = None
    seller: str = ""
    """Whose machine it is: hyperscaler, cloud, marketplace or community; of those for sale second-hand or ''."""
    capex_of: str = ""
    """What `capex_usd` buys: the whole machine, or its accelerators alone."""
