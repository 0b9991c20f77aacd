"""estimate_training: what a run comes to."""

from __future__ import annotations

from dataclasses import asdict

from pydantic import Field

from estimator.training.bottleneck import Diagnosis
from planner.evidence import evidence_of
from planner.layouts.improvements import improvements
from planner.requests import PlanRequest
from planner.results import Roofline, TimeLimit, TrainingEstimate
from planner.training.planned import (
    complete,
    memory_of,
    planned,
    run_of,
    throughput_of,
    time_of,
    warnings_of,
    why_chosen,
)


class EstimateRequest(PlanRequest):
    improvements: bool = Field(
        False, description="Whether to look for changes that would make the run faster; takes longer."
    )


def estimate_training(request: EstimateRequest) -> TrainingEstimate:
    """Estimate a training run."""
    found = planned(request.to_plan())
    limits = found.diagnosis
    return TrainingEstimate(
        plan=complete(found),
        assumptions=found.assumptions,
        memory=memory_of(found),
        time=time_of(found),
        throughput=throughput_of(found),
        run=run_of(found),
        bottleneck=limits.bottleneck,
        limits=time_limits(limits),
        roofline=Roofline(**asdict(limits.roofline)),
        improvements=improvements(found) if request.improvements else None,
        layout_chosen=found.searched,
        why=why_chosen(found),
        warnings=warnings_of(found),
        evidence=evidence_of(found),
    )


def time_limits(limits: Diagnosis) -> list[TimeLimit]:
    """What takes any time at all, the most first."""
    step_s = sum(limits.limits.values())
    return [
        TimeLimit(limit=name, seconds=seconds, share=seconds / step_s)
        for name, seconds in limits.limits.items()
        if seconds > 0
    ]
