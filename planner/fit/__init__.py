"""check_fit: whether a plan has room, and what would give it some."""

from __future__ import annotations

from estimator.plan.schema import Inference
from planner.fit import serving, training
from planner.requests import EitherRequest
from planner.results import FitCheck


def check_fit(request: EitherRequest) -> FitCheck:
    """Check that a plan fits."""
    asked = request.to_plan()
    return (serving if isinstance(asked.workload, Inference) else training).fit_of(asked)
