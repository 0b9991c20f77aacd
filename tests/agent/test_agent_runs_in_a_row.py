"""Several runs in one turn: each is queued behind the one before it, and takes what it takes by itself."""

from __future__ import annotations

from typing import Any

import pytest
from scoring import talk

ON = "on 16 H100s"


def _queued(words: str) -> dict[str, Any]:
    (turn,) = talk([words])
    (call,) = turn.calls
    assert call.name == "schedule_runs"
    return call.arguments


@pytest.mark.parametrize(
    "words",
    [
        "run Llama-3.1-8B sft on 1B tokens, then Qwen2.5-32B sft on 200M tokens {}: when is each done?",
        "{}: fine-tune Llama-3.1-8B on 1B tokens and then Qwen2.5-32B on 200M tokens. When are both done?",
        "Fine-tune Llama-3.1-8B on 1B tokens. After that Qwen2.5-32B on 200M tokens, {}. When is all done?",
    ],
)
def test_a_second_run_waits_for_the_first(words: str) -> None:
    asked = _queued(words.format(ON))
    assert (asked["accelerator"], asked["count"]) == ("h100-sxm", 16)
    first, second = asked["runs"]
    assert (first["plan"]["model"], first["plan"]["workload"]["dataset_tokens"]) == ("meta-llama/Llama-3.1-8B", 1e9)
    assert (second["plan"]["model"], second["plan"]["workload"]["dataset_tokens"]) == ("Qwen/Qwen2.5-32B", 2e8)
    assert second["after"] == [first["name"]]


def test_a_run_without_a_model_of_its_own_goes_on_with_the_one_before() -> None:
    first, second = _queued(f"pretrain Llama-3.2-1B on 10B tokens, then fine-tune it on 100M tokens {ON}, when done?")[
        "runs"
    ]
    assert first["plan"]["model"] == second["plan"]["model"]
    assert (first["plan"]["workload"]["stage"], second["plan"]["workload"]["stage"]) == ("pretrain", "sft")
    assert first["name"] != second["name"]


@pytest.mark.parametrize(
    "words",
    [
        "fine-tune Llama-3.1-8B on 1B tokens on 16 H100s, then write the files. When is it done?",
        "SFT of Granite 3.1 8B on 90M tokens, and after that DPO on 25k pairs. Let's begin with the SFT, 8 H100s",
        "fine-tune Llama-3.1-8B on 16 H100s, then Qwen2.5-32B: when is each done?",
    ],
)
def test_what_is_one_run_or_says_no_length_is_no_queue(words: str) -> None:
    (turn,) = talk([words])
    assert all(call.name != "schedule_runs" for call in turn.calls)
