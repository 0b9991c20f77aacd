"""Where the value of a term comes from: plan, assumption, model, catalogue, fitted factors, or the software."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from estimator.plan.serving.job import ServingJob
from estimator.plan.training.job import Job
from knowledge.figure_facts import FigureFacts
from knowledge.models.catalogue import find_model
from knowledge.prices.energy import Fact
from planner.fields import value_at
from planner.result import Assumption

Origin = tuple[str, str | None]


def origin_of(
    about: FigureFacts,
    job: Job | ServingJob,
    asked: Plan,
    assumptions: list[Assumption],
    price: str | None,
    facts: Mapping[str, Fact],
) -> Origin:
    """(Kind of origin, where the value comes from) of an input; computed where it is none."""
    kind, _, detail = about.origin.partition(" ")
    if not kind or kind == "computed":
        return "computed", about.code or None
    if kind == "plan":
        return _of_plan(detail, asked, assumptions)
    if kind == "energy":
        return "assumption", f"energy.{detail}: {facts[detail].source}" if detail in facts else None
    return _KINDS[kind](job, detail, price)


def _of_plan(path: str, asked: Plan, assumptions: list[Assumption]) -> Origin:
    told = next((item for item in assumptions if item.field == path), None)
    if told is not None:
        return "assumption", f"{path}: {told.why}"
    is_given = value_at(asked.given(), path) is not None or path == "usd_per_device_hour"
    return ("plan", path) if is_given else ("assumption", f"{path} as usual")


def _model(job: Job | ServingJob, _: str, __: str | None) -> Origin:
    spec = job.plan.model
    if not isinstance(spec, str):
        return "model", "the config in the plan"

    try:
        return "model", f"config of {job.architecture.id} ({find_model(job.architecture.id).value.source})"
    except PlanError:
        return "model", f"config of {job.architecture.id}"


def _device(job: Job | ServingJob, _: str, __: str | None) -> Origin:
    accelerator = job.machine.accelerator
    return "catalogue", f"{accelerator.name} ({accelerator.source})"


def _links(job: Job | ServingJob, _: str, __: str | None) -> Origin:
    machine = job.machine
    words = f"{machine.accelerator.scaleup_link} of {machine.accelerator.name}"
    return "catalogue", f"{words}, {machine.network.name} between nodes" if machine.nodes > 1 else words


def _software(job: Job | ServingJob, _: str, __: str | None) -> Origin:
    name = job.framework.name if isinstance(job, Job) else job.engine.name
    return "software", f"how {name} works: knowledge/data/{'frameworks' if isinstance(job, Job) else 'engines'}.yaml"


def _optimizer(job: Job | ServingJob, _: str, __: str | None) -> Origin:
    assert isinstance(job, Job)
    return "software", f"{job.optimizer.name}: {job.optimizer.source}"


def _fitted(job: Job | ServingJob, what: str, _: str | None) -> Origin:
    if isinstance(job, ServingJob):
        runs = f"{job.factors.runs} measured runs of {job.engine.name}"
        return "fitted", f"{runs} ({job.factors.source})" if job.factors.source else runs
    factors = job.calibration.framework
    if what == "memory":
        return "fitted", f"{factors.memory_runs} measured peaks of {factors.framework}"
    device = job.calibration.device
    return "fitted", (
        f"{factors.runs} measured runs of {factors.framework} and {device.runs} on {device.family} devices "
        f"({factors.source})"
    )


def _price(_: Job | ServingJob, __: str, price: str | None) -> Origin:
    return "price", price


def _unit(_: Job | ServingJob, __: str, ___: str | None) -> Origin:
    return "constant", None


_KINDS: Mapping[str, Callable[[Job | ServingJob, str, str | None], Origin]] = {
    "model": _model,
    "device": _device,
    "links": _links,
    "framework": _software,
    "engine": _software,
    "optimizer": _optimizer,
    "fitted": _fitted,
    "price": _price,
    "unit": _unit,
}
