"""What people ran must be known here and fit: pairs of a model and hardware that vLLM's recipes mark verified."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.machines.catalogue import find_accelerator
from knowledge.models.catalogue import find_model
from planner.estimates import estimate_plan

FILE = Path(__file__).parents[2] / "data" / "verified_pairs.csv"
LEAST_SHARE = 0.95
NOT_PLANNED = ["Ascend 950PR"]
OTHERS = ["openai/whisper-large-v3", "zai-org/GLM-Image", "nvidia/Cosmos3-Super", "Lightricks/LTX-2.5-Diffusers"]


def pairs() -> list[dict[str, str]]:
    with FILE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def runs(pair: dict[str, str]) -> bool:
    """Whether the model fits on the hardware in one of the formats that the recipe names."""
    return any(_fits(pair, name) for name in pair["formats"].split("|"))


def _fits(pair: dict[str, str], weight_dtype: str) -> bool:
    workload = {"kind": "inference", "weight_dtype": weight_dtype, "input_len": 512, "output_len": 128}
    cluster = {"accelerator": pair["hardware"], "count": int(pair["count"] or 1)}
    try:
        plan = {"model": pair["model"], "workload": workload | {"concurrency": 1}, "cluster": cluster}
        return bool(estimate_plan(Plan.parse(plan)).fits)
    except PlanError:
        return False


def test_every_model_that_was_verified_is_known_by_its_name() -> None:
    for name in {pair["model"] for pair in pairs()}:
        match = find_model(name)
        assert match.value.id.casefold() == name.casefold()
        assert match.note is None


def test_what_people_ran_fits() -> None:
    """All but those of which the recipe itself says that the profile is too small or does not say how many devices it
    has, and those on devices of which too little is known."""
    every = pairs()
    failed = [pair for pair in every if not runs(pair)]
    assert len(failed) <= (1 - LEAST_SHARE) * len(every), failed
    told = [pair for pair in failed if pair["count"] and float(pair["asks_gb"] or 0) <= float(pair["has_gb"])]
    assert [pair for pair in told if pair["hardware"] not in NOT_PLANNED] == []


@pytest.mark.parametrize("name", NOT_PLANNED)
def test_devices_that_are_not_planned_for_are_refused(name: str) -> None:
    with pytest.raises(PlanError, match="cannot be planned for"):
        find_accelerator(name)


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_language_model_is_refused(name: str) -> None:
    with pytest.raises(PlanError, match="only language models"):
        find_model(name)
