"""What is put in another's place, what is set beside it, and which of several is picked."""

from __future__ import annotations

from typing import Any

import pytest
from scoring import talk

from agent.offline.catalogue import known
from agent.offline.language import read
from launchers.targets import TARGETS
from planner.partial import get

PLAN: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-8B",
    "cluster": {"accelerator": "a100-sxm-80gb", "count": 16, "per_node": 8},
    "workload": {"method": "full"},
}
RUN = "llama 3.1 8b full on 8 h100, 50M tokens"
_NUMBERS = {"micro batch": "micro_batch", "tp": "tp", "seq len": "seq_len", "global batch": "global_batch"}


def _sets(text: str, plan: dict[str, Any] | None = None, topic: dict[str, Any] | None = None) -> dict[str, Any]:
    reading = read(text, known(), PLAN if plan is None else plan, topic or {})
    return {edit.field: edit.value for edit in reading.edits if edit.op == "set"}


@pytest.mark.parametrize("way", ["what if I swapped {} for {}?", "replace {} with {}", "not {}, {}", "not {} but {}"])
@pytest.mark.parametrize(
    ("old", "new", "field", "value"),
    [("adamw", "adafactor", "optimizer", "adafactor"), ("bf16", "fp8", "precision", "fp8"),
     ("dpo", "orpo", "stage", "orpo"), ("lora", "dora", "method", "dora")],
)  # fmt: skip
def test_the_second_takes_the_place_of_the_first(way: str, old: str, new: str, field: str, value: str) -> None:
    assert _sets(way.format(old, new))[field] == value


@pytest.mark.parametrize("name", _NUMBERS)
@pytest.mark.parametrize(("old", "new"), [(2, 4), (8, 1)])
@pytest.mark.parametrize("way", ["{} not {} but {}", "{} not {}, {}"])
def test_a_number_behind_a_refused_one_is_its_fields(name: str, old: int, new: int, way: str) -> None:
    scale = 1024 if name == "seq len" else 1
    assert _sets(f"{RUN}, {way.format(name, old * scale, new * scale)}", {})[_NUMBERS[name]] == new * scale


@pytest.mark.parametrize("name", _NUMBERS)
def test_what_a_number_stands_instead_of_is_not_lost(name: str) -> None:
    reading = read(f"{name} 2048 instead of 1024", known(), PLAN, {})
    assert (reading.values(_NUMBERS[name]), reading.lost) == ([2048], [])


@pytest.mark.parametrize("words", ["where does it stop being worth it?", "when does adding nodes stop paying off?"])
def test_where_scaling_stops_paying_is_asked_of_scaling(words: str) -> None:
    *_, turn = talk([RUN, words])
    assert [call.name for call in turn.calls] == ["project_scaling"]


def test_how_much_faster_a_device_is_counts_none() -> None:
    reading = read("Is MI300X 1.3x H100 on Llama 3.1 405B inference? 8 gpus, fp8", known(), {}, {})
    assert not reading.needs
    assert reading.lost == ["1.3"]


@pytest.mark.parametrize("words", ["sorry, 40GB ones", "the 40gig ones", "40 GB?", "with 40GB cards"])
def test_a_memory_alone_is_another_variant_of_the_device(words: str) -> None:
    assert _sets(words)["accelerator"] == "a100-sxm-40gb"


@pytest.mark.parametrize(
    ("words", "device", "count"),
    [("p4de then", "a100-sxm-80gb", 16), ("just one p5", "h100-sxm", 8), ("p5 boxes, two of em", "h100-sxm", 16),
     ("on 3 p5en", "h200-sxm", 24)],
)  # fmt: skip
def test_a_series_of_machines_is_its_whole_machine(words: str, device: str, count: int) -> None:
    *_, turn = talk(["llama 3.1 8b lora on 2 nodes of 8 A100 40GB, 4k", words])
    assert (get(turn.plan, "cluster.accelerator"), get(turn.plan, "cluster.count")) == (device, count)


@pytest.mark.parametrize("words", ["8xA100-80 box", "one 8xA100-80 host", "8 A100-80 cards"])
def test_a_memory_that_is_glued_to_a_card_counts_nothing(words: str) -> None:
    *_, turn = talk([f"does llama 3.1 8b lora fit on {words}?"])
    assert get(turn.plan, "cluster.count") == 8
    assert get(turn.plan, "workload.kind") != "inference"


@pytest.mark.parametrize("name", [name for name, row in TARGETS.items() if row.role != "place" and name != "mlperf"])
def test_every_target_is_called_by_its_name(name: str) -> None:
    reading = read(f"write the {name} config", known(), PLAN, {})
    assert name in reading.own.get("targets", ()) or name.startswith("mlx")


COMPARED = f"{RUN}: A) 8 h100 or B) 16 mi300x, which is cheaper?"


@pytest.mark.parametrize("words", ["B it is", "la B entonces", "the AMD one", "take the mi300x", "the second one"])
def test_one_of_the_compared_is_picked_with_all_that_it_is(words: str) -> None:
    *_, turn = talk([COMPARED, f"{words}. what does it cost?"])
    assert (get(turn.plan, "cluster.accelerator"), get(turn.plan, "cluster.count")) == ("mi300x", 16)
    assert "estimate_cost" in [call.name for call in turn.calls]


@pytest.mark.parametrize("words", ["throw B200 in as well", "add B200 to the table", "B200 too"])
def test_what_is_added_stands_beside_what_was_compared(words: str) -> None:
    *_, turn = talk([f"{RUN.replace('8 h100, ', '')}: 8 h200 or 8 mi300x?", words])
    (call,) = turn.calls
    assert call.arguments["over"]["accelerator"] == ["h200-sxm", "mi300x", "b200-sxm"]


@pytest.mark.parametrize(
    ("asked", "smaller", "larger"),
    [
        ("lora of llama 8b or 70b on 8 h100", "meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-70B"),
        ("qlora 8b on one a100 80gb or a 3090", "rtx-3090", "a100-sxm-80gb"),
        ("compare 16 h100 and 8 h100 for llama 8b pretraining", 8, 16),
    ],
)
def test_one_of_two_is_called_by_its_size(asked: str, smaller: Any, larger: Any) -> None:
    for words, value in (("the smaller one", smaller), ("take the bigger one, 2 epochs", larger)):
        *_, turn = talk([asked, words])
        taken = (turn.plan["model"], get(turn.plan, "cluster.accelerator"), get(turn.plan, "cluster.count"))
        assert value in taken
        assert "compare" not in [call.name for call in turn.calls]


@pytest.mark.parametrize("words", ["prompts are more like 4k", "prompts of 4k", "4k in rather"])
def test_a_change_of_what_is_shared_is_of_all_that_was_compared(words: str) -> None:
    *_, turn = talk(["compare llama 70b on 4 h100 and 4 h200, 50 users", words])
    (call,) = turn.calls
    assert (call.name, call.arguments["input_len"]) == ("compare", 4096)
    assert call.arguments["over"]["accelerator"] == ["h100-sxm", "h200-sxm"]


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        ("checkpointing is off, turn it on", "recompute", "full"),
        ("offload was disabled, enable it", "offload", "optimizer"),
        ("packing is on, switch it off", "packing", False),
    ],
)
def test_what_is_switched_is_as_the_last_word_has_it(words: str, field: str, value: Any) -> None:
    reading = read(words, known(), PLAN, {})
    assert ({edit.field: edit.value for edit in reading.edits}, reading.lost) == ({field: value}, [])


@pytest.mark.parametrize("words", ["q8 vs q6 vs q4 of qwen3-14b on my 4090", "q4, q8 or q6: qwen3-14b on a 3090"])
def test_formats_of_files_are_compared_as_such(words: str) -> None:
    told = {edit.value for option in read(words, known(), {}, {}).options for edit in option}
    assert told == {"q8_0", "q6_k", "q4_k_m"}


@pytest.mark.parametrize(
    ("asked", "words", "accelerator"),
    [
        ("qwen3 30b a3b on a mac studio m4 max 64gb vs a 5090", "ok the mac, how long a context?", "apple-m4-max-64gb"),
        ("lora 8b on a 4090 or a 7900 xtx", "the radeon one", "rx-7900-xtx"),
        ("serve deepseek r1 for 300 users: 8 B200 or 16 H200?", "the cheaper one. how much a month", "b200-sxm"),
        ("lora 8b on a 4090 or a 5090", "the winner. how long for 10M tokens?", "rtx-5090"),
    ],
)
def test_one_of_the_compared_is_called_by_what_it_is(asked: str, words: str, accelerator: str) -> None:
    *_, turn = talk([asked, words])
    assert get(turn.plan, "cluster.accelerator") == accelerator
    assert "compare" not in [call.name for call in turn.calls]


def test_what_is_refused_leaves_options_and_lets_others_in() -> None:
    *_, turn = talk(["4090 vs 7900 xtx for llama 3.1 8b q4", "no amd then. used 3090?"])
    assert turn.calls[0].arguments["over"] == {"accelerator": ["rtx-4090", "rtx-3090"]}
    *_, turn = talk(["lora qwen 32b: 1 h100, 2 a100 or 4 l40s?", "without the h100"])
    assert [each["count"] for each in turn.calls[0].arguments["scenarios"]] == [2, 4]
    *_, turn = talk(["tp 4 or pp 4 for serving llama 70b on 4 l40s", "and tp2 pp2?"])
    assert turn.calls[0].arguments["scenarios"][-1] | {"name": ""} == {"name": "", "tp": 2, "pp": 2}


def test_a_limit_of_latency_is_of_all_that_was_compared() -> None:
    *_, turn = talk(["serve deepseek r1 for 300 users: 8 B200 or 16 H200?", "ttft under 2 seconds"])
    (call,) = turn.calls
    assert (call.name, call.arguments["ttft_slo_ms"]) == ("compare", 2000)


def test_a_device_that_was_asked_about_is_the_one_that_is_meant() -> None:
    *_, turn = talk(["can a t4 train anything?", "phi 3 mini qlora then, 2k"])
    assert (get(turn.plan, "cluster.accelerator"), get(turn.plan, "workload.method")) == ("t4", "qlora")


@pytest.mark.parametrize("first", ["with 8 a100 in 10 days", "with 8 a100 within 900 dollars"])
def test_devices_behind_a_limit_are_devices(first: str) -> None:
    *_, turn = talk([f"how many tokens can i train on a 13b {first}", "and 20?", "with 16"])
    assert get(turn.plan, "cluster.count") == 16


def test_a_turn_of_which_nothing_was_read_says_so() -> None:
    *_, turn = talk(["grpo of 8b on 8 h100", "zigzagging?"])
    assert "zigzagging" in turn.answer.splitlines()[0]


@pytest.mark.parametrize("words", ["a 70b chat", "a 70b chat model"])
def test_what_a_checkpoint_is_for_counts_nothing(words: str) -> None:
    assert str(_sets(f"serve {words} on 4 h100", {})["model"]).endswith("70B-Instruct")


def test_a_run_that_is_named_behind_a_question_of_practice_is_estimated() -> None:
    *_, turn = talk(["what's the difference between zero 2 and zero 3 anyway", "llama 8b full on 8 a100 40gb"])
    assert "compare" not in [call.name for call in turn.calls]


@pytest.mark.parametrize(
    ("words", "values"),
    [("which frameworks do you support?", "axolotl"), ("which engines do you know?", "sglang")],
)
def test_values_of_a_field_are_listed(words: str, values: str) -> None:
    (turn,) = talk([words])
    assert not turn.calls
    assert values in turn.answer


@pytest.mark.parametrize("words", ["compare 512 h100 with 512 b200", "compare h100 with 4 v100"])
def test_what_is_compared_houses_nothing(words: str) -> None:
    reading = read(f"{words} for pretraining llama 70b on 2T tokens, deadline 60 days", known(), {}, {})
    told = [edit.value for option in reading.options for edit in option if edit.field == "accelerator"]
    assert (told[0], len(told), reading.lost) == ("h100-sxm", 2, [])


def test_a_change_behind_advice_is_estimated() -> None:
    *_, advised, turn = talk(["full ft llama 8b on 8 h100", "how do i make it faster?", "lora rank 64 then"])
    assert "advise" in [call.name for call in advised.calls]
    assert "advise" not in [call.name for call in turn.calls]


def test_why_it_does_not_fit_is_asked_of_its_memory() -> None:
    *_, turn = talk(["full ft llama 70b on 2 a100 40gb", "why does it not fit?"])
    assert turn.calls[-1].arguments["figure"] == "memory.per_device_bytes"


def test_what_was_refused_and_is_named_again_is_compared() -> None:
    asked = "h100, h200 or mi300x for llama 70b serving, 8 each"
    *_, turn = talk([asked, "no amd", "compare mi300x, h100 and b200"])
    assert turn.calls[0].arguments["over"]["accelerator"] == ["mi300x", "h100-sxm", "b200-sxm"]
    *_, turn = talk([asked, "no amd", "and the mi300x?"])
    assert "mi300x" in turn.calls[0].arguments["over"]["accelerator"]
