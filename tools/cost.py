"""What a run costs, on demand and otherwise, here and elsewhere, and what is not in the price."""

from __future__ import annotations

from estimator.cost import storage_usd
from estimator.errors import PlanError
from estimator.plan import Inference
from knowledge.ownership import storage_price
from tools.cost_bill import assumed, chosen_figures, energy_facts, of_providers, per
from tools.cost_choice import Chosen, choose, not_included
from tools.cost_results import CostEstimate, CostPart
from tools.cost_terms import CostTerms, interruptions_of
from tools.evidence import evidence_of
from tools.left_out import prices_left_out_of
from tools.offers import in_order, offers
from tools.owned import owned_cost
from tools.planning import Planned, complete, planned, run_of, warnings_of
from tools.registry import tool
from tools.requests import EitherRequest
from tools.result import Assumption

# The last checkpoint, and the one before it in case the last is broken.
_KEPT = 2


class CostRequest(EitherRequest, CostTerms):
    """A plan, and the terms on which its devices are paid for."""


@tool(title="Estimate what a run costs", read_only=True)
def estimate_cost(request: CostRequest) -> CostEstimate:
    """Hours, device-hours, USD by provider and part, energy and CO2 of a whole training run (needs dataset_tokens,
    dataset_samples or steps), or of serving: USD per hour, month and million tokens. On demand, spot with its
    interruptions, reserved, at your own price, or owned (hardware, power, room, staff). Use it for "what does it cost",
    "what on spot", "buy or rent", "cost per million tokens" and "which provider is cheapest"; prices come with date and
    age."""
    plan = request.to_plan()
    if isinstance(plan.workload, Inference):
        from tools.serving_bill import bill_of

        return bill_of(plan, request.usd_per_device_hour, request)
    kind, place = request.kind(plan.goal.provider), request.place
    found = planned(plan)
    run = run_of(found)
    if run is None:
        problem = "is required to know the length of the run, or dataset_samples, or steps"
        raise PlanError("workload.dataset_tokens", problem, ["1B", "300M"])
    machine, goal = found.job.machine, found.job.plan.goal
    hours = (run.hours, run.low_hours, run.high_hours)
    interruptions, spot_assumed = interruptions_of(request, run.hours, machine.nodes, found.around.save.resumable_bytes)
    listed = offers(found, run.hours, request.offered(interruptions, machine.per_node))
    rows = in_order(of_providers(listed, request.providers), kind)
    owned = owned_cost(machine, request, place, hours)
    named = goal.provider is not None
    chosen = choose(kind, request, rows, owned, hours, machine.count, named)
    parts, stored = [*chosen.parts], _storage(found, request, chosen)
    usd, kept = chosen.usd, 0.0
    if stored:
        kept = stored[0].usd
        parts.append(stored[0])
    facts = energy_facts(request)
    size = found.job.run
    epochs = size.epochs if size else None
    return CostEstimate(
        plan=complete(found),
        assumptions=assumed(found.assumptions, chosen, rows, spot_assumed, facts, stored[1] if stored else []),
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
        warnings=[*warnings_of(found), *chosen.warnings, *prices_left_out_of(machine.accelerator.id)],
        evidence=evidence_of(found),
    )


def _storage(found: Planned, terms: CostTerms, chosen: Chosen) -> tuple[CostPart, list[Assumption]] | None:
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
    size = found.around.save.resumable_bytes
    total = storage_usd(size * kept, usd, chosen.hours)
    what = f"{kept} checkpoints of {size / 1e9:,.1f} GB during the run"
    return CostPart(part="checkpoint_storage", usd=total, what=what), said
