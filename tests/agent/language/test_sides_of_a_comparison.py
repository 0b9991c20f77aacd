"""What belongs to each side of a comparison, what goes on with one, and figures that are counted for each device."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from agent.offline.catalogue import known
from agent.offline.form import Reading
from agent.offline.language import read
from tests.agent import scoring
from tests.agent.scoring import NOON


@pytest.fixture(autouse=True)
def at_home() -> Iterator[None]:
    with scoring.home():
        yield


def sides(text: str) -> list[dict[str, Any]]:
    reading = of(text)
    assert not reading.lost, text
    return [{edit.field: edit.value for edit in option} for option in reading.options]


def of(text: str) -> Reading:
    return read(text, known(), {}, {}, NOON)


def last(*turns: str) -> tuple[str, dict[str, Any]]:
    """The last call of a conversation."""
    *_, end = scoring.talk(list(turns))
    return end.calls[-1].name, end.calls[-1].arguments


SETTINGS = [
    ("cpu offload", {"offload": "optimizer"}),
    ("full recompute", {"recompute": "full"}),
    ("packing", {"packing": True}),
    ("8 bit adam", {"optimizer": "adamw_8bit"}),
]
VERSUS = ["vs", "or", "versus", "compared to"]


@pytest.mark.parametrize(("words", "versus"), list(product(SETTINGS, VERSUS)), ids=str)
def test_a_setting_before_the_word_that_compares_is_of_the_first_side(
    words: tuple[str, dict[str, Any]], versus: str
) -> None:
    said, fields = words
    first, second = sides(f"lora with {said} {versus} full for llama 8b on 4 a100")
    assert first == {"method": "lora", **fields}
    assert second == {"method": "full"}


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        ("serve llama 70b on 8 h100, fp8 with tp 4 vs bf16 with tp 8",
         {"weight_dtype": "fp8", "tp": 4}, {"weight_dtype": "bf16", "tp": 8}),
        ("lora with rank 64 at 4k or qlora with rank 16 at 8k, llama 8b on a 4090",
         {"method": "lora", "lora_rank": 64, "seq_len": 4096}, {"method": "qlora", "lora_rank": 16, "seq_len": 8192}),
        ("sft of llama 8b on 2 nodes of 8x B200 or 4 nodes of 8 H100",
         {"accelerator": "b200-sxm", "count": 16}, {"accelerator": "h100-sxm", "count": 32}),
        ("sft of llama 8b, zwei Knoten mit 8 MI300X oder ein Knoten mit 8 B200",
         {"accelerator": "mi300x", "count": 16}, {"accelerator": "b200-sxm", "count": 8}),
        ("how much longer does dora take than lora for llama 3.2 3b on a 4070 ti super",
         {"method": "dora"}, {"method": "lora"}),
        ("how much longer is it on a 4090 than on a 5090, qlora of llama 8b",
         {"accelerator": "rtx-4090"}, {"accelerator": "rtx-5090"}),
        ("full ft of llama 8b, h100, 2 vs 4", {"count": 2}, {"count": 4}),
        ("qwen3-8b lora on h100s: 4 or 8?", {"count": 4}, {"count": 8}),
    ],
)  # fmt: skip
def test_each_side_has_its_own(text: str, first: dict[str, Any], second: dict[str, Any]) -> None:
    assert sides(text) == [first, second]


THREE = [
    ("sft of qwen2.5-14b: 2x h100 with lora r=32, 4x a100 80g full with zero 3, or one h200 qlora",
     [("h100-sxm", 2, "lora"), ("a100-sxm-80gb", 4, "full"), ("h200-sxm", 1, "qlora")]),
    ("Drei Varianten für Gemma 3 12B: LoRA auf einer 4090, QLoRA auf einer 3090 oder volles Finetuning auf 4 L40S",
     [("rtx-4090", 1, "lora"), ("rtx-3090", 1, "qlora"), ("l40s", 4, "full")]),
    ("llama 8b: qlora on a 5090, lora on an L40S, or full on 2 H100",
     [("rtx-5090", 1, "qlora"), ("l40s", 1, "lora"), ("h100-sxm", 2, "full")]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), THREE)
def test_three_sides_with_their_own_devices(text: str, expected: list[tuple[str, int, str]]) -> None:
    options = [{edit.field: edit.value for edit in option} for option in of(text).options]
    assert [(side["accelerator"], side["count"], side["method"]) for side in options] == expected


def test_so_many_of_them_are_of_their_side() -> None:
    first, second = sides("serve llama 70b: vllm fp8 on 2 h100s vs trtllm bf16 on 4 of them")
    assert second == {"engine": "trtllm", "weight_dtype": "bf16", "count": 4}
    assert first == {"engine": "vllm", "weight_dtype": "fp8"}


@pytest.mark.parametrize("place", range(3))
def test_a_side_is_taken_by_the_device_that_it_alone_has(place: int) -> None:
    text, expected = THREE[0]
    device, count, method = expected[place]
    *_, end = scoring.talk([text, f"the {device.partition('-')[0]} one looks sane. does it still work at 16k?"])
    own = end.calls[0].arguments
    assert (own["accelerator"], own["count"], own["method"], own["seq_len"]) == (device, count, method, 16384)


@pytest.mark.parametrize("text", ["qwen3-8b lora on h100, 4", "qwen3-8b lora on h100 - 4", "lora of qwen3-8b, h100: 4"])
def test_a_number_behind_a_device_alone_counts_it(text: str) -> None:
    assert {edit.field: edit.value for edit in of(text).edits}["count"] == 4


def test_a_device_with_an_article_is_one() -> None:
    assert of("serve llama 8b on a 4090, 50, cheap").lost == ["50"]


def test_a_form_that_a_card_has_not_is_no_other_card() -> None:
    reading = of("lora of llama 8b on 2 3090, pcie")
    assert not reading.options
    assert {edit.field: edit.value for edit in reading.edits}["accelerator"] == "rtx-3090"


@pytest.mark.parametrize("more", ["and 24?", "what about 24", "24?", "how about 24?"])
def test_another_number_behind_a_comparison_joins_it(more: str) -> None:
    name, own = last("qwen3-8b lora on 1 a100, micro batch 8 or 16?", more)
    assert (name, own["over"]) == ("compare", {"micro_batch": [8, 16, 24]})


def test_a_change_behind_a_comparison_is_of_all_that_was_compared() -> None:
    name, own = last("compare 16 h200 and 8 b300 for serving deepseek v3, 64 concurrent", "and at 256 concurrent")
    assert (name, own["concurrency"]) == ("compare", 256)
    assert len(own["scenarios"]) == 2


@pytest.mark.parametrize("said", ["per gpu", "each card", "单卡", "每张卡", "pro GPU", "por gpu"])
def test_a_rate_that_is_said_of_each_device_is_no_total(said: str) -> None:
    _, own = last(f"qwen3 8b sft on 8 h100, {said} 6200 tokens/s, normal?")
    assert own["tokens_per_s_per_device"] == 6200
    assert "tokens_per_s" not in own


@pytest.mark.parametrize("asked", ["what MFU am i at?", "what MFU is that?", "which MFU does that come to?"])
def test_the_utilisation_of_a_measured_speed_is_rated(asked: str) -> None:
    name, own = last(f"llama 3.1 70b on 64 h100, seq 8192, 40k tokens/s in total. {asked}")
    assert (name, own["tokens_per_s"]) == ("rate_run", 40000)


@pytest.mark.parametrize("family", ["gemmas", "llamas", "qwens", "mistrals"])
def test_a_family_in_the_plural_is_asked_for(family: str) -> None:
    single = family[:-1]
    name, own = last(f"which {family} do you know")
    assert (name, own["kind"], own["query"]) == ("list_catalogue", "models", single)
    name, own = last(f"which of the {family} can i run on a 4090")
    assert (name, own["goal"], own["family"]) == ("find_limit", "model", single)


@pytest.mark.parametrize(
    ("field", "of_work"), [("epochs", "serve llama 8b on a 4090"), ("lora rank", "serve qwen3 8b")]
)
def test_a_field_of_other_work_counts_no_devices(field: str, of_work: str) -> None:
    *_, end = scoring.talk([of_work, f"{field} 3"])
    assert end.plan.get("cluster", {}).get("count") in (None, 1)


@pytest.mark.parametrize("change", ["double the accumulation", "halve the epochs", "twice the warmup steps"])
def test_a_change_of_what_serving_has_not_is_no_crash(change: str) -> None:
    first, end = scoring.talk(["serve llama 8b on a 4090", change])
    assert end.plan.get("workload") == first.plan.get("workload")


@pytest.mark.parametrize(
    "text", ["grpo of qwen3 8b: reward goes flat after 40 steps", "my qwen3 8b sft overfits after 2 epochs, what now"]
)
def test_what_goes_wrong_with_learning_is_looked_up(text: str) -> None:
    *_, end = scoring.talk([text])
    assert [call.name for call in end.calls] == ["search_playbook"]
    assert not {"steps", "epochs"} & set(end.plan.get("workload", {}))


@pytest.mark.parametrize("refusal", ["not vast or salad", "neither salad nor vast", "neither aws nor azure"])
def test_providers_that_are_refused_together(refusal: str) -> None:
    name, own = last(f"cheapest gpu for qlora of llama 70b, {refusal}")
    assert name == "recommend_cluster"
    assert not {"Vast", "Salad"} <= set(own["providers"]) or "AWS" not in own["providers"]
    assert len(own["providers"]) > 5


def test_saved_plans_are_dropped_by_their_place() -> None:
    kept = ("llama 8b lora on 8 h100", "keep it as a1", "same on h200", "store that as a2")
    name, own = last(*kept, "what have i saved so far", "drop the first one")
    assert (name, own["name"]) == ("delete_scenario", "a1")


@pytest.mark.parametrize("verb", ["give me that back", "hand it back", "send that back"])
def test_what_is_given_back_stays_as_it_is(verb: str) -> None:
    *_, end = scoring.talk(["llama 8b lora on a 4090, micro batch 4", "micro batch 1", f"{verb} as an axolotl yaml"])
    assert end.plan["workload"]["micro_batch"] == 1


def test_money_on_top_is_a_larger_budget() -> None:
    *_, end = scoring.talk(["qlora llama 70b on 2 a100, budget $1000", "boss gave me another 2k"])
    assert end.plan["goal"]["budget_usd"] == 3000


def test_machines_of_so_many_are_those_to_scale_to() -> None:
    name, own = last("does qwen2.5-72b pretraining still scale well at 16 nodes of 8 h200")
    assert (name, own["nodes"]) == ("project_scaling", 16)


def test_a_side_that_is_taken_is_no_more_beside_itself() -> None:
    *_, end = scoring.talk(
        ["compare 4 h20 fp8 or 8 a800 bf16 for serving qwen2.5-72b, 50 clients", "那就用H20，一个月要多少钱"]
    )
    own = end.calls[-1].arguments
    assert (end.calls[-1].name, own["accelerator"], own["count"]) == ("estimate_cost", "h20", 4)
