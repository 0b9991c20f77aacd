"""A training cluster as an option: estimated exactly, as the plan that its patch makes."""

from __future__ import annotations

from typing import Any

import numpy as np

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.jobs.training import job_of
from launchers.choice import usual_targets
from launchers.pieces import Rendered
from launchers.render import render
from planner.clusters.candidates import Candidate, ClusterChoice, Place, beside, network_of, notes_of
from planner.clusters.request import Asked
from planner.clusters.results import ClusterOption
from planner.clusters.training.screening import known_clusters
from planner.estimates import PlanEstimate
from planner.files.expressible import expressible
from planner.money.offers import offer, offers, open_words
from planner.training.memory import memory_of
from planner.training.pinned import chosen_alone, quick_estimate
from planner.training.planned import Planned, best_layout, plan_training
from planner.training.run import run_of

# Fields that say what is trained: with others it would be another run, not another way to the same.
_OF_THE_RUN = ("stage", "method", "seq_len")


def option_of(ask: Asked, candidate: Candidate, writable: bool = False) -> ClusterChoice | None:
    """The option as an estimate of the very plan that its patch makes; None where it does not fit after all.

    `writable`: with a layout and a framework that some launch target can say, None where there is none.
    """
    shape = candidate.shape
    price = candidate.best.price if candidate.best else None
    usual = job_of(ask.plan.patch(shape.changes)).machine.network.bandwidth_per_node
    network = network_of(ask, price, shape, usual)
    plan = ask.plan.patch(shape.changes | network)
    if writable:
        expressed = _expressed(plan)
        if expressed is None:
            return None
        changes = expressed
    else:
        changes = dict(candidate.changes) if candidate.settled else _best(ask, shape.place, network, plan)
    changes = shape.changes | network | changes
    if price is not None:
        changes["goal.provider"] = price.provider
    planned = plan_training(ask.plan.patch(changes))
    if not planned.fits:
        return None
    return ClusterChoice(_option(ask, candidate, planned, changes), planned, candidate)


def _best(ask: Asked, place: Place, network: dict[str, Any], plan: Plan) -> dict[str, Any]:
    """The best layout of the plan, looked for once whatever its limits."""
    known, key = known_clusters(ask).chosen, (place, str(network))
    if key not in known:
        known[key] = chosen_alone(*best_layout(plan))
    return known[key]


def _expressed(plan: Plan) -> dict[str, Any] | None:
    """What is chosen, some of it otherwise so that a launch target writes the plan."""
    try:
        training = job_of(plan).training
        same = {f"workload.{name}": getattr(training, name) for name in _OF_THE_RUN}
        expressed = expressible(plan.patch(same), _rendered, quick_estimate, only_fitting=True)
    except PlanError:
        return None
    planned = expressed.estimate
    assert isinstance(planned, Planned)
    changes = {row.field: row.value for row in expressed.changes}
    return changes | chosen_alone(planned.job, planned.estimates.layouts.take(np.array([planned.index])))


def _rendered(estimate: PlanEstimate) -> Rendered:
    assert isinstance(estimate, Planned)
    plan = estimate.settled_plan
    return render(plan, usual_targets(plan), model_id=estimate.job.architecture.id)


def _option(ask: Asked, candidate: Candidate, planned: Planned, changes: dict[str, Any]) -> ClusterOption:
    shape = candidate.shape
    joined = shape.count > shape.node
    price = candidate.best.price if candidate.best else None
    job, memory, run = planned.job, memory_of(planned), run_of(planned)
    step_s = float(planned.estimates.step.seconds[planned.index])
    paid_h = run.hours if run else 1.0
    listed = [offer(price, shape.count, paid_h)] if price and ask.buys else offers(planned, paid_h)
    chosen_offer = next((row for row in listed if row.usd is not None), None) if price else None
    hourly = chosen_offer.usd_per_hour if chosen_offer else None
    is_open = bool(chosen_offer and chosen_offer.size_open)
    others = beside(ask, candidate, shape.node, joined)
    tokens_per_s = job.tokens_per_step / step_s
    usd = chosen_offer.usd if chosen_offer and run else None
    limits, spent_usd = ask.plan.goal, others.spent(usd)
    allowed_h = limits.hours_on(shape.count)
    return ClusterOption(
        accelerator=shape.accelerator.id,
        count=shape.count,
        per_node=job.machine.per_node,
        nodes=job.machine.nodes,
        provider=chosen_offer.provider if chosen_offer else None,
        instance=chosen_offer.instance if chosen_offer else None,
        instances=chosen_offer.instances if chosen_offer else None,
        price_date=chosen_offer.price_date if chosen_offer else None,
        stale=chosen_offer.stale if chosen_offer else None,
        size_open=is_open,
        kw=ask.kw(shape.accelerator, shape.count),
        usd_per_hour=hourly,
        hours=run.hours if run else None,
        low_hours=run.low_hours if run else None,
        high_hours=run.high_hours if run else None,
        usd=usd,
        low_usd=hourly * run.low_hours if run and hourly is not None else None,
        high_usd=hourly * run.high_hours if run and hourly is not None else None,
        usd_per_million_tokens=_per_million(usd, hourly, tokens_per_s, run.tokens if run else None),
        tokens_per_s=tokens_per_s,
        framework=job.framework.name,
        layout=planned.estimates.layouts.row(planned.index),
        summary=planned.estimates.layouts.summary(planned.index),
        micro_batch=int(planned.estimates.layouts.micro_batch[planned.index]),
        global_batch=job.global_batch,
        step_s=step_s,
        mfu=float(planned.estimates.mfu[planned.index]),
        per_device_bytes=memory.per_device_bytes,
        headroom_bytes=memory.capacity_bytes - memory.high_bytes,
        tight=memory.tight,
        fits_deadline=None if allowed_h is None or run is None else run.hours <= allowed_h,
        fits_budget=None if limits.budget_usd is None or spent_usd is None else spent_usd <= limits.budget_usd,
        measured=job.calibration.device_measured,
        notes=notes_of(price, shape.node, shape.count, joined)
        + ([open_words([chosen_offer.provider], shape.count)] if chosen_offer and is_open else []),
        patch=changes,
        other_offers=others.offers,
        capex_usd=others.capex_usd,
        years_usd=others.years_usd,
        pays_from_hours_per_year=others.pays_from_h,
    )


def _per_million(usd: float | None, hourly: float | None, tokens_per_s: float, tokens: float | None) -> float | None:
    """USD per million tokens: of the run's, as its last step may be partly empty, or at the rate."""
    if tokens and usd is not None:
        return usd / (tokens / 1e6)
    return None if hourly is None else hourly / (tokens_per_s * 3600.0 / 1e6)
