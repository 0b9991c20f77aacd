"""What training frameworks offer together: a stage and a method of training, in a precision, on a device.

The table is `limits` of `knowledge/data/frameworks.yaml`, with where each framework says so.
"""

from __future__ import annotations

from functools import cache
from typing import get_args

from estimator.errors import PlanError
from estimator.machine.hardware import Accelerator
from estimator.plan.schema import Plan, Training
from estimator.plan.training.defaults import framework_choices
from estimator.plan.training.framework import Framework
from estimator.plan.training.job import FOUR_BIT_RATES, Job
from knowledge.fitted.training import framework, framework_tables, sharded_by
from knowledge.machines.catalogue import accelerators
from knowledge.machines.without_training import no_training
from knowledge.models.catalogue import architecture


def maker(accelerator: Accelerator) -> str:
    """Whose device it is to frameworks: the vendor, or a family that is a maker of its own."""
    return accelerator.family if accelerator.family in framework_tables()["makers"] else accelerator.vendor


def has_precision(accelerator: Accelerator, precision: str) -> bool:
    """Whether the device's matrix units have the precision; those without a row run everywhere."""
    needs = framework_tables()["precisions"].get(precision)
    if needs is None:
        return True
    return bool(accelerator.peak_flops.get(needs["rate"])) and maker(accelerator) in needs.get(
        "makers", [maker(accelerator)]
    )


def offers(name: str, training: Training, accelerator: Accelerator, method: str | None = None) -> bool:
    """Whether a framework has the stage, the method (or another one) and the precision of a run on that device."""
    limits = framework(name).limits
    return (
        training.stage in limits.stages
        and (method or training.method) in limits.methods_of(training.stage)
        and training.precision in limits.precisions
        and training.optimizer in limits.optimizers
        and not _lacking(training, framework(name))
        and runs_on(name, accelerator)
    )


def _lacking(training: Training, profile: Framework) -> tuple[str, str] | None:
    """A field that asks for what the framework has not, with what that is; None where it has all."""
    if training.optimizer_in_backward and training.optimizer not in profile.limits.steps_in_backward:
        return "optimizer_in_backward", f"{training.optimizer} that updates weights within the backward pass"
    if training.optimizer_in_backward and training.method != "full":
        return "optimizer_in_backward", f"{training.method} whose weights are updated within the backward pass"
    if training.tiled_mlp and profile.activations.tile_tokens is None:
        return "tiled_mlp", "MLP in tiles"
    if training.fp8_healing and not profile.limits.heals:
        return "fp8_healing", "run in 4 bits that ends in 8"
    return None


def runs_on(name: str, accelerator: Accelerator) -> bool:
    """Whether a framework runs on the device; one of a person's own by a maker that nobody lists is left to them."""
    whose, limits = maker(accelerator), framework(name).limits
    if accelerator.family in limits.old_devices:
        return False
    return whose in limits.devices or not (no_training(accelerator) or whose in _makers())


def is_unstarted(name: str) -> bool:
    """Whether no launch target of ours starts a framework."""
    return name in framework_tables()["unstarted"]


def frameworks_on(accelerator: Accelerator) -> list[str]:
    """The frameworks that run on a device and can be moved to, the most used first."""
    return [name for name in framework_tables()["searched"] if runs_on(name, accelerator)]


def able_frameworks(training: Training, accelerator: Accelerator, method: str | None = None) -> list[str]:
    """The frameworks that a plan can be moved to, the most used first."""
    return [name for name in framework_tables()["searched"] if offers(name, training, accelerator, method)]


def movable_to(job: Job, method: str | None = None) -> list[str]:
    """Those of them that have a job's model too. On one device what people split models over many with comes last."""
    names = able_frameworks(job.training, job.machine.accelerator, method)
    limits = {name: framework(name).limits for name in names}
    having = [name for name in names if job.architecture.family in (limits[name].models or (job.architecture.family,))]
    return sorted(having, key=lambda name: job.machine.count == 1 and limits[name].searches_splits)


def choices(plan: Plan, accelerator: Accelerator, count: int) -> list[tuple[str, str]]:
    """Frameworks for a plan that leaves it open, the usual one first, each with why: of the usual ones those that have
    what the plan asks, or where none has, those that have; the usual ones where no framework has."""
    training, usual = plan.training, framework_choices(plan, accelerator, count)
    able = [choice for choice in usual if offers(choice[0], training, accelerator)]
    has_experts_in_4_bits = training.method == "qlora" and bool(architecture(plan.model).experts)
    if able and not has_experts_in_4_bits:
        return able
    asked = f"{training.stage}, {training.method} and {training.precision} on {accelerator.name}"
    others = [(name, f"it has {asked}") for name in able_frameworks(training, accelerator)]
    if has_experts_in_4_bits:
        packing = [choice for choice in (*able, *others) if _packs_experts(choice[0], training.software_version)]
        return [(name, "it holds experts in 4 bits too") for name, _ in packing] or able or usual
    return able or others or usual


def other_choices(plan: Plan, first: Job) -> list[tuple[str, str]]:
    """The frameworks that a plan is tried on where `first`, its job on the usual one, has no room, each with why: the
    other usual ones where it leaves that open, else what the one that it names shards weights through."""
    named, machine = plan.training.framework, first.machine
    if named == "auto":
        return choices(plan, machine.accelerator, machine.count)[1:]
    sharder = sharded_by(named)
    if not sharder or first.framework.name == sharder or machine.count == 1 or plan.layout.zero_stage is not None:
        return []
    return [(sharder, f"{named} shards weights through it")]


def _packs_experts(name: str, version: str | None) -> bool:
    return framework(name, version).adapters.quantises_experts


def _offered_nowhere(training: Training, accelerator: Accelerator, field: str) -> PlanError:
    """What is told of a plan that leaves its framework open, where none has this value of a field beside the others."""
    known = get_args(Training.model_fields[field].annotation)
    valid = [name for name in known if able_frameworks(training.model_copy(update={field: name}), accelerator)]
    beside = {"stage": training.stage, "method": training.method, "optimizer": training.optimizer}
    others = ", ".join(value for name, value in beside.items() if name != field)
    problem = f"no framework has {getattr(training, field)} with {others} on {accelerator.name}"
    return PlanError(f"workload.{field}", problem, valid)


def check_offered(job: Job) -> None:
    """Raises PlanError for a combination that the device or the framework does not have, naming who has it."""
    training, accelerator, limits = job.training, job.machine.accelerator, job.framework.limits
    precisions = [name for name in limits.precisions if has_precision(accelerator, name)]
    if not has_precision(accelerator, training.precision):
        have = sorted({each.family for each in accelerators() if has_precision(each, training.precision)})
        problem = f"{accelerator.name} has no {training.precision} matmuls; {', '.join(have)} devices have them"
        raise PlanError("workload.precision", problem, precisions)
    name = job.framework.name
    if not runs_on(name, accelerator):
        if why := no_training(accelerator):
            problem = f"no training framework that is estimated runs on {accelerator.name}: {why}"
            raise PlanError("cluster.accelerator", problem, ["a device of " + ", ".join(_makers())])
        old = f" (newer than {limits.old_devices[-1]})" if limits.old_devices else ""
        theirs = " and ".join(limits.devices)
        raise PlanError(
            "workload.framework",
            f"{name} runs on {theirs}{old} devices, not on {accelerator.name}",
            able_frameworks(training, accelerator),
        )
    for field, value, valid in (
        ("stage", training.stage, limits.stages),
        ("method", training.method, limits.methods_of(training.stage)),
        ("precision", training.precision, precisions),
        ("optimizer", training.optimizer, limits.optimizers),
    ):
        if value not in valid:
            others = able_frameworks(training, accelerator)
            if not others and any(each.field == "workload.framework" for each in job.assumptions):
                raise _offered_nowhere(training, accelerator, field)
            who = f"; {', '.join(others)} {'has' if len(others) == 1 else 'have'} it" if others else ""
            here = f" in {training.stage}" if field == "method" and value in limits.methods else ""
            read = framework_tables()["read"].get(name)
            where = f" (as read in {read})" if read else ""
            raise PlanError(f"workload.{field}", f"{name} has no {value}{here}{where}{who}", list(valid))

    if job.machine.count > 1 and training.optimizer in limits.lone_optimizers:
        problem = f"{name} has {training.optimizer} on one device alone"
        valid = [each for each in limits.optimizers if each not in limits.lone_optimizers]
        raise PlanError("workload.optimizer", problem, valid)
    if training.fp8_healing and training.precision not in FOUR_BIT_RATES:
        problem = f"is the end in 8 bits of a run in 4, and this one is in {training.precision}"
        raise PlanError("workload.fp8_healing", problem, ["0", *(f"precision {name}" for name in FOUR_BIT_RATES)])
    if lacking := _lacking(training, job.framework):
        field, what = lacking
        others = able_frameworks(training, accelerator)
        who = f"; {', '.join(others)} {'has' if len(others) == 1 else 'have'} it" if others else ""
        off = str(Training.model_fields[field].default).lower()
        raise PlanError(f"workload.{field}", f"{name} has no {what}{who}", [off])


@cache
def _makers() -> tuple[str, ...]:
    """Whose devices are trained on, in the order of the frameworks that plans are moved to."""
    searched = framework_tables()["searched"]
    return tuple(dict.fromkeys(each for name in searched for each in framework(name).limits.devices))
