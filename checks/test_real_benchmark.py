"""The benchmark of a training plan runs in PyTorch: two processes over gloo, whole replicas and shards."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any

import pytest
from conftest import python_of
from slurm_cluster import cluster

from planner.measuring.hardware import HardwareTiming, measure_hardware
from planner.measuring.training import BenchmarkRequest, TrainingMeasurement, measure_training
from planner.requests import parsed

LLAMA: dict[str, Any] = {
    "model_type": "llama", "name": "tiny", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 512, "max_position_embeddings": 256,
}  # fmt: skip
MIXTRAL = LLAMA | {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
# Layers of each kind that is not Llama's: latent attention and experts, states, the delta rule, convolutions.
DEEPSEEK = LLAMA | {
    "model_type": "deepseek_v3", "q_lora_rank": 32, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16,
    "v_head_dim": 16, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1,
    "first_k_dense_replace": 1, "moe_intermediate_size": 32,
}  # fmt: skip
MAMBA: dict[str, Any] = {
    "model_type": "mamba2", "name": "tiny", "hidden_size": 64, "num_hidden_layers": 2, "state_size": 16, "expand": 2,
    "head_dim": 16, "num_heads": 8, "n_groups": 1, "conv_kernel": 4, "vocab_size": 512,
}  # fmt: skip
NEXT = LLAMA | {
    "model_type": "qwen3_next", "num_hidden_layers": 4, "head_dim": 16, "linear_key_head_dim": 16,
    "linear_value_head_dim": 16, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_conv_kernel_dim": 4,
    "full_attention_interval": 4, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
}  # fmt: skip
PLAN: dict[str, Any] = {
    "model": LLAMA, "accelerator": "cpu-epyc-7763", "count": 2, "per_node": 2, "seq_len": 32, "micro_batch": 2,
    "global_batch": 8, "measured_steps": 2, "repeats": 2, "warmup_steps": 0, "cooldown_s": 0, "threads": 1,
}  # fmt: skip


def measured(folder: Path, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> TrainingMeasurement:
    monkeypatch.chdir(folder)
    path = f"{python_of('train').parent}:{os.environ['PATH']}"
    request = parsed(BenchmarkRequest, PLAN | changes)
    return measure_training(request, "run", environment={**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"})


@pytest.mark.parametrize(
    "changes",
    [
        {"zero_stage": 0},
        {"zero_stage": 3, "recompute": "full"},
        {"zero_stage": 3, "method": "lora", "lora_rank": 4},
        {"zero_stage": 3, "model": MIXTRAL},
        {"zero_stage": 3, "model": DEEPSEEK},
        {"zero_stage": 0, "model": MAMBA},
        {"zero_stage": 3, "model": NEXT, "recompute": "full"},
        {"zero_stage": 0, "method": "qlora", "lora_rank": 4},
        {"zero_stage": 3, "method": "qlora", "lora_rank": 4, "model": DEEPSEEK},
        {"zero_stage": 3, "offload": "params+activations"},
        {"zero_stage": 0, "offload": "activations"},
        {"zero_stage": 2, "offload": "optimizer", "framework": "deepspeed"},
    ],
    ids=[
        "ddp",
        "fsdp2",
        "fsdp2-lora",
        "fsdp2-moe",
        "latent",
        "mamba",
        "delta",
        "4-bit",
        "fsdp2-4-bit",
        "params",
        "activations",
        "states",
    ],
)
def test_two_processes_train_and_are_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]):
    told = measured(tmp_path, monkeypatch, **changes)
    assert told.outcome == "ran"
    assert (told.repeats, told.steps, told.devices) == (2, 4, 2)
    assert told.first_loss is not None
    # Random tokens: the loss is that of a guess among the vocabulary, ln 512.
    assert told.first_loss == pytest.approx(6.24, abs=0.1)
    assert {row.figure for row in told.figures} >= {"step_s", "tokens_per_s_per_device", "mfu"}
    assert not any("parameters" in text for text in told.warnings)


def test_one_process_has_the_plan_s_parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    told = measured(tmp_path, monkeypatch, count=1, per_node=1, profile=True)
    assert told.outcome == "ran"
    assert told.warnings == [] or not any("parameters" in text for text in told.warnings)
    assert (tmp_path / "run" / "trace.json").stat().st_size > 1000


def test_a_machine_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHARDWISE_CONFIG", str(tmp_path / "config"))
    path = f"{python_of('train').parent}:{os.environ['PATH']}"
    # The time is of PyTorch's three starts, too.
    timing = parsed(HardwareTiming, {"seconds": 40, "device": "cpu", "processes": 2, "keep": True})
    told = measure_hardware(timing, "run", environment={**os.environ, "PATH": path})
    assert {row.part for row in told.best} >= {"matmul", "memory", "attention", "disk", "collective"}
    assert all(row.rate > 0 for row in told.rates)


def test_a_run_of_two_nodes_is_submitted_to_slurm_and_followed_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Four processes on two nodes of a real Slurm, which meet over gloo; the job's steps are told while it runs."""
    monkeypatch.chdir(tmp_path)
    plan = PLAN | {"accelerator": "h100-sxm", "count": 4, "per_node": 2, "zero_stage": 3, "repeats": 1}
    request = parsed(BenchmarkRequest, plan | {"scheduler": "slurm", "device": "cpu"})
    events: list[str] = []
    with cluster(Path("/tmp") / f"slurm-{secrets.token_hex(4)}") as slurm:
        path = f"{python_of('train').parent}:{slurm.environment['PATH']}"
        environment = slurm.environment | {"PATH": path, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
        told = measure_training(request, "run", lambda event: events.append(event["event"]), environment)
    assert (told.outcome, told.devices, told.steps) == ("ran", 4, 2)
    assert events.count("step") == 2
    assert any("it ran on a processor" in text for text in told.warnings)
