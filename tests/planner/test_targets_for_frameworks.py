"""A launch target's name given where a framework's or an engine's belongs."""

from __future__ import annotations

from typing import get_args

import pytest

from estimator.errors import PlanError
from estimator.plan.schema import Engine, Framework
from launchers.targets import TARGETS
from planner.asked.serving import InferenceRequest
from planner.asked.training import EstimateRequest
from planner.requests import parsed

TRAINED = [name for name, row in TARGETS.items() if "training" in row.kinds and name not in get_args(Framework)]
SERVED = [name for name, row in TARGETS.items() if "inference" in row.kinds and name not in get_args(Engine)]


@pytest.mark.parametrize(
    ("request_type", "field", "target"),
    [
        *((EstimateRequest, "framework", name) for name in TRAINED),
        *((InferenceRequest, "engine", name) for name in SERVED),
    ],
)
def test_a_target_is_refused_with_what_it_runs_on(
    request_type: type[EstimateRequest | InferenceRequest], field: str, target: str
) -> None:
    with pytest.raises(PlanError, match=rf"{target} is a launch target.*--targets {target}") as caught:
        parsed(request_type, {"model": "gpt2", field: target})
    known = get_args(Framework if field == "framework" else Engine)
    assert caught.value.field == field
    assert set(caught.value.valid) <= set(known) - {"auto"}
    if TARGETS[target].role == "program":
        assert caught.value.valid[0] in caught.value.problem
    kind = "training" if field == "framework" else "inference"
    plan = {"model": "gpt2", "workload": {"kind": kind, field: target}, "cluster": {"accelerator": "h100"}}
    with pytest.raises(PlanError, match=rf"{target} is a launch target.*--targets {target}") as inside:
        parsed(request_type, {"plan": plan}).to_plan()
    assert inside.value.field == f"workload.{field}"


def test_trl_and_llamafactory_run_on_the_trainer() -> None:
    for target in ("trl", "llamafactory", "accelerate"):
        with pytest.raises(PlanError) as caught:
            parsed(EstimateRequest, {"framework": target})
        assert caught.value.valid[0] == "hf-trainer"
