"""What places on AWS share: the instance with a plan's devices, the size of their file system, their network."""

from __future__ import annotations

import math

from estimator.errors import PlanError
from knowledge.prices.book import shipped
from launchers.devices import accelerator_of, network_name
from launchers.launch.duration import stored_bytes
from launchers.launch.of_plan import Launch

_PROVIDER = "AWS"
# FSx for Lustre, PERSISTENT_2: sizes are multiples of 2,400 GiB (its CreateFileSystem API).
_LUSTRE_GIB = 2400


def instance(launch: Launch) -> str:
    """The smallest instance of AWS with a node's devices. Raises PlanError for devices that none has."""
    device, wanted = accelerator_of(launch).id, launch.node_devices
    rows = [row for row in shipped() if row.provider == _PROVIDER and row.accelerator == device]
    fitting = sorted((row.count, row.instance) for row in rows if row.count >= wanted)
    if not fitting:
        valid = sorted({row.accelerator for row in shipped() if row.provider == _PROVIDER})
        raise PlanError("cluster.accelerator", f"AWS has no instance with {wanted} {device}", valid)
    return fitting[0][1]


def devices_of(instance: str) -> tuple[str, int] | None:
    """The accelerator of an instance of AWS and how many it has; None for one without, or that is not known."""
    rows = (row for row in shipped() if row.provider == _PROVIDER and row.instance == instance)
    return next(((row.accelerator, row.count) for row in rows), None)


def instances(launch: Launch) -> int:
    """How many of them the plan takes."""
    return launch.nodes * launch.replicas if launch.whole_nodes else launch.nodes


def lustre_gib(launch: Launch) -> int:
    """The size of the file system that its nodes share, in GiB."""
    return _LUSTRE_GIB * math.ceil(stored_bytes(launch) / 2**30 / _LUSTRE_GIB)


def network_needs(launch: Launch) -> tuple[str, ...]:
    """What to give where the prediction is of another network than AWS has."""
    if launch.nodes == 1 or network_name(launch).startswith("efa"):
        return ()
    return (f"--interconnect, the instances' EFA: the prediction is of {network_name(launch)}",)
