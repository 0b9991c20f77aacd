"""A serving cluster as an option: estimated exactly, as the plan that its patch makes."""

from __future__ import annotations

from typing import Any

from estimator.machine.hardware import Machine, Price
from knowledge.evidence import served_before
from planner.clusters.candidates import Candidate, ClusterChoice, beside, network_of, notes_of
from planner.clusters.request import Asked
from planner.clusters.results import ClusterOption
from planner.money.offers import offer
from planner.result import ProviderCost
from planner.serving.planned import Served, latency_of, memory_of, per_replica, plan_serving, throughput_of
from planner.serving.prices import HOURS_PER_MONTH, cost_of, offers_of


def option_of(ask: Asked, candidate: Candidate) -> ClusterChoice | None:
    """The option as an estimate of the very plan that its patch makes; None where it does not do after all."""
    price = candidate.best.price if candidate.best else None
    changes = dict(candidate.changes)
    if price is not None:
        changes["goal.provider"] = price.provider
    served = plan_serving(ask.plan.patch(changes))
    network = network_of(ask, price, candidate.shape, served.job.machine.network.bandwidth_per_node)
    if _spans_nodes(served) and network:
        changes |= network
        served = plan_serving(ask.plan.patch(changes))
    if not served.fits or served.meets_slo is False:
        return None
    return ClusterChoice(_option(ask, candidate, served, changes), served, candidate)


def _option(ask: Asked, candidate: Candidate, served: Served, changes: dict[str, Any]) -> ClusterOption:
    job, machine, goal = served.job, served.job.machine, ask.plan.goal
    price = candidate.best.price if candidate.best else None
    together = min(machine.per_node, per_replica(served.estimates, served.entry))
    chosen = _offer(ask, price, machine, together)
    hourly = chosen.usd_per_hour if chosen else None
    joined = _spans_nodes(served)
    others = beside(ask, candidate, together, joined)
    memory, latency, speed = memory_of(served), latency_of(served), throughput_of(served)
    run = job.inference.requests is not None
    month_h = HOURS_PER_MONTH * goal.free_share
    hours = (job.inference.requests or 0) / speed.requests_per_s / 3600.0 if run else month_h
    spread = 1.0 + job.factors.throughput_spread if run else 1.0
    usd = None if hourly is None else hourly * hours
    spent_usd, deployments = others.spent(usd), served.estimates.deployments
    rates = (speed.output_tokens_per_s, speed.total_tokens_per_s, speed.requests_per_s)
    money = cost_of(hourly, *rates, price, goal.free_share) if hourly else None
    return ClusterOption(
        accelerator=machine.accelerator.id,
        count=machine.count,
        per_node=machine.per_node,
        nodes=machine.nodes,
        provider=chosen.provider if chosen else None,
        instance=chosen.instance if chosen else None,
        instances=chosen.instances if chosen else None,
        price_date=chosen.price_date if chosen else None,
        stale=chosen.stale if chosen else None,
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
        fits_budget=None if goal.budget_usd is None or spent_usd is None else spent_usd <= goal.budget_usd,
        measured=served_before(job.engine.name, job.machine.accelerator.family) > 0,
        notes=notes_of(price, together, machine.count, joined),
        patch=changes,
        other_offers=others.offers,
        capex_usd=others.capex_usd,
        years_usd=others.years_usd,
        pays_from_hours_per_year=others.pays_from_h,
    )


def _offer(ask: Asked, price: Price | None, machine: Machine, together: int) -> ProviderCost | None:
    """For an hour, of the provider that was chosen or as it is bought; None without a price."""
    if price is None:
        return None
    if ask.buys:
        return offer(price, machine.count, 1.0)
    listed = offers_of(machine.accelerator.id, price.provider, together, machine.count)
    return next((row for row in listed if row.usd_per_hour is not None), None)


def _summary(served: Served) -> str:
    """2 replicas of 4 devices, fp8."""
    copies, each = int(served.estimates.deployments.replicas[served.entry]), per_replica(served.estimates, served.entry)
    words = [f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in ((copies, "replica"), (each, "device"))]
    return f"{' of '.join(words)}, {served.job.inference.weight_dtype}"


def _spans_nodes(served: Served) -> bool:
    """Whether one replica is larger than a node: only then does the network between nodes matter."""
    return per_replica(served.estimates, served.entry) > served.job.machine.per_node
