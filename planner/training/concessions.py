"""What is given up for a plan to fit on the devices that there are, the least first.

Verdicts, remedies and limits go down this ladder. Recompute, splits and host memory are in the search of layouts; what
changes the training itself comes last, and never without being asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CONCEDED = "nothing fits without"
"""Why a choice is assumed that was switched on for that."""

UNUSUAL = "more usual ones do not fit"
"""Why a framework is."""


@dataclass(frozen=True)
class Concession:
    """Changes of a plan, and how they are told. `same_training` is true where the run learns the same."""

    changes: Mapping[str, Any]
    words: str
    same_training: bool = True

    @property
    def changes_states(self) -> bool:
        """Whether weights and states take less with it, so that what was hopeless before may fit."""
        return "workload.optimizer" in self.changes

    def left_open(self, named: set[str]) -> bool:
        """Whether a plan that names these fields of its workload leaves it open."""
        return not any(path.removeprefix("workload.") in named for path in self.changes)


CONCESSIONS = (
    Concession({}, ""),
    Concession({"workload.fused_loss": True}, "chunked loss"),
    Concession({"workload.fused_loss": True, "workload.tiled_mlp": True}, "chunked loss, MLP in tiles"),
    Concession(
        {"workload.optimizer": "paged_adamw", "workload.optimizer_in_backward": True},
        "weights updated within the backward pass, paged optimizer states",
    ),
    Concession(
        {"workload.fused_loss": True, "workload.optimizer": "adamw_8bit"},
        "chunked loss, 8-bit optimizer states",
        same_training=False,
    ),
)
