"""Host memory: how frameworks use it, and how much the machines of an accelerator have."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Any

from estimator.errors import PlanError, nearest
from estimator.training.node import HostFacts
from knowledge.data_files import document, inherited
from knowledge.prices.book import prices


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


def host_capacity(accelerator: str, per_node: int) -> HostCapacity | None:
    """Memory of a node with `per_node` of an accelerator: the median of the machines in the price book that have as
    many, else of all of them by their share per device. None where no machine with known memory has the accelerator.

    Raises PlanError for an unknown accelerator.
    """
    known = [price for price in prices(accelerator) if price.ram_bytes]
    if not known:
        return None
    same = [price for price in known if price.count == per_node]
    sizes = [price.ram_bytes / price.count * per_node for price in same or known if price.ram_bytes]
    what = f"with {per_node} of it" if same else f"scaled to {per_node} devices"
    names = ", ".join(f"{price.provider} {price.instance}" for price in (same or known)[:3])
    more = len(sizes) - 3
    count = f"median of {len(sizes)} machines" if len(sizes) > 1 else "the one machine"
    source = f"{count} {what}: {names}{f' and {more} more' if more > 0 else ''}"
    return HostCapacity(median(sizes), min(sizes), source)
