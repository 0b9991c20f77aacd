"""What is taken back in the same breath, and what programs print when they fail: neither is read as the plan."""

from __future__ import annotations

from typing import Any

import pytest
from conversations import begun


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("llama 3.1 70b lora on 16 h100, I mean 32 h100", "cluster.count", 32),
        ("qwen2.5-7b... sorry, i meant qwen2.5 32b, on 4 h100", "model", "Qwen/Qwen2.5-32B"),
        ("full ft of llama 3.1 8b, wait, lora r=8 on a 4090", "workload.method", "lora"),
        ("llama 3.1 8b on 8 h100 at 4k ctx. scratch that, 8k ctx", "workload.seq_len", 8192),
    ],
)
def test_what_is_said_after_a_correction_stands(text: str, path: str, value: Any) -> None:
    found = begun(text).changes
    assert found[path] == value
    assert {"model", "cluster.accelerator"} <= set(found)


@pytest.mark.parametrize("text", ["do you know what I mean?", "sorry", "tell me what i meant by that"])
def test_words_that_correct_nothing_are_left(text: str) -> None:
    assert begun(text).changes == {}


TRACE = """Traceback (most recent call last):
  File "train.py", line 12, in <module>
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 3 has a total capacity of 79.10 GiB
2026-01-02 10:11:12 INFO step 30 loss 2.1
Qwen2.5-7B full finetune, 4 x A100 80GB, seq 8192"""


def test_a_trace_is_no_plan_but_says_that_memory_ran_out() -> None:
    found = begun(TRACE)
    assert "fit" in found.topic["intents"]
    assert found.changes == {
        "model": "Qwen/Qwen2.5-7B", "workload.stage": "sft", "workload.method": "full", "workload.seq_len": 8192,
        "cluster.accelerator": "a100-sxm-80gb", "cluster.count": 4,
    }  # fmt: skip
