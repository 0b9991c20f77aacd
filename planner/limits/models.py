"""Which models are tried for the largest that fits."""

from __future__ import annotations

from dataclasses import dataclass

from estimator.errors import PlanError, nearest
from estimator.plan.schema import Inference, Plan
from knowledge.models.catalogue import ModelFacts, architecture, find_architecture, models
from planner.result import Assumption


@dataclass(frozen=True)
class ModelCandidates:
    """Models by parameters, the largest first, and which they are in words."""

    models: list[ModelFacts]
    assumption: Assumption


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
        rows = [row for row in rows if not architecture(row.id).multimodal]
        if isinstance(plan.workload, Inference) or plan.training.stage != "pretrain":
            rows = [row for row in rows if row.license != "paper-only"]
        scope, why = "any", f"the {len(rows)} text models of the catalogue; name a family to look at fewer"
    rows = sorted(rows, key=lambda row: -architecture(row.id).parameters)
    return ModelCandidates(rows, Assumption(field="family", value=scope, why=why))


def _own_family(plan: Plan) -> str | None:
    """The family of the plan's model; None for one that is not of the catalogue."""
    return find_architecture(plan.model)[0].family or None
