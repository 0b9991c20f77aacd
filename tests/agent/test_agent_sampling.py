"""Trainings that sample answers: lengths and numbers of prompts and answers; and batches that are accumulated."""

from __future__ import annotations

from typing import Any

import pytest
from scoring import talk

RUN = "GRPO on Qwen2.5-7B, 8 H200"


def _arguments(*words: str) -> dict[str, Any]:
    *_, turn = talk(list(words))
    return turn.calls[0].arguments


@pytest.mark.parametrize(
    "said",
    [
        "prompts of 512 tokens, responses 2048 tokens",
        "max prompt length 512 max response length 2048",
        "max_prompt_length=512, max_response_length=2048",
        "512 in 2048 out",
        "512-token prompts, generate 2048 tokens",
        "prompt 512, max new tokens 2048",
        "512 prompt + 2048 response",
        "2k max response + 512 prompt",
    ],
)
def test_prompts_and_answers_make_the_sequence(said: str) -> None:
    found = _arguments(f"{RUN}, {said}. step time?")
    assert (found["seq_len"], found["response_len"]) == (2560, 2048)


def test_prompts_beside_whole_sequences_leave_the_rest_to_answers() -> None:
    found = _arguments(f"{RUN}, sequence length 4096, prompt length 1024. fits?")
    assert (found["seq_len"], found["response_len"]) == (4096, 3072)


@pytest.mark.parametrize(
    ("said", "batch", "group"),
    [
        ("batch of 128 prompts, 8 samples each", 128, 8),
        ("512 prompts per step, group size 16", 512, 16),
        ("batch 64 prompts, n=4", 64, 4),
        ("train batch size 256 prompts, 8 completions per prompt", 256, 8),
    ],
)
def test_prompts_of_a_step_and_answers_of_a_prompt(said: str, batch: int, group: int) -> None:
    found = _arguments(f"{RUN}, {said}. step time?")
    assert (found["global_batch"], found["group_size"]) == (batch, group)
    assert "dataset_samples" not in found


def test_a_follow_up_of_such_a_training_is_about_its_answers() -> None:
    found = _arguments(f"{RUN}, prompts of 512 tokens, responses of 1024 tokens. fits?", "max response length 2048")
    assert found["response_len"] == 2048


@pytest.mark.parametrize("said", ["grad accum 8", "gradient accumulation steps: 8", "8 grad accum steps"])
def test_accumulated_micro_batches_make_the_global_batch(said: str) -> None:
    *_, turn = talk([f"full fine-tuning of Llama-3.1-8B on 4 H100, micro batch 2, {said}. fits?"])
    assert turn.calls[0].arguments["micro_batch"] == 2
    assert turn.calls[0].arguments["global_batch"] == 64
    assert "read as a global batch of 64" in turn.answer


def test_accumulation_without_devices_asks_for_them() -> None:
    (turn,) = talk(["full fine-tuning of Llama-3.1-8B, micro batch 2, grad accum 8: does it fit?"])
    assert [question.partition(":")[0] for question in turn.asked][:1] != []
    assert not turn.calls
