"""The table of launch targets. What each can say of a plan is in data/targets/<target>.yaml.

A target is a module with one function. Of role
- config:    `render(job) -> Piece`, a file that a program reads which another target starts;
- program:   `render(job) -> Piece` with its `start`: the training program or the engine;
- scheduler: `render(job, start) -> Piece`, which starts that program on every node; `launch` is its command.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from estimator.plan import Plan

Role = Literal["config", "program", "scheduler"]
Kind = Literal["training", "inference"]


def _nothing(plan: Plan) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True)
class Target:
    """`module` is below launchers. `refers_to` names the targets whose files this one's file refers to for a plan.

    `launch` is what starts the set from its folder where a scheduler is in it.
    """

    module: str
    role: Role
    description: str
    kinds: tuple[Kind, ...] = ("training",)
    refers_to: Callable[[Plan], tuple[str, ...]] = _nothing
    launch: str = ""


def _deepspeed_if_sharded(plan: Plan) -> tuple[str, ...]:
    return ("deepspeed",) if plan.layout.zero_stage else ()


# In the order of files in a set.
TARGETS: dict[str, Target] = {
    "deepspeed": Target("training.deepspeed", "config", "DeepSpeed JSON: ZeRO stage, offload, precision, batch sizes"),
    "llamafactory": Target(
        "training.llamafactory",
        "program",
        "LlamaFactory YAML: pretraining, SFT and preference training, full, freeze, LoRA, QLoRA, DoRA, PiSSA",
        refers_to=_deepspeed_if_sharded,
    ),
    "slurm": Target(
        "schedulers.slurm",
        "scheduler",
        "Slurm sbatch script that starts the run on every node",
        kinds=("training", "inference"),
        launch="sbatch job.sbatch",
    ),
}
