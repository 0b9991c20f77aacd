"""Frameworks that shard weights or split sequences by another implementation than their usual one."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.errors import PlanError
from tools import call

LONG: dict[str, Any] = {
    "model": "Qwen/Qwen3-8B", "accelerator": "h100-sxm", "count": 8, "seq_len": 1048576, "global_batch": 1,
}  # fmt: skip


def test_hf_trainer_splits_a_sequence_through_accelerate() -> None:
    found = call("estimate_training", LONG | {"framework": "hf-trainer", "fused_loss": True})
    assert found["memory"]["fits"]
    assert found["plan"]["workload"]["framework"] == "fsdp2"
    assert found["plan"]["layout"]["cp"] == 8


def test_accelerate_splits_a_sequence_with_the_attention_that_it_works_with() -> None:
    """Published: 364 to 380 s with checkpoints on the host (huggingface/trl pulls 6845 and 6846)."""
    run = LONG | {"framework": "hf-trainer", "fused_loss": True, "recompute": "full", "offload": "activations"}
    found = call("estimate_training", run)
    assert 350 < found["time"]["step_s"] < 390
    assert "sdpa where sequences are split" in str(found["assumptions"])
    named = call("estimate_training", run | {"attention": "sdpa"})
    assert named["time"]["step_s"] == found["time"]["step_s"]
    short = run | {"seq_len": 4096, "global_batch": 64, "cp": 1}
    times = [call("estimate_training", short | {"attention": kernel})["time"]["step_s"] for kernel in ("flash", "sdpa")]
    assert call("estimate_training", short)["time"]["step_s"] == times[0] != times[1]


def test_no_other_attention_is_named_or_suggested_where_sequences_are_split() -> None:
    run = LONG | {"framework": "fsdp2", "fused_loss": True, "recompute": "full", "offload": "activations", "cp": 8}
    for kernel in ("flash2", "flash3"):
        with pytest.raises(PlanError, match="splits sequences with sdpa alone"):
            call("estimate_training", run | {"attention": kernel})
        open_cut = call("estimate_training", run | {"attention": kernel, "cp": None, "seq_len": 16384})
        assert open_cut["plan"]["layout"]["cp"] == 1
    found = call("estimate_training", run | {"improvements": True})
    assert "flash3" not in str(found["improvements"]) + str(found["decides"])
    short = run | {"seq_len": 16384, "cp": 1, "global_batch": 64, "improvements": True}
    assert "flash3" in str(call("estimate_training", short)["improvements"])


@pytest.mark.parametrize("framework", ["deepspeed", "megatron-lm", "ms-swift"])
def test_scores_that_go_through_memory_are_of_whole_sequences(framework: str) -> None:
    """DeepSpeed's Ulysses and Megatron's unfused attention refuse to split them; XLA splits any operator."""
    plan = {"model": "huggyllama/llama-7b", "accelerator": "h100-sxm", "count": 8, "stage": "sft", "seq_len": 8192,
            "global_batch": 8, "framework": framework, "attention": "eager"}  # fmt: skip
    with pytest.raises(PlanError, match="splits sequences with fused kernels alone"):
        call("estimate_training", plan | {"cp": 2})
    assert call("estimate_training", plan)["plan"]["layout"]["cp"] == 1
    tpu = plan | {"framework": "maxtext", "accelerator": "tpu-v5p", "stage": "pretrain", "cp": 2}
    assert call("estimate_training", tpu)["plan"]["layout"]["cp"] == 2


def test_megatron_shards_weights_where_zero_3_is_asked_for() -> None:
    plan = {"model": "meta-llama/Llama-3.1-8B", "count": 8, "stage": "pretrain", "seq_len": 4096, "micro_batch": 1,
            "global_batch": 128, "tp": 1, "pp": 1, "cp": 1, "recompute": "selective"}  # fmt: skip
    for framework, device in (("megatron-lm", "h100-sxm"), ("megatron-bridge", "h100-sxm"), ("primus", "mi300x")):
        needs = [
            call("estimate_training", plan | {"framework": framework, "accelerator": device, "zero_stage": stage})
            for stage in (1, 2, 3)
        ]
        sizes = [each["memory"]["per_device_bytes"] for each in needs]
        assert sizes == sorted(sizes, reverse=True)
        assert needs[2]["time"]["step_s"] > needs[1]["time"]["step_s"]


def test_prime_rl_trains_with_samples_from_other_devices() -> None:
    """GLM-4.5-Air with LoRA at 16k on 8 H200 ran in 90 GiB (prime-rl, benchmarks/results/BENCHMARKS.md)."""
    run = {"model": "zai-org/GLM-4.5-Air", "accelerator": "h200-sxm", "count": 8, "framework": "prime-rl",
           "stage": "grpo", "method": "lora", "seq_len": 16384, "micro_batch": 1, "global_batch": 8}  # fmt: skip
    found = call("estimate_training", run)
    assert found["memory"]["fits"]
    assert found["plan"]["workload"]["rollout"] == "separate"
    assert call("estimate_training", run | {"rollout": "trainer"})["plan"]["workload"]["rollout"] == "trainer"
