"""Comparatives without a number, switches that are turned, labels behind choices, sizes that are tokens again: what a
turn says by pointing at what there is."""

from __future__ import annotations

from typing import Any

import pytest
from conversations import begun, reading
from spoken import FIELDS, plan_with

from planner.partial import get
from planner.requests import ALL_PATHS

MORE = ("a larger {}", "increase the {}", "raise the {}", "make the {} bigger", "with a bigger {}?")
LESS = ("a smaller {}", "reduce the {}", "lower our {}", "make the {} smaller", "what if the {} gets smaller?")
SIZES = ("micro_batch", "global_batch", "seq_len", "lora_rank", "group_size", "tp", "pp", "cp", "vpp", "concurrency")
RUN: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-8B",
    "workload": {"dataset_tokens": 1e11},
    "cluster": {"accelerator": "h100-sxm", "count": 8},
}


@pytest.mark.parametrize("name", SIZES)
def test_a_size_without_a_number_goes_a_step_the_way_that_is_said(name: str) -> None:
    plan, noun = plan_with(name), FIELDS[name].nouns[0]
    held = get(plan, ALL_PATHS[name])
    for ways, factor in ((MORE, 2), (LESS, 0.5)):
        for way in ways:
            turn = begun(way.format(noun), plan)
            assert get(turn.plan, ALL_PATHS[name]) == held * factor, way.format(noun)
            assert any("taken as" in edit["note"] for edit in turn.reading["edits"] if edit["note"]), way


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("words", ["reduce the {} to 2", "take the larger {}", "a quarter more {}"])
def test_a_size_with_a_number_or_one_that_is_pointed_at_goes_no_step(name: str, words: str) -> None:
    turn = begun(words.format(FIELDS[name].nouns[0]), plan_with(name))
    assert {0.5, 2.0}.isdisjoint(edit["value"] for edit in turn.reading["edits"] if edit["op"] == "times")


@pytest.mark.parametrize(
    ("words", "field", "factor"),
    [
        ("would longer sequences be slower?", "seq_len", 2), ("mit kürzeren Sequenzen?", "seq_len", 0.5),
        ("avec des séquences plus longues ?", "seq_len", 2), ("序列更长会怎样?", "seq_len", 2),
    ],
)  # fmt: skip
def test_what_is_longer_is_the_length_of_what_is_counted(words: str, field: str, factor: float) -> None:
    edits = [(edit.field, edit.op, edit.value) for edit in reading(words, RUN).edits]
    assert edits == [(field, "times", factor)]


@pytest.mark.parametrize(
    ("words", "on"),
    [
        ("turn it on", True), ("switch it off", False), ("Schalte es ein", True), ("schalte es aus", False),
        ("zet het aan", True), ("zet het uit", False), ("actívalo", True), ("desactívalo", False), ("打开它", True),
    ],
)  # fmt: skip
def test_a_switch_that_was_asked_about_is_turned_the_way_that_is_said(words: str, on: bool) -> None:
    offers = [{"layout.recompute": "none"}, {"layout.recompute": "full"}]
    found = reading(words, RUN, {"offers": offers, "best": 0})
    assert [(ref.to, ref.place) for ref in found.refs] == [("offer", int(on))]


@pytest.mark.parametrize("words", ["leave chunked prefill out", "turn chunked prefill off", "zet chunked prefill uit"])
def test_a_verb_and_its_particle_refuse_what_stands_between(words: str) -> None:
    plan = {"model": "Qwen/Qwen3-32B", "workload": {"kind": "inference"}}
    assert [(edit.field, edit.value) for edit in reading(words, plan).edits] == [("chunked_prefill", False)]


@pytest.mark.parametrize(
    "words",
    [
        "tp 8 (plan A) or tp 4 pp 2 (plan B)",
        "tp 8 (A) or tp 4 with pp 2 (B)",
        "tp 8 [option 1] or tp 4 pp 2 [option 2]",
    ],
)
def test_labels_behind_choices_are_no_part_of_them(words: str) -> None:
    found = reading(f"llama 70b on 8 h100: {words}")
    assert [[(edit.field, edit.value) for edit in option] for option in found.options] == [
        [("tp", 8)],
        [("tp", 4), ("pp", 2)],
    ]


@pytest.mark.parametrize(
    ("words", "field"), [("and 200B?", "dataset_tokens"), ("make that 50B", "dataset_tokens"), ("and 70B?", "model")]
)
def test_billions_are_tokens_again_where_the_model_has_no_such_size(words: str, field: str) -> None:
    assert [edit.field for edit in reading(words, RUN).edits] == [field]


@pytest.mark.parametrize(
    "name", ["qwen3-embedding-8b", "qwen3 embedding", "qwen3 reranker 4b", "qwen2-audio-7b", "qwen tts"]
)
def test_what_is_no_language_model_is_never_a_neighbour(name: str) -> None:
    found = reading(f"{name} on 2 a100")
    assert "model" not in {edit.field for edit in found.edits}
    assert [need.field for need in found.needs] == ["model"]


def test_a_size_that_the_named_model_has_not_is_not_passed_over() -> None:
    assert reading("train a 5.3B on 8 A100 for 26B tokens, gpt-neox-20b style").lost == ["5.3B"]


def test_what_was_solved_is_what_a_number_alone_sets_but_not_what_it_asks() -> None:
    asked = {"limit": {"goal": "micro_batch"}, "solved": "workload.micro_batch", "recent": "cluster.count"}
    assert [edit.field for edit in reading("set it to 2", RUN, asked).edits] == ["micro_batch"]
    assert [edit.field for edit in reading("and with 4?", RUN, asked).edits] == ["count"]


@pytest.mark.parametrize("words", ["2B input and 400M output tokens", "2B input tokens and 400M output tokens"])
def test_tokens_in_and_out_of_a_month_go_together(words: str) -> None:
    found = reading(f"serve llama 8b with {words} a month")
    rate = next(edit.value for edit in found.edits if edit.field == "token_rate")
    assert (rate[1], rate[2] / rate[0], found.lost) == ("both", pytest.approx(5.0), [])


@pytest.mark.parametrize(("words", "share"), [("owning 8 H100 at 50%", 0.5), ("to own 8 h100 at 70% utilization", 0.7)])
def test_the_share_of_use_is_read_where_owning_is_asked_about(words: str, share: float) -> None:
    found = reading(f"what does it cost per hour {words}" if "own " in words else f"hourly cost of {words}")
    assert found.tool == "describe_hardware"
    assert found.own["paid_for"]["h100-sxm"] == {"count": 8, "hours_per_year": pytest.approx(share * 8760)}


def test_what_has_no_limit_of_its_own_is_swept() -> None:
    found = reading("what's the biggest rank i can use", RUN | {"workload": {"method": "lora"}})
    assert (found.tool, found.own["field"]) == ("sweep", "lora_rank")
    assert len(found.own["values"]) > 2


def test_a_size_beside_a_config_is_compared_with_nothing() -> None:
    found = reading("we have an own 3b too, config is in ./cfg/config.json, does it train on 2 a100?")
    assert [edit.value for edit in found.edits if edit.field == "model"] == ["./cfg/config.json"]
