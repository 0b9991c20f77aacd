"""What is compared differs in what was asked, and in nothing else that it leaves open."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest
from samples import part

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from planner.compare.scenarios import CompareRequest, compare
from planner.training.planned import plan_to_fit

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


@pytest.mark.parametrize("methods", [["lora", "qlora"], ["qlora", "dora", "lora"]])
@pytest.mark.parametrize(
    ("model", "accelerator", "count"),
    [("llama-3.1-8b", "rtx-4090", 1), ("qwen3-14b", "a100-sxm-40gb", 1), ("llama-3.1-70b", "h100-sxm", 8),
     ("qwen2.5-7b", "l40s", 2)],
)  # fmt: skip
def test_weights_in_4_bits_take_less_memory(model: str, accelerator: str, count: int, methods: list[str]) -> None:
    """Ways of training adapters run alike, whatever one of them needs to fit."""
    base = {"model": model, "accelerator": accelerator, "count": count, "over": {"method": methods}}
    rows = compare(CompareRequest.model_validate(base)).rows
    needed = {row.name: row.per_device_bytes or 0.0 for row in rows}
    assert all(row.fits for row in rows)
    assert needed["qlora"] == min(needed.values())


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


_MODELS = ("gpt2", "qwen2.5-0.5b", "llama-3-8b", "mistral-7b", "llama-3-70b", "qwen3-30b-a3b", "gemma-2-9b")
_DEVICES = ("h100-sxm", "a100-sxm-80gb", "rtx-4090", "l4", "mi300x", "b200-sxm", "tpu-v5p", "gaudi3")
_SWITCHES: dict[str, list[Any]] = {
    "optimizer": ["adamw", "adafactor", "muon", "adamw_8bit"],
    "precision": ["bf16", "fp8"],
    "compile": [False, True],
    "fused_loss": [False, True],
    "attention": ["flash", "sdpa"],
    "tiled_mlp": [False, True],
    "optimizer_in_backward": [False, True],
    "stage": ["dpo", "simpo"],
    "seq_len": [2048, 8192],
    "count": [4, 8],
    "method": ["full", "lora"],
    "recompute": ["none", "full"],
}


def chosen_of(plan: dict[str, Any]) -> dict[str, Any]:
    """Framework and layout by dotted names."""
    layout = {f"layout.{name}": value for name, value in plan["layout"].items()}
    return layout | {"workload.framework": plan["workload"]["framework"]}


def test_framework_and_layout_are_held_or_the_change_is_shown() -> None:
    draw, compared, moved = random.Random(11), 0, 0
    while compared < part(20, 200):
        asked = {"model": draw.choice(_MODELS), "accelerator": draw.choice(_DEVICES),
                 "count": draw.choice([1, 2, 4, 8, 16, 64]), "stage": draw.choice(["sft", "pretrain", "dpo"]),
                 "method": draw.choice(["full", "lora", "qlora"])}  # fmt: skip
        field = draw.choice(list(_SWITCHES))
        asked.pop(field, None)
        try:
            found = compare(CompareRequest.model_validate(asked | {"over": {field: _SWITCHES[field]}}))
        except PlanError:
            continue
        made = [row.plan for row in found.rows if row.plan]
        compared += len(made) > 1
        shown = {setting.field for setting in found.differences}
        for first, plan in zip(made[:1] * len(made), made[1:], strict=False):
            apart = {name: value for name, value in chosen_of(first).items() if chosen_of(plan)[name] != value}
            assert apart.keys() <= shown, (asked, field)
            moved += bool(apart)
            if apart and field in list(_SWITCHES)[:7]:
                # A switch leaves nothing as it was only where that cannot be, or has no room.
                same = {name: first["workload"][name] for name in ("framework", "micro_batch")}
                held = plan | {"layout": first["layout"], "workload": plan["workload"] | same}
                with suppress(PlanError):
                    assert not plan_to_fit(Plan.parse(held)).fits, (asked, field)
    assert moved
