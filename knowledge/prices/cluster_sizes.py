"""How large a cluster of an offer can be, as far as it is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from estimator.machine.hardware import Price
from knowledge.figures import whole
from knowledge.machines.catalogue import find_accelerator

# AWS sells blocks of up to 64 instances, Lambda clusters of up to 64 nodes (prices.csv, instances.csv): the most that
# anybody sells of nodes without being asked.
NODES_UNASKED = 64


@dataclass(frozen=True)
class LargestCluster:
    """The most devices to count on in one cluster: what the `provider` states, else nodes as far as anybody sells them
    without being asked where a `network` between them is named, else one `machine`. None of rows of
    one's own, and of what is sold."""

    devices: int | None
    known_by: Literal["provider", "network", "machine"] | None


def largest_cluster(price: Price) -> LargestCluster:
    if price.max_devices is not None:
        return LargestCluster(price.max_devices, "provider")
    if not price.seller or price.capex_usd is not None:
        return LargestCluster(None, None)
    node = find_accelerator(price.accelerator).value.per_node if by_device(price) else price.count
    if is_networked(price):
        return LargestCluster(NODES_UNASKED * node, "network")
    return LargestCluster(node, "machine")


def largest_words(devices: int | None, known_by: str | None) -> str:
    """'16,384' of a cluster, or where the provider states none by what it is taken: '512 (assumed)' where a
    network is named, '8 (one machine)'; '' where nothing is known."""
    if devices is None:
        return ""
    taken = {"network": " (assumed)", "machine": " (one machine)"}
    return f"{whole(devices)}{taken.get(known_by or '', '')}"


def is_networked(price: Price) -> bool:
    return bool(price.network) or price.network_bandwidth_per_node is not None


def by_device(price: Price) -> bool:
    """Whether it is a price per device of larger machines."""
    return price.count == 1 and "(per " in price.instance
