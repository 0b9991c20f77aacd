"""The launch of a complete plan, of training or of serving."""

from __future__ import annotations

from collections.abc import Sequence

from estimator.plan.schema import Inference, Plan
from launchers.launch.serving import ServingLaunch, serving_launch
from launchers.launch.training import TrainingLaunch, training_launch
from launchers.predictions import ServingPrediction, TrainingPrediction
from launchers.site import Site

Launch = TrainingLaunch | ServingLaunch


def launch_of(
    plan: Plan,
    targets: Sequence[str],
    prediction: TrainingPrediction | ServingPrediction | None = None,
    model_id: str | None = None,
    site: Site | None = None,
) -> Launch:
    """What the `targets` of a set render. Raises PlanError where the plan is not complete or contradicts itself."""
    site = site or Site()
    if isinstance(plan.workload, Inference):
        assert not isinstance(prediction, TrainingPrediction)
        return serving_launch(plan, targets, prediction, model_id, site)
    assert not isinstance(prediction, ServingPrediction)
    return training_launch(plan, targets, prediction, model_id, site)
