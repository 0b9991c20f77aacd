"""What is given up for a plan to fit on the devices that there are, the least first.

Verdicts, remedies and limits go down this ladder. Recompute, splits and host memory are in the search of layouts; what
changes the training itself comes last, and never without being asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from estimator.plan.schema import Training
from estimator.rl.generation import STAGES

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
    stages: tuple[str, ...] = ()
    """Those that it is for, where not for all."""

    @property
    def changes_states(self) -> bool:
        """Whether weights and states take less with it, so that what was hopeless before may fit."""
        return bool({"workload.optimizer", "workload.optimizer_in_backward"} & set(self.changes))

    def left_open(self, training: Training) -> bool:
        """Whether it is for a plan's stage, and the plan names nothing else for its fields, nor all of them."""
        wanted = {path.removeprefix("workload."): value for path, value in self.changes.items()}
        named = {name: getattr(training, name) for name in wanted if name in training.model_fields_set}
        decided = {name: value for name, value in named.items() if value != "auto"}
        agrees = all(wanted[name] == value for name, value in decided.items())
        return self.is_for(training.stage) and agrees and (len(decided) < len(wanted) or not wanted)

    def is_for(self, stage: str) -> bool:
        return not self.stages or stage in self.stages


CONCESSIONS = (
    Concession({}, ""),
    Concession({"workload.rollout": "colocated"}, "an engine on the same devices that generates", stages=STAGES),
    Concession({"workload.rollout": "trainer"}, "samples that the trained model generates itself", stages=("grpo",)),
    Concession({"workload.fused_loss": True}, "chunked loss"),
    Concession({"workload.fused_loss": True, "workload.tiled_mlp": True}, "chunked loss, MLP in tiles"),
    Concession({"workload.optimizer_in_backward": True}, "weights updated within the backward pass"),
    Concession(
        {"workload.optimizer": "paged_adamw", "workload.optimizer_in_backward": True},
        "weights updated within the backward pass, paged optimizer states",
    ),
    Concession(
        {"workload.fused_loss": True, "workload.optimizer": "adamw_8bit"},
        "chunked loss, 8-bit optimizer states",
        same_training=False,
    ),
    Concession(
        {"workload.optimizer": "paged_adamw_8bit", "workload.optimizer_in_backward": True},
        "weights updated within the backward pass, paged 8-bit optimizer states",
        same_training=False,
    ),
)
