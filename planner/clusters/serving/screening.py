"""Clusters for a serving plan: sized for its load on every accelerator."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from estimator.errors import PlanError
from estimator.machine.hardware import Accelerator
from estimator.plan.schema import Plan
from knowledge.engines import SERVERS, engine, kernels_for, usual_engine
from knowledge.evidence import served_before
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
from planner.serving.sizing import SizeServingRequest, sized

_KINDS = 4
# What one replica costs less than two: with another server a load may take half.
_A_REPLICA = 2.0
_TOO_SLOW = "too slow for a person to wait for, unlike others"


def screened(ask: Asked) -> Screened:
    """What serves the load within the limits. Raises PlanError where the plan names no load."""
    workload = ask.plan.inference
    if workload.request_rate is None and workload.concurrency is None:
        raise PlanError("request_rate", "is required, or concurrency: the load to serve", ["request_rate=10"])
    sized: list[tuple[Assumed, list[Candidate]]] = []
    refused: Refused = []
    dear: list[Accelerator] = []
    tried = 0
    for device in ask.devices:
        if not ask.estimates(device.id):
            refused.append(unpriced(device.id))
            continue
        paid = _paid(ask, device)
        if paid is not None and paid < (ask.count or 1):
            dear.append(device)
            continue
        here = _on(ask, device, paid)
        tried += here.tried
        sized.append((here.assumed, here.fitting))
        if here.refusal is not None and paid is None:
            refused.append(here.refusal)
        elif here.refusal is not None:
            dear.append(device)
    limits = max((assumed for assumed, fitting in sized if fitting), key=len, default=[])
    candidates = [each for assumed, fitting in sized if len(assumed) == len(limits) for each in fitting]
    for here in _other_servers(ask, candidates):
        tried += here.tried
        candidates += here.fitting if len(here.assumed) == len(limits) else []
    slow = {each.shape.accelerator.id for assumed, fitting in sized if len(assumed) < len(limits) for each in fitting}
    refused += [Refusal(name, "too_slow", _TOO_SLOW) for name in slow]

    def refusals() -> Iterator[Refusal]:
        yield from refused
        for device in dear:
            if refusal := _on(ask, device, None).refusal:
                yield refusal

    return Screened(candidates, refusals, tried, told=told(limits))


@dataclass(frozen=True)
class _Sized:
    """What was assumed of limits, what serves the load, or why nothing does, and how many kinds were estimated."""

    assumed: Assumed
    fitting: list[Candidate]
    refusal: Refusal | None = None
    tried: int = 0


def _other_servers(ask: Asked, candidates: list[Candidate]) -> Iterator[_Sized]:
    """What the servers that are not the usual one take on devices that may come first with them, where it is less than
    with the usual one: a few percent of speed can be a whole replica."""
    if "engine" in ask.plan.inference.model_fields_set:
        return
    model, _ = find_architecture(ask.plan.model)
    money: dict[str, float] = {}
    for each in candidates:
        money[each.shape.accelerator.id] = min(each.money, money.get(each.shape.accelerator.id, math.inf))
    least = min(money.values(), default=math.inf)
    devices = {each.shape.accelerator.id: each.shape.accelerator for each in candidates}
    for name, usual in money.items():
        if not math.isfinite(usual) or usual > _A_REPLICA * least:
            continue
        paid = _paid(ask, devices[name])
        tried = {each.changes["workload.engine"] for each in candidates if each.shape.accelerator.id == name}
        for server in SERVERS:
            if server in tried or not kernels_for(engine(server, None, devices[name]), model):
                continue
            asking = replace(ask, plan=ask.plan.patch({"workload.engine": server}))
            here = _on(asking, devices[name], paid)
            cheaper = sorted((each.money, each.time, at) for at, each in enumerate(here.fitting) if each.money < usual)
            yield replace(here, fitting=[here.fitting[at] for *_, at in cheaper[:1]])


def _on(ask: Asked, device: Accelerator, paid: int | None) -> _Sized:
    """The sizes on a device, of no more than are `paid` for."""
    plan, why = _settled(ask.plan, device)
    if why:
        return _Sized([], [], Refusal(device.id, "no_framework", why))
    most = ask.count or min(
        (each for each in (paid, ask.most(plan.cluster.per_node or device.per_node, device)) if each is not None),
        default=None,
    )
    there = plan.patch({"cluster.count": most, "cluster.accelerator": device.id}).given()
    try:
        wanted = {"plan": there, "top": _KINDS}
        result = sized(SizeServingRequest.model_validate(wanted), beyond=False)
    except PlanError as error:
        return _Sized([], [], Refusal(device.id, "no_layout", " ".join(str(error).split())))
    every = [candidate for size in result.sizes for candidate in _candidate(ask, device, plan, size)]
    limit = ask.max_usd_per_hour
    fitting = [each for each in every if limit is None or (each.best is not None and each.best.usd <= limit)]
    refusal = None if fitting else _refusal(device, every, bool(result.sizes), result.why)
    return _Sized(kept(result.assumptions), fitting, refusal, result.candidates)


def _paid(ask: Asked, device: Accelerator) -> int | None:
    """How many devices the limit of an hour pays for at the most, by the least that one costs in any offer; None
    without a limit."""
    limit = ask.max_usd_per_hour
    if limit is None or ask.buys:
        return None
    each = [price.usd_per_hour / price.count for price in ask.offered(device.id) if price.usd_per_hour is not None]
    return int(limit / min(each)) if each and min(each) > 0.0 else None


def _settled(plan: Plan, device: Accelerator) -> tuple[Plan, str | None]:
    """The plan with an engine and a weight format for the device, or why there is none."""
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
    """The size as a candidate; none where the number is not the asked one."""
    sold = purchase(device) if ask.buys else None
    count = sold.bought(size.devices) if sold else size.devices
    shape = Shape(device, count, (sold and sold.per_node(device)) or plan.cluster.per_node)
    per_replica = size.devices_per_replica
    if count % per_replica:
        # What is bought by the rack is no whole number of replicas.
        return []
    rows = hourly_rows(ask, shape, min(shape.node, per_replica), per_replica > shape.node)
    best = rows[0] if rows else None
    hours = HOURS_PER_MONTH
    if ask.plan.inference.requests is not None:
        hours = ask.plan.inference.requests / size.requests_per_s / 3600.0
    chosen = {"workload.engine": size.engine, "workload.weight_dtype": size.weight_dtype, "layout": size.layout}
    return [
        Candidate(
            shape=shape,
            changes=shape.changes | chosen,
            best=best,
            hours=hours,
            money=math.inf if best is None else best.money(hours),
            time=math.inf if size.e2e_s is None else size.e2e_s,
            measured=served_before(size.engine, device.family) > 0,
        )
    ]


def _refusal(device: Accelerator, every: list[Candidate], sized: bool, why: list[str]) -> Refusal:
    """`every` is what would serve the load beyond the limit of an hour, `sized` whether any number would."""
    name = device.id
    if not every and sized:
        return Refusal(name, "not_offered", "is sold in numbers that are no whole replicas")
    if not every:
        last = why[-1]
        short = "does not fit in any replica tried" in last or "more than the" in last
        return Refusal(name, "does_not_fit" if short else "too_slow", last)
    hourly = [each.best.usd for each in every if each.best is not None]
    return Refusal(name, "over_hourly", OVER_HOURLY, min(hourly)) if hourly else Refusal(name, "no_price", NO_HOURLY)
