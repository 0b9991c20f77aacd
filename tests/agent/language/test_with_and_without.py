"""What a setting does to a run is asked in many ways, and answered with it and without it; choices that a text gives
letters are set side by side."""

from __future__ import annotations

from typing import Any

import pytest
from conversations import turns

from agent.offline.catalogue import known
from agent.offline.form import Reading
from agent.offline.language import read
from planner.partial import get

RUN = "full sft of llama 3.1 70b on 32 h100"
# Settings, as they are called, with the field that each sets, its value, and what a run without it has.
SETTINGS = (
    ("gradient checkpointing", "recompute", "full", "none"),
    ("InfiniBand", "interconnect", "ib", "ethernet"),
    ("NVLink", "device_links", "own", "host"),
    ("sequence parallelism", "sequence_parallel", True, False),
    ("torch.compile", "compile", True, False),
    ("sample packing", "packing", True, False),
)
ASKED = (
    "does {} matter for {run}?", "do I need {} for {run}?", "is {} needed for {run}?", "is {} worth it for {run}?",
    "{run}: how much slower is it with {}?", "what does {} cost me in speed? {run}", "{run}, would {} help?",
    "what's the effect of {} on {run}?",
)  # fmt: skip


def sides(reading: Reading) -> list[dict[str, Any]]:
    return [{edit.field: edit.value for edit in option} for option in reading.options]


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize(("words", "field", "value", "without"), SETTINGS)
def test_with_and_without_are_set_side_by_side(
    words: str, field: str, value: object, without: object, asked: str
) -> None:
    reading = read(asked.format(words, run=RUN), known())
    assert reading.tool == "compare"
    assert [side[field] for side in sides(reading)] == [without, value]
    told = {edit.field: edit.value for edit in reading.edits}
    assert (told["model"], told["count"], field in told) == ("meta-llama/Llama-3.1-70B", 32, False)


@pytest.mark.parametrize(
    "words", ["use NVLink", "no NVLink", "with gradient checkpointing", "how many H100s do I need?"]
)
def test_what_is_said_is_no_question_of_its_effect(words: str) -> None:
    assert not read(f"{RUN}, {words}", known()).options


LABELLED = (
    "plan A: {}, plan B: {}. {run}. Which is faster?", "{run}. option 1: {}; option 2: {}. which one?",
    "A) {} B) {} for {run}", "{run}: (a) {} or (b) {}", "Setup 1 = {}, Setup 2 = {}. {run}",
    "{run}. Variante A: {}, Variante B: {}", "{run}, scenario A is {}, scenario B is {}",
)  # fmt: skip


@pytest.mark.parametrize("text", LABELLED)
@pytest.mark.parametrize(
    ("first", "second", "choices"),
    [
        ("tp 8 pp 2", "tp 4 pp 4", [{"tp": 8, "pp": 2}, {"tp": 4, "pp": 4}]),
        ("16 H100 in fp8", "32 A100 in bf16", [
            {"accelerator": "h100-sxm", "count": 16, "precision": "fp8"},
            {"accelerator": "a100-sxm-80gb", "count": 32, "precision": "bf16"},
        ]),
    ],
)  # fmt: skip
def test_choices_with_letters_keep_what_is_theirs(
    text: str, first: str, second: str, choices: list[dict[str, Any]]
) -> None:
    reading = read(text.format(first, second, run="pretraining of llama 3.1 70b"), known())
    assert (reading.tool, sides(reading)) == ("compare", choices)
    assert not reading.lost


@pytest.mark.parametrize("words", ["plan A is too expensive", "1. llama 8b lora on 8 h100", "we use vitamin A: a lot"])
def test_a_letter_alone_is_no_choice(words: str) -> None:
    assert not read(words, known()).options


def test_things_of_other_kinds_are_set_against_those_of_one() -> None:
    reading = read("ZeRO-2 vs ZeRO-3 vs FSDP2 for llama 8b on 8 h100", known())
    assert sides(reading) == [{"zero_stage": 2}, {"zero_stage": 3}, {"framework": "fsdp2"}]


def test_the_rank_of_an_adapter_is_of_its_side() -> None:
    reading = read("LoRA r=16 or full for llama 8b on 8 h100?", known())
    assert sides(reading) == [{"method": "lora", "lora_rank": 16}, {"method": "full"}]


@pytest.mark.parametrize("name", ["tp", "cp", "micro batch", "rank"])
def test_a_field_that_is_named_before_each_number_has_all_of_them(name: str) -> None:
    reading = read(f"{name} 4, {name} 8, {name} 16 or {name} 32 for a lora of llama 8b on 64 h100?", known())
    assert [next(iter(side.values())) for side in sides(reading)] == [4, 8, 16, 32]


def test_layouts_of_a_list_keep_all_their_sizes() -> None:
    reading = read("tp2 pp4, tp4 pp2 or tp8 for pretraining llama 70b on 8 h100?", known())
    assert sides(reading) == [{"tp": 2, "pp": 4}, {"tp": 4, "pp": 2}, {"tp": 8}]


CHOICES = "full sft of qwen2.5 32b on 250M tokens: (a) 8x H200, (b) 16x H100 or (c) 8x MI300X"


@pytest.mark.parametrize(
    ("words", "device"),
    [
        ("go with a.", "h200-sxm"), ("B it is", "h100-sxm"), ("option c then", "mi300x"),
        ("take setup 2", "h100-sxm"), ("take the cheapest", None), ("take the fastest", None),
    ],
)  # fmt: skip
def test_a_choice_is_called_by_its_letter_or_its_rank(words: str, device: str | None) -> None:
    plan = turns(CHOICES, words)[-1]["plan"]
    taken = get(plan, "cluster.accelerator")
    assert taken == device if device else taken in ("h200-sxm", "h100-sxm", "mi300x")
    assert get(plan, "cluster.count") == (16 if taken == "h100-sxm" else 8)


def test_all_of_what_was_compared_is_no_number() -> None:
    assert get(turns(CHOICES, "which is the cheapest of the three?")[-1]["plan"], "cluster.count") != 3


@pytest.mark.parametrize(
    ("words", "count"),
    [("a hundred and twenty-eight", 128), ("two hundred and fifty-six", 256), ("thirty-two", 32), ("ninety six", 96)],
)
def test_numbers_in_words_are_whole(words: str, count: int) -> None:
    edits = {edit.field: edit.value for edit in read(f"llama 70b full on {words} A100s", known()).edits}
    assert edits["count"] == count
