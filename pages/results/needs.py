"""What a plan that fits needs for it beside its devices: another framework, what was switched on, host memory."""

from __future__ import annotations

from collections.abc import Iterable

from estimator.plan.schema import Plan, Training
from planner.result import Assumption
from planner.results import FitCheck, TrainingEstimate
from planner.training.concessions import CONCEDED, UNUSUAL

_HOSTED = {"params": "parameters", "optimizer": "optimizer states"}
_SWITCHED = {
    "workload.rollout": "an engine on the same devices that generates",
    "workload.fused_loss": "chunked loss",
    "workload.tiled_mlp": "MLP in tiles",
    "workload.optimizer_in_backward": "weights updated within the backward pass",
    "workload.optimizer": "paged optimizer states",
}


def hosted_words(offload: str) -> str:
    """'parameters and activations in host memory'."""
    return f"{' and '.join(_HOSTED.get(part, part) for part in offload.split('+'))} in host memory"


def switched_on(assumptions: Iterable[Assumption]) -> list[str]:
    """What was switched on since nothing fits without."""
    taken = {item.field for item in assumptions if item.why == CONCEDED}
    return [word for field, word in _SWITCHED.items() if field in taken]


def needs(result: TrainingEstimate | FitCheck) -> str:
    """'It needs fsdp2 with chunked loss and activations in host memory.', of what nobody named."""
    plan = Plan.model_validate(result.plan)
    if not isinstance(plan.workload, Training):
        return ""
    parts, whys = switched_on(result.assumptions), {item.field: item.why for item in result.assumptions}
    if (offload := plan.layout.offload) not in (None, "none") and "layout.offload" in whys:
        parts.append(hosted_words(offload))
    if not parts and whys.get("workload.framework") != UNUSUAL:
        return ""
    told = " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))
    return f"It needs {' with '.join(filter(None, (plan.workload.framework, told)))}."
