"""Selective recompute of named parts of a layer."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from estimator.errors import PlanError
from tools import call

# DEEPSEEK_V3_PRETRAIN_CONFIG_GB200_FP8_MX of NVIDIA Megatron-Bridge: recompute_modules mla_up_proj, 4,912 to 4,969
# tokens/s and device (docs/performance-summary.md, 26.06 to 26.08).
RUN: dict[str, Any] = {
    "model": "deepseek-ai/DeepSeek-V3", "accelerator": "gb200", "count": 256, "seq_len": 4096, "micro_batch": 1,
    "global_batch": 4096, "framework": "megatron-bridge", "stage": "pretrain", "precision": "mxfp8", "tp": 1, "pp": 8,
    "vpp": 2, "ep": 32, "cp": 1,
}  # fmt: skip
# Dense MLPs, which are in the first three layers, are not on the fullest stage.
PARTS = ["core_attn", "layernorm", "mla_up_proj", "moe_act", "shared_experts"]


def estimated(**changes: Any) -> tuple[float, float]:
    """(Bytes of activations, tokens/s)."""
    found = call("estimate_training", RUN | changes)
    return found["memory"]["components"]["activations"], found["throughput"]["tokens_per_s"]


def test_the_published_run_fits_at_its_speed() -> None:
    found = call("estimate_training", RUN | {"recompute_modules": ["mla_up_proj"]})
    assert found["plan"]["layout"]["recompute"] == "selective"
    assert found["memory"]["fits"]
    assert found["throughput"]["tokens_per_s_per_device"] == pytest.approx(4940, rel=0.1)


def test_each_part_more_keeps_less_and_takes_no_less_time() -> None:
    none, whole = estimated(recompute="none"), estimated(recompute="full")
    steps = [none, *(estimated(recompute_modules=PARTS[: count + 1]) for count in range(len(PARTS))), whole]
    for (before, fast), (after, slow) in pairwise(steps):
        assert after < before
        assert slow <= fast * (1 + 1e-9)
    assert estimated(recompute_modules=["moe"])[0] < estimated(recompute_modules=["moe_act", "shared_experts"])[0]


def test_the_attention_core_is_what_selective_drops_unasked() -> None:
    assert estimated(recompute_modules=["core_attn"]) == estimated(recompute="selective")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"framework": "nanotron", "precision": "bf16", "model": "meta-llama/Llama-3.1-8B", "ep": 1}, "by their names"),
        ({"recompute": "full"}, "selective recompute"),
    ],
)
def test_where_parts_mean_nothing_they_are_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(PlanError, match=problem):
        call("estimate_training", RUN | {"recompute_modules": ["mlp"]} | changes)
