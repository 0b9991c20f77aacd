"""What somebody measured, and what stands here, goes to the tools that know of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from agent.offline.catalogue import known
from agent.offline.form import Reading
from agent.offline.language import read

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
PLAN = {"model": "meta-llama/Llama-3.1-8B", "workload": {"kind": "training", "method": "full", "global_batch": 128},
        "cluster": {"accelerator": "h100-sxm", "count": 8}}  # fmt: skip
LOG = """{'loss': 1.2841, 'learning_rate': 1.9e-05, 'epoch': 0.12}
{'loss': 1.2512, 'learning_rate': 1.8e-05, 'epoch': 0.25}
{'train_runtime': 3612.4, 'train_samples_per_second': 2.21, 'train_loss': 1.26, 'epoch': 1.0}
that's mistral 7b lora on one 4090 at 2048 tokens. slow?"""


def _read(words: str, plan: dict[str, Any] | None = None) -> Reading:
    return read(words, known(), plan or {}, {}, NOW)


@pytest.mark.parametrize(
    ("words", "own"),
    [
        ("llama 3.1 8b full on 8 H100: 40,000 tokens/s, is that good?", {"tokens_per_s": 40000}),
        ("we get 5k tokens/s per gpu with llama 3.1 8b full on 8 h100, normal?", {"tokens_per_s_per_device": 5000}),
        ("my mfu is 22% with qwen2.5-14b lora on 2 h100, normal or am i doing something wrong", {"mfu": 0.22}),
        ("is 400 TFLOPS per GPU realistic for llama 3 70b on 64 h100?", {"tflops_per_device": 400}),
        ("llama 3.1 8b full on 8 h100, global batch 64: step time is 4.2 s. expected?", {"step_s": 4.2}),
        ("llama 3.1 8b 全参微调 8张H100，每秒4万token，正常吗？", {"tokens_per_s": 40000}),
        ("we're getting 3.2k tok/s per GPU on llama 8b pretraining with 64 H100s, is this ok?",
         {"tokens_per_s_per_device": 3200}),
        ("vllm gives me 900 tok/s for llama 70b on 4 H100 at 32 users, is that ok?", {"tokens_per_s": 900}),
        ("my 4090 does 45 tok/s on qwen3 14b q4, is that normal?", {"tokens_per_s": 45}),
        ("qwen3-32b on an L40S gives 20 tokens/s per user at 16 users, is that normal?", {"tpot_s": 0.05}),
        ("vllm, llama 70b fp8 on 4xH100 with 64 users: 30 ms per token, good?", {"tpot_s": 0.03}),
    ],
)  # fmt: skip
def test_a_speed_is_rated_in_its_own_unit(words: str, own: dict[str, float]) -> None:
    found = _read(words)
    assert (found.tool, found.own, found.lost) == ("rate_run", own, [])


@pytest.mark.parametrize("said", ["assume 40% mfu", "at 40 % MFU", "mfu 0.4", "bei 40% MFU", "MFU 40%"])
def test_an_mfu_that_is_only_told_is_reckoned_with(said: str) -> None:
    found = _read(f"{said}, llama 3.1 8b full on 8 h100, 1B tokens, how long?")
    assert found.tool != "rate_run"
    assert found.values("overrides") == [{"mfu": 0.4}]
    assert not found.lost
    assert "throughput.mfu" not in found.figures


def test_another_speed_is_rated_alike() -> None:
    found = read("and 12 s per step?", known(), PLAN, {"last": ["rate_run", {}]}, NOW)
    assert (found.tool, found.own) == ("rate_run", {"step_s": 12})


def test_the_time_of_a_step_needs_its_batch() -> None:
    assert [need.field for need in _read("llama 3.1 8b full on 8 h100: is 3.1 s per step normal?").needs] == [
        "workload.global_batch"
    ]
    assert not _read("is 3.1 s per step normal?", PLAN).needs


def test_a_log_is_read_with_the_plan_that_is_said_beside_it() -> None:
    found = _read(LOG)
    assert found.tool == "read_run"
    assert found.own["text"].count("\n") == 2
    assert {edit.field for edit in found.edits} >= {"model", "method", "accelerator", "seq_len"}


@pytest.mark.parametrize(
    "words", ["what GPU is in this machine?", "which card do I have here?", "这台机器是什么显卡？"]
)
def test_this_machine_is_described(words: str) -> None:
    assert _read(words).tool == "describe_machine"


@pytest.mark.parametrize(
    "why", ["why is my run of {} only doing 900 tok/s/gpu?", "warum schafft {} nur 900 tokens/s pro GPU?"]
)
def test_why_a_speed_is_so_low_is_asked_of_that_speed(why: str) -> None:
    reading = _read(why.format("llama 3.1 8b on 8 H100"))
    assert (reading.tool, reading.own) == ("rate_run", {"tokens_per_s_per_device": 900})
