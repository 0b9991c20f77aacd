"""What a request names by any name, and the sentence that says how that was read."""

from __future__ import annotations

from estimator.machine.hardware import Accelerator
from knowledge.machines.catalogue import find_accelerator
from knowledge.names import Match
from planner.result import Assumption


def device_named(name: str, field: str = "accelerator") -> tuple[Accelerator, list[Assumption]]:
    """The accelerator of a name, and how that was read where it is not its own. Raises PlanError."""
    match = find_accelerator(name)
    return match.value, how_read(match, field)


def how_read(match: Match[Accelerator], field: str = "accelerator") -> list[Assumption]:
    """The assumption that a match rests on; none where the name was exact."""
    return [Assumption(field=field, value=match.value.id, why=match.note)] if match.note else []
