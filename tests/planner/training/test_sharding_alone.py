"""What is put beside ZeRO-2 or 3, where a plan names that alone and it does not fit, is said with the verdict."""

from __future__ import annotations

import pytest

from planner.asked.training import EstimateRequest
from planner.training.estimate import estimate_training

SHARDED = "ZeRO-{} alone does not fit"
PLAN = {"model": "llama-3.1-8b", "method": "full", "accelerator": "a100-sxm-40gb", "count": 4, "seq_len": 8192,
        "micro_batch": 4}  # fmt: skip


def told(**changes: object) -> list[str]:
    result = estimate_training(EstimateRequest.model_validate({**PLAN, **changes}))
    return [text for text in result.warnings if text.startswith("ZeRO-")]


@pytest.mark.parametrize("stage", [2, 3])
def test_what_is_added_is_said(stage: int) -> None:
    (text,) = told(zero_stage=stage)
    assert text.startswith(SHARDED.format(stage))
    added = text.partition(": ")[2]
    assert any(way in added for way in ("TP ", "PP ", "CP "))


@pytest.mark.parametrize(
    "changes", [{}, {"zero_stage": 3, "cp": 2}, {"zero_stage": 3, "accelerator": "h200-sxm"}, {"zero_stage": 1}]
)
def test_nothing_is_said_where_nothing_is_added_or_it_was_named(changes: dict[str, object]) -> None:
    assert not told(**changes)
