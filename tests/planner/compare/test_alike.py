"""What is compared differs in what was asked, and in nothing else that it leaves open."""

from __future__ import annotations

from typing import Any

import pytest

from planner.compare.scenarios import CompareRequest, compare

LLAMA = {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "count": 8, "stage": "sft"}


def plans(over: dict[str, list[Any]], **base: Any) -> list[dict[str, Any]]:
    rows = compare(CompareRequest.model_validate({**LLAMA, **base, "over": over})).rows
    assert all(row.fits for row in rows)
    return [row.plan or {} for row in rows]


@pytest.mark.parametrize(
    "over",
    [
        {"optimizer": ["adamw", "adafactor", "muon"]},
        {"precision": ["bf16", "fp8"]},
        {"compile": [False, True]},
        {"fused_loss": [False, True]},
        {"attention": ["flash", "sdpa"]},
    ],
    ids=lambda over: next(iter(over)),
)
def test_a_switch_is_told_apart_in_one_layout(over: dict[str, list[Any]]) -> None:
    first, *others = plans(over)
    for plan in others:
        assert plan["layout"] == first["layout"]
        (field,) = over
        same = {name: value for name, value in plan["workload"].items() if name != field}
        assert same == {name: value for name, value in first["workload"].items() if name != field}


def test_states_of_fewer_bytes_take_less_memory() -> None:
    rows = compare(CompareRequest.model_validate({**LLAMA, "over": {"optimizer": ["adamw", "adafactor"]}})).rows
    adamw, adafactor = (row.per_device_bytes or 0.0 for row in rows)
    assert adafactor < adamw


@pytest.mark.parametrize("over", [{"count": [8, 16, 32]}, {"method": ["full", "lora"]}, {"recompute": ["none", "full"]},
                                  {"framework": ["deepspeed", "torchtitan"]}])  # fmt: skip
def test_the_batch_is_that_of_the_first(over: dict[str, list[Any]]) -> None:
    made = plans(over)
    assert len({(plan["workload"]["global_batch"], plan["workload"]["seq_len"]) for plan in made}) == 1


def test_memory_that_goes_with_another_split_is_told_with_it() -> None:
    """DPO has a reference that SimPO has not: as SimPO is split it does not fit, it is split further, and takes less of
    a device so. Split as DPO is SimPO takes less."""
    held = compare(CompareRequest.model_validate(LLAMA | {"method": "full", "over": {"stage": ["dpo", "simpo"]}}))
    assert len({row.summary for row in held.rows}) == 1  # type: ignore[union-attr]
    assert held.best["memory"] == "simpo"
    result = compare(CompareRequest.model_validate(LLAMA | {"method": "full", "over": {"stage": ["simpo", "dpo"]}}))
    assert len({row.summary for row in result.rows}) == 2  # type: ignore[union-attr]
    said = [text for text in result.conclusions if "memory" in text and "speed" not in text]
    assert said
    assert all("in its own best layout" in text or "; it is DP" in text for text in said)
