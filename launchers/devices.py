"""What schedulers call the plan's devices (data/devices.yaml)."""

from __future__ import annotations

from collections.abc import Iterable

from estimator.errors import PlanError
from estimator.machine.hardware import Accelerator
from estimator.plan.schema import Inference, Plan
from knowledge import engines, offers
from knowledge.machines.catalogue import find_accelerator, machine
from launchers.launch.fields import required
from launchers.launch.of_plan import Launch
from launchers.launch.training import TrainingLaunch
from launchers.tables import table

FIELD = "cluster.accelerator"
_MEANS = {
    "kubernetes": "a Kubernetes resource",
    "compose": "a way into a Compose container",
    "visible": "a variable that leaves a program some of a node's devices",
}


def accelerator_of(launch: Launch) -> Accelerator:
    """The catalogue's entry of the plan's accelerator. Raises PlanError where there is none."""
    return find_accelerator(required(FIELD, launch.plan.cluster.accelerator)).value


def network_name(launch: Launch) -> str:
    """The network between the plan's nodes, as the catalogue calls it."""
    cluster = launch.plan.cluster
    count = required("cluster.count", cluster.count)
    return machine(accelerator_of(launch).id, count, cluster.per_node, cluster.interconnect)[0].network.name


def maker_of(accelerator: Accelerator) -> str | None:
    """The key of data/devices.yaml `makers` that stands for the accelerator; None where none does."""
    makers = table("data/devices")["makers"]
    keys = (
        ("CPU",) if accelerator.family == "CPU" else (f"{accelerator.vendor} {accelerator.family}", accelerator.vendor)
    )
    return next((key for key in keys if key in makers), None)


def maker(launch: Launch) -> str | None:
    """The maker of the plan's devices as data/devices.yaml has it; None where the accelerator is not known."""
    try:
        accelerator = accelerator_of(launch)
    except PlanError:
        return None
    return maker_of(accelerator) or accelerator.vendor


def not_started(plan: Plan, problem: str, started: Iterable[str]) -> PlanError:
    """The error for a framework or engine that is none of those `started`: valid are those that run on the plan's
    devices, and all where these are not known."""
    serving = isinstance(plan.workload, Inference)
    field, valid = f"workload.{'engine' if serving else 'framework'}", list(started)
    try:
        accelerator = find_accelerator(required(FIELD, plan.cluster.accelerator)).value
    except PlanError:
        return PlanError(field, problem, valid)
    able = [
        name
        for name in valid
        if name != "auto"
        and (engines.runs_on(engines.engine(name), accelerator) if serving else offers.runs_on(name, accelerator))
    ]
    if not able:
        return PlanError(field, f"{problem}; those that are do not run on {accelerator.name}")
    return PlanError(field, problem, [name for name in valid if name in able or name == "auto"])


def has_flash_kernels(launch: TrainingLaunch) -> bool:
    """Whether FlashAttention has kernels for the plan's devices, or these are not known."""
    try:
        return accelerator_of(launch).family not in table("data/devices")["without_flash"]
    except PlanError:
        return True


def attention_of(launch: TrainingLaunch) -> str:
    """The plan's attention kernel; sdpa in place of the framework's own choice where no FlashAttention kernel runs."""
    chosen = launch.training.attention
    return "sdpa" if chosen == "flash" and not has_flash_kernels(launch) else chosen


def word_of(launch: Launch, scheduler: str) -> str:
    """How `scheduler` (a key of _MEANS) names the plan's devices; '' for CPUs. Raises PlanError where it does not."""
    accelerator = accelerator_of(launch)
    makers = table("data/devices")["makers"]
    word = makers.get(maker_of(accelerator))
    if word is None or word[scheduler] is None:
        valid = [key for key, words in makers.items() if words[scheduler] is not None]
        means = _MEANS[scheduler]
        problem = f"{means} is not known for {accelerator.vendor} {accelerator.family} devices"
        raise PlanError(FIELD, problem, valid)
    return word[scheduler]


def is_cpu(launch: Launch) -> bool:
    """Whether the plan runs on host processors; False where the accelerator is not known."""
    try:
        return accelerator_of(launch).family == "CPU"
    except PlanError:
        return False


def skypilot_name(launch: Launch) -> str:
    """SkyPilot's name of the plan's accelerator. Raises PlanError where it is not known to have one."""
    return _listed(launch, "skypilot", "SkyPilot")


def dstack_name(launch: Launch) -> str:
    """dstack's, with the memory where devices of several sizes share it. Raises PlanError where none is known."""
    return _listed(launch, "dstack", "dstack")


def _listed(launch: Launch, scheduler: str, title: str) -> str:
    accelerator, names = accelerator_of(launch), table("data/devices")[scheduler]
    if accelerator.id not in names:
        raise PlanError(FIELD, f"{title}'s name of {accelerator.id} is not known", list(names))
    return names[accelerator.id]


def needs_torch(launch: Launch, target: str) -> None:
    """Raises PlanError for devices on which `target`, which sets up torchrun's world, is the wrong frame."""
    accelerator = accelerator_of(launch)
    if accelerator.vendor == "Google":
        raise PlanError(
            "targets", f"{target} files are for torchrun, which {accelerator.id} runs do not use", ["kubernetes-jobset"]
        )


def visible(launch: Launch) -> str:
    """The variable that leaves a program some of a node's devices. Raises PlanError where there is none."""
    return word_of(launch, "visible")
