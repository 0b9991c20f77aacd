"""What a request names by any name, and the sentence that says how that was read."""

from __future__ import annotations

from typing import Any

from estimator.machine.hardware import Accelerator
from estimator.plan.schema import Plan
from knowledge.machines.catalogue import find_accelerator
from knowledge.machines.counted import find_devices
from knowledge.names import Match
from planner.result import Assumption


def device_named(name: str, field: str = "accelerator") -> tuple[Accelerator, list[Assumption]]:
    """The accelerator of a name, and how that was read where it is not its own. Raises PlanError."""
    match = find_accelerator(name)
    return match.value, how_read(match, field)


def counted(plan: Plan) -> tuple[Plan, list[Assumption]]:
    """The plan with what the name of its accelerator counts said in fields of their own ("8xh100": 8 of them), as far
    as they are open, and how that was read. Raises PlanError."""
    cluster = plan.cluster
    named = None if cluster.accelerator is None else find_devices(cluster.accelerator)
    if named is None or named.count is None:
        return plan, []
    changes: dict[str, Any] = {"cluster.accelerator": named.match.value.id}
    for name in ("count", "per_node"):
        if getattr(cluster, name) is None and getattr(named, name) is not None:
            changes[f"cluster.{name}"] = getattr(named, name)
    return plan.patch(changes), how_read(named.match, "cluster.accelerator")


def how_read(match: Match[Accelerator], field: str = "accelerator") -> list[Assumption]:
    """The assumption that a match rests on; none where the name was exact."""
    return [Assumption(field=field, value=match.value.id, why=match.note)] if match.note else []
