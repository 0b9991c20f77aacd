"""Which models are tried for the largest that fits."""

from __future__ import annotations

import math
from dataclasses import dataclass

from estimator.errors import PlanError, nearest
from estimator.plan.schema import Plan
from knowledge.figures import count, hours
from knowledge.machines.catalogue import machine, no_accelerator
from knowledge.models.catalogue import architecture, find_architecture
from knowledge.models.known import ModelFacts, models
from planner.result import Assumption
from planner.training.planned import plan_to_fit
from planner.training.run import run_of

# Best for the compute of a pretraining (Hoffmann et al. 2022, arXiv 2203.15556, table 3).
TOKENS_PER_PARAMETER = 20.0


@dataclass(frozen=True)
class ModelCandidates:
    """Models by parameters, the largest first, and which they are in words."""

    models: list[ModelFacts]
    assumption: Assumption
    late: str = ""
    """Why there is none that is larger, where a deadline ends them."""


def model_candidates(plan: Plan, family: str | None, named: bool) -> ModelCandidates:
    """Of the family, or that of the plan's model where it is `named`. Raises PlanError for an unknown family."""
    wanted = family.strip().lower() if family else None
    rows = models()
    if wanted and wanted != "any":
        rows = [row for row in rows if row.family.lower().startswith(wanted)]
        if not rows:
            known = nearest(wanted, dict.fromkeys(row.family for row in models()))
            raise PlanError("family", f"no model of the catalogue is of a family {family!r}", [*known, "any"])
        scope, why = wanted, f"the {len(rows)} models of the family"
    elif model_family := _own_family(plan) if named and not wanted else None:
        rows = [row for row in rows if row.family == model_family]
        scope, why = model_family, f"the family of the plan's model, {len(rows)} models; family=any takes all"
    else:
        # What only papers describe nobody can download, and hardly anybody trains anew.
        rows = [row for row in rows if not architecture(row.id).multimodal and row.license != "paper-only"]
        scope, why = "any", f"the {len(rows)} text models that are published; name a family to look at fewer"
    rows = sorted(rows, key=lambda row: -architecture(row.id).parameters)
    return ModelCandidates(rows, Assumption(field="family", value=scope, why=why))


def _own_family(plan: Plan) -> str | None:
    """The family of the plan's model; None for one that is not of the catalogue."""
    return find_architecture(plan.model)[0].family or None


def finishing(plan: Plan, candidates: ModelCandidates) -> ModelCandidates:
    """Those from the largest on that is trained by the plan's deadline: on the plan's tokens or, where it has none, on
    as many as are best for the compute of a pretraining. Raises PlanError where none is."""
    deadline_h, late = plan.goal.hours_on(plan.cluster.count or 1) or math.inf, ""
    most_flops = _most_flops(plan)
    for place, row in enumerate(candidates.models):
        model = architecture(row.id)
        tokens = plan.training.dataset_tokens or TOKENS_PER_PARAMETER * model.parameters
        trained = plan.patch({"model": row.id, "workload.dataset_tokens": tokens})
        least_h = 6.0 * model.active_parameters * tokens / most_flops / 3600
        try:
            run = run_of(plan_to_fit(trained)) if least_h <= deadline_h else None
        except PlanError:
            continue
        if run and run.hours <= deadline_h:
            why = f"{candidates.assumption.why}; those beyond {row.id} would be late"
            return ModelCandidates(
                candidates.models[place:], candidates.assumption.model_copy(update={"why": why}), late
            )
        taken = run.hours if run else least_h
        each = "" if plan.training.dataset_tokens else f", {TOKENS_PER_PARAMETER:g} per parameter"
        late = f"{row.id} takes {'' if run else 'over '}{hours(taken)} for {count(tokens)} tokens{each}"
    raise PlanError("goal.deadline_h", f"is too short for every model that was looked at: {late}")


def _most_flops(plan: Plan) -> float:
    """FLOP/s of all devices in the fastest format that they have."""
    if plan.cluster.accelerator is None:
        raise no_accelerator()
    cluster, _ = machine(plan.cluster.accelerator, plan.cluster.count or 1)
    return cluster.count * max(cluster.accelerator.peak_flops.values())
