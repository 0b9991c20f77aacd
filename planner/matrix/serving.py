"""Cells of a served model: its engines, and layouts of one's own, on platforms, each under the load of the plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.machines.catalogue import find_accelerator
from launchers.matrix import BENCHED, Cell
from launchers.site import Site
from planner.files.render import model_id, serving_prediction
from planner.result import Result
from planner.serving.planned import Served, latency_of, plan_serving, throughput_of

_ENGINE = "workload.engine"


class ServedFigures(Result):
    """What is predicted of a served cell, under the names that results have; ends are of 80 % intervals."""

    ttft_s: float | None = Field(description="Null where a queue grows without end.")
    ttft_low_s: float | None
    ttft_high_s: float | None
    tpot_s: float
    tpot_low_s: float
    tpot_high_s: float
    output_tokens_per_s: float
    output_tokens_low_per_s: float
    output_tokens_high_per_s: float
    bottleneck: str


def ways(
    plan: Plan, strategies: Sequence[str] | None, layouts: Mapping[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """By name what a cell sets: the engine that the plan names, else each that has a load generator, or those among
    the `strategies`; and the layouts of one's own. Raises PlanError."""
    if other := next((name for name in strategies or () if name not in BENCHED), None):
        raise PlanError("strategies", f"{other!r} is none of a served model, whose cells are its engines", BENCHED)
    stated = plan.inference.engine if "engine" in plan.inference.model_fields_set else None
    engines = [stated] if stated and stated != "auto" else BENCHED if strategies is None else strategies
    named = {name: {_ENGINE: name} for name in engines} if strategies != [] or not layouts else {}
    first = {_ENGINE: stated or BENCHED[0]}
    return named | {name: first | {"layout": sizes} for name, sizes in layouts.items()}


def meanings(ways: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    return {name: f"{sets[_ENGINE]}, {'the layout given' if 'layout' in sets else 'the layout that serves best'}"
            for name, sets in ways.items()}  # fmt: skip


def served(base: Plan, models: Sequence[str], platforms: Sequence[str], ways: Mapping[str, dict[str, Any]],
           sites: Mapping[str, Site]) -> Iterator[tuple[Cell, Served | None]]:  # fmt: skip
    """Way by way, model by model, platform by platform."""
    for name, sets in ways.items():
        for model in models:
            for platform in platforms:
                changes = sets | {"model": model, "cluster.accelerator": platform}
                yield _cell(base, changes, name, sites[find_accelerator(platform).value.id])


def _cell(base: Plan, changes: Mapping[str, Any], name: str, site: Site) -> tuple[Cell, Served | None]:
    model, platform = str(changes["model"]), find_accelerator(str(changes["cluster.accelerator"])).value.id
    try:
        outcome = plan_serving(base.patch(changes))
    except PlanError as error:
        why = " ".join(str(error).split())
        return Cell(model, platform, name, None, why, {"engine": changes[_ENGINE], "fits": False}), None
    plan, fits, row = outcome.plan, outcome.fits, dict(outcome.layout)
    facts = {
        "engine": plan.inference.engine, "devices": plan.cluster.count, "layout": row,
        "summary": " ".join(f"{key} {value}" for key, value in row.items()), "fits": fits,
        "precision": plan.inference.weight_dtype, "predicted": _predicted(outcome).model_dump(mode="json"),
    }  # fmt: skip
    return Cell(
        model=model,
        platform=platform,
        strategy=name,
        plan=plan,
        why=None if fits else "does not fit in memory",
        facts=facts,
        prediction=serving_prediction(outcome),
        model_id=model_id(plan, outcome.job.architecture.id),
        site=site,
    ), outcome


def _predicted(outcome: Served) -> ServedFigures:
    """Of one replica, which is what a cell starts and puts its part of the load on."""
    latency, speed = latency_of(outcome), throughput_of(outcome)
    replicas = float(outcome.estimates.deployments.replicas[outcome.entry])
    return ServedFigures(
        ttft_s=latency.ttft_s,
        ttft_low_s=latency.ttft_low_s,
        ttft_high_s=latency.ttft_high_s,
        tpot_s=latency.tpot_s,
        tpot_low_s=latency.tpot_low_s,
        tpot_high_s=latency.tpot_high_s,
        output_tokens_per_s=speed.output_tokens_per_s / replicas,
        output_tokens_low_per_s=speed.output_tokens_low_per_s / replicas,
        output_tokens_high_per_s=speed.output_tokens_high_per_s / replicas,
        bottleneck=outcome.bottleneck,
    )
