"""The launch files of a complete plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import Any

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from launchers.choice import chosen, usual_program
from launchers.launch.heading import warnings
from launchers.launch.of_plan import launch_of
from launchers.needs import checkpoint_needs
from launchers.pieces import File, Piece, Rendered, Start
from launchers.predictions import ServingPrediction, TrainingPrediction
from launchers.rules import briefly, check
from launchers.shell.quoting import NODE_RANK
from launchers.site import Site
from launchers.targets import TARGETS
from launchers.trial.tried import beside, tried


def render(
    plan: Plan,
    targets: Sequence[str],
    prediction: TrainingPrediction | ServingPrediction | None = None,
    model_id: str | None = None,
    site: Site | None = None,
    of_program: Callable[[tuple[File, ...]], tuple[File, ...]] = tuple,
) -> Rendered:
    """The files of `targets`, and of those that these refer to, for a complete plan.

    `model_id` is what goes in as the model's name (the plan may hold an alias); without it the plan's own string does,
    and a local path goes through as it is. A scheduler without a program starts the usual one of the plan's framework
    or engine. `of_program` makes of the program's files what is written and taken to other machines in their place.
    Raises PlanError when the plan lacks a field, contradicts itself, or asks for something that one of the
    targets cannot express.
    """
    names = chosen(plan, targets)
    launch = launch_of(plan, names, prediction, model_id, site)
    # What was asked for is refused in its own name, not in that of a file that it refers to.
    for name in sorted(names, key=lambda name: name not in targets):
        check(launch, name)
    launch = tried(launch)
    pieces: list[Piece] = []
    start: Start | None = None
    for name in names:
        module: Any = import_module(f"{TARGETS[name].package}.write")
        if TARGETS[name].role == "scheduler":
            pieces.append(module.render(launch, start, of_program(_of_program(pieces))))
        else:
            pieces.append(module.render(launch))
            if (own := pieces[-1].start) is not None:
                start = replace(own, command=launch.before_start + own.command)
                pieces.append(beside(launch, own))
    assert start is not None, "a set has a program, or a config that names what reads it"
    own = _of_program(pieces)
    files = (*of_program(own), *(file for piece in pieces for file in piece.files if file not in own))
    needs = dict.fromkeys(need for piece in pieces for need in piece.needs_from_user)
    needs |= dict.fromkeys(checkpoint_needs(launch))
    command = launch.scheduler_command or start.command
    if NODE_RANK in command:
        needs[
            f"every node runs the command with its own NODE_RANK (0 to {launch.nodes - 1}), the first node's address "
            "as MASTER_ADDR and a free port there as MASTER_PORT"
        ] = None
    return Rendered(files, command, tuple(needs), tuple(warnings(launch)))


def _of_program(pieces: Sequence[Piece]) -> tuple[File, ...]:
    """The files that no scheduler wrote."""
    return tuple(file for piece in pieces for file in piece.files if TARGETS[file.target].role != "scheduler")


_STAGES = (1, 2, 3)  # of ZeRO


def is_written(plan: Plan) -> bool:
    """Whether any program's files can say a complete plan."""
    return any(TARGETS[name].role == "program" for name in _able_programs(plan))


def unsaid(plan: Plan) -> str | None:
    """Why no program's files say a complete plan, in words of its usual one; None where one does. One replica has
    nothing to shard: every stage of ZeRO says the same of it."""
    alone = plan.workload.kind == "training" and plan.layout.dp == 1 and plan.layout.cp in (None, 1)
    same = [plan, *(plan.patch({"layout.zero_stage": stage}) for stage in _STAGES if alone)]
    if any(map(is_written, same)):
        return None
    try:
        render(plan, [usual_program(plan)])
    except PlanError as refused:
        return briefly(refused.problem)
    return None


def able_targets(plan: Plan) -> list[str]:
    """The targets that can write a complete plan."""
    able = list(_able_programs(plan))
    if not any(TARGETS[name].role == "program" for name in able):
        # A config alone starts nothing.
        return []
    with suppress(PlanError):
        # What starts a program starts the usual one.
        if usual_program(plan) in able:
            able += [
                name
                for name, target in TARGETS.items()
                if target.role in ("scheduler", "place") and _writes(plan, name)
            ]
    return able


def _able_programs(plan: Plan) -> Iterator[str]:
    return (name for name, target in TARGETS.items() if target.role in ("config", "program") and _writes(plan, name))


def _writes(plan: Plan, target: str) -> bool:
    try:
        render(plan, [target])
    except PlanError:
        return False
    return True
