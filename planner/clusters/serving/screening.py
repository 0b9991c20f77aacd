"""Clusters for a serving plan: sized for its load on every accelerator."""

from __future__ import annotations

import math
from typing import Any

from estimator.errors import PlanError
from estimator.machine.hardware import Accelerator
from estimator.plan.schema import Plan
from knowledge.engines import engine, kernels_for, usual_engine
from knowledge.fitted.serving import serving_factors
from knowledge.jobs.serving import offered_formats, published
from knowledge.models.catalogue import find_architecture
from planner.clusters.candidates import (
    NO_HOURLY,
    OVER_HOURLY,
    Candidate,
    Refusal,
    Refused,
    Screened,
    Shape,
    hourly_rows,
    unpriced,
)
from planner.clusters.request import Asked
from planner.money.purchase import purchase
from planner.serving.patience import Assumed, kept, told
from planner.serving.prices import HOURS_PER_MONTH
from planner.serving.results import ServingSize
from planner.serving.sizing import SizeServingRequest, size_serving

_KINDS = 4
_TOO_SLOW = "too slow for a person to wait for, unlike others"


def screened(ask: Asked) -> Screened:
    """What serves the load within the limits. Raises PlanError where the plan names no load."""
    workload = ask.plan.inference
    if workload.request_rate is None and workload.concurrency is None:
        raise PlanError("request_rate", "is required, or concurrency: the load to serve", ["request_rate=10"])
    sized: list[tuple[Assumed, list[Candidate]]] = []
    refused: Refused = []
    tried = 0
    for device in ask.devices:
        if not ask.estimates(device.id):
            refused.append(unpriced(device.id))
            continue
        plan, why = _settled(ask.plan, device)
        if why:
            refused.append(Refusal(device.id, "no_framework", why))
            continue
        most = ask.count or ask.most(plan.cluster.per_node or device.per_node, device)
        plan_there = plan.patch({"cluster.count": most, "cluster.accelerator": device.id})
        try:
            result = size_serving(
                SizeServingRequest.model_validate(
                    {"plan": plan_there.given(), "slo_statistic": ask.statistic, "top": _KINDS}
                )
            )
        except PlanError as error:
            refused.append(Refusal(device.id, "no_layout", " ".join(str(error).split())))
            continue
        tried += result.candidates
        fitting = [candidate for size in result.sizes for candidate in _candidate(ask, device, plan, size)]
        sized.append((kept(result.assumptions), fitting))
        if not fitting:
            refused.append(_refusal(device, result.sizes, result.why))
    limits = max((assumed for assumed, fitting in sized if fitting), key=len, default=[])
    candidates = [each for assumed, fitting in sized if len(assumed) == len(limits) for each in fitting]
    slow = {each.shape.accelerator.id for assumed, fitting in sized if len(assumed) < len(limits) for each in fitting}
    refused += [Refusal(name, "too_slow", _TOO_SLOW) for name in slow]
    return Screened(candidates, refused, tried, told=told(limits))


def _settled(plan: Plan, device: Accelerator) -> tuple[Plan, str | None]:
    """The plan with an engine and a weight format for the device, or why there is none. One server is sized: the others
    take as many devices, within a few percent of speed."""
    model, _ = find_architecture(plan.model)
    named = plan.inference.model_fields_set
    weights = plan.inference.weight_dtype if "weight_dtype" in named else published(model)
    name = plan.inference.engine if "engine" in named else usual_engine(model, device, weights)
    if name is None:
        return plan, "none of the engines that are estimated runs on it"
    runs = engine(name, plan.inference.software_version, device)
    if not kernels_for(runs, model):
        return plan, f"{name} does not run on it"
    changes: dict[str, Any] = {"workload.engine": name}
    if "weight_dtype" not in named:
        changes["workload.weight_dtype"] = offered_formats(model, runs, device)[0]
    return plan.patch(changes), None


def _candidate(ask: Asked, device: Accelerator, plan: Plan, size: ServingSize) -> list[Candidate]:
    """The size as a candidate; none where its hourly price is beyond the limit, or the number is not the asked one."""
    sold = purchase(device) if ask.buys else None
    count = sold.bought(size.devices) if sold else size.devices
    shape = Shape(device, count, (sold and sold.per_node(device)) or plan.cluster.per_node)
    per_replica = size.devices_per_replica
    if count % per_replica:
        # What is bought by the rack is no whole number of replicas.
        return []
    rows = hourly_rows(ask, shape, min(shape.node, per_replica), per_replica > shape.node)
    best = rows[0] if rows else None
    limit = ask.max_usd_per_hour
    if limit is not None and (best is None or best.usd > limit):
        return []
    hours = HOURS_PER_MONTH
    if ask.plan.inference.requests is not None:
        hours = ask.plan.inference.requests / size.requests_per_s / 3600.0
    factors = serving_factors(size.engine, device.family)
    chosen = {"workload.engine": size.engine, "workload.weight_dtype": size.weight_dtype, "layout": size.layout}
    return [
        Candidate(
            shape=shape,
            changes=shape.changes | chosen,
            best=best,
            hours=hours,
            money=math.inf if best is None else best.money(hours),
            time=math.inf if size.e2e_s is None else size.e2e_s,
            measured=factors.engine_measured and factors.device_measured,
        )
    ]


def _refusal(device: Accelerator, sizes: list[ServingSize], why: list[str]) -> Refusal:
    name = device.id
    if not sizes:
        last = why[-1]
        short = "does not fit in any replica tried" in last or "more than the" in last
        return Refusal(name, "does_not_fit" if short else "too_slow", last)
    hourly = [size.usd_per_hour for size in sizes if size.usd_per_hour is not None]
    return Refusal(name, "over_hourly", OVER_HOURLY, min(hourly)) if hourly else Refusal(name, "no_price", NO_HOURLY)
