"""Host memory: how frameworks use it, and how much the machines of an accelerator have."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import log
from statistics import median
from typing import Any

from estimator.errors import PlanError, nearest
from estimator.training.node import HostFacts
from knowledge.data_files import document, inherited
from knowledge.machines.catalogue import accelerators, find_accelerator
from knowledge.prices.book import Price, prices


@dataclass(frozen=True)
class HostCapacity:
    """Host memory of a node: the typical bytes, the least among the same machines, and what that rests on."""

    bytes: float
    low_bytes: float
    source: str


@cache
def host_facts(framework: str) -> HostFacts:
    """How a framework uses host memory, with what its entry does not say taken from its fallback family.

    Raises PlanError for an unknown framework.
    """
    data = document("host.yaml")
    rows: dict[str, dict[str, Any]] = data["frameworks"]
    if framework not in rows:
        raise PlanError("workload.framework", f"there is no profile of {framework!r}", nearest(framework, rows))
    shared = {name: fact["value"] for name, fact in data["common"].items()}
    return HostFacts(name=framework, **inherited(rows, framework), **shared)


# Of these forms the machine has memory of its own beside the device's.
_APART = ("PCIe", "SXM", "OAM")
# Logarithms of memory nearer than this are equal.
_AS_NEAR = 0.05


def host_capacity(accelerator: str, per_node: int) -> HostCapacity | None:
    """Memory of a node with `per_node` of an accelerator: the median of the machines in the price book that have as
    many, else of all of them by their share per device. Where none has the accelerator, of those with devices of its
    form whose memory is next to its own; None where no such machine is known.

    Raises PlanError for an unknown accelerator.
    """
    known = [price for price in prices(accelerator) if price.ram_bytes]
    whose = "it"
    if not known:
        known, whose = _kin(accelerator)
    if not known:
        return None
    same = [price for price in known if price.count == per_node]
    sizes = [price.ram_bytes / price.count * per_node for price in same or known if price.ram_bytes]
    what = f"with {per_node} of {whose}" if same else f"with {whose}, scaled to {per_node} devices"
    names = ", ".join(f"{price.provider} {price.instance}" for price in (same or known)[:3])
    more = len(sizes) - 3
    count = f"median of {len(sizes)} machines" if len(sizes) > 1 else "the one machine"
    source = f"{count} {what}: {names}{f' and {more} more' if more > 0 else ''}"
    return HostCapacity(median(sizes), min(sizes), source)


def _kin(accelerator: str) -> tuple[list[Price], str]:
    """Machines with devices of the same form and the nearest memory, and which devices those are."""
    own = find_accelerator(accelerator).value
    if not own.form_factor.startswith(_APART):
        return [], ""
    alike = {other.id: other for other in accelerators() if other.form_factor == own.form_factor}
    rows = [price for price in prices() if price.ram_bytes and price.accelerator in alike]
    apart = {id: abs(log(alike[id].usable_bytes / own.usable_bytes)) for id in {price.accelerator for price in rows}}
    near = [id for id, far in apart.items() if far <= min(apart.values()) + _AS_NEAR]
    return [price for price in rows if price.accelerator in near], " or ".join(sorted(near))
