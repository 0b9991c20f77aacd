"""What is taken back in the same breath, and what programs print when they fail: neither is read as the plan."""

from __future__ import annotations

import pytest
from scoring import NOON

from agent.offline.catalogue import known
from agent.offline.corrections import corrected
from agent.offline.pasted import pasted, without_logs
from agent.offline.reading import read


def values(text: str) -> dict[str, object]:
    return {slot.path: getattr(slot, "value", None) for slot in read(text, known(), {}, None, NOON).slots}


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("llama 3.1 70b lora on 16 h100, I mean 32 h100", "cluster.count", 32),
        ("qwen2.5-7b... sorry, i meant qwen2.5 32b, on 4 h100", "model", "Qwen/Qwen2.5-32B"),
        ("full ft of llama 3.1 8b, wait, lora r=8 on a 4090", "workload.method", "lora"),
        ("llama 3.1 8b on 8 h100 at 4k ctx. scratch that, 8k ctx", "workload.seq_len", 8192),
    ],
)
def test_what_is_said_after_a_correction_stands(text: str, path: str, value: object) -> None:
    found = values(text)
    assert found[path] == value
    assert {"model", "cluster.accelerator"} <= set(found)


@pytest.mark.parametrize("text", ["do you know what I mean?", "sorry", "I mean 8", "tell me what i meant by that"])
def test_words_that_correct_nothing_are_left(text: str) -> None:
    assert corrected(text) is None


TRACE = """Traceback (most recent call last):
  File "train.py", line 12, in <module>
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 3 has a total capacity of 79.10 GiB
2026-01-02 10:11:12 INFO step 30 loss 2.1
Qwen2.5-7B full finetune, 4 x A100 80GB, seq 8192"""


def test_a_trace_is_no_plan_but_says_that_memory_ran_out() -> None:
    found = read(TRACE, known(), {}, None, NOON)
    assert "fit" in found.intents
    assert {slot.path: getattr(slot, "value", None) for slot in found.slots} == {
        "model": "Qwen/Qwen2.5-7B", "workload.stage": "sft", "workload.method": "full", "workload.seq_len": 8192,
        "cluster.accelerator": "a100-sxm-80gb", "cluster.count": 4,
    }  # fmt: skip


def test_text_without_a_trace_is_left_as_it_is() -> None:
    text = "does llama 3.1 8b fit?\nit is about a 4090"
    assert without_logs(text) == text


def test_a_list_of_labels_is_read_as_words_and_a_configuration_is_not() -> None:
    assert pasted("Model: Llama 3.1 8B\nGPUs: 8x H100\nMethod: LoRA") is None
    assert pasted("model_name_or_path: gpt2\nlora_rank: 8\nbf16: true") is not None
