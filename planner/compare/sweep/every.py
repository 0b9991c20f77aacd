"""Every value that a field of words may have in a plan: what 'all' means where it is swept."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from estimator.errors import PlanError
from estimator.plan.layouts import RECOMPUTE
from estimator.plan.schema import CacheDtype, Plan
from knowledge.engines import engine, engines_known, runs_on
from knowledge.jobs.serving import offered_formats, serving_job
from knowledge.jobs.training import job_of
from knowledge.machines.catalogue import find_accelerator
from knowledge.offers import movable_to

ALL = "all"
# What leaves a field to be chosen is none of its values.
_OPEN = "auto"
_FEW = 8


def values_of_field(plan: Plan, path: str, argument: str) -> list[Any]:
    """The frameworks or engines that the run can be moved to, the formats that its engine has, else all that the
    field's type lists. Raises PlanError for `argument` where the field has no list."""
    if path == "workload.framework":
        return movable_to(job_of(plan.patch({"workload.framework": _OPEN})))
    if path == "workload.engine":
        accelerator = find_accelerator(str(plan.cluster.accelerator)).value
        return [name for name in engines_known() if runs_on(engine(name, accelerator=accelerator), accelerator)]
    room, _, name = path.rpartition(".")
    if path in ("workload.weight_dtype", "workload.kv_dtype"):
        weights = path == "workload.weight_dtype"
        job = serving_job(plan.patch({path: None if weights else _OPEN}))
        if weights:
            return offered_formats(job.architecture, job.engine, job.machine.accelerator)
        return [kind for kind in get_args(CacheDtype) if kind in job.engine.cache_formats]
    if path == "layout.recompute":
        return [kind for kind in RECOMPUTE if kind != "block"]
    part: BaseModel = getattr(plan, room) if room else plan
    info = type(part).model_fields[name]
    values = [value for value in _listed(info.annotation) if value != _OPEN] or _bounded(info)
    if not values:
        raise PlanError(argument, f"{path} has no list of values that {ALL!r} could mean", ["a list", "a range"])
    return values


def _bounded(info: FieldInfo) -> list[Any]:
    """The few whole numbers between a field's bounds: ZeRO 0 to 3."""
    bounds = {
        name: value
        for part in info.metadata
        for name in ("ge", "le")
        if (value := getattr(part, name, None)) is not None
    }
    if len(bounds) < 2 or bounds["le"] - bounds["ge"] > _FEW:
        return []
    return list(range(int(bounds["ge"]), int(bounds["le"]) + 1))


def _listed(hint: Any) -> list[Any]:
    """The values of the literals in a type."""
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [value for part in get_args(hint) for value in _listed(part)]
