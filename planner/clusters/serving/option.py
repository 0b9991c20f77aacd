"""A serving cluster as an option: estimated exactly, as the plan that its patch makes."""

from __future__ import annotations

from typing import Any

from planner.clusters.candidates import Candidate, ClusterChoice, hourly_rows, network_of, notes_of, others
from planner.clusters.request import Asked
from planner.clusters.results import ClusterOption
from planner.serving.planned import Served, latency_of, memory_of, per_replica, plan_serving, throughput_of
from planner.serving.prices import HOURS_PER_MONTH, cost_of, offers_of


def option_of(ask: Asked, candidate: Candidate) -> ClusterChoice | None:
    """The option as an estimate of the very plan that its patch makes; None where it does not do after all."""
    price = candidate.best.price if candidate.best else None
    changes = dict(candidate.changes)
    if price is not None:
        changes["goal.provider"] = price.provider
    served = plan_serving(ask.plan.patch(changes), ask.statistic)
    network = network_of(ask, price, candidate.shape, served.job.machine.network.bandwidth_per_node)
    if _spans_nodes(served) and network:
        changes |= network
        served = plan_serving(ask.plan.patch(changes), ask.statistic)
    if not served.fits or served.meets_slo is False:
        return None
    return ClusterChoice(_option(ask, candidate, served, changes), served)


def _option(ask: Asked, candidate: Candidate, served: Served, changes: dict[str, Any]) -> ClusterOption:
    job, machine, goal = served.job, served.job.machine, ask.plan.goal
    price = candidate.best.price if candidate.best else None
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
    deployments = served.estimates.deployments
    joined = _spans_nodes(served)
    rows = hourly_rows(ask, candidate.shape, together, joined)
    return ClusterOption(
        accelerator=machine.accelerator.id,
        count=machine.count,
        per_node=machine.per_node,
        nodes=machine.nodes,
        provider=offer.provider if offer else None,
        instance=offer.instance if offer else None,
        instances=offer.instances if offer else None,
        price_date=offer.price_date if offer else None,
        stale=offer.stale if offer else None,
        kw=ask.kw(machine.accelerator, machine.count),
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
        summary=_summary(served),
        replicas=int(deployments.replicas[served.entry]),
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


def _summary(served: Served) -> str:
    """2 replicas of 4 devices, fp8."""
    copies, each = int(served.estimates.deployments.replicas[served.entry]), per_replica(served.estimates, served.entry)
    words = [f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in ((copies, "replica"), (each, "device"))]
    return f"{' of '.join(words)}, {served.job.inference.weight_dtype}"


def _spans_nodes(served: Served) -> bool:
    """Whether one replica is larger than a node: only then does the network between nodes matter."""
    return per_replica(served.estimates, served.entry) > served.job.machine.per_node
