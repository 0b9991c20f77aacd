"""A fit whose interval leaves less than 3 % of the memory free is tight, in the result and in the verdict's words."""

from __future__ import annotations

import pytest

from pages.answers import lead
from pages.blocks import Headline
from planner.fit.training import fit_of
from planner.requests import parsed
from planner.results import TrainingEstimate
from planner.training.estimate import EstimateRequest, estimate_training
from planner.training.memory import is_tight
from planner.training.planned import plan_training

PLAN = {
    "model": "llama-3-8b", "accelerator": "h100-sxm", "count": 8, "dp": 8,
    "zero_stage": 3, "recompute": "full", "offload": "none",
    "stage": "sft", "framework": "fsdp2", "seq_len": 4096, "micro_batch": 1, "global_batch": 64,
}  # fmt: skip


def estimated(usable_gib: float | None = None) -> TrainingEstimate:
    overrides = {} if usable_gib is None else {"overrides": {"usable_gib": usable_gib}}
    return estimate_training(parsed(EstimateRequest, PLAN | overrides))


@pytest.mark.parametrize("free", [-0.05, -0.001, 0.001, 0.015, 0.029, 0.3])
def test_tight_is_a_fit_with_less_than_three_percent_free(free: float):
    # Where memory is short, as cached blocks are given back then.
    high_gib = estimated(1.0).memory.high_bytes / 2**30
    found = estimated(high_gib / (1 - free))
    assert found.memory.fits == (free > 0)
    assert found.memory.tight == (0 < free < 0.03)
    left = 1.0 - found.memory.high_bytes / found.memory.capacity_bytes
    assert left > 0.03 if free > 0.03 else left < 0.03
    head = lead.training(found, None, None, ["fit"])[0]
    assert isinstance(head, Headline)
    assert ("It fits, but tightly" in head.text) == found.memory.tight
    assert head.text.startswith("It fits") == found.memory.fits
    assert head.tone == (
        "bad" if not found.memory.fits else "beware" if found.memory.tight or found.warnings else "good"
    )


def test_what_is_offered_of_a_tight_plan_leaves_it_not_tight():
    high_gib = estimated(1.0).memory.high_bytes / 2**30
    tight = PLAN | {"overrides": {"usable_gib": high_gib / 0.985}}
    check = fit_of(parsed(EstimateRequest, tight).to_plan())
    assert check.tight
    assert check.remedies
    for remedy in check.remedies:
        changed = parsed(EstimateRequest, tight).to_plan().patch(remedy.patch)
        assert not is_tight(plan_training(changed)), remedy.what
