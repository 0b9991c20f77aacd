"""Clusters for a serving plan: sized for its load on every accelerator, the best estimated exactly."""

from __future__ import annotations

import math
from typing import Any

from estimator.errors import PlanError
from estimator.machine.hardware import Accelerator
from estimator.plan.schema import Plan
from knowledge.engines import engine, runs_on
from knowledge.models.catalogue import find_architecture
from planner.clusters.candidates import (
    NO_HOURLY,
    OVER_HOURLY,
    Candidate,
    Refusal,
    Refused,
    Shape,
    hourly_rows,
    network_of,
    notes_of,
    others,
    unpriced,
)
from planner.clusters.request import Asked
from planner.clusters.results import ClusterOption
from planner.serving.planned import Served, latency_of, memory_of, per_replica, plan_serving, throughput_of
from planner.serving.prices import HOURS_PER_MONTH, cost_of, offers_of
from planner.serving.results import ServingSize
from planner.serving.sizing import SizeServingRequest, size_serving

# The server that is sized where the plan names none; the others take as many devices, within a few percent of speed.
_SERVERS = ("vllm", "sglang", "trtllm", "llamacpp")
_KINDS = 4


def screened(ask: Asked) -> tuple[list[Candidate], Refused, int]:
    """(What serves the load within the limits, what is left out and why, how many kinds of replica were sized)."""
    workload = ask.plan.inference
    if workload.request_rate is None and workload.concurrency is None:
        raise PlanError("request_rate", "is required, or concurrency: the load to serve", ["request_rate=10"])
    find_architecture(ask.plan.model)
    found: list[Candidate] = []
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
        most = ask.count or ask.most(plan.cluster.per_node or device.per_node)
        asked = plan.patch({"cluster.count": most, "cluster.accelerator": device.id})
        try:
            result = size_serving(
                SizeServingRequest.model_validate(
                    {"plan": asked.given(), "slo_statistic": ask.statistic, "top": _KINDS}
                )
            )
        except PlanError as error:
            refused.append(Refusal(device.id, "no_layout", " ".join(str(error).split())))
            continue
        tried += result.candidates
        here = [one for size in result.sizes for one in _candidate(ask, device, plan, size)]
        found += here
        if not here:
            refused.append(_refusal(device, result.sizes, result.why))
    return found, refused, tried


def _settled(plan: Plan, device: Accelerator) -> tuple[Plan, str | None]:
    """The plan with an engine and a weight format for the device, or why there is none."""
    given = plan.inference.model_fields_set
    changes: dict[str, Any] = {}
    name = plan.inference.engine
    if "engine" not in given:
        runs = [name for name in _SERVERS if runs_on(engine(name, None, device), device)]
        if not runs:
            return plan, "none of the engines that are estimated runs on it"
        name = changes["workload.engine"] = runs[0]
    elif not runs_on(engine(name, plan.inference.software_version, device), device):
        return plan, f"{name} does not run on it"
    if "weight_dtype" not in given:
        changes["workload.weight_dtype"] = "bf16" if "bf16" in device.peak_flops else "fp16"
    return plan.patch(changes), None


def _candidate(ask: Asked, device: Accelerator, plan: Plan, size: ServingSize) -> list[Candidate]:
    """The size as a candidate; none where its hourly price is beyond the limit, or the number is not the asked one."""
    shape = Shape(device, size.devices, plan.cluster.per_node)
    each = size.devices_per_replica
    rows = hourly_rows(ask, shape, min(shape.node, each), each > shape.node)
    best = rows[0] if rows else None
    limit = ask.max_usd_per_hour
    if limit is not None and (best is None or best.usd > limit):
        return []
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
            money=math.inf if best is None else best.usd * hours,
            time=math.inf if size.e2e_s is None else size.e2e_s,
        )
    ]


def _refusal(device: Accelerator, sizes: list[ServingSize], why: list[str]) -> Refusal:
    name = device.id
    if not sizes:
        last = why[-1]
        short = "fits in no replica" in last or "more than the" in last
        return Refusal(name, "does_not_fit" if short else "too_slow", last)
    hourly = [size.usd_per_hour for size in sizes if size.usd_per_hour is not None]
    return Refusal(name, "over_hourly", OVER_HOURLY, min(hourly)) if hourly else Refusal(name, "no_price", NO_HOURLY)


def exact(ask: Asked, candidate: Candidate) -> tuple[ClusterOption, Served] | None:
    """The option as an estimate of the very plan that its patch makes; None where it does not do after all."""
    shape = candidate.shape
    price = candidate.best.price if candidate.best else None
    changes = dict(candidate.changes)
    if price is not None:
        changes["goal.provider"] = price.provider
    plain = plan_serving(ask.plan.patch(changes), ask.statistic)
    network = network_of(ask, price, shape, plain.job.machine.network.bandwidth_per_node)
    if _spans_nodes(plain) and network:
        changes |= network
        served = plan_serving(ask.plan.patch(changes), ask.statistic)
    else:
        served = plain
    if not served.fits or served.meets_slo is False:
        return None
    job, machine = served.job, served.job.machine
    together = min(machine.per_node, per_replica(served.estimates, served.entry))
    provider = price.provider if price else None
    listed = offers_of(machine.accelerator.id, provider, together, machine.count) if price else []
    offer = next((row for row in listed if row.usd_per_hour is not None), None)
    hourly = offer.usd_per_hour if offer else None
    memory, latency, speed = memory_of(served), latency_of(served), throughput_of(served)
    run = job.inference.requests is not None
    hours = (job.inference.requests or 0) / speed.requests_per_s / 3600.0 if run else HOURS_PER_MONTH
    spread = 1.0 + job.factors.throughput_spread if run else 1.0
    usd = None if hourly is None else hourly * hours
    rates = (speed.output_tokens_per_s, speed.total_tokens_per_s, speed.requests_per_s)
    money = cost_of(hourly, *rates, price) if hourly else None
    goal = ask.plan.goal
    these = served.estimates.deployments
    joined = _spans_nodes(served)
    rows = hourly_rows(ask, shape, together, joined)
    option = ClusterOption(
        accelerator=machine.accelerator.id,
        count=machine.count,
        per_node=machine.per_node,
        nodes=machine.nodes,
        provider=offer.provider if offer else None,
        instance=offer.instance if offer else None,
        instances=offer.instances if offer else None,
        price_date=offer.price_date if offer else None,
        usd_per_hour=hourly,
        hours=hours,
        low_hours=hours / spread,
        high_hours=hours * spread,
        usd=usd,
        low_usd=None if hourly is None else hourly * hours / spread,
        high_usd=None if hourly is None else hourly * hours * spread,
        usd_per_million_tokens=money.usd_per_million_tokens if money else None,
        tokens_per_s=speed.total_tokens_per_s,
        engine=job.engine.name,
        weight_dtype=job.inference.weight_dtype,
        layout=served.layout,
        summary=f"{int(these.replicas[served.entry])} x {per_replica(served.estimates, served.entry)} devices, "
        f"{job.inference.weight_dtype}, {job.engine.name}",
        replicas=int(these.replicas[served.entry]),
        ttft_s=latency.ttft_s,
        tpot_s=latency.tpot_s,
        e2e_s=latency.e2e_s,
        output_tokens_per_s=speed.output_tokens_per_s,
        requests_per_s=speed.requests_per_s,
        meets_slo=served.meets_slo,
        per_device_bytes=memory.per_device_bytes,
        headroom_bytes=None,
        fits_deadline=None if goal.deadline_h is None or not run else hours <= goal.deadline_h,
        fits_budget=None if goal.budget_usd is None or usd is None else usd <= goal.budget_usd,
        measured=job.factors.engine_measured and job.factors.device_measured,
        other_offers=others(rows),
        notes=notes_of(price, together, machine.count, joined),
        patch=changes,
    )
    return option, served


def _spans_nodes(served: Served) -> bool:
    """Whether one replica is larger than a node: only then does the network between nodes matter."""
    return per_replica(served.estimates, served.entry) > served.job.machine.per_node
