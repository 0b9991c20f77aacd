"""The network between nodes as pods ask for it: its device plugin's resource, without which NCCL goes over TCP."""

from __future__ import annotations

import re

from launchers.devices import network_name
from launchers.launch.of_plan import Launch
from launchers.tables import table


def network_resources(launch: Launch, path: str, needs: list[str]) -> dict[str, int]:
    """Name and number; nothing on one node and where the network is plain Ethernet."""
    if launch.nodes == 1:
        return {}
    name = network_name(launch)
    kind = re.split(r"[-0-9]", name)[0]
    row = table("data/devices")["networks"].get(kind)
    if row is None:
        return {}
    ports = re.search(r"x(\d+)$", name)
    if row.get("ask"):
        needs.append(f"{path}: {row['resource']}, if your cluster's device plugin calls the {row['title']} otherwise")
    return {row["resource"]: int(ports[1]) if ports and row["each"] == "port" else 1}
