"""MFU that measured runs reached: quartiles of the transcribed runs, counted as estimates count."""

from __future__ import annotations

import pytest

from estimator.kernels.model_flop import model_flop_per_token
from estimator.plan.schema import Plan
from knowledge.mfu_targets import mfu_target
from knowledge.models.catalogue import architecture
from planner.training.planned import plan_training


@pytest.mark.parametrize(
    "model", ["meta-llama/Llama-3.1-8B", "Qwen/Qwen3-30B-A3B", "google/gemma-2-9b", "Qwen/Qwen2.5-0.5B"]
)
@pytest.mark.parametrize("seq_len", [2048, 16384])
def test_flop_per_token_are_those_of_an_estimate(model: str, seq_len: int) -> None:
    found = plan_training(
        Plan.parse(
            {
                "model": model,
                "workload": {"stage": "pretrain", "seq_len": seq_len, "framework": "megatron-bridge"},
                "cluster": {"accelerator": "h100-sxm", "count": 64},
            }
        )
    )
    whole = float(found.estimates.step.model_flop[found.index]) * 64
    assert model_flop_per_token(architecture(model), seq_len) * found.job.tokens_per_step == pytest.approx(
        whole, rel=0.01
    )


@pytest.mark.parametrize(("family", "precision"), [("Hopper", "bf16"), ("Hopper", "fp8"), ("Blackwell", "mxfp8")])
@pytest.mark.parametrize("parameters", [8e9, 7e10])
def test_quartiles_are_in_order_and_plausible(family: str, precision: str, parameters: float) -> None:
    found = mfu_target(family, precision, parameters, False)
    assert found is not None
    assert found.runs >= 5
    assert 0.05 < found.low <= found.median <= found.high < 0.75
    assert family in found.of


def test_too_few_runs_of_a_size_fall_back_to_all_sizes_and_none_to_nothing() -> None:
    rare = mfu_target("Hopper", "bf16", 1e8, False)
    assert rare is not None
    assert rare.of.endswith("of any size")
    assert mfu_target("Pascal", "fp16", 8e9, False) is None
    assert mfu_target("no such family", "bf16", 8e9, True) is None


def test_dense_and_mixed_models_are_apart() -> None:
    dense, mixed = mfu_target("Hopper", "bf16", 8e9, False), mfu_target("Hopper", "bf16", 8e9, True)
    assert dense is not None
    assert mixed is not None
    assert dense.median != mixed.median
