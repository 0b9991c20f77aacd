"""Questions for a range and for what limits a run, offline: how they are read, which calls they make, what is said."""

from __future__ import annotations

import re
from typing import Any

import pytest
from conversations import begun, turns

PLAN = {"model": "meta-llama/Llama-3.1-8B", "cluster": {"accelerator": "h100-sxm", "count": 8}}


DOUBLED = [8, 16, 32, 64, 128, 256, 512]


@pytest.mark.parametrize(
    ("text", "field", "values"),
    [
        ("how does it scale to 512 GPUs?", "cluster.count", DOUBLED),
        ("how does it scale from 8 to 512 GPUs", "cluster.count", DOUBLED),
        ("how does it scale, 8 -> 512 gpus", "cluster.count", DOUBLED),
        ("scale this up to 500 H100s", "cluster.count", [8, 16, 32, 64, 128, 256, 500]),
        ("从1个节点扩到8个节点效率会掉多少", "cluster.count", [8, 16, 32, 64]),
        ("从8张H100扩展到64张", "cluster.count", [8, 16, 32, 64]),
        ("scaling to 8 nodes?", "cluster.count", [8, 16, 32, 64]),
        ("how well does it scale?", "cluster.count", [8, 16, 32, 64, 128]),
        ("show me the scaling curve", "cluster.count", [8, 16, 32, 64, 128]),
        ("sweep seq_len 4k 8k 16k 32k", "workload.seq_len", [4096, 8192, 16384, 32768]),
        ("sweep the sequence length over 2048, 4096 and 8192", "workload.seq_len", [2048, 4096, 8192]),
        ("sweep seq_len from 4k to 32k", "workload.seq_len", [4096, 8192, 16384, 32768]),
        ("sweep micro-batch 1,2,4,8", "workload.micro_batch", [1, 2, 4, 8]),
        ("vary the global batch: 128, 256, 512", "workload.global_batch", [128, 256, 512]),
        ("sweep tp 1..8", "layout.tp", [1, 2, 4, 8]),
        ("sweep zero stage 1, 2, 3", "layout.zero_stage", [1, 2, 3]),
        ("compare 8, 16 and 32 GPUs", "cluster.count", [8, 16, 32]),
        ("sweep GPUs 8-64", "cluster.count", [8, 16, 32, 64]),
        ("sweep precision bf16 and fp8", "workload.precision", ["bf16", "fp8"]),
        ("sweep selective recompute and full recompute", "layout.recompute", ["selective", "full"]),
        ("sweep the methods full, lora and qlora", "workload.method", ["full", "lora", "qlora"]),
    ],
)
def test_questions_for_a_range_are_read(text: str, field: str, values: list[Any]) -> None:
    found = begun(text, PLAN)
    asked = found.arguments("sweep")
    assert asked is not None
    assert (asked["field"], asked["values"]) == (field, values)
    assert found.changes == {}
    assert not found.reading["lost"]


def test_the_rest_of_the_words_is_still_read() -> None:
    found = begun("sweep seq_len 4k 8k 16k for Llama-3.1-8B with LoRA on 8 H100")
    assert found.arguments("sweep") is not None
    assert found.changes["workload.method"] == "lora"
    assert found.changes["cluster.count"] == 8
    assert "workload.seq_len" not in found.changes
    scaled = begun("how does pretraining Llama-3.1-70B scale to 512 H100s with 8k context?")
    assert scaled.arguments("sweep") is not None
    assert "cluster.count" not in scaled.changes
    assert scaled.changes["cluster.accelerator"] == "h100-sxm"
    assert scaled.changes["workload.seq_len"] == 8192


@pytest.mark.parametrize(
    "text",
    [
        "fine-tune llama-3.1-8b on 8 H100 with 4k context",
        "H100 or H200 for llama-3.1-8b?",
        "compare llama-3.1-8b and qwen2.5-7b on 8 H100",
        "Llama-3.1-8B on 8 H100, lora alpha 16, rank 8",
        "scale the loss by 128",
        "what about 16 GPUs?",
    ],
)
def test_values_and_comparisons_are_no_sweeps(text: str) -> None:
    assert begun(text, PLAN).arguments("sweep") is None


def test_scaling_is_answered_and_asked_again() -> None:
    first, second, weak, last = turns(
        "How does Llama-3.1-8B with deepspeed scale from 8 to 32 H100s?", "and with fp8?", "weak scaling?",
        "does it fit on 16?",
    )  # fmt: skip
    for done in (first, second, weak):
        assert [call["name"] for call in done["tool_calls"]] == ["sweep"]
        assert done["tool_calls"][0]["arguments"]["values"] == [8, 16, 32]
        assert re.search(r"(scaling efficiency|x the tokens/s) on 32 devices", done["answer"])
        assert "| Efficiency |" in done["answer"]
        assert done["ungrounded"] == []
        assert "count" not in done["plan"].get("cluster", {})
    assert second["tool_calls"][0]["arguments"]["precision"] == "fp8"
    assert weak["tool_calls"][0]["arguments"]["scale_batch"] is True
    assert last["tool_calls"][0]["name"] == "estimate_training"
    assert last["tool_calls"][0]["arguments"]["count"] == 16


def test_points_that_cannot_be_are_told_with_their_reason() -> None:
    done = turns("sweep tp 1, 2, 5 for Llama-3.1-8B on 8 H100 with megatron")[0]
    assert "does not divide" in done["answer"]
    assert done["ungrounded"] == []


@pytest.mark.parametrize(
    "text",
    ["what limits my MFU?", "why is it slow?", "why is it so slow", "how can I make it faster?", "speed it up",
     "how do I improve the throughput?", "is it memory-bound or compute-bound?", "show the roofline"],
)  # fmt: skip
def test_questions_for_speed_are_read(text: str) -> None:
    assert "faster" in begun(text, PLAN).topic["intents"]


def test_what_limits_a_run_is_answered_with_what_would_help() -> None:
    _, done = turns(
        "Llama-3.1-8B on 16 H100, megatron, tp 8, pp 2, full recompute, micro batch 1, batch 64", "what limits my MFU?"
    )
    assert [call["name"] for call in done["tool_calls"]] == ["estimate_training", "advise"]
    assert done["tool_calls"][0]["arguments"]["improvements"] is True
    assert done["answer"].startswith("✓ **Bottleneck: ")
    assert "**Roofline**" in done["answer"]
    assert "| no recompute" in done["answer"]
    assert done["ungrounded"] == []
