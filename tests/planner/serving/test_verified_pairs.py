"""What people ran must be known here and fit: pairs of a model and hardware that vLLM's recipes mark verified."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.models.catalogue import find_model
from planner.estimates import estimate_plan

FILE = Path(__file__).parents[2] / "data" / "verified_pairs.csv"
LEAST_SHARE = 0.95
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
    every = pairs()
    failed = [f"{pair['model']} on {pair['count']} x {pair['hardware']}" for pair in every if not runs(pair)]
    assert len(failed) <= (1 - LEAST_SHARE) * len(every), failed


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_language_model_is_refused(name: str) -> None:
    with pytest.raises(PlanError, match="only language models"):
        find_model(name)
