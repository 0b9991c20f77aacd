"""Formats in bits by what they are of, cards that are counted by their number alone, hosts, and pairs of lengths."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from agent.offline.catalogue import known
from agent.offline.language.mentions import TRAINING, mentions
from agent.offline.language.reading import read
from agent.offline.language.reading.mode import mode_of
from agent.offline.language.reading.page import context_of

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
TRAINED = {"model": "Qwen/Qwen2.5-14B", "workload": {"kind": "training", "stage": "sft", "method": "full"},
           "cluster": {"accelerator": "rtx-4090", "count": 1}}  # fmt: skip


def edits(text: str, plan: dict[str, Any] | None = None) -> dict[str, Any]:
    return {edit.field: edit.value for edit in read(text, known(), plan or {}, {}, NOW).edits}


@pytest.mark.parametrize("bits", ["4bit", "4-bit", "in 4bit", "in 4-bit", "quantized to 4 bit", "int4", "nf4"])
@pytest.mark.parametrize(
    ("words", "plan"), [("fine-tune llama 3.1 8b on a 3090, {}", {}), ("{} then", TRAINED), ("{} instead", TRAINED)]
)
def test_a_training_with_weights_in_4_bits_is_qlora(bits: str, words: str, plan: dict[str, Any]) -> None:
    reading = read(words.format(bits), known(), plan, {}, NOW)
    assert {edit.field: edit.value for edit in reading.edits}["method"] == "qlora"
    assert not reading.serving
    assert not reading.lost


@pytest.mark.parametrize("bits", ["4bit", "in 4-bit", "int4"])
def test_a_deployment_with_weights_in_4_bits_has_weights_in_4_bits(bits: str) -> None:
    found = edits(f"serve llama 3.1 8b on a 4090, {bits}")
    assert (found["weight_dtype"], found.get("method")) == ("int4", None)


@pytest.mark.parametrize("words", ["and in 8 bit?", "with int8 weights", "in fp8", "4 bit", "quantized"])
def test_a_format_alone_makes_no_deployment_of_a_training(words: str) -> None:
    assert mode_of(mentions(words, known()), context_of(TRAINED, {})) == TRAINING


@pytest.mark.parametrize(
    "words", ["the optimizer in 8 bits", "what if the optimizer was in 8 bits?", "and if the optimizer were in 8 bit?"]
)
def test_bits_behind_the_optimizer_are_of_its_states(words: str) -> None:
    assert edits(words, TRAINED) == {"optimizer": "adamw_8bit"}


@pytest.mark.parametrize("base", ["with an int4 base", "on a base in 4 bit", "and weights in 4-bit"])
def test_lora_on_a_base_in_4_bits_is_one_method(base: str) -> None:
    reading = read(f"lora {base} for llama 3.1 8b on a 3090", known(), {}, {}, NOW)
    assert (edits(f"lora {base} for llama 3.1 8b on a 3090")["method"], reading.options) == ("qlora", [])


@pytest.mark.parametrize("count", [2, 3, 4, 8, 16])
@pytest.mark.parametrize("card", ["3090", "4090", "5090"])
@pytest.mark.parametrize("words", ["{} {} in one box", "{} pieces of {}", "on {} {}", "{} units of {}"])
def test_a_number_of_cards_stands_before_the_number_of_a_card(count: int, card: str, words: str) -> None:
    found = edits(f"fine-tune llama 3.1 8b with lora, {words.format(count, card)}")
    assert (found["accelerator"], found["count"]) == (f"rtx-{card}", count)


@pytest.mark.parametrize("host", ["an old threadripper", "an EPYC 7742 box", "my Ryzen 9 pc", "a dual Xeon"])
def test_a_processor_beside_a_card_is_its_host(host: str) -> None:
    reading = read(f"got two 3090s in {host}, can i qlora llama 3.1 8b?", known(), {}, {}, NOW)
    assert not reading.needs
    assert edits(f"got two 3090s in {host}, can i qlora llama 3.1 8b?")["accelerator"] == "rtx-3090"


@pytest.mark.parametrize("load", ["concurrency 8, {}", "16 users, {}", "{}, 16 users", "at 4 rps, {}"])
@pytest.mark.parametrize("pair", ["4000/1000", "2000/500", "8k/1k"])
def test_a_pair_of_lengths_is_no_list_with_what_stands_beside_it(load: str, pair: str) -> None:
    reading = read(f"serve llama 3.1 8b on one h100: {load.format(pair)}", known(), {}, {}, NOW)
    found = {edit.field: edit.value for edit in reading.edits}
    assert found["input_len"] > found["output_len"]
    assert not reading.options


@pytest.mark.parametrize("words", ["a 4090 and a 3090", "one 4090 and one 3090", "a 4090 + a 3090"])
def test_unlike_cards_of_a_deployment_hold_its_layers_side_by_side(words: str) -> None:
    found = edits(f"llama 3.3 70b q4_k_m on {words}, tokens per second")
    assert (found["accelerator"], found["count"], found["beside"]) == ("rtx-4090", 1, ["rtx-3090"])
    assert edits("2x 3090 + 1x 4090: llama 3.1 70b q4?")["beside"] == ["rtx-4090"]
    assert "beside" not in edits(f"lora fine-tune llama 3.1 8b on {words}")
    assert "beside" not in edits(
        f"llama 3.1 8b on {words.replace(' and ', ' or ').replace(' + ', ' or ')}: which is faster?"
    )


@pytest.mark.parametrize("host", ["an EPYC 9654", "an epyc 9654 with 512 GB", "an epyc 9654 host"])
def test_a_processor_that_is_named_beside_a_card_holds_what_that_has_no_room_for(host: str) -> None:
    found = edits(f"deepseek r1 q4_k_m on one 4090 and {host}, tokens per second")
    assert (found["accelerator"], found.get("beside")) == ("rtx-4090", ["cpu-epyc-9654"])
    assert "beside" not in edits("serve llama 3.1 70b on 8 H100 with xeon 8480+ hosts")
