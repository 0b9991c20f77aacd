"""Which targets a set consists of: those asked for, what their files refer to, and a program for a scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from estimator.errors import PlanError, near
from estimator.plan.schema import Inference, Plan
from launchers.devices import FIELD, not_started
from launchers.launch.of_plan import launch_of
from launchers.rules import check
from launchers.tables import table
from launchers.targets import TARGETS


def usual_targets(plan: Plan) -> tuple[str, ...]:
    """What is written for a plan when no target is named: its framework's or engine's usual program, and Slurm where
    that can start it."""
    program = usual_program(plan)
    return (program,) if _refusal(plan, "slurm") and not _refusal(plan, program) else (program, "slurm")


def frameworks_started() -> list[str]:
    """Frameworks that some target starts, by name."""
    return [name for name in table("data/programs")["frameworks"] if name != "auto"]


def started_by(target: str, kind: Literal["training", "inference"]) -> list[str]:
    """Frameworks, or engines, whose runs a launch target's files are for, by name; [] where it starts any."""
    known = table(f"{TARGETS[target].folder}/refusals").get("frameworks" if kind == "training" else "engines", [])
    return [name for name in known if name != "auto"]


def usual_program(plan: Plan) -> str:
    """The target that starts the plan's framework or engine: the first of its list that can say all of the plan, or the
    first of all; where that is not for the plan's devices, any program that can. Raises PlanError where there is
    none."""
    programs = table("data/programs")
    if isinstance(plan.workload, Inference):
        name, known = plan.workload.engine, programs["engines"]
    else:
        name, known = plan.training.framework, programs["frameworks"]
    if name not in known:
        raise not_started(plan, f"no launch target starts {name}", known)
    candidates: list[str] = known[name]
    refusals: list[PlanError] = []
    for target in candidates:
        refused = _refusal(plan, target)
        if refused is None:
            return target
        refusals.append(refused)
    if refusals[0].field == FIELD:
        kind = "inference" if isinstance(plan.workload, Inference) else "training"
        others = (target for target, row in TARGETS.items() if row.role == "program" and kind in row.kinds)
        return next((target for target in others if _refusal(plan, target) is None), candidates[0])
    return candidates[0]


def _refusal(plan: Plan, target: str) -> PlanError | None:
    """Why a target, or what its files refer to, cannot say the plan."""
    try:
        names = chosen(plan, [target])
        launch = launch_of(plan, names)
        for name in names:
            check(launch, name)
    except PlanError as refused:
        return refused
    return None


def chosen(plan: Plan, targets: Sequence[str]) -> tuple[str, ...]:
    """The targets asked for and all that they need, in the order of the table. Raises PlanError."""
    if isinstance(targets, str) or not targets:
        raise PlanError("targets", "must be a list with at least one target", list(TARGETS))
    kind = "inference" if isinstance(plan.workload, Inference) else "training"
    wanted: set[str] = set()
    waiting = list(targets)
    while waiting:
        name = waiting.pop()
        if name not in TARGETS:
            can = [other for other, target in TARGETS.items() if kind in target.kinds]
            valid = dict.fromkeys([*near(str(name), can), *can])
            raise PlanError("targets", f"{name!r} is not a launch target", valid)
        if kind not in TARGETS[name].kinds:
            what = "serving" if kind == "inference" else "training"
            can = [other for other, target in TARGETS.items() if kind in target.kinds]
            raise PlanError("targets", f"{name} has no files for {what}", can)
        if name not in wanted:
            wanted.add(name)
            waiting.extend(TARGETS[name].refers_to(plan))
        schedules = any(TARGETS[name].role in ("scheduler", "place") for name in wanted)
        if not waiting and schedules and not _programs(wanted):
            waiting.append(usual_program(plan))
    programs = _programs(wanted)
    schedulers = [name for name in TARGETS if name in wanted and TARGETS[name].role == "scheduler"]
    if schedulers and len(programs) > 1:
        problem = f"{', '.join(schedulers)} can start one program of a set, not {' and '.join(programs)}"
        raise PlanError("targets", problem, programs)
    order = {"config": 0, "program": 1, "scheduler": 2, "place": 3}
    names = [name for name in TARGETS if name in wanted]
    return tuple(sorted(names, key=lambda name: order[TARGETS[name].role]))


def _programs(wanted: set[str]) -> list[str]:
    return [name for name in TARGETS if name in wanted and TARGETS[name].role == "program"]
