"""What a turn goes on from: the plans, the devices, the options and the questions that were spoken of before it."""

from __future__ import annotations

from typing import Any

import pytest
from conversations import of, reading, say

from agent.events import Done
from agent.session import open_session


def _calls(*said: str) -> dict[str, dict[str, Any]]:
    """The calls of the last turn by tool."""
    session = open_session(model="offline")
    done = [of(say(session, words), Done)[0] for words in said]
    return {call.name: dict(call.arguments) for call in done[-1].tool_calls}


@pytest.mark.parametrize(
    ("begun", "supposed", "field", "held"),
    [
        ("llama 8b dpo lora on 8 a100", "simpo instead of dpo?", "stage", "dpo"),
        ("llama 8b full on 8 h100 adamw", "what if adafactor instead of adamw?", "optimizer", "adamw"),
        ("llama 8b full on 8 h100, no recompute", "what if full recompute instead of none?", "recompute", "none"),
    ],
)
def test_what_a_supposition_refuses_stays(begun: str, supposed: str, field: str, held: str) -> None:
    assert _calls(begun, supposed, "on 16")["estimate_training"][field] == held


@pytest.mark.parametrize("asked", ["Which of the two is faster, and by how much?", "which is faster?",
                                   "how do the two compare", "which one is cheaper"])  # fmt: skip
@pytest.mark.parametrize("other", ["what if we go with tp 4 instead?", "tp 4"])
def test_two_plans_that_were_spoken_of_are_compared(other: str, asked: str) -> None:
    compared = _calls("pretrain llama 8b on 64 h100, tp 8", other, asked)["compare"]
    assert {row["plan"]["layout"]["tp"] for row in compared["scenarios"]} == {4, 8}


@pytest.mark.parametrize("taken", ["ok the first one then. rank 256", "the first option with rank 256"])
def test_the_first_of_what_was_compared_is_taken_with_a_change(taken: str) -> None:
    asked = _calls("compare dora and lora for llama 3.1 8b on a 4090, 2048", taken)["estimate_training"]
    assert (asked["method"], asked["lora_rank"]) == ("dora", 256)


def test_tokens_that_were_asked_for_are_told_by_their_number_alone() -> None:
    begun = "how much would training llama 3.1 70b on 64 h100s cost us"
    assert _calls(begun, "idk, maybe 15 billion")["estimate_cost"]["dataset_tokens"] == 15e9
    assert _calls(begun, "15B", "half of that")["estimate_cost"]["dataset_tokens"] == 7.5e9


def test_the_most_is_asked_of_what_was_changed_last() -> None:
    asked = _calls("llama 8b sft on 8 h200, seq 8k", "mbs 4", "too much? what's the max then")["find_limit"]
    assert asked["goal"] == "micro_batch"


def test_forget_it_before_a_change_keeps_the_plan() -> None:
    changed = _calls("llama 8b lora on a 4090", "forget it, 2 of them")["estimate_training"]
    assert (changed["method"], changed["count"]) == ("lora", 2)
    begun = _calls("llama 8b lora on a 4090", "forget that. pretrain a 1b on 8 h100")["estimate_training"]
    assert "method" not in begun


def test_how_many_of_those_asks_for_devices() -> None:
    asked = _calls("qlora gemma 3 27b on 2 l40s", "and full?", "so how many of those would it take")["find_limit"]
    assert (asked["goal"], asked["method"]) == ("devices", "full")


@pytest.mark.parametrize("words", ["best tp/pp/ep split for deepseek v3 pretraining on 2048 h800",
                                   "what tp and pp should i use for llama 70b training on 64 h100",
                                   "good tp, pp sizes for llama 405b on 1024 h100"])  # fmt: skip
def test_sizes_that_are_asked_for_are_none_that_are_told(words: str) -> None:
    asked = reading(words)
    assert asked.tool == "best_parallelism"
    assert not {"tp", "pp", "ep"} & {edit.field for edit in asked.edits}


@pytest.mark.parametrize(
    ("words", "usd"),
    [
        ("buying 4 DGX H200, one box is 420k, pretrain llama 70b on 400B tokens", 52_500.0),
        ("buying 4 DGX H200, a box costs $420k, pretrain llama 70b on 400B tokens", 52_500.0),
        ("we own 2 nodes of 8 H100, $250k per node, finetune llama 70b", 31_250.0),
        ("we bought 16 H100 at 28k each, pretrain llama 8b on 1T tokens", 28_000.0),
    ],
)
def test_the_price_of_a_machine_is_shared_by_its_devices(words: str, usd: float) -> None:
    told = reading(words)
    assert told.pricing["capex_usd_per_device"] == usd
    assert not {"seq_len", "budget_usd"} & {edit.field for edit in told.edits}


def test_how_many_gpus_are_needed_is_asked_of_those_of_the_run() -> None:
    asked = _calls("llama 70b full finetune on 8 h100", "how many GPUs do I need?")["find_limit"]
    assert (asked["goal"], asked["accelerator"]) == ("devices", "h100-sxm")
    assert "recommend_cluster" in _calls("llama 8b lora on 1 a100", "what GPUs should I rent?")
