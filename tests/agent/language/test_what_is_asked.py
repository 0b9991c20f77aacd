"""Unlike devices in one sentence: together they are the least of them, apart they are set side by side, and none is
dropped without a word."""

from __future__ import annotations

import pytest

from agent.offline.catalogue import known
from agent.offline.language import read

TOGETHER = {
    "I have a 4090 and a 3090, can I fine-tune qwen3 8b with qlora?": ("rtx-3090", 2),
    "2x 3090 + 1x 4090: qlora of llama 3.1 8b?": ("rtx-3090", 3),
    "We have 16 H100 and 8 A100. Does a 70b sft fit?": ("a100-sxm-80gb", 24),
}


@pytest.mark.parametrize(("text", "devices"), TOGETHER.items())
def test_together_they_are_as_many_of_the_least(text: str, devices: tuple[str, int]) -> None:
    reading = read(text, known())
    assert (reading.values("accelerator"), reading.values("count")) == ([devices[0]], [devices[1]])
    assert any("not modelled" in (edit.note or "") for edit in reading.edits)


@pytest.mark.parametrize(
    "text",
    [
        "how long on 8 h100 and on 8 b200 for llama 3.1 8b sft, 1B tokens?",
        "does llama 3.1 70b lora fit on 2 a100 and on 4 l40s?",
        "we have 16 H100 and 8 A100, which should run the 70b sft?",
    ],
)
def test_apart_they_are_compared(text: str) -> None:
    reading = read(text, known())
    assert reading.tool == "compare"
    assert len({edit.value for option in reading.options for edit in option if edit.field == "accelerator"}) == 2


def test_one_that_is_not_used_is_told() -> None:
    assert "l40s" in read("llama 3.1 8b sft on 8 h100, and then serve it on l40s", known()).lost


@pytest.mark.parametrize("count", ["32k", "8k"])
@pytest.mark.parametrize("things", ["sessions", "requests", "chats"])
def test_what_says_which_things_are_asked_for_does_not_count_them(count: str, things: str) -> None:
    reading = read(f"how many concurrent {count} {things} can one H200 handle for qwen3 8b?", known())
    assert not reading.values("concurrency")
    assert {"input_len", "length"} & {edit.field for edit in reading.edits}


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("pretrain a 7b on 1T tokens, it must finish by march 1st, how many h100s?", "find_limit"),
        ("answers in under 3 seconds with mistral large 2 on 8 a100, possible?", "estimate_inference"),
        ("how much would it save to use spot for sft of llama 3.1 8b on 64 a100?", "estimate_cost"),
    ],
)
def test_what_is_asked_decides_not_where_it_stands(text: str, tool: str) -> None:
    reading = read(text, known())
    assert reading.tool in (tool, "check_fit" if tool == "estimate_inference" else tool)
    assert reading.serving == (tool == "estimate_inference")


@pytest.mark.parametrize(
    ("asked", "figure"),
    [
        ("TTFT", "latency.ttft_s"), ("the TPOT", "latency.tpot_s"), ("the cost", "usd"), ("the energy", "kwh"),
        ("the checkpoint size", "memory.save.checkpoint_bytes"), ("tokens per second", "throughput.tokens_per_s"),
        ("MFU", "throughput.mfu"), ("the KV cache", "memory.components.kv_cache"), ("the days", "hours"),
    ],
)  # fmt: skip
def test_a_figure_that_is_to_be_explained_is_explained_in_the_first_question_too(asked: str, figure: str) -> None:
    for rest in ("of llama 3.1 8b lora on 8 h100, 1B tokens", ": serving llama 3.1 8b on an h100 to 50 users"):
        reading = read(f"explain {asked} {rest}", known())
        assert (reading.tool, reading.own) == ("explain", {"figure": figure})


def test_what_is_to_be_explained_that_is_no_figure_is_not() -> None:
    assert read("explain lora vs full for llama 8b", known()).tool == "compare"


@pytest.mark.parametrize(
    "words",
    [
        "how accurate are you?", "How far off are your estimates?", "are the numbers right", "wie genau seid ihr?",
        "que tan preciso eres?", "can I trust your numbers?", "准确吗？",
    ],
)  # fmt: skip
def test_how_accurate_the_estimates_are_is_a_question_of_the_field(words: str) -> None:
    reading = read(words, known())
    assert (reading.tool, reading.own) == ("search_playbook", {"query": "accuracy of estimates"})


def test_a_config_of_ones_own_is_told_of_and_not_asked_for() -> None:
    assert "files" not in read("will it oom? my config says micro batch 4, llama 8b on 4 a100", known()).focus
    assert "files" in read("llama 8b on 4 a100, write my config", known()).focus


@pytest.mark.parametrize("words", ["20k prompts of 2k tokens", "20k prompts with 2k tokens each", "20k prompts, 2k in"])
def test_prompts_that_are_counted_are_requests(words: str) -> None:
    edits = {edit.field: edit.value for edit in read(f"{words} and 200 out with qwen3 8b on an L40S", known()).edits}
    assert (edits["requests"], edits["input_len"], edits["output_len"]) == (20_000, 2048, 200)
