"""What a run costs, on demand and otherwise, here and elsewhere, and what is not in the price."""

from __future__ import annotations

from estimator.errors import PlanError
from estimator.money.cost import storage_usd
from estimator.plan.schema import Inference
from knowledge.prices.ownership import storage_price
from planner.evidence import evidence_of
from planner.money.bill import assumed, chosen_figures, energy_facts, of_providers, per
from planner.money.choice import Chosen, choose, not_included
from planner.money.offers import in_order, offers
from planner.money.owned import owned_cost
from planner.money.results import CostEstimate, CostPart
from planner.money.serving import bill_of
from planner.money.terms import CostTerms, interruptions_of
from planner.rejected_rows import rejected_prices_of
from planner.requests import EitherRequest
from planner.result import Assumption
from planner.training.planned import Planned, plan_training, run_of, warnings_of

# The last checkpoint, and the one before it in case the last is broken.
_KEPT = 2


class CostRequest(EitherRequest, CostTerms):
    """A plan, and the terms on which its devices are paid for."""


def estimate_cost(request: CostRequest) -> CostEstimate:
    """Estimate what a run costs."""
    plan = request.to_plan()
    if isinstance(plan.workload, Inference):
        return bill_of(plan, request.usd_per_device_hour, request)
    kind, place = request.kind(plan.goal.provider), request.place
    planned = plan_training(plan)
    run = run_of(planned)
    if run is None:
        problem = "is required to know the length of the run, or dataset_samples, or steps"
        raise PlanError("workload.dataset_tokens", problem, ["1B", "300M"])
    machine, goal = planned.job.machine, planned.job.plan.goal
    hours = (run.hours, run.low_hours, run.high_hours)
    interruptions, spot_assumed = interruptions_of(
        request, run.hours, machine.nodes, planned.host_needs.save.resumable_bytes
    )
    listed = offers(planned, run.hours, request.offered(interruptions, machine.per_node))
    rows = in_order(of_providers(listed, request.providers), kind)
    owned = owned_cost(machine, request, place, hours)
    named = goal.provider is not None
    chosen = choose(kind, request, rows, owned, hours, machine.count, named)
    parts, stored = [*chosen.parts], _storage(planned, request, chosen)
    usd, kept = chosen.usd, 0.0
    if stored:
        kept = stored[0].usd
        parts.append(stored[0])
    facts = energy_facts(request)
    size = planned.job.run
    epochs = size.epochs if size else None
    return CostEstimate(
        plan=planned.complete_plan,
        assumptions=assumed(planned.assumptions, chosen, rows, spot_assumed, facts, stored[1] if stored else []),
        tokens=run.tokens,
        steps=run.steps,
        epochs=epochs,
        **chosen_figures(chosen, machine, goal, request, rows, owned, facts),
        usd_total=None if usd is None else usd + kept,
        parts=[] if usd is None else parts,
        usd_per_step=per(usd, run.steps),
        usd_per_epoch=per(usd, epochs),
        usd_per_million_tokens=per(usd, run.tokens / 1e6),
        not_included=not_included(chosen, stored is not None),
        warnings=[*warnings_of(planned), *chosen.warnings, *rejected_prices_of(machine.accelerator.id)],
        evidence=evidence_of(planned.job),
    )


def _storage(planned: Planned, terms: CostTerms, chosen: Chosen) -> tuple[CostPart, list[Assumption]] | None:
    """Checkpoints in storage during the run; None where no price of storage is known, or none is kept."""
    said = []
    usd = terms.usd_per_gb_month
    if usd is None:
        fact = storage_price(chosen.row.provider) if chosen.row else None
        if fact is None:
            return None
        usd = fact.value
        said.append(Assumption(field="usd_per_gb_month", value=usd, why=fact.source))
    kept = terms.checkpoints_kept
    if kept is None:
        kept = _KEPT
        said.append(Assumption(field="checkpoints_kept", value=kept, why="the last one and the one before it"))
    size = planned.host_needs.save.resumable_bytes
    total = storage_usd(size * kept, usd, chosen.hours)
    what = f"{kept} checkpoints of {size / 1e9:,.1f} GB during the run"
    return CostPart(part="checkpoint_storage", usd=total, what=what), said
