"""estimate_training: what a run comes to."""

from __future__ import annotations

from dataclasses import asdict

from estimator.training.bottleneck import Diagnosis
from planner.asked.training import EstimateRequest
from planner.estimates import run_warnings_of
from planner.evidence import evidence_of
from planner.layouts.improvements import improvements
from planner.results import Roofline, TimeLimit, TrainingEstimate
from planner.training.deciding import decides
from planner.training.launchable import unlaunched
from planner.training.memory import memory_of
from planner.training.planned import (
    Planned,
    plan_training,
    throughput_of,
    time_of,
    warning_kinds_of,
    why_chosen,
)
from planner.training.run import failure_assumptions, run_of


def estimate_training(request: EstimateRequest) -> TrainingEstimate:
    """Estimate a training run."""
    asked = request.to_plan()
    planned = plan_training(asked)
    estimate = estimate_of(planned, request.improvements)
    no_files = unlaunched(asked, planned)
    kinds = estimate.warning_kinds | dict.fromkeys(no_files, "files")
    return estimate.model_copy(update={"warnings": [*no_files, *estimate.warnings], "warning_kinds": kinds})


def estimate_of(planned: Planned, with_improvements: bool = False) -> TrainingEstimate:
    """The same of what has been planned."""
    limits, run = planned.diagnosis, run_of(planned)
    return TrainingEstimate(
        plan=planned.complete_plan,
        assumptions=[*planned.assumptions, *(failure_assumptions() if run and run.goodput else [])],
        memory=memory_of(planned),
        time=time_of(planned),
        throughput=throughput_of(planned),
        run=run,
        bottleneck=limits.bottleneck,
        limits=time_limits(limits),
        roofline=Roofline(**asdict(limits.roofline)),
        improvements=improvements(planned) if with_improvements else None,
        decides=decides(planned),
        layout_chosen=planned.searched,
        why=why_chosen(planned),
        warnings=run_warnings_of(planned),
        warning_kinds=warning_kinds_of(planned),
        evidence=evidence_of(planned.job),
    )


def time_limits(limits: Diagnosis) -> list[TimeLimit]:
    """What takes any time at all, the most first."""
    step_s = sum(limits.limits.values())
    return [
        TimeLimit(limit=name, seconds=seconds, share=seconds / step_s)
        for name, seconds in limits.limits.items()
        if seconds > 0
    ]
