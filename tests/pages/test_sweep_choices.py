"""A sweep's rows show whatever is chosen anew from point to point."""

from __future__ import annotations

import random
from typing import Any

from samples import part

from estimator.errors import PlanError
from pages.blocks import Table
from pages.results.many import points
from planner.asked.training import SweepRequest
from planner.compare.sweep import sweep

_MODELS = ("gpt2", "qwen2.5-0.5b", "llama-3-8b", "mistral-7b", "llama-3-70b", "qwen3-30b-a3b", "gemma-2-9b")
_DEVICES = ("h100-sxm", "a100-sxm-80gb", "rtx-4090", "l4", "mi300x", "b200-sxm", "tpu-v5p", "gaudi3")
_FIELDS: dict[str, list[Any]] = {
    "seq_len": [2048, 8192, 32768], "count": [1, 8, 64], "global_batch": [64, 512], "micro_batch": [1, 2, 8],
    "zero_stage": [0, 1, 3], "lora_rank": [8, 256], "tp": [1, 2, 8],
}  # fmt: skip


def test_frameworks_and_layouts_that_differ_are_shown() -> None:
    draw, swept, moved = random.Random(21), 0, 0
    while swept < part(20, 200):
        field = draw.choice(list(_FIELDS))
        asked: dict[str, Any] = {
            "model": draw.choice(_MODELS), "accelerator": draw.choice(_DEVICES), "count": draw.choice([1, 4, 8, 64]),
            "stage": draw.choice(["sft", "pretrain", "dpo"]), "method": draw.choice(["full", "lora", "qlora"]),
            "field": field, "values": _FIELDS[field],
        }  # fmt: skip
        try:
            result = sweep(SweepRequest.model_validate(asked))
        except PlanError:
            continue
        made: list[Any] = [point for point in result.points if point.layout]
        swept += len(made) > 1
        (told,) = [block for block in points(result) if isinstance(block, Table)]
        shown = [dict(zip(told.head, row, strict=True)) for row in told.rows]
        ones = [row for row, point in zip(shown, result.points, strict=True) if point.layout]
        for one, other, first, second in zip(made, made[1:], ones, ones[1:], strict=False):
            if one.framework != other.framework:
                assert first["framework"] != second["framework"], asked
            if one.layout != other.layout:
                moved += 1
                assert first["layout"] != second["layout"], (asked, one.layout, other.layout)
    assert moved
