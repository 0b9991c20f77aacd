"""From a complete Plan to the files that start it: training configs, sharding configs, scheduler jobs.

A target is one module with one function `render(job) -> Piece` and one row in `_TARGETS`. Nothing here estimates: the
figures in a file's heading come from the `Prediction` that the caller passes. What a target cannot say is refused with
a PlanError that names what can (`launchers.rules`), never bent into a different plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from estimator.plan import Plan


@dataclass(frozen=True)
class Prediction:
    """What the estimator says of the plan: bytes per device and seconds per optimizer step, each with its interval."""

    memory_bytes: float
    memory_low_bytes: float
    memory_high_bytes: float
    capacity_bytes: float
    step_s: float
    step_low_s: float
    step_high_s: float


@dataclass(frozen=True)
class File:
    """One file to write; `path` is relative to the folder that the user chooses."""

    path: str
    target: str
    text: str
    executable: bool = False


@dataclass(frozen=True)
class Rendered:
    """All files of a set, the command that starts the run from their folder, and what only the user can fill in."""

    files: tuple[File, ...]
    launch_command: str
    needs_from_user: tuple[str, ...]


@dataclass(frozen=True)
class Piece:
    """What one target adds: its file, the command that starts the run through it, and what the user must fill in."""

    file: File
    launch_command: str
    needs_from_user: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Target:
    """A row of the table: what the target is, and which other targets its file refers to for a given plan."""

    description: str
    refers_to: Callable[[Plan], tuple[str, ...]]


# In the order of files in a set; the last one rendered is the one that starts the run.
_TARGETS: dict[str, _Target] = {
    "deepspeed": _Target("DeepSpeed JSON: ZeRO stage, offload, precision, batch sizes", lambda plan: ()),
    "llamafactory": _Target(
        "LlamaFactory YAML: pretraining, SFT and preference training, full, freeze, LoRA, QLoRA, DoRA, PiSSA",
        lambda plan: ("deepspeed",) if plan.layout.zero_stage else (),
    ),
    "slurm": _Target(
        "Slurm sbatch script that starts the LlamaFactory run on every node", lambda plan: ("llamafactory",)
    ),
}

TARGETS: Mapping[str, str] = MappingProxyType({name: target.description for name, target in _TARGETS.items()})


def render(
    plan: Plan, targets: Sequence[str], prediction: Prediction | None = None, model_id: str | None = None
) -> Rendered:
    """The files of `targets`, and of those that these refer to, for a complete training plan.

    `model_id` is what goes in as the model's name (the plan may hold an alias); without it the plan's own string does,
    and a local path goes through as it is. Raises PlanError when the plan lacks a field, contradicts itself, or asks
    for something that one of the targets cannot express.
    """
    from launchers.job import make_job
    from launchers.rules import check

    names = _with_referred(plan, targets)
    job = make_job(plan, names, prediction, model_id)
    for name in names:
        check(job, name)
    pieces: list[Piece] = [import_module(f"launchers.{name}").render(job) for name in names]
    needs = dict.fromkeys(need for piece in pieces for need in piece.needs_from_user)
    return Rendered(tuple(piece.file for piece in pieces), pieces[-1].launch_command, tuple(needs))


def _with_referred(plan: Plan, targets: Sequence[str]) -> tuple[str, ...]:
    """The targets asked for and all that they refer to, in the order of the table."""
    from estimator.errors import PlanError, nearest

    if isinstance(targets, str) or not targets:
        raise PlanError("targets", "must be a list with at least one target", TARGETS)
    wanted: set[str] = set()
    waiting = list(targets)
    while waiting:
        name = waiting.pop()
        if name not in _TARGETS:
            raise PlanError("targets", f"{name!r} is not a launch target", nearest(str(name), TARGETS))
        if name not in wanted:
            wanted.add(name)
            waiting.extend(_TARGETS[name].refers_to(plan))
    return tuple(name for name in _TARGETS if name in wanted)
